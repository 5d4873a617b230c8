"""Saved by Colab, VS Code or JupyterLab, handed in as a copy, collected and graded: nothing is lost on the way.

The files are those of `answered` (tests/editors/conftest.py), so that each notebook runs once for all of this.
"""

from __future__ import annotations

import json
from functools import cache

import nbformat
import pytest

from autograder import classroom
from autograder.check_grader import _with
from autograder.report.times import recorded
from autograder.tasks.model import FunctionTask
from autograder.tasks.registry import MODULES
from autograder.tasks.registry import assignment as tasks_of
from tests.conftest import Scratch
from tests.editors.conftest import COURSE, NOTEBOOKS
from tests.editors.ways import NAME, WAYS

pytestmark = pytest.mark.system
CASES = [(assignment, way) for assignment in MODULES for way in WAYS]


def wrong_answer(assignment: str) -> tuple[dict[str, nbformat.NotebookNode], dict[str, float]]:
    """The assignment's first notebook, by name, with one wrong answer; and the marks that this must cost."""
    good = classroom.diligent(COURSE, assignment)
    if assignment == "w07-h2-attention":
        # Its cells are complete; one is spoiled, and what the student then changes there stays right.
        name = "1-scores-and-context"
        spoiled = classroom.replaced({name: good[name]}, "run-3", " / np.sqrt(K.shape[-1])", "")
        return spoiled, {"scores-scaled": 1}
    notebook = tasks_of(assignment).notebooks[0]
    task = next(part for part in notebook.parts if isinstance(part, FunctionTask))
    misconception = task.misconceptions[0]
    points = {c.grade_id: c.points for c in task.checkpoints}
    costs = {grade_id: points[grade_id] for grade_id in misconception.fails}
    return _with(good, notebook, task, misconception.implementation), costs


@pytest.fixture(scope="session")
def graded(answered, tmp_path_factory):
    """`graded(assignment)`: the class of six, collected from a folder and graded by the commands; its course.

    For each way of saving, one student with all notebooks and one with a wrong answer in the first one.
    """

    @cache
    def grade(assignment: str) -> Scratch:
        root = tmp_path_factory.mktemp("course")
        scratch = Scratch(root)
        download = tmp_path_factory.mktemp("download")
        spoiled, _ = wrong_answer(assignment)
        for way, save in WAYS.items():
            done = {n: answered(a, n).notebook for a, n in NOTEBOOKS if a == assignment}
            for student, notebooks in ((way, done), (f"{way}-wrong", spoiled)):
                (download / student).mkdir()
                for stem, nb in notebooks.items():
                    (download / student / f"Copy of {stem}.ipynb").write_bytes(save(nb))
        collected = scratch.run("collect", assignment, str(download), "--new")
        assert "6 submissions collected" in collected.stdout
        scratch.run("grade", assignment, "--quiet")
        return scratch

    return grade


def marks(entry: dict) -> dict[str, tuple[float, float]]:
    """What each checkpoint lost, of those that are marked automatically."""
    return {
        grade_id: c["max_score"] - c["score"]
        for grade_id, c in entry["checkpoints"].items()
        if c["verdict"] not in ("manual", "missing")
    }


@pytest.mark.parametrize(("assignment", "way"), CASES)
def test_all_automatic_marks_whatever_program_saved_it(graded, assignment, way):
    entry = graded(assignment).results(assignment)["students"][way]
    assert entry["status"] in ("graded", "repaired"), entry["reason"]
    lost = {grade_id: cost for grade_id, cost in marks(entry).items() if cost}
    assert lost == {}
    by_hand = sum(c["verdict"] == "manual" for c in entry["checkpoints"].values())
    defined = [c for n in tasks_of(assignment).notebooks for c in n.checkpoints()]
    assert len(marks(entry)) + by_hand == len(defined)


@pytest.mark.parametrize(("assignment", "way"), CASES)
def test_a_wrong_answer_saved_the_same_way_loses_exactly_its_points(graded, assignment, way):
    entry = graded(assignment).results(assignment)["students"][f"{way}-wrong"]
    _, costs = wrong_answer(assignment)
    assert {grade_id: cost for grade_id, cost in marks(entry).items() if cost} == costs


@pytest.mark.parametrize("assignment", MODULES)
def test_the_account_s_name_is_gone_from_what_is_graded(graded, assignment):
    scratch = graded(assignment)
    handed_in = (scratch.root / "submitted" / "colab").rglob("*.ipynb")
    assert all(NAME in path.read_text(encoding="utf-8") for path in handed_in)
    kept = [p for p in (scratch.root / "autograded").rglob("*") if p.is_file()]
    assert len(kept) > 6
    assert not [p for p in kept if NAME.encode() in p.read_bytes()]


@pytest.mark.parametrize(
    ("way", "tells"), [("colab", True), ("jupyterlab", True), ("vscode", False)]
)
def test_the_times_of_work_arrive_where_the_program_writes_them(graded, way, tells):
    assignment, name = NOTEBOOKS[0]
    folder = graded(assignment).root / "submitted" / way / assignment
    assert bool(recorded(folder / f"Copy of {name}.ipynb")) is tells


@pytest.mark.parametrize("way", WAYS)
def test_each_program_s_file_looks_like_its_own(answered, way):
    """What is known of each; a change of `ways.py` that forgets its program is noticed."""
    nb = answered(*NOTEBOOKS[0]).notebook
    data = WAYS[way](nb).decode()
    saved = json.loads(data)
    code = [cell for cell in saved["cells"] if cell["cell_type"] == "code" and cell["outputs"]]
    ran = [cell["metadata"] for cell in code]
    assert all(isinstance(cell["source"], list) for cell in saved["cells"])
    assert all("executionInfo" in m for m in ran) is (way == "colab")
    assert any("execution" in m for m in ran) is (way == "jupyterlab")
    assert any("deletable" in cell["metadata"] for cell in saved["cells"]) is (way != "colab")
    assert ("language" in saved["metadata"]["kernelspec"]) is (way != "colab")
    assert data.endswith("}\n") is (way != "colab")
    assert data.startswith('{\n  "' if way == "colab" else '{\n "')
    assert "trusted" not in data
