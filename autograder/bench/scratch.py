"""Scratch courses with invented classes, and what a command costs there."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder import classroom
from autograder.configuration import open_course
from autograder.course import Course

REPOSITORY = Path(__file__).resolve().parent.parent.parent
LESSON = "w07-h2-attention"
PLAIN = "c = get_config()\nc.CourseDirectory.course_id = 'x'\n"
"""The configuration of a course that uses none of our steps."""

FIRST_LOOK, LOOK_EVERY = 3.0, 10.0  # seconds; a look at all processes' memory costs CPU time itself
SUBREAPER = 36


@dataclass(frozen=True)
class Cost:
    """What a command took, with all processes that it started.

    Args:
        cpu, wall: seconds.
        largest: MB of the largest process.
        together: MB of all processes at once, shared pages counted once; None where it can't be read.
    """

    cpu: float
    wall: float
    largest: float
    together: float | None


def measure(command: Sequence[str], folder: Path, log: Path, **environment: str) -> Cost:
    """Run a command to its end.

    Raises:
        SystemExit: if it fails; 1 is no failure, since a class with an ungradable submission gives it.
    """
    _adopt_orphans()
    before, started = _used(), time.perf_counter()
    with log.open("a") as file:
        process = subprocess.Popen(
            command, cwd=folder, stdout=file, stderr=file, env=_environment() | environment
        )
        with _Watch(process.pid) as watch:
            _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(
            f"{' '.join(command)} gave {process.returncode}:\n{log.read_text()[-2000:]}"
        )
    _reap_orphans()
    return Cost(_used() - before, wall, used.ru_maxrss / 1024, watch.most)


def _environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return os.environ | {"PATH": path}


def _used() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _adopt_orphans() -> None:
    """Processes whose parents end before them come to us, so that their time is counted too."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)


def _reap_orphans(seconds: float = 5.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.05)
        except ChildProcessError:
            return


class _Watch:
    """Looks now and then at the memory of a process and all that it started."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.most: float | None = None
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        pause = FIRST_LOOK
        while not self._done.wait(pause):
            pause = LOOK_EVERY
            found = [_share(pid) for pid in _family(self.pid)]
            if found and None not in found:
                self.most = max(self.most or 0.0, sum(found))


def _family(pid: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(path.parent.name))
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += children.get(one, [])


def _share(pid: int) -> float | None:
    """MB of a process, its part of what it shares; 0 if it has just ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    except OSError:
        return None
    found = [line.split()[1] for line in text.splitlines() if line.startswith("Pss:")]
    return int(found[0]) / 1024 if found else 0.0


# --- courses and classes -------------------------------------------------------------------------


def make_course(root: Path) -> Course:
    """A course of its own with the repository's release and source."""
    root.mkdir(parents=True)
    for name in ("nbgrader_config.py", "attention_lab.py", ".check-grader.json"):
        if (REPOSITORY / name).exists():
            shutil.copy(REPOSITORY / name, root / name)
    (root / "autograder").symlink_to(REPOSITORY / "autograder")
    for name in ("source", "release"):
        shutil.copytree(REPOSITORY / name, root / name)
    (root / "submitted").mkdir()
    return open_course(root, None)


def student(number: int) -> str:
    return f"student-{number:05}"


def hand_in(course: Course, first: int, last: int, assignment: str = LESSON) -> list[str]:
    """Students first..last-1 hand in: from one cell on they worked, each from another one on."""
    untouched = classroom.untouched(course, assignment)
    diligent = classroom.diligent(course, assignment)
    names = [student(number) for number in range(first, last)]
    for number, name in enumerate(names, start=first):
        notebooks = {}
        for stem, plain in untouched.items():
            own = nbformat.from_dict(json.loads(json.dumps(plain)))
            places = [
                i for i, c in enumerate(plain.cells) if c.source != diligent[stem].cells[i].source
            ]
            for place in places[number % len(places) :]:
                own.cells[place].source = diligent[stem].cells[place].source
            notebooks[stem] = own
        classroom.hand_in(course, name, assignment, notebooks)
    return names


def ours(course: Course, *words: str, **environment: str) -> Cost:
    """`python -m autograder ...` in a course, as its user would run it."""
    command = [sys.executable, "-m", "autograder", "--root", str(course.root), *words]
    return measure(command, REPOSITORY, course.root / "ours.log", **environment)


def nbgrader(root: Path, *words: str) -> Cost:
    """`nbgrader ...` in a folder."""
    program = str(Path(sys.executable).parent / "nbgrader")
    return measure([program, *words], root, root / "stock.log")
