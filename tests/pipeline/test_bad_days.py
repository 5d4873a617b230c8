"""A full disk, a read-only folder, a held gradebook, a second grader, a clock that jumps: one line, nothing lost."""

from __future__ import annotations

import ast
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from autograder import classroom
from autograder.course import Course
from tests.conftest import ROOT

from . import durability
from .durability import NAME, Run, Scale

SCALE = Scale(5, 0, ("1-scores-and-context",))
ROOTED = os.geteuid() == 0


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """The class, graded on a good day."""
    run = Run(tmp_path_factory.mktemp("calm"), SCALE)
    run.grade()
    return run


def ended(process: subprocess.Popen) -> tuple[int, str]:
    _, said = process.communicate()
    return process.returncode, said.decode()


def one_line(ending: tuple[int, str], *words: str) -> None:
    """Exit code 2 and one `error:` line with all of `words`, no traceback."""
    code, said = ending
    lines = said.splitlines()
    assert code == 2, said
    assert len(lines) == 1, said
    assert lines[0].startswith("error: ")
    for word in words:
        assert word in lines[0]


def contents(root: Path) -> dict[str, bytes]:
    """Every file of a course that grading may write."""
    paths = [*(root / "autograded").rglob("*"), *root.glob("gradebook.db*")]
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


# --------------------------------------------------------------------------------- a full disk


class SmallDisk:
    """A course on a file system of its own; only root can make one."""

    def __init__(self, folder: Path) -> None:
        self.mounted = durability._made(folder / "disk")
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", self.mounted], check=True
        )
        self.run = Run(self.mounted, SCALE)
        self.filler = self.mounted / "filler"
        self.words = "free some space"

    def grade(self, room: int | None, *words: str) -> tuple[int, str]:
        """Grade while so many bytes are free; None: as many as one likes."""
        self.filler.unlink(missing_ok=True)
        if room is not None:
            free = shutil.disk_usage(self.mounted).free
            with self.filler.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, free - room)
        return ended(self.run.start(*words))

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.mounted], check=True)


class LargestFile:
    """A course where no file can grow beyond a limit: what everybody can have who is not root."""

    def __init__(self, folder: Path) -> None:
        self.run = Run(folder, SCALE)
        self.words = "space"

    def grade(self, room: int | None, *words: str) -> tuple[int, str]:
        """Grade while no file can grow by more than this; None: as much as one likes."""
        book = self.run.root / "gradebook.db"
        limit = None if room is None else room + (book.stat().st_size if book.exists() else 0)

        def limited() -> None:
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return ended(
            subprocess.Popen(
                self.run.command(*words), cwd=ROOT, stderr=subprocess.PIPE, preexec_fn=limited
            )
        )

    def close(self) -> None:
        pass


@pytest.fixture(params=[SmallDisk, LargestFile] if ROOTED else [LargestFile])
def disk(request, tmp_path) -> Iterator:
    made = request.param(tmp_path)
    yield made
    made.close()


def test_a_full_disk(disk, calm):
    one_line(disk.grade(0), disk.words)
    one_line(disk.grade(200_000), "gradebook", disk.words)
    code, said = disk.grade(None, "--student", "student-000", "--student", "student-001")
    assert code in (0, 1), said
    assert len(disk.run.finished()) == 2
    stamps, book = disk.run.stamps(), durability.gradebook(disk.run.root)
    one_line(disk.grade(0), disk.words)
    one_line(disk.grade(16_384), disk.words)
    after = durability.gradebook(disk.run.root)
    assert {name: disk.run.stamps()[name] for name in stamps} == stamps
    assert all(row in after[kind] for kind in book for row in book[kind])
    code, said = disk.grade(None)
    assert code in (0, 1), said
    assert durability.compare(calm, disk.run) == []


# ------------------------------------------------------------------------------- read-only things


@pytest.fixture
def locked() -> Iterator:
    """Makes a file or folder read-only: by the file system for root, whom modes don't stop, else by its mode."""
    undo: list = []

    def lock(path: Path) -> None:
        if ROOTED:
            subprocess.run(["mount", "--bind", path, path], check=True)
            undo.append(lambda: subprocess.run(["umount", "--lazy", path], check=True))
            subprocess.run(["mount", "-o", "remount,bind,ro", path], check=True)
            return
        folders = [p for p in path.rglob("*") if p.is_dir() and not p.is_symlink()]
        for one in [path, *folders]:
            mode = one.stat().st_mode
            undo.append(partial(one.chmod, mode))
            one.chmod(mode & ~0o222)

    def unlock() -> None:
        while undo:
            undo.pop()()

    lock.undo = unlock
    yield lock
    unlock()


def test_a_read_only_course_folder(tmp_path, calm, locked):
    run = Run(tmp_path, SCALE)
    for words in (("--student", "student-001"), ()):
        before = contents(run.root)
        locked(run.root)
        one_line(ended(run.start()), "can't write", "make the folder writable")
        assert contents(run.root) == before
        locked.undo()
        run.grade(*words)
    assert durability.compare(calm, run) == []


def test_a_gradebook_that_became_read_only(tmp_path, calm, locked):
    run = Run(tmp_path, SCALE)
    run.grade("--student", "student-001")
    before = durability.gradebook(run.root)
    locked(run.root / "gradebook.db")
    one_line(ended(run.start()), "gradebook", "writable")
    assert durability.gradebook(run.root) == before
    locked.undo()
    run.grade()
    assert durability.compare(calm, run) == []


# --------------------------------------------------------------- a held gradebook, a second grader

HOLDER = """
import sqlite3, sys
book = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
book.execute("begin exclusive")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_gradebook_that_another_process_takes_in_the_middle_of_a_run(tmp_path, calm):
    run = Run(tmp_path, SCALE)
    process = run.start()
    halt(run, process)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, run.root / "gradebook.db"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout.readline() == b"held\n"
        process.send_signal(durability.signal.SIGCONT)
        one_line(ended(process), "gradebook", "another program holds it")
    finally:
        holder.communicate()
    assert run.finished()
    run.grade()
    assert durability.compare(calm, run) == []


def test_a_second_grader(tmp_path, calm):
    run = Run(tmp_path, SCALE)
    nonce = (run.private / "nonce.json").read_bytes()
    first = run.start()
    halt(run, first)
    one_line(ended(run.start()), "another grader is at work on", "wait for it to end")
    one_line(ended(run.start("--force", "--new-nonce")), "another grader")
    assert (run.private / "nonce.json").read_bytes() == nonce
    first.send_signal(durability.signal.SIGCONT)
    assert ended(first)[0] in (0, 1)
    assert durability.compare(calm, run) == []


def halt(run: Run, process: subprocess.Popen) -> None:
    """Stop a grader when its first student is finished and it has no transaction open."""
    while not run.finished() and process.poll() is None:
        time.sleep(0.005)
    while durability._stop(process) and run.open_transaction():
        process.send_signal(durability.signal.SIGCONT)
    assert process.poll() is None
    assert len(run.finished()) < SCALE.students


# -------------------------------------------------------------------------------------- the clock


def test_a_clock_that_jumps_by_days(tmp_path, calm):
    run = Run(tmp_path, SCALE)
    course = Course(run.root)
    endless = {SCALE.notebooks[0]: classroom.untouched(course, NAME)[SCALE.notebooks[0]]}
    cell = next(c for c in endless[SCALE.notebooks[0]].cells if c.id == "your-change-3")
    cell.source = "while True: pass"
    classroom.hand_in(course, "stuck", NAME, endless)
    # Compiled modules wonder at the size of the replaced class.
    python = [sys.executable, "-W", "ignore::RuntimeWarning"]
    command = [*python, "-m", "tests.pipeline.jumping_clock", *run.command()[3:]]
    environment = os.environ | {"COURSE_CELL_SECONDS": "20"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    found, wanted = run.scratch.results(NAME)["students"], calm.scratch.results(NAME)["students"]
    stuck = found.pop("stuck")
    assert found == wanted
    # Interrupted after its time, not before and not never, and what came after it was run.
    graded = run.autograded / "stuck" / NAME / f"{SCALE.notebooks[0]}.ipynb"
    assert "KeyboardInterrupt" in graded.read_text()
    assert stuck["status"] == found["student-000"]["status"]


def test_the_clock_of_that_test_does_jump():
    code = (
        "import time, datetime\n"
        "from tests.pipeline import jumping_clock\n"
        "jumping_clock.install()\n"
        "a, b, c = time.time(), time.time(), time.time()\n"
        "assert b - a > 86400 and b - c > 86400\n"
        "assert isinstance(datetime.datetime.now(), datetime.datetime)\n"
        "assert isinstance(datetime.datetime.strptime('2026', '%Y'), datetime.datetime)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


WALL = {
    "time": {"time", "time_ns", "localtime", "gmtime", "ctime", "strftime"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}


def wall_clocks(source: str) -> list[int]:
    """Lines that read the wall clock, or take a function of `time` out of its module."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            found += [node.lineno for name in node.names if name.name in WALL["time"]]
        if isinstance(node, ast.Attribute):
            base = node.value
            owner = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
            if node.attr in WALL.get(owner.lstrip("_"), ()):
                found.append(node.lineno)
    return sorted(found)


@pytest.mark.parametrize("folder", ["execute", "grade", "ingest", "verify", "tasks"])
def test_grading_never_reads_the_wall_clock(folder):
    paths = sorted((ROOT / "autograder" / folder).rglob("*.py"))
    assert paths
    assert {str(p): wall_clocks(p.read_text("utf-8")) for p in paths} == {str(p): [] for p in paths}


def test_a_wall_clock_is_seen():
    lines = [
        "end = time.time() + 5",
        "import datetime; datetime.datetime.now()",
        "from time import time",
        "datetime.utcnow()",
        "_time.time_ns()",
        "datetime.date.today()",
    ]
    assert [len(wall_clocks(line)) for line in lines] == [1] * len(lines)
    assert (
        wall_clocks("time.monotonic() + time.perf_counter() + datetime.strptime('1', '%d')") == []
    )
