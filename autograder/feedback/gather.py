"""Brings together what is known of a student's work: results, the gradebook's marks, the graded notebook."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from autograder.course import Course, CourseError
from autograder.feedback.text import sentence
from autograder.tasks.model import AssignmentTasks
from autograder.tasks.registry import MODULES
from autograder.tasks.registry import assignment as find_tasks

_FROM = """
    JOIN base_cell ON base_cell.id = {table}.cell_id
    JOIN submitted_notebook ON submitted_notebook.id = {table}.notebook_id
    JOIN notebook ON notebook.id = submitted_notebook.notebook_id
    JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id
    JOIN assignment ON assignment.id = submitted_assignment.assignment_id
    WHERE assignment.name = :assignment
"""
_GRADES = """
    SELECT submitted_assignment.student_id, notebook.name, base_cell.name, grade.auto_score,
           grade.manual_score, grade.extra_credit, submitted_notebook.late_submission_penalty
    FROM grade
""" + _FROM.format(table="grade")
_COMMENTS = """
    SELECT submitted_assignment.student_id, notebook.name, base_cell.name, comment.manual_comment
    FROM comment
""" + _FROM.format(table="comment")


@dataclass(frozen=True)
class Mark:
    """What the gradebook holds for one checkpoint; None where nothing was given."""

    auto: float | None
    manual: float | None
    extra: float | None


@dataclass
class Marks:
    """One student's notebook in the gradebook."""

    grades: dict[str, Mark] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    penalty: float = 0.0


Gradebook = Mapping[str, Mapping[str, Marks]]


@dataclass(frozen=True)
class Judged:
    """One checkpoint as the student should see it."""

    grade_id: str
    title: str
    verdict: str
    score: float | None
    max_score: float
    message: str = ""
    notes: tuple[str, ...] = ()
    misconceptions: tuple[str, ...] = ()
    changed_from: float | None = None
    extra: float | None = None

    @property
    def waiting(self) -> bool:
        """A person still has to give this mark."""
        return self.verdict == "manual" and self.score is None


@dataclass(frozen=True)
class Part:
    """One notebook's standing in the assignment, for the links between the pages."""

    name: str
    status: str
    problem: str
    score: float
    max_score: float
    waiting: bool


@dataclass(frozen=True)
class Standing:
    """All that the summary of one student's page needs."""

    student: str
    assignment: str
    title: str
    notebook: str
    status: str
    problem: str
    reason: str
    checkpoints: tuple[Judged, ...]
    repairs: tuple[str, ...]
    notes: tuple[str, ...]
    comments: Mapping[str, str]
    penalty: float
    parts: tuple[Part, ...]
    overall: str = "graded"

    @property
    def counts(self) -> bool:
        """Whether the assignment as a whole has a score: not while a notebook cannot be graded."""
        return self.overall not in ("ungradable", "missing")

    @property
    def score(self) -> float:
        return max(0.0, sum(c.score or 0.0 for c in self.checkpoints) - self.penalty)

    @property
    def max_score(self) -> float:
        return sum(c.max_score for c in self.checkpoints)

    @property
    def provisional(self) -> bool:
        return any(c.waiting for c in self.checkpoints)

    @property
    def total(self) -> float:
        return sum(part.score for part in self.parts)

    @property
    def total_max(self) -> float:
        return sum(part.max_score for part in self.parts)


def results_path(course: Course, assignment: str) -> Path:
    """Where `grade` wrote the results of an assignment."""
    return course.autograded / f"{assignment}.results.json"


def read_results(course: Course, assignment: str) -> dict:
    """The results of an assignment, as `grade` wrote them.

    Raises:
        CourseError: if the assignment was not graded yet, or its results cannot be read.
    """
    path = results_path(course, assignment)
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CourseError(
            f"{assignment!r} has no results ({path.name} is not in {path.parent.name}/): "
            f"run `python -m autograder grade {assignment}` first."
        ) from None
    except (OSError, ValueError) as error:
        raise CourseError(
            f"{path} cannot be read ({error}): run `python -m autograder grade {assignment}` again."
        ) from None
    if not isinstance(results, dict) or not isinstance(results.get("students"), dict):
        raise CourseError(f"{path} is no results file: grade {assignment!r} again.")
    return results


def read_marks(db_url: str, assignment: str, student: str | None = None) -> Gradebook:
    """Marks and comments of an assignment by student and notebook; empty where there is no gradebook yet.

    Raises:
        CourseError: if the gradebook is there and cannot be read.
    """
    if db_url.startswith("sqlite:///") and not Path(db_url.removeprefix("sqlite:///")).exists():
        return {}
    only = " AND submitted_assignment.student_id = :student" if student else ""
    values = {"assignment": assignment, **({"student": student} if student else {})}
    marks: dict[str, dict[str, Marks]] = defaultdict(lambda: defaultdict(Marks))
    engine = create_engine(db_url)
    try:
        with engine.connect() as connection:
            for who, notebook, cell, *scores, penalty in connection.execute(
                text(_GRADES + only), values
            ):
                entry = marks[who][notebook]
                entry.grades[cell] = Mark(*scores)
                entry.penalty = penalty or 0.0
            for who, notebook, cell, comment in connection.execute(text(_COMMENTS + only), values):
                if comment and comment.strip():
                    marks[who][notebook].comments[cell] = comment
    except SQLAlchemyError as error:
        problem = str(getattr(error, "orig", error)).splitlines()[0]
        raise CourseError(f"the gradebook cannot be read ({problem}).") from None
    finally:
        engine.dispose()
    return marks


def read_notebook(path: Path) -> dict | None:
    """A graded notebook, None if there is none or it is damaged."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return notebook if isinstance(notebook, dict) and "cells" in notebook else None


def tasks_of(assignment: str) -> AssignmentTasks | None:
    """The task definition, None for an assignment that has none (made with nbgrader alone)."""
    return find_tasks(assignment) if assignment in MODULES else None


def expected(assignment: str, entry: Mapping) -> list[str]:
    """The notebooks of an assignment in its order."""
    tasks = tasks_of(assignment)
    known = [notebook.name for notebook in tasks.notebooks] if tasks else []
    return known + [name for name in entry.get("notebooks", {}) if name not in known]


def cell_source(cell: Mapping) -> str:
    """A cell's text, whichever of nbformat's two forms it has."""
    source = cell.get("source", "")
    return "".join(source) if isinstance(source, list) else str(source)


def nbgrader_of(cell: Mapping) -> Mapping:
    """A cell's nbgrader metadata, {} if it has none."""
    found = cell.get("metadata", {}).get("nbgrader", {})
    return found if isinstance(found, Mapping) else {}


def grade_cells(notebook: Mapping | None) -> Iterator[Mapping]:
    """The cells of a notebook that carry points."""
    for cell in (notebook or {}).get("cells", []):
        if nbgrader_of(cell).get("grade"):
            yield cell


def _properties(assignment: str) -> dict[str, str]:
    tasks = tasks_of(assignment)
    if tasks is None:
        return {}
    return {c.grade_id: c.property for notebook in tasks.notebooks for c in notebook.checkpoints()}


def _title(grade_id: str, properties: Mapping[str, str], cell: Mapping | None) -> str:
    """The property in words: the task's, or the first line of the cell, or the grade_id."""
    if properties.get(grade_id):
        return sentence(properties[grade_id])
    lines = cell_source(cell).strip().splitlines() if cell else []
    first = (
        lines[0].lstrip("#").strip().removeprefix("Property:").strip()
        if lines and lines[0].startswith("#")
        else ""
    )
    return sentence(first or grade_id.replace("-", " "))


def _judged(
    grade_id: str, saved: Mapping, mark: Mark | None, title: str, max_score: float
) -> Judged:
    """One checkpoint: the automatic verdict, unless a person gave another mark."""
    verdict = str(saved.get("verdict", "missing"))
    auto = saved.get("score")
    by_person = verdict == "manual"
    if by_person and auto is not None:
        verdict, by_person = "not-attempted", False  # as released: there is nothing to read
    score = auto
    changed_from = None
    extra = None
    if mark is not None:
        extra = mark.extra or None
        if mark.manual is not None:
            score = mark.manual
            changed_from = None if auto == mark.manual else auto
            if str(saved.get("verdict")) == "manual":
                verdict, changed_from = "manual", None
        elif not by_person and mark.auto is not None:
            score = mark.auto
        if extra:
            score = (score or 0.0) + extra
    return Judged(
        grade_id=grade_id,
        title=title,
        verdict=verdict,
        score=score,
        max_score=max_score,
        message=str(saved.get("message", "")),
        notes=tuple(str(note) for note in saved.get("notes", ())),
        misconceptions=tuple(saved.get("misconceptions", ())),
        changed_from=changed_from,
        extra=extra,
    )


def checkpoints(
    assignment: str, notebook: str, entry: Mapping, cells: Mapping | None, marks: Marks
) -> tuple[Judged, ...]:
    """The checkpoints of one notebook in its order.

    What the graded notebook says comes first (nbgrader's own autograde writes it too); checkpoints that it
    lacks are taken from the results.
    """
    properties = _properties(assignment)
    found: dict[str, Judged] = {}
    saved = {
        grade_id: value
        for grade_id, value in entry.get("checkpoints", {}).items()
        if value.get("notebook") == notebook
    }
    for cell in grade_cells(cells):
        grade_id = nbgrader_of(cell).get("grade_id", "")
        verdict = cell.get("metadata", {}).get("autograder") or saved.get(grade_id) or {}
        points = verdict.get("max_score", nbgrader_of(cell).get("points", 0))
        title = _title(grade_id, properties, cell)
        found[grade_id] = _judged(grade_id, verdict, marks.grades.get(grade_id), title, points)
    for grade_id, value in saved.items():
        if grade_id not in found:
            title = _title(grade_id, properties, None)
            mark = marks.grades.get(grade_id)
            found[grade_id] = _judged(grade_id, value, mark, title, value.get("max_score", 0))
    tasks = tasks_of(assignment)
    if not found and tasks and notebook in {n.name for n in tasks.notebooks}:
        for c in tasks.notebook(notebook).checkpoints():
            found[c.grade_id] = Judged(c.grade_id, sentence(c.property), "missing", 0.0, c.points)
    return tuple(found.values())


def standing(
    assignment: str,
    student: str,
    notebook: str,
    entry: Mapping,
    cells: Mapping | None,
    marks: Mapping[str, Marks],
) -> Standing:
    """What one page says of one student's notebook.

    Args:
        entry: the student's entry in the results ({} if there is none).
        cells: the graded notebook, None if there is none.
        marks: the student's marks in the gradebook, by notebook.
    """
    tasks = tasks_of(assignment)
    parts = []
    for name in expected(assignment, entry):
        own = marks.get(name, Marks())
        known = checkpoints(assignment, name, entry, cells if name == notebook else None, own)
        status, problem = _status(entry, name)
        score = max(0.0, sum(c.score or 0.0 for c in known) - own.penalty)
        total = sum(c.max_score for c in known)
        parts.append(Part(name, status, problem, score, total, any(c.waiting for c in known)))
    status, problem = _status(entry, notebook)
    own = marks.get(notebook, Marks())
    return Standing(
        student=student,
        assignment=assignment,
        title=tasks.title if tasks else assignment,
        notebook=notebook,
        status=status if cells is not None or status != "graded" else "missing",
        problem=problem,
        reason=str(entry.get("reason") or ""),
        checkpoints=checkpoints(assignment, notebook, entry, cells, own),
        repairs=_about(entry.get("repairs", ()), notebook, parts),
        notes=_about(entry.get("notes", ()), notebook, parts),
        comments=own.comments,
        penalty=own.penalty,
        parts=tuple(parts),
        overall=str(entry.get("status") or "graded"),
    )


def _status(entry: Mapping, notebook: str) -> tuple[str, str]:
    """Status and problem of one notebook; the student's where the notebook has no entry of its own."""
    own = entry.get("notebooks", {}).get(notebook)
    if isinstance(own, Mapping):
        return str(own.get("status") or "graded"), str(own.get("problem") or "")
    status = str(entry.get("status") or "graded")
    return ("graded" if status in ("repaired", "incomplete") else status), ""


def _about(lines: Sequence[str], notebook: str, parts: Sequence[Part]) -> tuple[str, ...]:
    """The lines that concern this notebook: those that name it, and those that name none."""
    others = [part.name for part in parts if part.name != notebook]
    return tuple(
        str(line).removeprefix(f"{notebook}: ")
        for line in lines
        if notebook in str(line) or not any(other in str(line) for other in others)
    )
