"""What each student has in one assignment: the gradebook's marks beside the grader's status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nbgrader.api import Gradebook, MissingEntry

from autograder.course import Course
from autograder.grade import results

NO_SCORE = ("ungradable", "missing")


@dataclass(frozen=True)
class Mark:
    """One student's standing.

    Args:
        student, first, last, email: from the gradebook.
        status: of results.json; `missing` without a submission, `graded` if nothing else is known.
        score: after the late penalty; None if there is none to give (ungradable, missing).
        raw: before the penalty.
        penalty: taken off for being late.
        max_score: the assignment's points.
        provisional: a question in words still waits for a person.
        reason: why there is no score, or what is to be known of it.
        questions: grade_id -> score, None where none is given yet.
        maxima: grade_id -> points.
        timestamp, due: as the gradebook has them, UTC.
    """

    student: str
    first: str
    last: str
    email: str
    status: str
    score: float | None
    raw: float | None
    penalty: float
    max_score: float
    provisional: bool = False
    reason: str = ""
    questions: Mapping[str, float | None] = field(default_factory=dict)
    maxima: Mapping[str, float] = field(default_factory=dict)
    timestamp: object = None
    due: object = None


def entries(course: Course, assignment: str) -> Mapping[str, dict]:
    """The students of results.json, {} if the assignment has not been graded by our command."""
    data = results.read_json(results.results_path(course, assignment)) or {}
    found = data.get("students")
    return found if isinstance(found, dict) else {}


def read_marks(course: Course, book: Gradebook, assignment: str) -> list[Mark]:
    """The marks of everybody in the gradebook, in its order.

    Raises:
        MissingEntry: if the gradebook does not have the assignment.
    """
    parent = book.find_assignment(assignment)
    known = entries(course, assignment)
    maxima = {
        cell.name: float(cell.max_score)
        for notebook in parent.notebooks
        for cell in (*notebook.grade_cells, *notebook.task_cells)
    }
    return [
        _mark(book, parent, student, known.get(student.id, {}), maxima) for student in book.students
    ]


def _mark(book: Gradebook, parent, student, entry: Mapping, maxima: Mapping[str, float]) -> Mark:
    who = {
        "student": student.id,
        "first": student.first_name or "",
        "last": student.last_name or "",
        "email": student.email or "",
        "max_score": float(parent.max_score or 0.0),
        "maxima": maxima,
        "due": parent.duedate,
        "reason": entry.get("reason", ""),
    }
    try:
        submission = book.find_submission(parent.name, student.id)
    except MissingEntry:
        submission = None
    status = entry.get("status") or ("graded" if submission is not None else "missing")
    if submission is None or status in NO_SCORE:
        return Mark(status=status, score=None, raw=None, penalty=0.0, **who)
    raw = float(submission.score or 0.0)
    penalty = float(submission.late_submission_penalty or 0.0)
    absent = {
        name
        for name, notebook in entry.get("notebooks", {}).items()
        if notebook.get("status") in NO_SCORE
    }
    questions: dict[str, float | None] = {}
    for notebook in submission.notebooks:
        for grade in notebook.grades:
            given = notebook.name not in absent and not _waits(grade)
            questions[grade.name] = float(grade.score or 0.0) if given else None
    return Mark(
        status=status,
        score=max(0.0, raw - penalty),
        raw=raw,
        penalty=penalty,
        provisional=any(_waits(g) for n in submission.notebooks for g in n.grades),
        questions=questions,
        timestamp=submission.timestamp,
        **who,
    )


def _waits(grade) -> bool:
    """Is there no score at all yet? (A manual score that only has to be looked at again is one.)"""
    return grade.auto_score is None and grade.manual_score is None
