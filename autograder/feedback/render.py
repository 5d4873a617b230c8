"""One feedback page: the summary first, then the notebook with each verdict beside what it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from autograder.feedback import words
from autograder.feedback.gather import Judged, Standing, cell_source, nbgrader_of
from autograder.feedback.markdown import headings_in_order, to_html
from autograder.feedback.outputs import Block, Limits, Room, blocks
from autograder.feedback.page import environment, python
from autograder.feedback.text import plain, shortened

LARGEST = 1_000_000
LADDER = (
    Limits(),
    Limits(text=2_000, source=5_000, pictures=350_000, cells=150, outputs=8),
    Limits(text=800, source=2_500, pictures=200_000, cells=60, outputs=3, highlight=False),
    Limits(
        text=200, source=600, picture=20_000, pictures=40_000, cells=20, outputs=1, highlight=False
    ),
)


@dataclass(frozen=True)
class Item:
    """One thing in the notebook's order: `prose`, `code`, `setup`, `check` or `note`."""

    kind: str
    html: str = ""
    label: str = ""
    source: str = ""
    outputs: tuple[Block, ...] = ()
    check: Judged | None = None
    comment: str = ""
    notes: tuple[str, ...] = field(default=())


def feedback_page(standing: Standing, notebook: Mapping | None) -> str:
    """The HTML of one student's notebook, under `LARGEST` bytes whatever is in it.

    Args:
        standing: what the summary says.
        notebook: the graded notebook; None gives a page with the reason and what to do.
    """
    html = ""
    for limits in LADDER:
        items = list(_items(standing, notebook, limits)) if notebook else []
        html = _filled(standing, items, cut=limits is not LADDER[0])
        if len(html.encode("utf-8")) < LARGEST:
            return html
    return _filled(standing, [], cut=True)


def _filled(standing: Standing, items: list[Item], cut: bool) -> str:
    in_notebook = {item.check.grade_id for item in items if item.check}
    return (
        environment()
        .get_template("feedback.html")
        .render(
            s=standing,
            items=items,
            anchors=in_notebook,
            shortened=cut,
            headline=words.headline(standing),
            steps=words.next_steps(standing),
            states=words.STATES,
            badge=words.badge,
            keep_cells=words.KEEP_CELLS,
        )
    )


def _items(standing: Standing, notebook: Mapping, limits: Limits) -> Iterator[Item]:
    judged = {c.grade_id: c for c in standing.checkpoints}
    room = Room(limits.pictures)
    level = 2
    shown = hidden = 0
    for cell in notebook.get("cells", []):
        if not isinstance(cell, Mapping):
            continue
        about = nbgrader_of(cell)
        check = judged.get(about.get("grade_id", "")) if about.get("grade") else None
        if about.get("grade_id") == "setup":
            yield Item("setup")
            continue
        if check is None and shown >= limits.cells:
            hidden += 1
            continue
        shown += 1
        comment = plain(standing.comments.get(about.get("grade_id", ""), ""))
        answer = bool(about.get("solution") or about.get("task"))
        if cell.get("cell_type") == "code":
            yield _code(cell, about, check, answer, comment, limits, room)
        else:
            item, level = _prose(cell, about, check, answer, comment, limits, level)
            yield item
    if hidden:
        yield Item("note", notes=(f"{hidden} more cells are not shown, to keep this page small.",))


def _source(cell: Mapping, limits: Limits) -> Markup:
    text, _ = shortened(cell_source(cell), limits.source)
    return python(text, limits.highlight)


def _code(
    cell: Mapping,
    about: Mapping,
    check: Judged | None,
    answer: bool,
    comment: str,
    limits: Limits,
    room: Room,
) -> Item:
    source = _source(cell, limits)
    if check is not None and not answer:
        return Item("check", source=source, check=check, comment=comment)
    label = f"Your answer: {about.get('grade_id')}" if answer else "Code"
    found = blocks(cell.get("outputs") or (), limits, room)
    return Item(
        "code", label=label, source=source, outputs=tuple(found), check=check, comment=comment
    )


def _prose(
    cell: Mapping,
    about: Mapping,
    check: Judged | None,
    answer: bool,
    comment: str,
    limits: Limits,
    level: int,
) -> tuple[Item, int]:
    html, left_out = to_html(cell_source(cell), limit=limits.source)
    html, level = headings_in_order(html, below=2, previous=level)
    notes = (f"{left_out:,} characters of this text are not shown.",) if left_out else ()
    label = "Your answer in words" if answer else ""
    item = Item("prose", html=Markup(html), label=label, check=check, comment=comment, notes=notes)
    return item, level
