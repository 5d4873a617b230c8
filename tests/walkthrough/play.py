"""Plays a student: the walkthrough's cells run with some of their text replaced, and are judged as in grading.

In one process, so that a hundred cases take seconds. The values pass through the grader's own wire format,
and are asked at the same two moments as in grading.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

import attention_lab as lab
from autograder.execute import wire
from autograder.tasks.model import ValueTask, Verdict
from autograder.tasks.w07_h2_attention import ASSIGNMENT
from autograder.verify.interview import Answers
from autograder.verify.verdicts import verdicts

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "source" / "w07-h2-attention"
NOTEBOOKS = [notebook.name for notebook in ASSIGNMENT.notebooks]

Edit = tuple[str, str, str]
"""Cell id, a text in it, what stands there instead. The text "" puts lines at the cell's end."""


@dataclass
class Played:
    """What one notebook gave: verdicts, the helper's own sign for each checkpoint, errors, printed text."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    signs: dict[str, str] = field(default_factory=dict)
    errors: dict[str, Exception] = field(default_factory=dict)
    printed: dict[str, str] = field(default_factory=dict)
    names: dict = field(default_factory=dict)

    @property
    def score(self) -> float:
        return sum(verdict.score for verdict in self.verdicts.values())

    def wrong(self) -> set[str]:
        """Checkpoints in which something is not right (which is more than something to do)."""
        return {
            name
            for name, verdict in self.verdicts.items()
            if verdict.score < verdict.max_score
            and verdict.verdict != "manual"
            and not verdict.message.startswith("Right so far")
        }


def source(name: str) -> nbformat.NotebookNode:
    return nbformat.read(SOURCE / f"{name}.ipynb", as_version=4)


def edited(name: str, edits: list[Edit]) -> nbformat.NotebookNode:
    nb = source(name)
    cells = {cell.id: cell for cell in nb.cells}
    for cell_id, old, new in edits:
        text = cells[cell_id].source
        assert old in text, f"{cell_id} does not hold {old!r}"
        cells[cell_id].source = text.replace(old, new, 1) if old else f"{text}\n{new}"
    return nb


def play(name: str, edits: list[Edit], folder: Path, skip: tuple[str, ...] = ()) -> Played:
    """Run one notebook in `folder` with the edits, leaving out the cells in `skip`."""
    tasks = ASSIGNMENT.notebook(name)
    asked = {part.checkpoint.grade_id: part for part in tasks.parts if isinstance(part, ValueTask)}
    played, answers = Played(), Answers()
    held = {"__name__": "__main__"}
    lab._RUN.clear()
    before = Path.cwd()
    os.chdir(folder)
    try:
        for cell in edited(name, edits).cells:
            if cell.cell_type != "code" or cell.id in skip:
                continue
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if grade_id == "setup":
                continue  # the helper is imported here
            if grade_id in asked:
                answers.values_own[grade_id] = _sent(held, asked[grade_id].names)
            played.printed[cell.id] = _run(cell.source, held, played, cell.id)
        for grade_id, task in asked.items():
            answers.values_last[grade_id] = _sent(held, task.names)
    finally:
        os.chdir(before)
    played.verdicts = verdicts(tasks, {}, answers)
    played.signs = {grade_id: sign for grade_id, (sign, _) in lab._RUN.items()}
    played.names = held
    return played


def _run(text: str, held: dict, played: Played, cell_id: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, cell_id, "exec"), held)
        except Exception as error:
            played.errors[cell_id] = error
    return printed.getvalue()


def _sent(held: dict, names) -> dict:
    """The values as the grader gets them."""
    return {name: wire.decode(wire.encode(held[name])) for name in names if name in held}


def predictions(name: str) -> list[Edit]:
    """An answer to every prediction of one notebook."""
    return [
        (cell.id, ", None)", ', "my guess")')
        for cell in source(name).cells
        if cell.id.startswith("predict-")
    ]


CHANGES: dict[str, list[Edit]] = {
    "1-scores-and-context": [
        ("your-change-1", "my_SEED = 2026", "my_SEED = 31"),
        ("your-change-2", "[1.0, 1.0]])  # <- addresses", "[1.0, 1.0], [-2.0, 0.5]])"),
        ("your-change-2", "[10.0, 10.0]])  # <- what", "[10.0, 10.0], [7.0, 7.0]])  # <- what"),
        ("your-change-3", "[[1.0, 0.0]]", "[[-3.0, 0.25]]"),
        ("your-change-4", "[[1.0, 0.0, 1.0]]", "[[-4.0, 900.0, 2.0, 899.0]]"),
        ("your-change-4", "my_shift = 0.0", "my_shift = -1000"),
        ("your-change-5", "[0.0, 10.0]", "[1e9, -1e9]"),
    ],
    "2-queries-and-masks": [
        ("your-change-6", "my_temperature = 1.0", "my_temperature = 0.5"),
        ("your-change-7", "[1.0, 1.0]]", "[1.0, 1.0], [30.0, -2.0]]"),
        ("your-change-8", "[True, True, False]", "[True, False, True]"),
        ("your-change-8b", "[1, 0, 0], [1, 1, 0]", "[0, 0, 1], [0, 1, 0]"),
    ],
    "3-parity-and-evidence": [
        ("your-change-9", "[[1.0, 0.0]]", "[[0.5, -2.0]]"),
        ("your-change-9", "[[True, True, True]]", "[[True, False, True]]"),
        ("your-change-10", "[100.0, 100.0]", "[1e6, -1e6]"),
        ("your-change-10b", "[[True, False, True]]", "[[False, True, True]]"),
        ("your-change-11", "[1.0, 1.0]", "[-50.0, 3.0]"),
        ("your-change-11b", "each row of causal_weights sums to one", "no weight is negative"),
        ("your-change-11b", "np.allclose(causal_weights.sum(axis=-1), 1)", "(weights >= 0).all()"),
    ],
}
"""One right change for every "change it" cell."""

assert "attention_lab" in sys.modules
