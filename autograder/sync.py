"""`python -m autograder sync`: writes points and docstrings from the task definitions into source/.

What a notebook says twice is written here once: points of checkpoint cells, the "(2 marks)" in the text
before them, and the docstrings of the answer cells.
"""

from __future__ import annotations

import ast

import nbformat

from autograder.course import Course
from autograder.notebook_check import MARKS, meta, name
from autograder.release import source_names
from autograder.tasks.model import FunctionTask, NotebookTasks
from autograder.tasks.registry import assignment


def sync_notebook(nb: nbformat.NotebookNode, tasks: NotebookTasks) -> list[str]:
    """Change `nb` in place; returns a sentence for each change."""
    said: list[str] = []
    points = {c.grade_id: c.points for c in tasks.checkpoints()}
    last_text = None
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            last_text = cell
        grade_id = meta(cell).get("grade_id")
        if grade_id not in points or not meta(cell).get("grade"):
            continue
        wanted = points[grade_id]
        if float(meta(cell).get("points", -1)) != wanted:
            cell.metadata.nbgrader["points"] = int(wanted) if wanted == int(wanted) else wanted
            said.append(f"{grade_id}: {wanted:g} points")
        for place in (cell, last_text):
            if place is not None and len(MARKS.findall(place.source)) == 1:
                unit = "mark" if wanted == 1 else "marks"
                kind = "practice " if "practice mark" in place.source else ""
                text = MARKS.sub(f"({wanted:g} {kind}{unit})", place.source)
                if text != place.source:
                    place.source = text
                    said.append(f"{grade_id}: the text before it says {wanted:g} {unit}")
                break
    functions = {p.name: p for p in tasks.parts if isinstance(p, FunctionTask) and p.docstring}
    for cell in nb.cells:
        task = functions.get(name(cell))
        if task is not None and meta(cell).get("solution"):
            text = with_docstring(cell.source, task.name, task.docstring.strip())
            if text != cell.source:
                cell.source = text
                said.append(f"{task.name}: docstring")
    return said


def with_docstring(source: str, function: str, docstring: str) -> str:
    """`source` with the docstring of `function` replaced; unchanged if it can't be parsed."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return source
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == function:
            if (ast.get_docstring(node) or "").strip() == docstring:
                return source
            lines = source.split("\n")
            pad = " " * node.body[0].col_offset
            text = [f'{pad}"""{docstring.splitlines()[0]}']
            text += [f"{pad}{line}".rstrip() for line in docstring.splitlines()[1:]]
            text = [*text[:-1], f'{text[-1]}"""'] if len(text) == 1 else [*text, f'{pad}"""']
            has = isinstance(node.body[0], ast.Expr) and ast.get_docstring(node) is not None
            start = node.body[0].lineno - 1
            stop = node.body[0].end_lineno if has else start
            return "\n".join([*lines[:start], *text, *lines[stop:]])
    return source


def configure(parser) -> None:
    parser.add_argument("assignments", nargs="*", help="assignments (default: all in source/)")


def run(args, course: Course) -> int:
    for assignment_name in args.assignments or source_names(course):
        for tasks in assignment(assignment_name).notebooks:
            path = course.source / assignment_name / f"{tasks.name}.ipynb"
            nb = nbformat.read(path, as_version=4)
            said = sync_notebook(nb, tasks)
            if said:
                nbformat.write(nb, path)
            for text in said:
                print(f"{path.relative_to(course.root)}: {text}")
    return 0
