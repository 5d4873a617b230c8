"""Hand-made graded notebooks and results, in the form that grading writes."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

from nbformat.v4 import (
    new_code_cell,
    new_markdown_cell,
    new_notebook,
    new_output,
    writes,
)
from PIL import Image

from autograder.course import Course

ASSIGNMENT = "hand-made"
NOTEBOOK = "1-weights"
STUDENT = "amber"


def picture(width: int = 40, height: int = 24, kind: str = "PNG", noise: bool = False) -> str:
    """Base64 text of a small picture, or of one that hardly compresses."""
    if noise:
        import numpy as np

        pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype="uint8")
        image = Image.fromarray(pixels)
    else:
        image = Image.new("RGB", (width, height), "teal")
    stream = io.BytesIO()
    image.save(stream, kind)
    return base64.b64encode(stream.getvalue()).decode()


def answer(grade_id: str, source: str, outputs: list | None = None):
    """An answer cell."""
    return new_code_cell(
        source,
        id=grade_id,
        outputs=outputs or [],
        metadata={"nbgrader": _nbgrader(grade_id, grade=False, solution=True, locked=False)},
    )


def checkpoint(grade_id: str, source: str, verdict: dict):
    """A graded checkpoint cell with what the grader wrote into it."""
    outputs = [
        new_output("display_data", data={"text/plain": verdict["message"]}),
        new_output("execute_result", data={"text/plain": str(verdict["score"])}),
    ]
    about = _nbgrader(grade_id, grade=True, solution=False, locked=True)
    about["points"] = verdict["max_score"]
    return new_code_cell(
        source, id=grade_id, outputs=outputs, metadata={"nbgrader": about, "autograder": verdict}
    )


def in_words(grade_id: str, text: str, points: float = 1):
    """A hand-marked answer in words."""
    about = _nbgrader(grade_id, grade=True, solution=True, locked=False)
    about["points"] = points
    verdict = judged("manual", None, points, "A person reads this answer.")
    return new_markdown_cell(text, id=grade_id, metadata={"nbgrader": about, "autograder": verdict})


def setup():
    """The locked setup cell."""
    about = _nbgrader("setup", grade=False, solution=False, locked=True)
    return new_code_cell("SECRET_TABLE = [1, 2, 3]", id="setup", metadata={"nbgrader": about})


def plot(encoded: str | None = None, alt: str | None = None):
    """A cell's picture output."""
    metadata = {"image/png": {"alt": alt}} if alt else {}
    data = {"image/png": encoded or picture(), "text/plain": "<Figure size 640x480 with 1 Axes>"}
    return new_output("display_data", data=data, metadata=metadata)


def judged(
    verdict: str, score: float, max_score: float, message: str, misconceptions=(), notes=()
) -> dict:
    """One checkpoint's entry, as the results and the cell hold it."""
    return {
        "verdict": verdict,
        "score": score,
        "max_score": max_score,
        "message": message,
        "misconceptions": list(misconceptions),
        "notes": list(notes),
    }


def _nbgrader(grade_id: str, **flags) -> dict:
    return {
        "grade_id": grade_id,
        "schema_version": 3,
        "cell_type": "code",
        "task": False,
        **flags,
    }


WRONG_AXIS = (
    "Each column sums to 1, not each row: row 0 sums to 0.8413. `sum` and `max` went along axis 0.\n\n"
    "Try `axis=-1` and `keepdims=True`, then print `weights.sum(axis=-1)`."
)


def lesson(*extra) -> object:
    """A notebook with one checkpoint of each kind, and `extra` cells at its end."""
    cells = [
        new_markdown_cell("# Weights\n\nFor $Q$ and $K$: $$S=QK^\\top/\\sqrt{d_k}$$", id="title"),
        setup(),
        new_markdown_cell("## 1. Softmax\n\nA row of **weights** sums to one.", id="idea"),
        answer("softmax", "def softmax(scores):\n    return scores / scores.sum(axis=0)"),
        checkpoint(
            "softmax-rows",
            "# Every row sums to one.\ncheck_task('softmax-rows', softmax)",
            judged("wrong", 0, 2, WRONG_AXIS, ["softmax-wrong-axis"]),
        ),
        answer("mask", "def mask(n):\n    return np.tril(np.ones((n, n), bool))", [plot(alt="A")]),
        checkpoint(
            "mask-future",
            "# The future is blocked.\ncheck_task('mask-future', mask)",
            judged("right", 1, 1, "The future gets exactly 0."),
        ),
        checkpoint(
            "context-sum",
            "# The context is the weighted sum.\ncheck_task('context-sum', context)",
            judged("not-attempted", 0, 1, "The stub is as released."),
        ),
        in_words("heatmap-words", "It shows where the model *routes* information."),
        *extra,
    ]
    return new_notebook(cells=cells)


def results_of(students: dict) -> dict:
    """A results file."""
    return {
        "schema_version": 1,
        "assignment": ASSIGNMENT,
        "nonce": "0",
        "max_score": 5,
        "students": students,
    }


def entry(status: str = "graded", notebook=None, name: str = NOTEBOOK, **more) -> dict:
    """One student's entry, with the checkpoints that `notebook` holds."""
    found = {}
    for cell in notebook.cells if notebook is not None else ():
        if cell.metadata.get("nbgrader", {}).get("grade"):
            verdict = dict(cell.metadata["autograder"])
            found[cell.metadata.nbgrader.grade_id] = {"notebook": name, **verdict}
    scores = [value["score"] or 0 for value in found.values()]
    return {
        "status": status,
        "score": sum(scores) if scores else None,
        "max_score": 5,
        "reason": "",
        "repairs": [],
        "notes": [],
        "notebooks": {name: {"status": status, "problem": ""}},
        "checkpoints": found,
        **more,
    }


def course(root: Path, students: dict, notebooks: dict) -> Course:
    """A course folder with results and graded notebooks (`{student: {name: notebook}}`)."""
    made = Course(root)
    made.autograded.mkdir(parents=True, exist_ok=True)
    path = made.autograded / f"{ASSIGNMENT}.results.json"
    path.write_text(json.dumps(results_of(students)), encoding="utf-8")
    for student, files in notebooks.items():
        for name, notebook in files.items():
            target = made.autograded / student / ASSIGNMENT / f"{name}.ipynb"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(writes(notebook), encoding="utf-8")
    return made
