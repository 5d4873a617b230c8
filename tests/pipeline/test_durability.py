"""Kill the grader at random moments and go on: is the outcome that of an undisturbed run?"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from autograder import classroom
from autograder.course import Course
from tests.conftest import ROOT, Scratch

NAME = "w07-h2-attention"
NOTEBOOK = "1-scores-and-context"
STUDENTS = 12
KILLS = 6


def fill(scratch: Scratch) -> None:
    course = Course(scratch.root)
    good = classroom.diligent(course, NAME)[NOTEBOOK]
    bare = classroom.untouched(course, NAME)[NOTEBOOK]
    for number in range(STUDENTS):
        nb = good if number % 3 else bare
        classroom.hand_in(course, f"demo-{number:02d}", NAME, {NOTEBOOK: nb})


def scores(scratch: Scratch) -> list[tuple]:
    with sqlite3.connect(scratch.root / "gradebook.db") as database:
        return database.execute(
            "select s.student_id, b.name, g.auto_score, g.manual_score, g.needs_manual_grade, "
            "c.manual_comment from grade g join base_cell b on b.id = g.cell_id "
            "join submitted_notebook n on n.id = g.notebook_id "
            "join submitted_assignment s on s.id = n.assignment_id "
            "left join comment c on c.notebook_id = n.id and c.cell_id = b.id "
            "order by 1, 2"
        ).fetchall()


def command(scratch: Scratch) -> list[str]:
    return [
        sys.executable,
        "-m",
        "autograder",
        "--root",
        str(scratch.root),
        "grade",
        NAME,
        "--quiet",
    ]


def finished(scratch: Scratch) -> set[str]:
    folder = scratch.root / "autograded" / ".run" / NAME / "students"
    return {path.stem for path in folder.glob("demo-*.json")}


def left_behind(marker: str) -> list[str]:
    """Command lines of processes that still run for this course."""
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if marker in line]


@pytest.fixture
def pair(tmp_path):
    """Two courses with one class and one nonce: to grade in peace, and to be killed."""
    made = []
    for name in ("calm", "killed"):
        (tmp_path / name).mkdir()
        scratch = Scratch(tmp_path / name)
        fill(scratch)
        run = scratch.root / "autograded" / ".run" / NAME
        run.mkdir(parents=True)
        (run / "nonce.json").write_text(json.dumps({"nonce": "ab" * 16}))
        made.append(scratch)
    return made


def test_a_grader_that_is_killed_again_and_again_ends_with_the_same_gradebook(pair):
    calm, killed = pair
    calm.run("grade", NAME, "--quiet")
    chance = random.Random(2026)
    for _ in range(KILLS):
        process = subprocess.Popen(command(killed), cwd=ROOT, stderr=subprocess.DEVNULL)
        before = finished(killed)
        goal = min(len(before) + chance.randint(0, 3), STUDENTS - 1)
        while len(finished(killed)) < goal and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.random() * 2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done_before = {
        path: path.stat().st_mtime_ns
        for student in finished(killed)
        for path in (killed.root / "autograded" / student).rglob("*.ipynb")
    }
    killed.run("grade", NAME, "--quiet")
    assert scores(killed) == scores(calm)
    assert killed.results(NAME)["students"] == calm.results(NAME)["students"]
    assert len(scores(calm)) > STUDENTS
    # What was finished was not graded twice, and nothing half-written is left.
    assert done_before == {path: path.stat().st_mtime_ns for path in done_before}
    assert not list(killed.root.rglob("*.new"))
    assert not left_behind(str(killed.root))


def test_marks_and_comments_of_people_survive_regrading(pair):
    scratch = pair[0]
    scratch.run("grade", NAME, "--quiet")
    with sqlite3.connect(scratch.root / "gradebook.db") as database:
        database.execute("update grade set manual_score = 2.5")
        database.execute("update comment set manual_comment = 'seen by a person'")
    scratch.run("grade", NAME, "--quiet", "--force")
    rows = scores(scratch)
    assert {row[3] for row in rows} == {2.5}
    with sqlite3.connect(scratch.root / "gradebook.db") as database:
        comments = database.execute("select distinct manual_comment from comment").fetchall()
    assert comments == [("seen by a person",)]


def test_the_comparison_would_see_a_lost_score(pair):
    calm, killed = pair
    for scratch in pair:
        scratch.run("grade", NAME, "--quiet", "--student", "demo-00")
    assert scores(calm) == scores(killed)
    with sqlite3.connect(killed.root / "gradebook.db") as database:
        database.execute("update grade set auto_score = null where auto_score > 0")
    assert scores(calm) != scores(killed)
