"""One run of an assignment: its nonce, its plan, its lock, and the recording of each student."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from autograder.configuration import load_config
from autograder.course import Course, CourseError
from autograder.grade import gradebook as book
from autograder.grade import results
from autograder.grade.submission import Graded, Plan, plan, write_notebooks
from autograder.lms import late
from autograder.tasks.registry import assignment as tasks_of

try:
    import fcntl
except ImportError:  # Windows: the database's own lock has to do
    fcntl = None


def nonce(course: Course, assignment: str, fresh: bool = False) -> str:
    """The run's nonce: stored before the first student, reused on resuming and on regrading.

    Args:
        fresh: draw a new one (new probes for everybody).
    """
    path = results.private(course, assignment) / "nonce.json"
    kept = results.read_json(path)
    if kept and not fresh and isinstance(kept.get("nonce"), str):
        return kept["nonce"]
    drawn = secrets.token_hex(16)
    results.write_json(path, {"nonce": drawn})
    return drawn


def prepare(course: Course, assignment: str, fresh: bool = False) -> Plan:
    """The plan of a run, with the gradebook knowing the release.

    Raises:
        CourseError: unknown assignment, no release, or a gradebook that does not fit.
    """
    tasks_of(assignment)
    made = plan(course, assignment, nonce(course, assignment, fresh))
    book.register(course, assignment, made.released)
    return replace(made, policy=late.configured(load_config(course)))


@contextlib.contextmanager
def lock(course: Course, assignment: str) -> Iterator[None]:
    """One grader at a time for an assignment; the lock goes with its process, however it ends.

    Raises:
        CourseError: if another grader is at work, or there is no such assignment.
    """
    tasks_of(assignment)
    path = results.private(course, assignment) / "lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise CourseError(
            f"can't write {path.parent} ({error.strerror}): make the folder writable, then run this again."
        ) from None
    with file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CourseError(
                    f"another grader is at work on {assignment} in {course.root}; wait for it to end."
                ) from None
            results.sweep(course, assignment)
        yield


def students(course: Course, assignment: str) -> list[str]:
    """Students who have a folder for the assignment under submitted/, in order."""
    return sorted(
        path.parent.name
        for path in course.submitted.glob(f"*/{assignment}")
        if path.is_dir() and not path.parent.name.startswith(".")
    )


def timestamp(folder: Path) -> str | None:
    """The text of the submission's timestamp.txt, None if there is none that can be read as a time."""
    path = folder / "timestamp.txt"
    try:
        text = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        return None
    try:
        book.utils.parse_utc(text)
    except (ValueError, OverflowError, TypeError):
        return None
    return text


def save(plan: Plan, open_book, graded: Graded, digest: str) -> None:
    """Record one student: notebooks, then the gradebook in one transaction, then the final entry."""
    write_notebooks(plan, graded)
    if graded.gradable:
        when = timestamp(plan.course.submitted / graded.student / plan.name)
        book.record(open_book, plan.name, graded.student, graded.scores, when, plan.policy)
    else:
        book.forget(open_book, plan.name, graded.student)
    results.keep(plan.course, plan.name, graded.student, digest, graded.entry)


def roster(open_book) -> list[str]:
    """Ids of all students that the gradebook knows."""
    return [student.id for student in open_book.students]


def assemble(plan: Plan, open_book) -> dict:
    """Write results.json for everybody: those graded, and those of the roster who sent nothing."""
    absent = [
        student
        for student in roster(open_book)
        if not (plan.course.submitted / student / plan.name).is_dir()
    ]
    return results.assemble(plan.course, plan.name, plan.nonce, plan.max_score, absent)


def workers() -> int:
    """Kernels at the same time: one for each core."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
