"""The one writer of nbgrader's gradebook: one student, one transaction.

Rows are made with nbgrader's own classes, so that formgrader, export and feedback read them as theirs.
Manual scores, comments of graders and extra credit are never touched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import nbformat
from nbgrader import utils
from nbgrader.api import (
    Assignment,
    Comment,
    Grade,
    Gradebook,
    MissingEntry,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.preprocessors import SaveCells
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from autograder.course import Course, CourseError
from autograder.lms import late


@dataclass(frozen=True)
class NotebookScores:
    """What one notebook's cells get.

    Args:
        scores: grade_id -> automatic score; None where a person has to decide.
        unanswered: grade_ids of answer cells that are as released.
    """

    scores: Mapping[str, float | None]
    unanswered: frozenset[str] = frozenset()


@contextlib.contextmanager
def opened(course: Course) -> Iterator[Gradebook]:
    """The gradebook, closed afterwards.

    Raises:
        CourseError: one line, if the database can't be opened, read or written.
    """
    try:
        gradebook = Gradebook(course.gradebook, "attention")
    except SQLAlchemyError as error:
        raise CourseError(_database_problem(course, error)) from None
    try:
        yield gradebook
    except OperationalError as error:
        raise CourseError(_database_problem(course, error)) from None
    finally:
        gradebook.close()


def _database_problem(course: Course, error: Exception) -> str:
    text = str(getattr(error, "orig", error)).splitlines()[0]
    if "locked" in text:
        advice = "another program holds it; wait for it or close it, then run this again"
    elif "readonly" in text or "unable to open" in text:
        advice = "make the folder and the file writable, then run this again"
    elif "no such column" in text or "no such table" in text:
        advice = "it was made by another nbgrader; back it up, then run `nbgrader db upgrade`"
    elif "disk" in text or "full" in text:
        advice = "free some space, then run this again"
    else:
        advice = "check the database, then run this again"
    return f"the gradebook {course.gradebook} can't be used ({text}): {advice}. Nothing was lost."


def register(course: Course, assignment: str, notebooks: Mapping[str, object]) -> None:
    """Make the gradebook know the released notebooks: their cells, points and sources.

    Raises:
        CourseError: if it holds submissions of a form of the assignment with other cells.
    """
    with opened(course) as gradebook:
        try:
            known = gradebook.find_assignment(assignment)
            if _same_cells(known, notebooks):
                return
        except MissingEntry:
            gradebook.add_assignment(assignment)
    for name, nb in notebooks.items():
        names = {
            "notebook": name,
            "assignment": assignment,
            "student": ".",
            "db_url": course.gradebook,
        }
        try:
            SaveCells().preprocess(nbformat.from_dict(nb), {"nbgrader": names})
        except RuntimeError:
            raise CourseError(
                f"the gradebook has submissions of {assignment}/{name} with other cells than release/ "
                f"has now. Grade them with the release that they were made for, or start a new gradebook."
            ) from None


def _same_cells(known: Assignment, notebooks: Mapping[str, object]) -> bool:
    """Whether ids, points and sources in the gradebook are those of the release."""
    recorded = {
        (notebook.name, cell.name): (cell.source, None)
        for notebook in known.notebooks
        for cell in notebook.source_cells
    }
    points = {
        (notebook.name, cell.name): cell.max_score
        for notebook in known.notebooks
        for cell in notebook.grade_cells
    }
    wanted, wanted_points = {}, {}
    for name, nb in notebooks.items():
        for cell in nb.cells:
            meta = cell.metadata.get("nbgrader")
            if not meta:
                continue
            key = (name, meta["grade_id"])
            if meta.get("grade") or meta.get("solution") or meta.get("locked"):
                wanted[key] = (cell.source, None)
            if meta.get("grade"):
                wanted_points[key] = float(meta["points"])
    return recorded == wanted and points == wanted_points


def record(
    gradebook: Gradebook,
    assignment: str,
    student: str,
    notebooks: Mapping[str, NotebookScores | None],
    timestamp=None,
    policy: late.Policy | None = None,
) -> None:
    """Write one student's automatic scores in one transaction; None marks a notebook not handed in.

    Args:
        timestamp: when it was handed in, as text; None leaves what is recorded.
        policy: what being late costs; None costs nothing and leaves nothing.
    """
    db = gradebook.db
    try:
        submission = _submission(gradebook, assignment, student)
        if timestamp is not None:
            submission.timestamp = utils.parse_utc(timestamp)
        for submitted in submission.notebooks:
            scores = notebooks.get(submitted.name)
            for grade in submitted.grades:
                _set_grade(grade, scores)
            for comment in submitted.comments:
                answered = scores is None or comment.name not in scores.unanswered
                comment.auto_comment = None if answered else "No response."
        db.flush()
        db.expire_all()  # nbgrader's scores are sums in SQL
        late.assign(submission, policy or late.Policy())
        db.commit()
    except BaseException:
        db.rollback()
        raise


def _set_grade(grade: Grade, scores: NotebookScores | None) -> None:
    grade.auto_score = 0.0 if scores is None else scores.scores.get(grade.name)
    grade.needs_manual_grade = scores is not None and (
        grade.manual_score is not None or grade.auto_score is None
    )


def _submission(gradebook: Gradebook, assignment: str, student: str) -> SubmittedAssignment:
    """The student's submission, with a row for every cell; made (uncommitted) if it is not there."""
    db = gradebook.db
    row = db.get(Student, student)
    if row is None:
        row = Student(id=student)
        db.add(row)
    parent = gradebook.find_assignment(assignment)
    found = (
        db.query(SubmittedAssignment)
        .filter_by(assignment_id=parent.id, student_id=student)
        .one_or_none()
    )
    with db.no_autoflush:
        if found is None:
            found = SubmittedAssignment(assignment=parent, student=row)
            db.add(found)
        have = {notebook.notebook_id for notebook in found.notebooks}
        for notebook in parent.notebooks:
            if notebook.id not in have:
                _add_notebook(db, notebook, found)
    db.flush()
    return found


def _add_notebook(db, notebook, submission: SubmittedAssignment) -> None:
    submitted = SubmittedNotebook(notebook=notebook, assignment=submission)
    rows = [submitted]
    rows += [
        Grade(cell=c, notebook=submitted) for c in (*notebook.grade_cells, *notebook.task_cells)
    ]
    rows += [
        Comment(cell=c, notebook=submitted)
        for c in (*notebook.solution_cells, *notebook.task_cells)
    ]
    db.add_all(rows)


def forget(gradebook: Gradebook, assignment: str, student: str) -> None:
    """Take back the automatic scores of a submission that can't be graded; manual ones stay."""
    try:
        submission = gradebook.find_submission(assignment, student)
    except MissingEntry:
        return
    for submitted in submission.notebooks:
        for grade in submitted.grades:
            grade.auto_score = None
            grade.needs_manual_grade = True
    gradebook.db.commit()
