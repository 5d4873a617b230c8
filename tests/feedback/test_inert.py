"""Is a notebook that formgrader shows only text and pictures, whatever the student wrote?"""

import graded
import pytest
from bs4 import BeautifulSoup
from nbconvert.exporters import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell
from traitlets.config import Config

PAYLOAD = "<img src=x onerror='alert(1)'><script>alert(1)</script>"


def hostile():
    outputs = [
        new_output("display_data", data={"text/html": PAYLOAD, "text/plain": "kept text"}),
        new_output("display_data", data={"image/svg+xml": f"<svg>{PAYLOAD}</svg>"}),
        new_output("display_data", data={"application/javascript": "alert(1)"}),
        new_output("display_data", data={"text/markdown": PAYLOAD, "text/latex": PAYLOAD}),
        new_output("stream", text=PAYLOAD),
        graded.plot(),
    ]
    attached = new_markdown_cell(
        f"{PAYLOAD}\n\n![p](attachment:a.png) **kept bold**\n\n```\na\n\nb\n```"
    )
    attached["attachments"] = {"a.png": {"image/svg+xml": PAYLOAD}}
    tagged = new_code_cell("kept = 1", outputs=outputs, metadata={"tags": [f'">{PAYLOAD}']})
    raw = new_raw_cell(PAYLOAD, metadata={"format": "text/html", "raw_mimetype": "text/html"})
    nb = new_notebook(cells=[attached, tagged, raw], metadata={"title": f"</title>{PAYLOAD}"})
    state = {"state": {}, "x": f"</script>{PAYLOAD}"}
    nb.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": state}
    return nb


def shown(preprocessors) -> BeautifulSoup:
    config = Config()
    config.HTMLExporter.preprocessors = preprocessors
    config.HTMLExporter.template_name = "classic"
    html, _ = HTMLExporter(config=config).from_notebook_node(hostile())
    return BeautifulSoup(html, "html.parser")


def attacks(page: BeautifulSoup) -> list[str]:
    return [str(e) for e in page.find_all(["script", "img", "svg"]) if "alert(1)" in str(e)]


def test_nothing_hostile_is_left_and_the_work_is():
    page = shown(["autograder.feedback.inert.InertNotebook"])
    assert attacks(page) == []
    text = page.body.get_text()
    assert "kept = 1" in text
    assert "kept text" in text
    assert "a\n\nb" in text
    assert page.find("strong").get_text() == "kept bold"
    assert page.find("img")["src"].startswith("data:image/png;base64,")


def test_without_it_the_payloads_are_there():
    """The test above would notice."""
    assert len(attacks(shown([]))) > 4


@pytest.mark.parametrize("grade_id", ['x"><script>alert(1)</script>'])
def test_a_grade_id_is_text_too(grade_id):
    from autograder.feedback.inert import InertNotebook

    cell = graded.answer("softmax", "pass")
    cell.metadata.nbgrader["grade_id"] = grade_id
    nb, _ = InertNotebook().preprocess(new_notebook(cells=[cell]), {})
    assert "<" not in nb.cells[0].metadata.nbgrader.grade_id
    assert nb.cells[0].metadata.nbgrader.solution is True
