"""The one writer of nbgrader's gradebook: one student, one transaction.

The rows are those that nbgrader writes, put into its tables in bulk: one object of nbgrader's classes for each
row takes ten times as long. Manual scores, comments of graders and extra credit are never touched.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakKeyDictionary

import nbformat
from nbgrader import utils
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    InvalidEntry,
    MissingEntry,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    new_uuid,
)
from nbgrader.preprocessors import SaveCells
from sqlalchemy import Index, and_, bindparam, insert, select, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from tornado.log import app_log

from autograder.course import Course, CourseError
from autograder.grade.results import unfinished
from autograder.lms import late

STUDENT, ASSIGNMENT, CELL = Student.__table__, Assignment.__table__, BaseCell.__table__
SUBMISSION, NOTEBOOK = SubmittedAssignment.__table__, SubmittedNotebook.__table__
GRADE, COMMENT = Grade.__table__, Comment.__table__
RELEASED = Notebook.__table__

# nbgrader's tables can be searched by a student's notebook or submission only from end to end; with these,
# what one student costs does not grow with the class: here, in formgrader, feedback and export.
INDEXES = (
    Index("attention_grade_notebook", GRADE.c.notebook_id),
    Index("attention_comment_notebook", COMMENT.c.notebook_id),
    Index("attention_notebook_submission", NOTEBOOK.c.assignment_id),
    Index("attention_submission_student", SUBMISSION.c.student_id),
)

_THEIRS = and_(
    SUBMISSION.c.assignment_id == ASSIGNMENT.c.id, SUBMISSION.c.student_id == bindparam("student")
)
_STANDING = (
    select(
        ASSIGNMENT.c.id.label("assignment"),
        ASSIGNMENT.c.duedate,
        SUBMISSION.c.id.label("submission"),
        SUBMISSION.c.timestamp,
        SUBMISSION.c.extension,
    )
    .select_from(ASSIGNMENT.outerjoin(SUBMISSION, _THEIRS))
    .where(ASSIGNMENT.c.name == bindparam("name"))
)
_CELLS = (
    select(
        RELEASED.c.id.label("notebook"),
        RELEASED.c.name.label("notebook_name"),
        CELL.c.id.label("cell"),
        CELL.c.name,
        CELL.c.type,
    )
    .select_from(RELEASED.outerjoin(CELL, CELL.c.notebook_id == RELEASED.c.id))
    .where(RELEASED.c.assignment_id == bindparam("assignment"))
    .order_by(RELEASED.c.name)
)
_KNOWN = select(STUDENT.c.id).where(STUDENT.c.id == bindparam("student"))
_NOTEBOOKS = select(NOTEBOOK.c.notebook_id, NOTEBOOK.c.id).where(
    NOTEBOOK.c.assignment_id == bindparam("submission")
)
_OF_NOTEBOOKS = bindparam("notebooks", expanding=True)
_GRADES = select(GRADE).where(GRADE.c.notebook_id.in_(_OF_NOTEBOOKS))
_COMMENTS = select(COMMENT).where(COMMENT.c.notebook_id.in_(_OF_NOTEBOOKS))
_SUMS = select(SubmittedNotebook.id, SubmittedNotebook.score).where(
    NOTEBOOK.c.id.in_(_OF_NOTEBOOKS)
)
_PENALTIES = select(NOTEBOOK.c.id, NOTEBOOK.c.late_submission_penalty).where(
    NOTEBOOK.c.id.in_(_OF_NOTEBOOKS)
)
_TIME = update(SUBMISSION).where(SUBMISSION.c.id == bindparam("key"))
_SCORE = update(GRADE).where(GRADE.c.id == bindparam("key"))
_SAY = update(COMMENT).where(COMMENT.c.id == bindparam("key"))
_PENALIZE = update(NOTEBOOK).where(NOTEBOOK.c.id == bindparam("key"))
_FORGET = (
    update(GRADE)
    .where(GRADE.c.notebook_id.in_(_OF_NOTEBOOKS))
    .values(auto_score=None, needs_manual_grade=True)
)


@dataclass
class _Released:
    """A notebook of the release: names of its cells by id, those with points and those with comments.

    Args:
        tasks: ids of cells whose points only a person gives; they are in `graded` and `commented` too.
    """

    id: str
    name: str
    graded: dict[str, str] = field(default_factory=dict)
    commented: dict[str, str] = field(default_factory=dict)
    tasks: set[str] = field(default_factory=set)


_LOOKED_UP: WeakKeyDictionary[Gradebook, dict[str, list[_Released]]] = WeakKeyDictionary()


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
        _create(course)
        gradebook = Gradebook(course.gradebook, "attention")
    except SQLAlchemyError as error:
        raise CourseError(_database_problem(course, error)) from None
    try:
        yield gradebook
    except OperationalError as error:
        raise CourseError(_database_problem(course, error)) from None
    finally:
        gradebook.close()


def _create(course: Course) -> None:
    """Make a gradebook file that is not there all at once.

    nbgrader makes table after table, and its version last: killed in between it leaves a gradebook that
    its own commands refuse.
    """
    url = make_url(course.gradebook)
    if url.get_backend_name() != "sqlite" or not url.database or Path(url.database).exists():
        return
    path = Path(url.database)
    temporary = unfinished(path)
    try:
        Gradebook(f"sqlite:///{temporary}", "attention").close()
        with contextlib.suppress(FileExistsError):  # made by another program in the meantime
            os.link(temporary, path)
    except OSError:  # a file system without links
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


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


@contextlib.contextmanager
def _one_line(course: Course) -> Iterator[None]:
    """Database errors in nbgrader's own classes, which log them with all frames and raise others instead."""
    level = app_log.level
    app_log.setLevel(logging.CRITICAL)
    try:
        yield
    except (InvalidEntry, SQLAlchemyError) as error:
        raise CourseError(_database_problem(course, error)) from None
    finally:
        app_log.setLevel(level)


def register(course: Course, assignment: str, notebooks: Mapping[str, object]) -> None:
    """Make the gradebook know the released notebooks: their cells, points and sources.

    Raises:
        CourseError: if it holds submissions of a form of the assignment with other cells.
    """
    with _one_line(course):
        with opened(course) as gradebook:
            for index in INDEXES:
                index.create(gradebook.engine, checkfirst=True)
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

    The rows are those that nbgrader's own API and preprocessors leave, except that a late penalty goes
    when its reason goes, also from a notebook that is no longer handed in.

    Args:
        timestamp: when it was handed in, as text; None leaves what is recorded.
        policy: what being late costs; None costs nothing and leaves nothing.

    Raises:
        MissingEntry: if the gradebook does not have the assignment.
    """
    db = gradebook.db
    try:
        db.flush()
        connection = db.connection()
        found = connection.execute(_STANDING, {"name": assignment, "student": student}).first()
        if found is None:
            raise MissingEntry(f"No such assignment: {assignment}")
        when = found.timestamp if timestamp is None else utils.parse_utc(timestamp)
        known: dict[str, str] = {}
        submission = found.submission
        if submission is None:
            submission = _add_submission(connection, found.assignment, student, when)
        else:
            if when != found.timestamp:
                connection.execute(_TIME, {"key": submission, "timestamp": when})
            known = dict(connection.execute(_NOTEBOOKS, {"submission": submission}).all())
        released = _released(gradebook, connection, found.assignment)
        _update_notebooks(connection, released, known, notebooks)
        known |= _add_notebooks(connection, submission, released, known, notebooks)
        seconds = late.seconds(when, found.duedate, found.extension)
        _penalize(connection, list(known.values()), seconds, policy or late.Policy())
        db.commit()
    except BaseException:
        db.rollback()
        raise


def _released(gradebook: Gradebook, connection, assignment: str) -> list[_Released]:
    """The assignment's notebooks and cells, looked up once for each opened gradebook.

    They can't change while it is open: nbgrader refuses other cells once there are submissions.
    """
    kept = _LOOKED_UP.setdefault(gradebook, {})
    if assignment not in kept:
        cells: dict[str, _Released] = {}
        for row in connection.execute(_CELLS, {"assignment": assignment}):
            one = cells.setdefault(row.notebook, _Released(row.notebook, row.notebook_name))
            if row.type in ("GradeCell", "TaskCell"):
                one.graded[row.cell] = row.name
            if row.type in ("SolutionCell", "TaskCell"):
                one.commented[row.cell] = row.name
            if row.type == "TaskCell":
                one.tasks.add(row.cell)
        kept[assignment] = list(cells.values())
    return kept[assignment]


def _add_submission(connection, assignment: str, student: str, when) -> str:
    """Rows for the student, who may be new, and for the submission; returns the submission's id."""
    if connection.execute(_KNOWN, {"student": student}).first() is None:
        connection.execute(insert(STUDENT), {"id": student})
    row = {"id": new_uuid(), "assignment_id": assignment, "student_id": student, "timestamp": when}
    connection.execute(insert(SUBMISSION), row)
    return row["id"]


def _add_notebooks(connection, submission: str, released, known, notebooks) -> dict[str, str]:
    """Rows for the notebooks that have none yet, their grades and comments; new ids by notebook."""
    submitted, grades, comments = [], [], []
    for one in released:
        if one.id in known:
            continue
        scores = notebooks.get(one.name)
        row = {"id": new_uuid(), "notebook_id": one.id, "assignment_id": submission}
        submitted.append(row)
        for cell, name in one.graded.items():
            score, waits = _graded(scores, name, None)
            mark = {"auto_score": score, "needs_manual_grade": waits}
            grades.append({"id": new_uuid(), "cell_id": cell, "notebook_id": row["id"], **mark})
        for cell, name in one.commented.items():
            said = {"auto_comment": _comment(scores, name)}
            comments.append({"id": new_uuid(), "cell_id": cell, "notebook_id": row["id"], **said})
    for table, rows in ((NOTEBOOK, submitted), (GRADE, grades), (COMMENT, comments)):
        if rows:
            connection.execute(insert(table), rows)
    return {row["notebook_id"]: row["id"] for row in submitted}


def _update_notebooks(connection, released, known: Mapping[str, str], notebooks) -> None:
    """New automatic scores and comments in the rows that are there, where they differ."""
    if not known:
        return
    names = {known[one.id]: one.name for one in released if one.id in known}
    graded = {cell: name for one in released for cell, name in one.graded.items()}
    commented = {cell: name for one in released for cell, name in one.commented.items()}
    tasks = {cell for one in released for cell in one.tasks}
    ids = {"notebooks": list(names)}
    grades, comments = [], []
    for row in connection.execute(_GRADES, ids):
        scores = notebooks.get(names[row.notebook_id])
        if scores is not None and row.cell_id in tasks:
            continue
        new = _graded(scores, graded[row.cell_id], row.manual_score)
        if new != (row.auto_score, row.needs_manual_grade):
            grades.append({"key": row.id, "auto_score": new[0], "needs_manual_grade": new[1]})
    for row in connection.execute(_COMMENTS, ids):
        scores = notebooks.get(names[row.notebook_id])
        # As nbgrader: the comments of a notebook that is not there are left alone.
        new = row.auto_comment if scores is None else _comment(scores, commented[row.cell_id])
        if new != row.auto_comment:
            comments.append({"key": row.id, "auto_comment": new})
    for statement, rows in ((_SCORE, grades), (_SAY, comments)):
        if rows:
            connection.execute(statement, rows)


def _graded(scores: NotebookScores | None, name: str, manual: float | None):
    """A cell's automatic score, and whether a person has to look at it."""
    if scores is None:
        return 0.0, False
    score = scores.scores.get(name)
    return score, manual is not None or score is None


def _comment(scores: NotebookScores | None, name: str) -> str | None:
    return "No response." if scores is not None and name in scores.unanswered else None


def _penalize(connection, ids: list[str], seconds: float, policy: late.Policy) -> None:
    """What is taken off each notebook for being late; taken back where nothing is."""
    taken: dict[str, float | None] = {}
    if seconds:
        for key, score in connection.execute(_SUMS, {"notebooks": ids}):
            taken[key] = late.penalty_of_seconds(float(score or 0.0), seconds, policy) or None
    had = connection.execute(_PENALTIES, {"notebooks": ids})
    changed = [
        {"key": key, "late_submission_penalty": taken.get(key)}
        for key, before in had
        if before != taken.get(key)
    ]
    if changed:
        connection.execute(_PENALIZE, changed)


def forget(gradebook: Gradebook, assignment: str, student: str) -> None:
    """Take back the automatic scores of a submission that can't be graded; manual ones stay."""
    db = gradebook.db
    try:
        connection = db.connection()
        found = connection.execute(_STANDING, {"name": assignment, "student": student}).first()
        if found is not None and found.submission is not None:
            known = connection.execute(_NOTEBOOKS, {"submission": found.submission}).all()
            connection.execute(_FORGET, {"notebooks": [row.id for row in known]})
        db.commit()
    except BaseException:
        db.rollback()
        raise
