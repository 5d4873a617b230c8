"""A small class in a scratch course, what grading it recorded, and the command in a process of its own."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys

from autograder import classroom
from autograder.course import Course
from tests.conftest import Scratch

NAME = "w07-h2-attention"
NOTEBOOK = "1-scores-and-context"
STUDENTS = 12


def fill(scratch: Scratch, students: int = STUDENTS) -> None:
    """Right and untouched notebooks, and a nonce that is the same in every such course."""
    course = Course(scratch.root)
    good = classroom.diligent(course, NAME)[NOTEBOOK]
    bare = classroom.untouched(course, NAME)[NOTEBOOK]
    for number in range(students):
        nb = good if number % 3 else bare
        classroom.hand_in(course, f"demo-{number:02d}", NAME, {NOTEBOOK: nb})
    run = scratch.root / "autograded" / ".run" / NAME
    run.mkdir(parents=True, exist_ok=True)
    (run / "nonce.json").write_text(json.dumps({"nonce": "ab" * 16}))


def command(scratch: Scratch, *words: str) -> list[str]:
    """The words of the command that grades this class."""
    start = [sys.executable, "-m", "autograder", "--root", str(scratch.root)]
    return [*start, "grade", NAME, "--quiet", *words]


def finished(scratch: Scratch) -> set[str]:
    """Students whose entries are final."""
    folder = scratch.root / "autograded" / ".run" / NAME / "students"
    return {path.stem for path in folder.glob("demo-*.json")}


def rows(scratch: Scratch) -> list[tuple]:
    """What the gradebook holds about every cell of every student."""
    with sqlite3.connect(scratch.root / "gradebook.db") as database:
        return database.execute(
            "select s.student_id, n.late_submission_penalty, b.name, g.auto_score, g.manual_score, "
            "g.needs_manual_grade, c.auto_comment, c.manual_comment from submitted_assignment s "
            "join submitted_notebook n on n.assignment_id = s.id "
            "join base_cell b on b.notebook_id = n.notebook_id "
            "left join grade g on g.cell_id = b.id and g.notebook_id = n.id "
            "left join comment c on c.cell_id = b.id and c.notebook_id = n.id order by 1, 3, b.type"
        ).fetchall()


def left_behind(marker: str) -> list[str]:
    """Command lines of processes that have `marker` in them."""
    listing = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if marker in line]
