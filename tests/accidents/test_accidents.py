"""Accidents in a class and alone: nobody loses a point, nothing stops, all is told.

The class hands in the walkthrough and is graded by the real command, one accident in each notebook; alone, each
accident happens to a submission of the practice. `make check-accidents` runs this and prints a table.
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

ALONE = PRACTICE if (ROOT / "release" / PRACTICE).is_dir() else WALKTHROUGH
BYSTANDERS = ("aaa-first", "student-20-more", "zzz-last")
CELL_SECONDS = "15"


class Group:
    """A scratch course whose students have the accidents of one assignment."""

    def __init__(self, scratch: Scratch, assignment: str):
        self.scratch = scratch
        self.course = Course(scratch.root)
        self.assignment = assignment
        self.targets = targets(Course(ROOT), assignment)
        self.cases = {c.accident.name: c for c in cases(self.targets)}
        self.solved = files_of(next(iter(self.targets.values())).solved)
        self.students: dict[str, dict] = {}
        self.perfect: dict = {}
        self.done = None

    def folder(self, name: str):
        return self.scratch.root / "submitted" / name / self.assignment

    def as_a_class(self) -> Group:
        for name in BYSTANDERS:
            write(self.folder(name), self.solved)
        for name, files in class_files(self.targets).items():
            write(self.folder(name), files)
        self.folder("nothing-in-it").mkdir(parents=True)
        self.done = self.scratch.run("grade", self.assignment, "--quiet", check=False)
        self.students = self.scratch.results(self.assignment)["students"]
        self.perfect = self.students[BYSTANDERS[0]]
        return self

    def one_by_one(self) -> Group:
        """Each accident in a submission of one notebook, by a student of its own."""
        plan = runs.prepare(self.course, self.assignment)
        write(self.folder("perfect"), self.solved)
        for one in ACCIDENTS:
            target = self.targets[self.cases[one.name].notebook]
            others = {f"{other}.ipynb" for other in target.others}
            files = {n: d for n, d in one.damage(target).items() if n not in others}
            write(self.folder(student(one)), files)
        names = ["perfect", *(student(one) for one in ACCIDENTS)]
        with Executor(workers=2) as executor, ThreadPoolExecutor(2) as pool:
            grade = pool.map(lambda name: grade_submission(plan, name, executor).entry, names)
            self.students = dict(zip(names, grade, strict=True))
        self.perfect = self.students["perfect"]
        return self


def student(one) -> str:
    return one.name.replace("_", "-")


@pytest.fixture(scope="module")
def quick_timeout():
    before = os.environ.get("COURSE_CELL_SECONDS")
    os.environ["COURSE_CELL_SECONDS"] = CELL_SECONDS
    yield
    os.environ.pop("COURSE_CELL_SECONDS")
    if before is not None:
        os.environ["COURSE_CELL_SECONDS"] = before


@pytest.fixture(scope="module")
def together(quick_timeout, tmp_path_factory):
    return Group(Scratch(tmp_path_factory.mktemp("together")), WALKTHROUGH).as_a_class()


@pytest.fixture(scope="module")
def alone(quick_timeout, tmp_path_factory):
    return Group(Scratch(tmp_path_factory.mktemp("alone")), ALONE).one_by_one()


def scores(entry: dict, notebook: str) -> dict:
    """The checkpoints of one notebook."""
    return {n: c["score"] for n, c in entry["checkpoints"].items() if c["notebook"] == notebook}


def told(entry: dict, notebook: str) -> str:
    """What is said of one notebook, and of the submission as a whole."""
    repairs = [r for r in entry["repairs"] if r.startswith(f"{notebook}: ")]
    problem = entry["notebooks"][notebook]["problem"] or ""
    return "\n".join([*repairs, *entry["notes"], problem])


def outcome(group: Group, name: str, one) -> dict:
    """What became of one accident, for the table."""
    entry, notebook = group.students[name], group.cases[one.name].notebook
    status, said = entry["notebooks"][notebook]["status"], told(entry, notebook)
    got, full = scores(entry, notebook), scores(group.perfect, notebook)
    lines = said.splitlines() if one.told or status != "graded" else []
    shown = [line for line in lines if re.search(wanted(one, status), line)] or lines
    return {
        "name": one.name,
        "status": status,
        "told": shown[0].removeprefix(f"{notebook}: ") if shown else "",
        "said": bool(re.search(wanted(one, status), said)),
        "lost": sum((full[n] or 0) - (got.get(n) or 0) for n in full) if one.whole else 0,
        "zero": status == "ungradable" and (entry["score"] is not None or any(got.values())),
    }


def wanted(one, status: str) -> str:
    """What must be told: anything at all where something was done."""
    return one.told or ("" if status == "graded" else ".")


def check(group: Group, name: str, one) -> None:
    entry, notebook = group.students[name], group.cases[one.name].notebook
    status = entry["notebooks"][notebook]["status"]
    said = told(entry, notebook)
    assert status in one.status.split("|"), said
    assert re.search(wanted(one, status), said), said
    if one.whole:
        assert scores(entry, notebook) == scores(group.perfect, notebook)
    else:
        assert set(scores(entry, notebook).values()) == {None}
        assert entry["status"] == "ungradable"
        assert entry["score"] is None
    if status == "graded":
        assert f"{notebook}: " not in "\n".join(entry["repairs"])


def test_there_are_at_least_sixty_kinds():
    assert len({one.name for one in ACCIDENTS}) == len(ACCIDENTS) >= 60


def test_the_batch_does_not_stop(together):
    assert together.done.returncode in (0, 1), together.done.stderr
    students = {case.student for case in together.cases.values()}
    assert set(together.students) == students | set(BYSTANDERS) | {"nothing-in-it"}
    assert "Traceback" not in together.done.stderr


def test_the_perfect_submission_is_perfect(together, alone):
    for group in (together, alone):
        assert group.perfect["status"] == "graded"
        for checkpoint in group.perfect["checkpoints"].values():
            if checkpoint["verdict"] != "manual":
                assert checkpoint["score"] == checkpoint["max_score"], checkpoint


def test_the_other_students_are_unaffected(together, record_property):
    affected = sum(together.students[name] != together.perfect for name in BYSTANDERS)
    stopped = int(together.done.returncode not in (0, 1))
    row = {"others": len(BYSTANDERS), "affected": affected, "stopped": stopped}
    record_property("batch", row)
    for name in BYSTANDERS[1:]:
        assert together.students[name] == together.perfect
    assert together.students["nothing-in-it"]["status"] == "missing"
    assert together.students["nothing-in-it"]["score"] is None


@pytest.mark.parametrize("one", ACCIDENTS, ids=lambda one: one.name)
def test_in_a_class_no_point_is_lost_and_every_repair_is_told(together, one, record_property):
    name = together.cases[one.name].student
    record_property("accident in a class", outcome(together, name, one))
    check(together, name, one)


@pytest.mark.parametrize("one", ACCIDENTS, ids=lambda one: one.name)
def test_alone_no_point_is_lost_and_every_repair_is_told(alone, one, record_property):
    record_property("accident alone", outcome(alone, student(one), one))
    check(alone, student(one), one)


def test_the_export_has_the_same_scores_and_no_zero_for_the_ungradable(together):
    path = together.scratch.root / "grades.csv"
    done = together.scratch.nbgrader("export", "--to", str(path))
    assert done.returncode == 0, done.stderr
    with path.open(encoding="utf-8", newline="") as stream:
        rows = {row["student_id"]: row for row in csv.DictReader(stream)}
    for name, entry in together.students.items():
        if name in rows:
            score = rows[name]["score"]
            assert (float(score) if score else None) == entry["score"], name
            assert rows[name]["status"] == entry["status"]
        else:
            assert entry["score"] is None
