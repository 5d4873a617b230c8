"""Without isolation nothing is run, unless that is asked for by name."""

import subprocess
import sys
from pathlib import Path

import pytest

from autograder.course import CourseError
from autograder.execute import Executor, client

# The filter that students' processes get forbids new namespaces, to root as to anybody else.
START = """
import ctypes
from autograder.course import CourseError
from autograder.execute import Executor, seccomp
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
seccomp.install(libc, seccomp.build())
try:
    with Executor(sandbox={sandbox}) as executor:
        executor.start()
        print("started")
except CourseError as error:
    print("refused:", error)
"""


def test_a_system_without_isolation_is_refused_at_once(monkeypatch):
    monkeypatch.setattr(client, "unavailable", lambda: "there is none for this system")
    with pytest.raises(CourseError, match=r"there is none for this system.*--no-sandbox"):
        Executor()
    Executor(sandbox=False).close()


@pytest.mark.parametrize(("sandbox", "word"), [(True, "refused:"), (False, "started")])
def test_a_kernel_that_forbids_namespaces_is_refused(sandbox, word):
    done = subprocess.run(
        [sys.executable, "-c", START.format(sandbox=sandbox)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith(word), done.stdout + done.stderr
    if sandbox:
        assert "--no-sandbox" in done.stdout
        assert done.stdout.count("\n") == 1


def test_seconds_for_a_cell_can_be_set_and_are_checked(monkeypatch):
    from autograder.execute import Limits

    monkeypatch.setenv("COURSE_CELL_SECONDS", "7.5")
    assert Limits.configured().cell == 7.5
    monkeypatch.setenv("COURSE_CELL_SECONDS", "soon")
    with pytest.raises(CourseError, match="soon"):
        Limits.configured()
