"""Makes a graded notebook safe for formgrader's own page, where its scripts would run in the instructor's name.

formgrader shows Markdown, HTML outputs, raw cells and tags as the student wrote them. nbgrader_config.py names
this preprocessor for its exporter; the notebook on disk stays as it is.
"""

from __future__ import annotations

from html import escape

from nbconvert.preprocessors import Preprocessor
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.feedback.gather import cell_source, nbgrader_of
from autograder.feedback.markdown import to_html
from autograder.feedback.outputs import Block, Limits, Room, blocks
from autograder.feedback.text import plain, shortened

LIMITS = Limits(text=20_000, source=60_000, picture=400_000, pictures=8_000_000, outputs=60)


class InertNotebook(Preprocessor):
    """Replaces the notebook by one made anew from text and decoded pictures."""

    def preprocess(self, nb, resources):
        room = Room(LIMITS.pictures)
        cells = [_rebuilt(cell, room) for cell in nb.cells]
        language = {"name": "python", "pygments_lexer": "ipython3"}
        return new_notebook(cells=cells, metadata={"language_info": language}), resources


def _rebuilt(cell, room: Room):
    """The same cell: its text, nbgrader's metadata, and outputs that are only shown."""
    about = nbgrader_of(cell)
    metadata = {"nbgrader": {key: _value(value) for key, value in about.items()}} if about else {}
    if cell.get("cell_type") == "code":
        source, _ = shortened(cell_source(cell), LIMITS.source)
        outputs = [_output(block) for block in blocks(cell.get("outputs") or [], LIMITS, room)]
        return new_code_cell(source, outputs=outputs, metadata=metadata)
    if cell.get("cell_type") == "markdown":
        html, _ = to_html(cell_source(cell), limit=LIMITS.source)
    else:
        text, _ = shortened(cell_source(cell), LIMITS.source)
        html = f"<pre>{escape(text)}</pre>"
    # One line of HTML: Markdown passes it on as it is.
    line = "<div>" + html.replace("\n", "&#10;") + "</div>"
    return new_markdown_cell(line, metadata=metadata)


def _value(value: object) -> object:
    return escape(plain(value)) if isinstance(value, str) else value


def _output(block: Block):
    if block.kind == "picture":
        kind, _, data = block.uri.removeprefix("data:").partition(";base64,")
        return new_output("display_data", data={kind: data})
    return new_output("stream", name="stdout", text=block.text + "\n")
