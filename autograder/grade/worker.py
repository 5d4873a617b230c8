"""What runs in a Dask worker: the plan and one warm process, kept for a run; a student for each thread.

Nothing here is believed by students' code, nor does it see it: that runs in the sandbox, as in a run without
a cluster, and only data comes out. What travels between a worker and the command is Dask's own (pickle), so
both are the grader, and trust each other.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import tempfile
import threading
import time
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import attention_lab
from autograder import definitions
from autograder.course import Course, CourseError
from autograder.execute import Executor
from autograder.grade.parcel import Parcel, unpack
from autograder.grade.pool import Doors, released_code
from autograder.grade.submission import Graded, Plan, grade_guarded, plan
from autograder.tasks.registry import MODULES

PACKAGES = ("numpy", "torch", "matplotlib", "ipython", "ipykernel", "nbformat", "nbgrader")
"""Other versions of these could give another grade or another picture."""
FORGOTTEN = 600.0
CELL_SECONDS = "COURSE_CELL_SECONDS"


def code_digest(assignment: str) -> str:
    """Digest of all code that decides a grade."""
    helper = Path(attention_lab.__file__)
    return definitions.digest([*definitions.judging_files(assignment), helper])


def versions() -> dict[str, str]:
    """What is installed, of all that can change a grade or a picture."""
    found = {"Python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


# A worker lives long: what it has loaded may be older than what lies on its disk.
_LOADED = {name: code_digest(name) for name in MODULES}


@dataclass(frozen=True)
class Job:
    """One run, as the command sends it to each worker once.

    Args:
        release: the released notebooks' bytes by file name.
        code: the command's `code_digest`.
        digest: of the command's plan; a worker's must be equal.
        cell_seconds: COURSE_CELL_SECONDS of the command, None if it is not set.
    """

    assignment: str
    nonce: str
    release: dict[str, bytes] = field(repr=False)
    code: str
    digest: str
    versions: dict[str, str]
    cold: bool = False
    sandbox: bool = True
    cell_seconds: str | None = None

    @property
    def key(self) -> str:
        return f"{self.digest}-{self.cold}-{self.sandbox}-{self.cell_seconds}"


def job_of(plan: Plan, cold: bool, sandbox: bool) -> Job:
    """What a worker needs to know of a run."""
    release = {path.name: path.read_bytes() for path in sorted(plan.release.glob("*.ipynb"))}
    return Job(
        plan.name,
        plan.nonce,
        release,
        code_digest(plan.name),
        plan.digest,
        versions(),
        cold,
        sandbox,
        os.environ.get(CELL_SECONDS),
    )


@dataclass
class _Room:
    """What this process keeps for one run."""

    plan: Plan
    doors: Doors
    folder: tempfile.TemporaryDirectory
    busy: int = 0
    used: float = field(default_factory=time.monotonic)

    def close(self) -> None:
        self.doors.close()
        self.folder.cleanup()


_rooms: dict[str, _Room] = {}
_lock = threading.Lock()
_opening = threading.Lock()


@dataclass(frozen=True)
class Unready:
    """In place of an outcome: this worker can't grade (any more), and perhaps why."""

    reason: str = ""


@dataclass(frozen=True)
class Failed:
    """In place of an outcome: something failed around this submission; another worker may do better."""

    reason: str


def open_room(job: Job) -> str:
    """Get ready for a run: build its plan and start a warm process. Returns why not, "" when ready."""
    with _opening:
        _close_forgotten()
        with _lock:
            if job.key in _rooms:
                return ""
        problem = difference(job)
        if problem:
            return problem
        try:
            room = _room(job)
        except Exception as error:  # told as text: not every exception can be sent
            return str(error) if isinstance(error, CourseError) else _told(error)
        with _lock:
            _rooms[job.key] = room
        return ""


def difference(job: Job) -> str:
    """Why this worker's grader would not give the command's grades; "" if it would."""
    here = versions()
    for name, wanted in job.versions.items():
        if here.get(name) != wanted:
            return f"it has {name} {here.get(name, 'not installed')}, the command has {wanted}"
    if job.assignment not in _LOADED:
        return f"its grader does not know {job.assignment}"
    if code_digest(job.assignment) != job.code:
        return f"its grader judges {job.assignment} by other definitions than the command's"
    if _LOADED[job.assignment] != job.code:
        return "its grader was changed on disk since it was started"
    return ""


def _room(job: Job) -> _Room:
    folder = tempfile.TemporaryDirectory(
        prefix="grading-", dir=_local_directory(), ignore_cleanup_errors=True
    )
    try:
        course = Course(Path(folder.name))
        release = course.release / job.assignment
        release.mkdir(parents=True)
        for name, content in job.release.items():
            (release / name).write_bytes(content)
        made = plan(course, job.assignment, job.nonce)
        if made.digest != job.digest:
            raise CourseError("its plan of the run is another one than the command's")
        if job.cell_seconds is None:
            os.environ.pop(CELL_SECONDS, None)
        else:
            os.environ[CELL_SECONDS] = job.cell_seconds
        released = released_code(made)
        executor = Executor(_threads(), job.cold, job.sandbox, released)
        try:
            executor.start()
        except BaseException:
            executor.close()
            raise
    except BaseException:
        folder.cleanup()
        raise
    return _Room(made, Doors(executor), folder)


def _local_directory() -> str | None:
    """Dask's folder of this worker: what a killed worker leaves there, the next one on the machine removes."""
    worker = _worker()
    return worker.local_directory if worker else None


def _threads() -> int:
    worker = _worker()
    return worker.state.nthreads if worker else 1


def _worker():
    from distributed import get_worker

    try:
        return get_worker()
    except ValueError:
        return None


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]


def grade(key: str, student: str, parcel: Parcel) -> Graded | Unready | Failed:
    """Grade one submission in the room of a run."""
    with _lock:
        room = _rooms.get(key)
        if room is None:
            return Unready()
        room.busy += 1
    try:
        with tempfile.TemporaryDirectory(
            dir=room.folder.name, ignore_cleanup_errors=True
        ) as scratch:
            folder = Path(scratch) / student / room.plan.name
            unpack(parcel, folder)
            graded = grade_guarded(room.plan, student, room.doors, folder)
    except CourseError as error:
        return Unready(str(error))
    except Exception as error:
        return Failed(_told(error))
    finally:
        with _lock:
            room.busy -= 1
            room.used = time.monotonic()
    # The command does not read these, and the paths are ours.
    graded.ingested, graded.paths = {}, {}
    return graded


async def close_room(key: str) -> None:
    """The run is over: end its warm process and remove its folder (off the worker's event loop)."""
    with _lock:
        room = _rooms.pop(key, None)
    if room is not None:
        await asyncio.to_thread(room.close)


def _close_forgotten() -> None:
    """Rooms of commands that were killed and could not say so."""
    now = time.monotonic()
    with _lock:
        old = [k for k, r in _rooms.items() if not r.busy and now - r.used > FORGOTTEN]
        closing = [_rooms.pop(key) for key in old]
    for room in closing:
        room.close()
