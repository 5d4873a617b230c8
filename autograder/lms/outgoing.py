"""Marks as rows of the files that Moodle and Canvas import.

A row without a score (missing, ungradable) has an empty grade, which both leave as it is; a zero is "0".
Only the columns that identify go back unchanged, as far as they can't be formulas.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autograder.course import CourseError
from autograder.grade.submission import PROVISIONAL
from autograder.lms.marks import Mark
from autograder.lms.people import ClassList, Person
from autograder.lms.tables import number

CANVAS_IDS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
_GRADE = ("grade", "bewertung", "note", "calificación")
_MAXIMUM = ("maximum grade", "maximalbewertung", "beste bewertung", "bestnote", "note maximale")
_COMMENTS = ("feedback comments", "feedback als kommentar", "commentaires de feedback")


@dataclass(frozen=True)
class Table:
    """A CSV file to be written: its columns and its rows."""

    header: tuple[str, ...]
    rows: tuple[Mapping[str, object], ...]


def comment(mark: Mark | None, counted: bool) -> str:
    """What is to be known besides the number, in words."""
    if mark is None or mark.status == "missing":
        return "Nothing was handed in."
    if mark.status == "ungradable":
        return f"Could not be graded: {mark.reason}"
    said = []
    if not counted:
        said.append(
            f"Practice: {number(mark.score)} of {number(mark.max_score)} marks; they do not count."
        )
    if mark.penalty:
        said.append(f"{number(mark.penalty)} marks were taken off for handing in late.")
    if mark.provisional:
        said.append(PROVISIONAL)
    if mark.status == "incomplete":
        said.append(mark.reason.replace(PROVISIONAL, "").strip())
    return " ".join(said)


def _column(header: Sequence[str], names: Sequence[str]) -> str | None:
    return next((name for name in header if name.casefold() in names), None)


def _scaled(mark: Mark | None, maximum: float | None) -> float | None:
    """The score on the LMS's scale."""
    if mark is None or mark.score is None:
        return None
    if not maximum or not mark.max_score:
        return mark.score
    return mark.score / mark.max_score * maximum


def moodle_table(found: ClassList, marks: Mapping[str, Mark], counted: bool) -> Table:
    """The grading worksheet as it came, with grades and comments filled in.

    Args:
        found: the worksheet, ids decided.
        marks: student -> mark.
        counted: False leaves the grade column empty, and tells the marks in the comment.

    Raises:
        CourseError: if it has no column for grades.
    """
    grade = _column(found.header, _GRADE)
    if grade is None:
        raise CourseError(
            "The worksheet has no column Grade; in Moodle, download it from the assignment's submissions."
        )
    maximum = _column(found.header, _MAXIMUM)
    comments = _column(found.header, _COMMENTS)
    rows = []
    for person in found.people:
        mark = marks.get(person.student)
        row: dict[str, object] = dict(person.row)
        score = _scaled(mark, _float(row.get(maximum)) if maximum else None)
        row[grade] = number(score) if counted else ""
        if comments:
            row[comments] = html.escape(comment(mark, counted), quote=False)
        rows.append(row)
    return Table(found.header, tuple(rows))


def _float(text: object) -> float | None:
    try:
        return float(str(text).strip().replace(",", "."))
    except ValueError:
        return None


def canvas_column(found: ClassList, title: str, wanted: str | None) -> str:
    """The assignment's column `Name (id)` in Canvas's gradebook; `title` if it is not there yet.

    Raises:
        CourseError: if the wanted one is not there, or several could be meant.
    """
    columns = [name for name in found.header if re.search(r" \(\d+\)$", name)]
    if wanted is not None:
        fitting = [c for c in found.header if c == wanted or c.startswith(f"{wanted} (")]
        if len(fitting) != 1:
            raise CourseError(
                f"Canvas's gradebook has {len(fitting)} columns {wanted!r}; it has: {columns}."
            )
        return fitting[0]
    fitting = [c for c in columns if c.rpartition(" (")[0].casefold() == title.casefold()]
    if len(fitting) > 1:
        raise CourseError(
            f"Canvas's gradebook has several columns {title!r}; choose with --column."
        )
    return fitting[0] if fitting else title


def canvas_table(
    found: ClassList, marks: Mapping[str, Mark], column: str, points: float, counted: bool
) -> Table:
    """Canvas's gradebook with its five identifying columns and the assignment's one."""
    points_row = {"Student": "    Points Possible", column: number(points)}
    rows: list[Mapping[str, object]] = [points_row]
    for person in found.people:
        mark = marks.get(person.student)
        row: dict[str, object] = {name: person.row.get(name, "") for name in CANVAS_IDS}
        row[column] = number(mark.score) if mark is not None and counted else ""
        rows.append(row)
    return Table((*CANVAS_IDS, column), tuple(rows))


def questions_table(
    kind: str, people: Sequence[Person], marks: Mapping[str, Mark], assignment: str
) -> Table:
    """One column for each question, behind the columns that identify.

    For Moodle's gradebook (Import, CSV: map the e-mail address, then each column), for Canvas (each column
    becomes an assignment), and for anything else.
    """
    some = next(iter(marks.values()), None)
    maxima = dict(some.maxima) if some else {}
    if kind == "canvas":
        ids = CANVAS_IDS
    elif kind == "moodle":
        ids = ("Identifier", "Full name", "Email address")
    else:
        ids = ("student_id", "last_name", "first_name", "email")
    columns = {name: f"{assignment} {name}" for name in maxima}
    header = (*ids, *columns.values(), "status", "comment")
    if kind == "canvas":
        header = header[:-2]
    rows: list[Mapping[str, object]] = []
    if kind == "canvas":
        points: dict[str, object] = {"Student": "    Points Possible"}
        rows.append(points | {columns[name]: number(most) for name, most in maxima.items()})
    for person in people:
        mark = marks.get(person.student)
        row: dict[str, object] = {name: person.row.get(name, "") for name in ids}
        if kind == "moodle":
            row["Full name"], row["Email address"] = person.full, person.email
            row["Identifier"] = next(iter(person.row.values()), "")
        elif kind != "canvas":
            row = {
                "student_id": person.student,
                "last_name": person.last,
                "first_name": person.first,
                "email": person.email,
            }
        scores = mark.questions if mark is not None else {}
        row |= {column: number(scores.get(name)) for name, column in columns.items()}
        row["status"] = mark.status if mark is not None else "missing"
        row["comment"] = comment(mark, True)
        rows.append(row)
    return Table(header, tuple(rows))
