"""`python -m autograder site [DIR]`: the lessons as plain pages, for reading without Jupyter.

Made from release/ alone. The pages load and run nothing: formulas are MathML, pictures come from running the
released notebooks once (in an empty folder), each with its text alternative.
"""

from __future__ import annotations

import argparse
import copy
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from markupsafe import Markup

from autograder.course import Course, CourseError
from autograder.execute import Executor
from autograder.feedback.gather import cell_source, nbgrader_of
from autograder.feedback.markdown import headings_in_order, to_html, web_only
from autograder.feedback.outputs import Block, Limits, Room, blocks
from autograder.feedback.page import environment, python
from autograder.tasks.registry import MODULES
from autograder.tasks.registry import assignment as find_tasks

LIMITS = Limits(
    text=4_000, source=40_000, picture=150_000, pictures=3_000_000, cells=10_000, svg=True
)
SECONDS = 300
_TITLE = re.compile(r"\A\s*# +(.+?)\s*#*\s*(?:\n|\Z)")
_COLAB = re.compile(r"^\[Open in Colab\]\((https://[^)\s]+)\)\s*$", re.MULTILINE)
_PREDICTION = re.compile(r"evidence\.predict\([^\n]*")
_NOTEBOOK = re.compile(r"(?:\./|\.\./[\w.-]+/)?([\w.-]+)\.ipynb")


@dataclass(frozen=True)
class Lesson:
    """One notebook of the release, ready to be shown."""

    assignment: str
    name: str
    title: str
    colab: str
    notebook: Mapping


@dataclass(frozen=True)
class Piece:
    """One cell on the page: `prose`, `code`, `check` or `setup`."""

    kind: str
    html: str = ""
    outputs: tuple[Block, ...] = ()


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, help="where to write (default: site/)")
    parser.add_argument(
        "--no-run", action="store_true", help="do not run the notebooks: pages without pictures"
    )


def lessons(course: Course) -> list[Lesson]:
    """The released notebooks in the course's order.

    Raises:
        CourseError: if nothing is released, or a released notebook cannot be read.
    """
    found = []
    for assignment in MODULES:
        for path in sorted((course.release / assignment).glob("*.ipynb")):
            try:
                notebook = nbformat.read(path, as_version=4)
            except (OSError, ValueError) as error:
                raise CourseError(f"{path} cannot be read ({error}): run `make release`.") from None
            first = cell_source(notebook.cells[0]) if notebook.cells else ""
            title = _TITLE.match(first)
            colab = _COLAB.search(first)
            found.append(
                Lesson(
                    assignment,
                    path.stem,
                    title.group(1) if title else path.stem,
                    colab.group(1) if colab else "",
                    notebook,
                )
            )
    if not found:
        raise CourseError("release/ holds no notebook: run `make release` first.")
    return found


def ran(lesson: Lesson, executor: Executor) -> Mapping:
    """The notebook with its outputs, run once from top to bottom in an empty folder.

    A cell that fails (a stub that a student has to fill) has no outputs.

    Raises:
        CourseError: if the kernel dies or a cell does not end.
    """
    notebook = copy.deepcopy(lesson.notebook)
    with executor.kernel() as kernel:
        for cell in notebook.cells:
            if cell.cell_type != "code":
                continue
            done = kernel.execute(cell.source, timeout=SECONDS)
            if done.status not in ("ok", "error"):
                raise CourseError(
                    f"{lesson.assignment}/{lesson.name} does not run: cell {cell.id} ends in a "
                    f"{done.status} kernel (`--no-run` makes the pages without pictures)."
                )
            cell.outputs = [] if done.status == "error" else done.outputs
    return notebook


def linker(lesson: Lesson, known: set[tuple[str, str]]) -> Callable[[str], str | None]:
    """How a link is followed on the page: other notebooks become pages, the web stays, the rest is text."""

    def to_page(url: str) -> str | None:
        target = _NOTEBOOK.fullmatch(url)
        if target and (lesson.assignment, target.group(1)) in known:
            return f"{target.group(1)}.html"
        return web_only(url)

    return to_page


def pieces(lesson: Lesson, notebook: Mapping, link_to: Callable[[str], str | None]) -> list[Piece]:
    """The cells of a page in their order; the title is the page's own."""
    found: list[Piece] = []
    room = Room(LIMITS.pictures)
    level = 1
    for index, cell in enumerate(notebook["cells"]):
        source = cell_source(cell)
        about = nbgrader_of(cell)
        if about.get("grade_id") == "setup":
            found.append(Piece("setup"))
        elif cell["cell_type"] == "code":
            kind = "check" if about.get("grade") else "code"
            found.append(Piece(kind, python(source), _shown(cell, kind, room)))
        elif cell["cell_type"] == "markdown":
            if index == 0:
                source = _COLAB.sub("", _TITLE.sub("", source))
            html, _ = to_html(source, link_to, LIMITS.source)
            html, level = headings_in_order(html, below=0, previous=level)
            found.append(Piece("prose", Markup(html)))
    return found


def _shown(cell: Mapping, kind: str, room: Room) -> tuple[Block, ...]:
    # What an untouched notebook prints at a checkpoint or an open prediction is no lesson.
    if kind == "check" or _PREDICTION.fullmatch(cell_source(cell).strip()):
        return ()
    return tuple(blocks(cell.get("outputs") or [], LIMITS, room))


def write_site(course: Course, folder: Path, run: bool = True) -> list[Path]:
    """Write index.html and a page for each released notebook.

    Args:
        folder: where to write; pages that are no longer made are removed from it.
        run: run the notebooks for their outputs.

    Raises:
        CourseError: if nothing is released, a notebook does not run, or the folder cannot be written.
    """
    known = lessons(course)
    names = {(lesson.assignment, lesson.name) for lesson in known}
    written: list[Path] = []
    try:
        for assignment in {lesson.assignment for lesson in known}:
            shutil.rmtree(folder / assignment, ignore_errors=True)
        with Executor(workers=1, sandbox=False) as executor:  # the release is ours
            for place, lesson in enumerate(known):
                notebook = ran(lesson, executor) if run else lesson.notebook
                html = (
                    environment()
                    .get_template("lesson.html")
                    .render(
                        lesson=lesson,
                        course_title=find_tasks(lesson.assignment).title,
                        pieces=pieces(lesson, notebook, linker(lesson, names)),
                        before=known[place - 1] if place else None,
                        after=known[place + 1] if place + 1 < len(known) else None,
                    )
                )
                page = folder / lesson.assignment / f"{lesson.name}.html"
                page.parent.mkdir(parents=True, exist_ok=True)
                page.write_text(html, encoding="utf-8")
                written.append(page)
        groups = [
            (find_tasks(name).title, [lesson for lesson in known if lesson.assignment == name])
            for name in dict.fromkeys(lesson.assignment for lesson in known)
        ]
        index = environment().get_template("index.html").render(groups=groups)
        (folder / "index.html").write_text(index, encoding="utf-8")
    except OSError as error:
        raise CourseError(f"{folder} cannot be written ({error.strerror}).") from None
    return [folder / "index.html", *written]


def run(args: argparse.Namespace, course: Course) -> int:
    folder = args.folder or course.root / "site"
    pages = write_site(course, folder, run=not args.no_run)
    print(f"site: {len(pages)} pages, open {pages[0]}")
    return 0
