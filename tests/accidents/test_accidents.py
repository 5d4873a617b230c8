"""A class of accidents, graded by the real command: nobody loses a point, nothing stops, all is told.

`make check-accidents` runs this and prints a table of what came of each accident.
"""

from __future__ import annotations

import csv
import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from autograder.course import Course
from autograder.execute import Executor
from autograder.grade import run as runs
from autograder.grade.submission import grade_submission
from tests.conftest import ROOT, Scratch

from .bank import ACCIDENTS, files_of, write
from .targets import PRACTICE, WALKTHROUGH, cases, class_files, targets

# Each accident happens to one notebook of each assignment, to another one in each.
SHIFTS = {WALKTHROUGH: 0, PRACTICE: 1}
ASSIGNMENTS = {n: shift for n, shift in SHIFTS.items() if (ROOT / "release" / n).is_dir()}
BYSTANDERS = ("aaa-first", "student-20-more", "zzz-last")
CELL_SECONDS = "15"


class Graded:
    """One assignment's class of accidents, graded once by the command."""

    def __init__(self, scratch: Scratch, assignment: str):
        self.scratch = scratch
        self.course = Course(scratch.root)
        self.assignment = assignment
        self.targets = targets(Course(ROOT), assignment)
        self.cases = {c.accident.name: c for c in cases(self.targets, ASSIGNMENTS[assignment])}
        solved = files_of(next(iter(self.targets.values())).solved)
        for name in BYSTANDERS:
            write(self.folder(name), solved)
        for name, files in class_files(self.targets, ASSIGNMENTS[assignment]).items():
            write(self.folder(name), files)
        self.folder("nothing-in-it").mkdir(parents=True)
        self.done = scratch.run("grade", assignment, "--quiet", check=False)
        self.students = scratch.results(assignment)["students"]

    def folder(self, name: str):
        return self.scratch.root / "submitted" / name / self.assignment

    @property
    def perfect(self) -> dict:
        return self.students[BYSTANDERS[0]]


@pytest.fixture(scope="module", params=ASSIGNMENTS)
def graded(request, tmp_path_factory):
    before = os.environ.get("COURSE_CELL_SECONDS")
    os.environ["COURSE_CELL_SECONDS"] = CELL_SECONDS
    try:
        yield Graded(Scratch(tmp_path_factory.mktemp("accidents")), request.param)
    finally:
        os.environ.pop("COURSE_CELL_SECONDS")
        if before is not None:
            os.environ["COURSE_CELL_SECONDS"] = before


def scores(entry: dict, notebook: str) -> dict:
    """The checkpoints of one notebook."""
    return {n: c["score"] for n, c in entry["checkpoints"].items() if c["notebook"] == notebook}


def told(entry: dict, notebook: str) -> str:
    """What is said of one notebook, and of the submission as a whole."""
    repairs = [r for r in entry["repairs"] if r.startswith(f"{notebook}: ")]
    problem = entry["notebooks"][notebook]["problem"] or ""
    return "\n".join([*repairs, *entry["notes"], problem])


def test_there_are_at_least_sixty_kinds():
    assert len({one.name for one in ACCIDENTS}) == len(ACCIDENTS) >= 60


def test_the_batch_does_not_stop(graded):
    assert graded.done.returncode in (0, 1), graded.done.stderr
    students = {case.student for case in graded.cases.values()}
    assert set(graded.students) == students | set(BYSTANDERS) | {"nothing-in-it"}
    assert "Traceback" not in graded.done.stderr


def test_the_perfect_submission_is_perfect(graded):
    given = graded.perfect["checkpoints"].values()
    assert all(c["score"] == c["max_score"] for c in given if c["verdict"] != "manual")


def test_the_other_students_are_unaffected(graded):
    for name in BYSTANDERS[1:]:
        assert graded.students[name] == graded.perfect
    assert graded.perfect["status"] == "graded"
    assert graded.students["nothing-in-it"]["status"] == "missing"
    assert graded.students["nothing-in-it"]["score"] is None


@pytest.mark.parametrize("one", ACCIDENTS, ids=lambda one: one.name)
def test_no_right_answer_loses_a_point_and_every_repair_is_told(graded, one):
    case = graded.cases[one.name]
    entry = graded.students[case.student]
    status = entry["notebooks"][case.notebook]["status"]
    said = told(entry, case.notebook)
    assert status in one.status.split("|"), said
    assert re.search(one.told, said), said
    if one.whole:
        assert scores(entry, case.notebook) == scores(graded.perfect, case.notebook)
    else:
        assert set(scores(entry, case.notebook).values()) == {None}
        assert entry["status"] == "ungradable"
        assert entry["score"] is None
    if status == "graded":
        assert f"{case.notebook}: " not in "\n".join(entry["repairs"])


def test_an_accident_alone_gives_the_same_as_in_the_class(graded, tmp_path):
    """Each alone in a submission of its own, handed in by somebody else."""
    if graded.assignment != WALKTHROUGH:
        # The bank's accidents are the same; one assignment is enough of the machine's time.
        return
    plan = runs.prepare(graded.course, graded.assignment)
    with Executor(workers=2) as executor, ThreadPoolExecutor(2) as pool:

        def alone(one):
            case = graded.cases[one.name]
            target = graded.targets[case.notebook]
            name = f"alone-{one.name.replace('_', '-')}"
            others = {f"{other}.ipynb" for other in target.others}
            files = {n: d for n, d in one.damage(target).items() if n not in others}
            write(graded.folder(name), files)
            entry = grade_submission(plan, name, executor).entry
            return case, entry

        for case, entry in pool.map(alone, ACCIDENTS):
            together = graded.students[case.student]
            what = case.accident.name
            assert scores(entry, case.notebook) == scores(together, case.notebook), what
            assert entry["notebooks"][case.notebook] == together["notebooks"][case.notebook], what
            assert re.search(case.accident.told, told(entry, case.notebook)), what


def test_the_export_has_the_same_scores_and_no_zero_for_the_ungradable(graded):
    path = graded.scratch.root / "grades.csv"
    done = graded.scratch.nbgrader("export", "--to", str(path))
    assert done.returncode == 0, done.stderr
    with path.open(encoding="utf-8", newline="") as stream:
        rows = {row["student_id"]: row for row in csv.DictReader(stream)}
    for name, entry in graded.students.items():
        if name in rows:
            score = rows[name]["score"]
            assert (float(score) if score else None) == entry["score"], name
            assert rows[name]["status"] == entry["status"]
        else:
            assert entry["score"] is None
