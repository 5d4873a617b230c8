"""Invented students: submissions made from the release, right, wrong, damaged, or saved by Colab.

The demo, the bench and the banks of tests make their classes from these; no real student's work is here.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from pathlib import Path

import nbformat

from autograder.course import Course

Notebooks = dict[str, nbformat.NotebookNode]

PREDICTION = re.compile(r'evidence\.predict\("([^"]+)", None\)')
OPEN_LINE = re.compile(r"^(?P<indent>\s*)(?P<name>my_\w+(?:\[\d\])?) = .*?(?P<end>\s*# <-.*)$")
SOLUTION = re.compile(r"^\s*### (?:BEGIN|END) SOLUTION.*\n?", re.MULTILINE)

CHANGES: Mapping[str, str] = {
    "my_SEED": "1912",
    "my_K": "np.array([[1.0, 0.5], [0.0, 1.0], [1.0, 1.0]])",
    "my_Q": "np.array([[-1.0, 0.5]])",
    "my_row": "np.array([[2.0, -1.0, 0.5]])",
    "my_shift": "100.0",
    "my_values": "np.array([[10.0, 0.0], [0.0, 500.0], [10.0, 10.0]])",
    "my_temperature": "0.5",
    "my_X": "np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.5, 0.5]])",
    "my_is_real_key": "np.array([True, False, True])",
    "my_permission": "np.array([[1, 1, 0], [1, 1, 0], [0, 1, 0]], dtype=bool)",
    "my_query": "np.array([[0.5, 2.0]])",
    "my_mask": "np.array([[True, True, False]])",
    "my_V_changed[1]": "[-1000.0, 250.0]",
    "my_keep": "np.array([[True, True, False]])",
    "my_shared_key": "np.array([0.5, -1.0])",
    "my_claim": '"no weight is negative"',
    "my_claim_holds": "(weights >= 0).all()",
}
"""What a diligent invented student writes on the walkthrough's open lines (those with `# <-`)."""

WORDS = (
    "The heatmap shows where this computation routes information: how much each query takes from each key. "
    "It does not show why anything happened in the world; for that an intervention is needed."
)


def read(folder: Path) -> Notebooks:
    """The notebooks of a folder by stem."""
    return {path.stem: nbformat.read(path, as_version=4) for path in sorted(folder.glob("*.ipynb"))}


def untouched(course: Course, assignment: str) -> Notebooks:
    """The release as it is handed out."""
    return read(course.release / assignment)


def diligent(course: Course, assignment: str, changes: Mapping[str, str] = CHANGES) -> Notebooks:
    """Every prediction made, every open line changed, every answer written rightly."""
    notebooks = untouched(course, assignment)
    solutions = read(course.source / assignment)
    for name, nb in notebooks.items():
        written = {
            cell.metadata.nbgrader.grade_id: SOLUTION.sub("", cell.source)
            for cell in solutions[name].cells
            if cell.metadata.get("nbgrader", {}).get("solution")
        }
        for cell in nb.cells:
            meta = cell.metadata.get("nbgrader", {})
            if meta.get("solution"):
                manual = cell.cell_type == "markdown"
                cell.source = WORDS if manual else written[meta["grade_id"]]
            elif cell.cell_type == "code" and not meta.get("locked"):
                cell.source = changed(cell.source, changes)
    return notebooks


def changed(source: str, changes: Mapping[str, str]) -> str:
    """The text of an open cell with the student's predictions and numbers in it."""
    lines = []
    for line in PREDICTION.sub(r'evidence.predict("\1", "my guess")', source).split("\n"):
        found = OPEN_LINE.match(line)
        if found and found["name"] in changes:
            line = f"{found['indent']}{found['name']} = {changes[found['name']]}{found['end']}"
        lines.append(line)
    return "\n".join(lines)


def replaced(notebooks: Notebooks, cell_id: str, old: str, new: str) -> Notebooks:
    """The notebooks with `old` replaced by `new` in one cell.

    Raises:
        ValueError: if that cell does not hold `old`: the lesson has changed and so must the caller.
    """
    notebooks = copy.deepcopy(notebooks)
    for nb in notebooks.values():
        for cell in nb.cells:
            if cell.get("id") == cell_id and old in cell.source:
                cell.source = cell.source.replace(old, new)
                return notebooks
    raise ValueError(f"no cell {cell_id!r} holds {old!r}")


def saved_by_colab(nb: nbformat.NotebookNode) -> dict:
    """The notebook as Colab saves it: no locks, its own metadata, the user's name, a widget's state."""
    nb = json.loads(json.dumps(nb))
    nb["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nb["metadata"]["colab"] = {"provenance": [], "toc_visible": True}
    nb["metadata"]["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}
    for number, cell in enumerate(nb["cells"]):
        for lock in ("editable", "deletable"):
            cell["metadata"].pop(lock, None)
        cell["metadata"]["id"] = f"cLb{number:09d}"
        if cell["cell_type"] == "code":
            cell["execution_count"] = number + 1
            cell["metadata"]["outputId"] = f"out{number:08d}"
            cell["metadata"]["executionInfo"] = {
                "status": "ok",
                "timestamp": 1790000000000,
                "user": {"displayName": "Demo Student", "userId": "0"},
                "elapsed": 12,
            }
    return nb


def hand_in(
    course: Course,
    student: str,
    assignment: str,
    notebooks: Mapping[str, object],
    pattern="{}.ipynb",
) -> Path:
    """Write a submission: nodes, dicts, text or bytes by notebook name; `pattern` names the files."""
    folder = course.submitted / student / assignment
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in notebooks.items():
        if isinstance(content, dict):
            content = json.dumps(content, indent=1)
        if isinstance(content, str):
            content = content.encode("utf-8")
        (folder / pattern.format(name)).write_bytes(content)
    return folder
