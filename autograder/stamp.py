"""The stamp that `check-grader` leaves: with which tasks, sources and helper the grader was found right.

A release is refused without it. The stamp is committed, so that a fresh clone can build; any change of
what it covers makes it void.
"""

from __future__ import annotations

from autograder import definitions
from autograder.course import Course
from autograder.grade import results

STAMP = ".check-grader.json"


def digest(course: Course, assignment: str) -> str:
    """Digest of the helper, the assignment's sources, and the code that judges it."""
    sources = (course.source / assignment).glob("*.ipynb")
    helper = course.root / "attention_lab.py"
    return definitions.digest(
        [
            helper,
            definitions.PACKAGE / "tables.py",
            *sources,
            *definitions.judging_files(assignment),
        ]
    )


def valid(course: Course, assignment: str) -> bool:
    """Whether check-grader passed for exactly what is here now."""
    kept = results.read_json(course.root / STAMP) or {}
    return kept.get(assignment) == digest(course, assignment)


def write(course: Course, assignment: str) -> None:
    """Record that check-grader has passed for `assignment` as it is now."""
    path = course.root / STAMP
    kept = results.read_json(path) or {}
    results.write_json(path, dict(sorted({**kept, assignment: digest(course, assignment)}.items())))
