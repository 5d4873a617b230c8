"""What an instructor gets wrong: one clear line, an exit code, nothing lost, everybody else graded."""

from __future__ import annotations

import shutil
import sqlite3

from autograder import classroom
from autograder.course import Course

NAME = "w07-h2-attention"


def clear(done, *words: str) -> None:
    """One `error:` line with all of `words`, and no traceback."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in lines[0]


def test_a_wrong_assignment_name(scratch):
    clear(scratch.run("grade", "w07-h2-atention", check=False), "w07-h2-atention", NAME)


def test_no_submissions(scratch):
    clear(scratch.run("grade", NAME, check=False), "no submissions", "submitted")


def test_a_student_who_is_not_there(scratch):
    classroom.hand_in(Course(scratch.root), "demo-ada", NAME, {"x": "{}"})
    clear(scratch.run("grade", NAME, "--student", "demo-bob", check=False), "demo-bob")


def test_no_release(scratch):
    shutil.rmtree(scratch.root / "release")
    classroom.hand_in(Course(scratch.root), "demo-ada", NAME, {"x": "{}"})
    clear(scratch.run("grade", NAME, check=False), "make release")


def test_a_folder_that_is_no_course(tmp_path, scratch):
    (scratch.root / "nbgrader_config.py").unlink()
    clear(scratch.run("release", NAME, check=False), "nbgrader_config.py")


def test_a_gradebook_that_is_damaged(scratch):
    classroom.hand_in(Course(scratch.root), "demo-ada", NAME, {"x": "{}"})
    (scratch.root / "gradebook.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    clear(scratch.run("grade", NAME, check=False), "gradebook")


def test_a_gradebook_of_another_form_of_the_assignment(scratch):
    course = Course(scratch.root)
    classroom.hand_in(course, "demo-ada", NAME, {"x": "{}"})
    classroom.hand_in(course, "demo-bob", NAME, classroom.untouched(course, NAME))
    scratch.run("grade", NAME, "--quiet")
    with sqlite3.connect(scratch.root / "gradebook.db") as database:
        database.execute("update base_cell set name = 'old-name' where name = 'scores-scaled'")
    before = (scratch.root / "autograded" / f"{NAME}.results.json").read_bytes()
    clear(scratch.run("grade", NAME, check=False), "other cells")
    assert (scratch.root / "autograded" / f"{NAME}.results.json").read_bytes() == before


def test_a_second_grader(scratch):
    from autograder.grade.run import lock

    course = Course(scratch.root)
    classroom.hand_in(course, "demo-ada", NAME, {"x": "{}"})
    with lock(course, NAME):
        clear(scratch.run("grade", NAME, check=False), "another grader")


def test_a_folder_that_cannot_be_written(scratch):
    classroom.hand_in(Course(scratch.root), "demo-ada", NAME, {"x": "{}"})
    # A file in the folder's place: a mode would not stop root.
    (scratch.root / "autograded").write_text("in the way")
    clear(scratch.run("grade", NAME, check=False), "autograded", "writable")


def test_a_database_that_another_process_holds(scratch):
    course = Course(scratch.root)
    classroom.hand_in(course, "demo-bob", NAME, classroom.untouched(course, NAME))
    scratch.run("grade", NAME, "--quiet")
    holder = sqlite3.connect(scratch.root / "gradebook.db", isolation_level=None)
    holder.execute("begin exclusive")
    try:
        clear(scratch.run("grade", NAME, "--force", check=False), "another program holds it")
    finally:
        holder.execute("rollback")
        holder.close()
    assert scratch.run("grade", NAME, "--quiet").returncode == 0
