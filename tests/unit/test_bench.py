"""Does the bench count what it says it counts, and does it see a difference where there is one?"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import nbformat
import pytest
from nbgrader.api import Comment, Grade
from sqlalchemy import update

from autograder.bench import __main__ as command
from autograder.bench import equality, scale, scratch, speed
from autograder.course import Course
from autograder.grade import gradebook, results
from autograder.grade.gradebook import NotebookScores
from tests.conftest import ROOT

from .test_gradebook import released

BURN = "import time\nwhile time.process_time() < 0.4: pass"


def measured(tmp_path, code: str) -> scratch.Cost:
    return scratch.measure([sys.executable, "-c", code], tmp_path, tmp_path / "log")


def test_a_process_that_outlives_its_parent_is_counted(tmp_path):
    code = (
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {BURN!r}], start_new_session=True)"
    )
    assert measured(tmp_path, code).cpu > 0.4
    assert measured(tmp_path, "pass").cpu < 0.4


def test_a_command_that_fails_stops_the_bench_with_its_words(tmp_path):
    with pytest.raises(SystemExit, match=r"gave 3:\n.*no luck"):
        measured(tmp_path, "import sys; print('no luck', flush=True); sys.exit(3)")


def test_memory_is_that_of_all_processes_together():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert child.pid in list(scratch._family(os.getpid()))
        assert child.pid not in list(scratch._family(child.pid))[1:]
        assert scratch._share(os.getpid()) > 5
    finally:
        child.communicate(b"\n")
    assert scratch._share(child.pid) == 0


def test_a_start_is_extrapolated_once():
    assert speed.extrapolated((11.0, 1.0), 10) == 101.0
    assert speed.extrapolated((1.0, 2.0), 10) == 2.0


# --- warm and cold -------------------------------------------------------------------------------


@pytest.fixture
def graded(tmp_path):
    """A course with one graded student, written by hand; returns it and a snapshot of it."""
    course = Course(tmp_path)
    gradebook.register(course, "a", released())
    with gradebook.opened(course) as book:
        scores = {"nb": NotebookScores({"softmax-stable": 1.0}, frozenset(["softmax"]))}
        gradebook.record(book, "a", "demo-ada", scores)
    checkpoint = {"score": 1.0, "max_score": 2.0, "verdict": "partial", "message": "Nearly."}
    entry = {"status": "graded", "score": 1.0, "max_score": 2.0, "reason": "Graded."}
    entry |= {"checkpoints": {"softmax-stable": checkpoint}}
    results.keep(course, "a", "demo-ada", "0", entry)
    results.assemble(course, "a", "f" * 32, 2.0, [])
    show(course, "<object at 0x7f3a55d0>, 12.3 ms")
    return course, equality.snapshot(course, "a")


def show(course: Course, text: str) -> None:
    """A graded notebook whose only cell shows this."""
    cell = nbformat.v4.new_code_cell("f", outputs=[nbformat.v4.new_output("stream", text=text)])
    folder = course.autograded / "demo-ada" / "a"
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "nb.ipynb")


def changed_entry(course: Course, **changes) -> None:
    path = results.results_path(course, "a")
    found = json.loads(path.read_text())
    found["students"]["demo-ada"]["checkpoints"]["softmax-stable"] |= changes
    path.write_text(json.dumps(found))


def changed_rows(course: Course, statement) -> None:
    with gradebook.opened(course) as book:
        book.db.execute(statement)
        book.db.commit()


CHANGES = {
    "an output": ("outputs", lambda c: show(c, "<object at 0x7f3a55d0>, 12.3 m")),
    "a score": ("grades", lambda c: changed_entry(c, score=2.0)),
    "a row": ("grades", lambda c: changed_rows(c, update(Grade).values(auto_score=2.0))),
    "a message": ("comments", lambda c: changed_entry(c, message="Wrong.")),
    "a comment": ("comments", lambda c: changed_rows(c, update(Comment).values(auto_comment=None))),
}


def test_addresses_and_times_may_differ_and_are_counted(graded):
    course, before = graded
    show(course, "<object at 0x55e1a0c4>,   9 ms")
    after = equality.snapshot(course, "a")
    assert equality.differences(before, after) == {"comments": [], "grades": [], "outputs": []}
    assert dict(after.changed) == dict.fromkeys(equality.NORMALISED, 1)


@pytest.mark.parametrize(("kind", "change"), CHANGES.values(), ids=CHANGES.keys())
def test_what_differs_is_named(graded, kind, change):
    course, before = graded
    change(course)
    found = equality.differences(before, equality.snapshot(course, "a"))
    assert [name for name, differ in found.items() if differ] == [kind]
    assert len(found[kind]) == 1


def test_every_bank_hands_in(tmp_path):
    course = Course(tmp_path)
    for name in ("source", "release"):
        (tmp_path / name).symlink_to(ROOT / name)
    least = {"walkthrough: members": 7, "practice: right": 200, "attention-mechanism": 100}
    least |= {"practice: accidents": 60}
    for bank in equality.banks():
        if bank.name.startswith("walkthrough: attacks"):
            continue  # it plants a course of its own, which the tests of the attacks do too
        before = set(course.submitted.glob("*")) if course.submitted.exists() else set()
        bank.hand_in(course)
        new = set(course.submitted.glob("*")) - before
        (wanted,) = [number for start, number in least.items() if bank.name.startswith(start)]
        assert len(new) >= wanted, bank.name


# --- the class that is simulated, and the page ---------------------------------------------------


@pytest.mark.filterwarnings("ignore:Object of type <Submitted.*> not in session")
def test_a_simulated_class_is_recorded_whole_and_as_nbgrader_records_it(tmp_path):
    table = dict(scale.scaled(tmp_path, [8]))
    assert table["CPU ms a student, for classes of"] == "8"
    assert table["rows that differ from those of nbgrader's own classes"].startswith("0 of ")
    assert {scale.RECORDING, scale.SAVING, scale.AGAIN, "results.json", "the report"} <= set(table)


def test_a_page_has_all_parts_with_command_machine_and_date(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(command, "REPOSITORY", tmp_path)
    (tmp_path / "docs").mkdir()
    parts = {name: [("a | b", name)] for name in command.ABOUT}
    monkeypatch.setattr(command, "tables", lambda args, folder: iter(parts.items()))
    assert command.main(["--students", "20", "--write"]) == 0
    page = (tmp_path / command.PAGE).read_text()
    for name, about in command.ABOUT.items():
        assert about in page
        assert f"| a \\| b | {name} |" in page
    assert "`python -m autograder.bench --students 20 --write` on 20" in page
    assert f"Python {sys.version.split()[0]}" in page
    assert page.split("\n\n")[-1].strip() in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [["--students", "3"], ["--sample", "0"], ["--write", "--part", "scale"], ["--scale", "1"]],
)
def test_what_makes_no_sense_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        command.parse(words)
    assert "error" in capsys.readouterr().err
