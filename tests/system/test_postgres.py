"""Does everything work with the gradebook on PostgreSQL? Tested against a real server."""

from __future__ import annotations

import csv
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from autograder import classroom
from autograder.course import Course

pytestmark = pytest.mark.system

NAME = "w07-h2-attention"


def programs() -> Path:
    """The folder of the newest PostgreSQL server programs; a clear failure if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.fail("PostgreSQL is missing: apt-get install postgresql")
    return found[-1].parent


def as_user(command: list[str]) -> list[str]:
    """initdb refuses root, so root runs the server as the user `postgres`."""
    return ["runuser", "-u", "postgres", "--", *command] if os.getuid() == 0 else command


@pytest.fixture(scope="module")
def server():
    """A server of its own on a Unix socket; yields the URL of an empty database."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(folder, user.pw_uid, user.pw_gid)
    bin_ = programs()
    data = folder / "data"
    call = {"check": True, "capture_output": True, "cwd": "/tmp"}
    subprocess.run(
        as_user([str(bin_ / "initdb"), "-D", str(data), "-A", "trust", "-U", "course"]), **call
    )
    options = f"-c listen_addresses='' -c unix_socket_directories={folder}"
    start = [
        str(bin_ / "pg_ctl"),
        "-D",
        str(data),
        "-o",
        options,
        "-w",
        "-l",
        str(folder / "log"),
        "start",
    ]
    # The server inherits our pipes, so its output must not be captured.
    subprocess.run(as_user(start), check=True, cwd="/tmp", stdout=subprocess.DEVNULL)
    try:
        create = [str(bin_ / "createdb"), "-h", str(folder), "-U", "course", "grades"]
        subprocess.run(create, **call)
        yield f"postgresql+psycopg2://course@/grades?host={folder}"
    finally:
        stop = [str(bin_ / "pg_ctl"), "-D", str(data), "-m", "immediate", "stop"]
        subprocess.run(as_user(stop), check=False, cwd="/tmp", stdout=subprocess.DEVNULL)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def graded(module_scratch, server):
    """Two students graded by our command, with the URL in nbgrader_config.py only."""
    path = module_scratch.root / "nbgrader_config.py"
    text = path.read_text(encoding="utf-8") + f"\nc.CourseDirectory.db_url = {server!r}\n"
    path.write_text(text, encoding="utf-8")
    course = Course(module_scratch.root, server)
    good = classroom.diligent(course, NAME)
    classroom.hand_in(course, "demo-ada", NAME, good)
    classroom.hand_in(course, "demo-bob", NAME, classroom.untouched(course, NAME))
    done = module_scratch.run("grade", NAME, "--quiet")
    assert done.returncode == 0, done.stderr
    return module_scratch


def exported(course) -> dict[str, str]:
    assert course.nbgrader("export").returncode == 0
    with (course.root / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        return {row["student_id"]: row["score"] for row in csv.DictReader(file)}


def test_scores_are_in_the_server_and_no_sqlite_file_was_made(graded):
    students = graded.results(NAME)["students"]
    scores = {name: float(score) for name, score in exported(graded).items()}
    assert scores == {name: entry["score"] for name, entry in students.items()}
    assert scores["demo-ada"] > scores["demo-bob"] > 0
    assert not (graded.root / "gradebook.db").exists()


def test_nbgraders_generate_and_autograde_work_and_agree(graded):
    before = exported(graded)
    done = graded.nbgrader("autograde", NAME, "--force")
    assert done.returncode == 0, done.stderr
    assert exported(graded) == before


def test_a_server_that_is_not_there_is_one_clear_line(scratch):
    classroom.hand_in(Course(scratch.root), "demo-ada", NAME, {"x": "{}"})
    url = "postgresql+psycopg2://course@/grades?host=/nowhere"
    done = scratch.run("--db", url, "grade", NAME, check=False)
    assert done.returncode == 2
    assert "can't be used" in done.stderr
    assert "Traceback" not in done.stderr
