"""A small release with the course's conventions, and a perfect answer to it."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
SOLUTIONS = {
    "double": 'def double(x):\n    """Twice x."""\n    y = x + x\n    return y',
    "square": 'def square(x):\n    """x times x."""\n    return x * x',
    "words": "Doubling is linear; squaring is not.",
}


def settings(grade_id, *, grade=False, solution=False, locked=False, points=None, kind="code"):
    part = {
        "grade_id": grade_id,
        "grade": grade,
        "solution": solution,
        "locked": locked,
        "schema_version": 3,
        "cell_type": kind,
        "task": False,
    }
    if points is not None:
        part["points"] = points
    metadata = {"nbgrader": part}
    if locked:
        metadata |= {"editable": False, "deletable": False}
    return metadata


def code(source, cell_id, metadata=None):
    return new_code_cell(source, id=cell_id, metadata=metadata or {})


def prose(source, cell_id, metadata=None):
    return new_markdown_cell(source, id=cell_id, metadata=metadata or {})


def released():
    """Setup, a complete core cell, two answers with checkpoints, one answer in words."""
    cells = [
        prose("# Doubling\n\nOne idea at a time.", "title"),
        code("import numpy as np\nVERSION = 1", "setup", settings("setup", locked=True)),
        prose("## A core cell\n\nRun it, then change a number.", "core-text"),
        code("numbers = np.array([1.0, 2.0, 3.0])\ntotal = numbers.sum()", "core"),
        prose("## Implement `double`", "double-text"),
        code(
            'def double(x):\n    """Twice x."""\n    raise NotImplementedError',
            "double",
            settings("double", solution=True),
        ),
        code(
            "# double adds x to itself\nassert double(2) == 4",
            "double-value",
            settings("double-value", grade=True, locked=True, points=2),
        ),
        prose("## Implement `square`", "square-text"),
        code(
            'def square(x):\n    """x times x."""\n    raise NotImplementedError',
            "square",
            settings("square", solution=True),
        ),
        code(
            "# square is never negative\nassert square(-3) == 9",
            "square-value",
            settings("square-value", grade=True, locked=True, points=3),
        ),
        prose(
            "Your answer in words.",
            "words",
            settings("words", grade=True, solution=True, points=1, kind="markdown"),
        ),
    ]
    return new_notebook(cells=cells, metadata=deepcopy(KERNEL))


def other_released():
    cells = [
        code("import numpy as np\nVERSION = 1", "setup", settings("setup", locked=True)),
        prose("# Halving\n\nThe other way round.", "halves-title"),
        code(
            'def half(x):\n    """Half of x."""\n    raise NotImplementedError',
            "half",
            settings("half", solution=True),
        ),
        code(
            "# half of four\nassert half(4) == 2",
            "half-value",
            settings("half-value", grade=True, locked=True, points=1),
        ),
    ]
    return new_notebook(cells=cells, metadata=deepcopy(KERNEL))


def solved(notebook=None):
    """The release with the solutions written in."""
    notebook = deepcopy(notebook or released())
    for cell in notebook.cells:
        if cell.id in SOLUTIONS:
            cell.source = SOLUTIONS[cell.id]
        if cell.id == "half":
            cell.source = "def half(x):\n    return x / 2"
    return notebook


def cell(notebook, cell_id):
    return next(c for c in notebook.cells if c.id == cell_id)


def write(path: Path, notebook) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


def run(notebook) -> dict:
    """Runs the code cells one after the other in plain Python, going on after errors."""
    names: dict = {}
    for one in notebook.cells:
        if one.cell_type == "code":
            try:
                exec(compile(one.source, one.id, "exec"), names)
            except Exception as error:
                names.setdefault("errors", []).append((one.id, repr(error)))
    return names
