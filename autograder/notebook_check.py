"""`python -m autograder check-notebooks`: whether the notebooks keep to the course's conventions.

Each rule is a small function from one notebook to sentences about what is wrong in it; `RULES` lists them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.nbgraderformat.common import ValidationError as BadMetadata

import attention_lab
from autograder.course import Course, CourseError
from autograder.release import source_names
from autograder.tasks.model import FunctionTask, NotebookTasks
from autograder.tasks.registry import assignment

LONGEST_CODE, LONGEST_CHECKPOINT, LONGEST_TEXT = 20, 10, 320
ID = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
GENERATED_ID = re.compile(r"(?:[0-9a-f]{8}|cell-?\d+|[0-9a-f-]{32,36})")
MARKS = re.compile(r"\((\d+(?:\.\d+)?) (?:practice )?marks?\)")
PICTURE = re.compile(r"!\[(?P<alt>[^\]]*)\]\(|<img\b(?P<tag>[^>]*)>")
TEXT_OF_SOLUTIONS = ("BEGIN SOLUTION", "END SOLUTION", "BEGIN HIDDEN", "BEGIN MARK SCHEME")

Found = Iterator[str]


def meta(cell) -> dict:
    return cell.metadata.get("nbgrader", {})


def name(cell) -> str:
    return meta(cell).get("grade_id") or cell.get("id", "?")


def ids(nb, tasks: NotebookTasks) -> Found:
    """Ids are there, unique, words, and those of graded cells are their grade_id."""
    seen: set[str] = set()
    for number, cell in enumerate(nb.cells, start=1):
        own = cell.get("id", "")
        if not ID.fullmatch(own) or GENERATED_ID.fullmatch(own):
            yield f"cell {number} has the id {own!r}: give it a word"
        if own in seen:
            yield f"the id {own!r} stands twice"
        seen.add(own)
        grade_id = meta(cell).get("grade_id")
        if grade_id and own.replace("_", "-") != grade_id.replace("_", "-").lower():
            yield f"the cell of grade_id {grade_id!r} has the id {own!r}"


def outputs(nb, tasks: NotebookTasks) -> Found:
    """No outputs, no execution counts, no attachments."""
    for cell in nb.cells:
        if cell.get("outputs") or cell.get("execution_count") is not None:
            yield f"{name(cell)} has an output or an execution count: clear all outputs and save"
        if cell.get("attachments"):
            yield f"{name(cell)} has an attachment, which Colab does not show"


def metadata(nb, tasks: NotebookTasks) -> Found:
    """nbformat 4.5, a kernelspec with language, valid nbgrader metadata, locks on locked cells."""
    try:
        nbformat.validate(nb)
    except nbformat.ValidationError as error:
        yield f"not a valid notebook: {str(error).splitlines()[0]}"
    if (nb.nbformat, nb.nbformat_minor) != (4, 5):
        yield f"is nbformat {nb.nbformat}.{nb.nbformat_minor}, not 4.5"
    kernel = nb.metadata.get("kernelspec", {})
    if kernel.get("name") != "python3" or kernel.get("language") != "python":
        yield "needs the kernelspec python3 with language python"
    try:
        MetadataValidator().validate_nb(nb)
    except (BadMetadata, RuntimeError) as error:
        yield f"nbgrader metadata: {error}"
    for cell in nb.cells:
        if meta(cell).get("locked") and not meta(cell).get("solution"):
            if cell.metadata.get("editable", True) or cell.metadata.get("deletable", True):
                yield f"{name(cell)} is locked for nbgrader but editable or deletable"


def setup(nb, tasks: NotebookTasks) -> Found:
    """The first code cell is the locked `setup`."""
    first = next((cell for cell in nb.cells if cell.cell_type == "code"), None)
    if first is None or meta(first).get("grade_id") != "setup" or not meta(first).get("locked"):
        yield "the first code cell must be the locked cell `setup`"


def lengths(nb, tasks: NotebookTasks) -> Found:
    """Code of at most 20 lines, checkpoints of 10, text that one screen holds."""
    for cell in nb.cells:
        lines = [line for line in cell.source.splitlines() if line.strip()]
        if name(cell) == "setup":
            continue
        if meta(cell).get("grade") and cell.cell_type == "code" and len(lines) > LONGEST_CHECKPOINT:
            yield f"{name(cell)} has {len(lines)} lines; a checkpoint has at most 10"
        elif cell.cell_type == "code" and not _answer(cell) and len(lines) > LONGEST_CODE:
            yield f"{name(cell)} has {len(lines)} lines of code; 20 at most"
        elif cell.cell_type == "markdown" and len(cell.source.split()) > LONGEST_TEXT:
            yield f"{name(cell)} has {len(cell.source.split())} words; split it"


def _answer(cell) -> bool:
    # Their docstrings come from the task definitions and may be long.
    return bool(meta(cell).get("solution"))


def checkpoints(nb, tasks: NotebookTasks) -> Found:
    """The graded cells are those of the task definition, with its points, in its order."""
    wanted = {c.grade_id: c.points for c in tasks.checkpoints()}
    there = {name(c): meta(c).get("points") for c in nb.cells if meta(c).get("grade")}
    for grade_id in wanted.keys() - there.keys():
        yield f"the checkpoint {grade_id} of the task definition is not there"
    for grade_id in there.keys() - wanted.keys():
        yield f"the checkpoint {grade_id} has no task definition"
    for grade_id in wanted.keys() & there.keys():
        if float(there[grade_id]) != wanted[grade_id]:
            yield f"{grade_id} has {there[grade_id]} points, the definition {wanted[grade_id]:g}"
    for cell in nb.cells:
        if meta(cell).get("grade") and cell.cell_type == "code":
            if not cell.source.lstrip().startswith("#"):
                yield f"{name(cell)} must state its property in its first line, as a comment"


def marks_in_text(nb, tasks: NotebookTasks) -> Found:
    """Each checkpoint's points stand, as "(2 marks)", in its own text or in the text before it."""
    for index, cell in enumerate(nb.cells):
        if not meta(cell).get("grade"):
            continue
        before = [c for c in nb.cells[:index] if c.cell_type == "markdown"][-1:]
        places = [cell.source, *[c.source for c in before]]
        said = [float(m) for place in places for m in MARKS.findall(place)]
        if float(meta(cell)["points"]) not in said:
            yield f"{name(cell)} is worth {meta(cell)['points']}: no such '(... marks)' before it"


def order(nb, tasks: NotebookTasks) -> Found:
    """Every checkpoint comes after the cell that makes what it checks."""
    place = {name(cell): index for index, cell in enumerate(nb.cells)}
    bound: dict[str, int] = {}
    for index, cell in enumerate(nb.cells):
        for word in _bound(cell):
            bound.setdefault(word, index)
    for part in tasks.parts:
        if isinstance(part, FunctionTask):
            for checkpoint in part.checkpoints:
                at = place.get(checkpoint.grade_id, len(nb.cells))
                if place.get(part.name, len(nb.cells)) >= at:
                    yield f"{checkpoint.grade_id} comes before its answer cell {part.name}"
        elif hasattr(part, "names"):
            at = place.get(part.checkpoint.grade_id, -1)
            for word in part.names:
                if bound.get(word, len(nb.cells)) >= at >= 0:
                    yield f"{part.checkpoint.grade_id} comes before a cell that makes `{word}`"


def _bound(cell) -> set[str]:
    """Names that a code cell assigns, defines or imports; those that an answer cell's stub asks for."""
    if cell.cell_type != "code":
        return set()
    asked = set(re.findall(r"`(\w+)`", cell.source)) if _answer(cell) else set()
    try:
        tree = ast.parse(re.sub(r"^[%!].*$", "pass", cell.source, flags=re.MULTILINE))
    except SyntaxError:
        return asked
    found = asked
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
    return found


def pictures(nb, tasks: NotebookTasks) -> Found:
    """Every picture in the text has a text alternative; plots are drawn by the helper, which adds one."""
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            for found in PICTURE.finditer(cell.source):
                tag = found.group("tag") or ""
                if not (found.group("alt") or re.search(r'alt="[^"]+"', tag)):
                    yield f"{name(cell)} has a picture without a text alternative"
        elif "plt.show(" in cell.source and "alt" not in cell.source:
            yield f"{name(cell)} shows a plot without words: draw it with the helper, or print them"


def stubs(nb, tasks: NotebookTasks) -> Found:
    """The docstring of each answer cell is the task definition's."""
    cells = {name(cell): cell for cell in nb.cells}
    for part in tasks.parts:
        if isinstance(part, FunctionTask) and part.docstring and part.name in cells:
            if not _answer(cells[part.name]):
                continue
            own = _docstring(cells[part.name].source, part.name)
            if own is not None and own != part.docstring.strip():
                yield f"the docstring of {part.name} is not the task definition's: run `make sync`"


def _docstring(source: str, function: str) -> str | None:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return (ast.get_docstring(node) or "").strip()
    return None


def no_solutions(nb, tasks: NotebookTasks) -> Found:
    """Nothing in a released notebook is marked as a solution."""
    for cell in nb.cells:
        for text in TEXT_OF_SOLUTIONS:
            if text in cell.source:
                yield f"{name(cell)} still has {text!r}"


def helper_names(nb, tasks: NotebookTasks) -> Found:
    """What a notebook takes from the helper is there."""
    for cell in nb.cells:
        if cell.cell_type != "code" or name(cell) == "setup":
            continue
        for word in re.findall(r"\blab\.(\w+)", cell.source):
            if not hasattr(attention_lab, word):
                yield f"{name(cell)} asks for lab.{word}, which the helper does not have"
        for word in re.findall(r"\bevidence\.(\w+)\(", cell.source):
            if not hasattr(attention_lab.Evidence, word):
                yield f"{name(cell)} calls evidence.{word}, which the helper does not have"


Rule = Callable[[nbformat.NotebookNode, NotebookTasks], Found]
RULES: tuple[Rule, ...] = (
    ids,
    outputs,
    metadata,
    setup,
    lengths,
    checkpoints,
    marks_in_text,
    order,
    pictures,
    stubs,
    helper_names,
)


def problems(path: Path, tasks: NotebookTasks, released: bool) -> list[str]:
    """What is wrong with one notebook file, in sentences."""
    try:
        nb = nbformat.read(path, as_version=4)
    except Exception as error:
        return [f"can't be read ({type(error).__name__})"]
    rules = (*RULES, no_solutions) if released else RULES
    return [text for rule in rules for text in rule(nb, tasks)]


def configure(parser) -> None:
    parser.add_argument("assignments", nargs="*", help="assignments (default: all in source/)")


def run(args, course: Course) -> int:
    found: list[str] = []
    count = 0
    for assignment_name in args.assignments or source_names(course):
        for tasks in assignment(assignment_name).notebooks:
            for folder in (course.source, course.release):
                path = folder / assignment_name / f"{tasks.name}.ipynb"
                shown = path.relative_to(course.root)
                count += 1
                for text in problems(path, tasks, folder == course.release):
                    found.append(f"{shown}: {text}")
    for line in found:
        print(line)
    if found:
        raise CourseError(f"{len(found)} problems in {count} notebooks; each is listed above.")
    print(f"{count} notebooks keep to the conventions.")
    return 0
