"""The stamp that `check-grader` leaves: with which tasks, sources and helper the grader was found right.

A release is refused without it. The stamp is committed, so that a fresh clone can build; any change of
what it covers makes it void.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from autograder.course import Course
from autograder.grade import results

STAMP = ".check-grader.json"
JUDGING = ("tasks", "verify", "ingest", "grade")
PACKAGE = Path(__file__).resolve().parent


def digest(course: Course, assignment: str) -> str:
    """Digest of the helper, the assignment's sources, and the code that judges it."""
    files = [course.root / "attention_lab.py", PACKAGE / "tables.py"]
    files += (course.source / assignment).glob("*.ipynb")
    for part in JUDGING:
        files += (PACKAGE / part).rglob("*.py")
    sums = hashlib.sha256()
    for path in sorted(files, key=lambda p: p.name):
        sums.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return sums.hexdigest()


def valid(course: Course, assignment: str) -> bool:
    """Whether check-grader passed for exactly what is here now."""
    kept = results.read_json(course.root / STAMP) or {}
    return kept.get(assignment) == digest(course, assignment)


def write(course: Course, assignment: str) -> None:
    """Record that check-grader has passed for `assignment` as it is now."""
    path = course.root / STAMP
    kept = results.read_json(path) or {}
    results.write_json(path, dict(sorted({**kept, assignment: digest(course, assignment)}.items())))
