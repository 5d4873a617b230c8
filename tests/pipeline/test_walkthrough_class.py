"""A small class works the walkthrough; what does the real command make of it?"""

from __future__ import annotations

import json

import jsonschema
import nbformat
import pytest

from autograder import classroom
from autograder.course import Course
from autograder.tasks.w07_h2_attention import ASSIGNMENT
from tests.conftest import ROOT

NAME = ASSIGNMENT.name
FIRST = "1-scores-and-context"
WORDS = 1.0
MAX = sum(c.points for n in ASSIGNMENT.notebooks for c in n.checkpoints())

PRINTS_PERFECT_EVIDENCE = """
from IPython.display import display
print("14 of 14 checkpoints pass.")
display({"application/json": {"schema_version": 1, "scores": [[0.7071, 0.0, 0.7071]]}}, raw=True)
"""


def _says_success(notebooks):
    """Checks are patched to print success, while the values are wrong."""
    notebooks = classroom.replaced(notebooks, "run-3", "/ np.sqrt(K.shape[-1])", "* 3")
    notebooks = classroom.replaced(notebooks, "run-4", "softmax(scores)", "softmax(scores) * 2")
    patch = "lab.check_close = lab.check_weights = lambda *a, **k: None\n"
    return classroom.replaced(notebooks, "run-1", "import platform", patch + "import platform")


def _only_prints(notebooks):
    """Every open code cell is replaced by one that shows a perfect evidence JSON."""
    for nb in notebooks.values():
        for cell in nb.cells:
            if cell.cell_type == "code" and "nbgrader" not in cell.metadata:
                cell.source = PRINTS_PERFECT_EVIDENCE
    return notebooks


def _warns(notebooks):
    """Right work whose cells, the checkpoints among them, write to stderr."""
    noise = (
        "import sys, warnings\nwarnings.simplefilter('always')\n"
        "_close = lab.check_close\n"
        "def _noisy(*a, **k):\n    warnings.warn('noise')\n    print('noise', file=sys.stderr)\n"
        "    return _close(*a, **k)\n"
        "lab.check_close = _noisy\n"
    )
    return classroom.replaced(notebooks, "run-1", "import platform", noise + "import platform")


def _rebinds(notebooks):
    """`scores` is used for something else at the very end."""
    return classroom.replaced(notebooks, "save-evidence", "evidence.save()", "scores = 'mine'")


def _exits(notebooks):
    return classroom.replaced(
        notebooks, "run-5", "context = weights @ V", "exit_ = __import__('os')._exit(1)"
    )


def _other_evidence(notebooks):
    """The saved outputs show evidence that the notebook does not give."""
    cell = next(c for c in notebooks[FIRST].cells if c.id == "save-evidence")
    shown = {"schema_version": 1, "scores": [[9.0, 9.0, 9.0]]}
    cell.outputs = [nbformat.v4.new_output("display_data", {"application/json": shown})]
    return notebooks


CLASS = {
    "demo-ada": lambda good: good,
    "demo-success": _says_success,
    "demo-prints": _only_prints,
    "demo-warns": _warns,
    "demo-rebinds": _rebinds,
    "demo-exits": _exits,
    "demo-evidence": _other_evidence,
    "demo-two": lambda good: {k: v for k, v in good.items() if k != FIRST},
    "demo-cut": lambda good: {**good, FIRST: json.dumps(good[FIRST])[:2000]},
    "demo-none": lambda good: {"notes": b"this is no notebook"},
}


@pytest.fixture(scope="module")
def course(module_scratch):
    course = Course(module_scratch.root)
    good = classroom.diligent(course, NAME)
    for student, change in CLASS.items():
        work = change({k: nbformat.from_dict(json.loads(json.dumps(v))) for k, v in good.items()})
        classroom.hand_in(course, student, NAME, work)
    classroom.hand_in(course, "demo-untouched", NAME, classroom.untouched(course, NAME))
    module_scratch.done = module_scratch.run("grade", NAME, "--quiet")
    return module_scratch


@pytest.fixture(scope="module")
def students(course):
    return course.results(NAME)["students"]


def lost(entry) -> set[str]:
    return {k for k, v in entry["checkpoints"].items() if v["score"] not in (v["max_score"], None)}


def test_the_results_keep_to_their_schema(course):
    schema = json.loads((ROOT / "docs/results.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(course.results(NAME), schema)


def test_diligent_work_gets_all_but_the_point_that_a_person_gives(students):
    assert students["demo-ada"]["status"] == "graded"
    assert students["demo-ada"]["score"] == MAX - WORDS
    assert "waits for a person" in students["demo-ada"]["reason"]


def test_the_untouched_release_earns_at_most_a_third(students):
    assert 0 < students["demo-untouched"]["score"] <= MAX / 3


def test_printed_success_does_not_help_wrong_values(students):
    entry = students["demo-success"]
    assert {"scores-scaled", "weights-sum-to-one"} <= lost(entry)
    assert entry["checkpoints"]["scores-scaled"]["score"] <= 2


def test_a_printed_evidence_earns_nothing(students):
    entry = students["demo-prints"]
    assert entry["score"] == 0
    assert entry["status"] == "graded"


def test_warnings_and_stderr_cost_nothing(students):
    assert students["demo-warns"]["score"] == MAX - WORDS


def test_a_name_bound_again_later_costs_nothing_and_is_said(students):
    check = students["demo-rebinds"]["checkpoints"]["scores-scaled"]
    assert check["score"] == check["max_score"]
    assert any("bound again" in note for note in check["notes"])


def test_what_passed_before_a_dead_kernel_stays_passed(students):
    entry = students["demo-exits"]
    assert entry["checkpoints"]["scores-scaled"]["score"] == 3
    assert lost(entry) == {"context-weighted-sum"}
    assert any("stopped Python" in note for note in entry["notes"])


def test_evidence_that_disagrees_is_reported_and_not_punished(students):
    entry = students["demo-evidence"]
    assert entry["score"] == MAX - WORDS
    assert any("evidence saved in the notebook differs" in note for note in entry["notes"])
    assert not students["demo-ada"]["notes"]


def test_two_of_three_notebooks_are_incomplete_and_named(students):
    entry = students["demo-two"]
    assert entry["status"] == "incomplete"
    assert FIRST in entry["reason"]
    assert 0 < entry["score"] < MAX - WORDS


def test_a_damaged_notebook_is_ungradable_and_no_zero(students):
    entry = students["demo-cut"]
    assert entry["status"] == "ungradable"
    assert entry["score"] is None
    assert "hand it in again" in entry["reason"]


def test_what_is_no_notebook_is_no_zero_either(students):
    assert students["demo-none"]["score"] is None
    assert students["demo-none"]["status"] in ("missing", "ungradable")


def test_an_ungradable_submission_shows_in_the_exit_code(course):
    assert course.done.returncode == 1


def test_the_merged_evidence_has_all_keys_of_the_lesson(course):
    path = course.root / "autograded/demo-ada" / NAME / ASSIGNMENT.evidence
    evidence = json.loads(path.read_text(encoding="utf-8"))
    keys = "Q K V scores weights context causal_weights seed interpretation"
    wanted = {*keys.split(), "assertions", "predictions", "schema_version"}
    assert wanted <= evidence.keys()
    assert evidence["assertions"]["causal_mask"] is True


def test_a_second_run_grades_nothing_again(course):
    before = {p: p.stat().st_mtime_ns for p in (course.root / "autograded").rglob("*.ipynb")}
    course.run("grade", NAME, "--quiet")
    assert before == {p: p.stat().st_mtime_ns for p in before}


def test_one_student_can_be_graded_again_and_the_others_stay(course, students):
    course.run("grade", NAME, "--quiet", "--force", "--student", "demo-ada")
    assert course.results(NAME)["students"] == students


def test_nbgraders_own_commands_agree(course, students):
    course.nbgrader("autograde", NAME, "--force")
    assert course.results(NAME)["students"] == students
    course.nbgrader("generate_feedback", NAME)
    page = course.root / "feedback/demo-ada" / NAME / f"{FIRST}.html"
    assert "scores-scaled" in page.read_text(encoding="utf-8")
    course.nbgrader("export")
    rows = (course.root / "grades.csv").read_text(encoding="utf-8").splitlines()
    row = next(line for line in rows if "demo-cut" in line)
    assert "ungradable" in row
    assert ",0.0," not in row
    assert any("demo-ada" in line and f",{MAX - WORDS:g}," in line for line in rows)
