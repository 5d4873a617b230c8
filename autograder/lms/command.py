"""`lms-export`: grade files and feedback zips that the LMS takes back."""

from __future__ import annotations

import argparse
import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path

from nbgrader.api import MissingEntry

from autograder.course import Course, CourseError
from autograder.grade import gradebook
from autograder.lms import outgoing, people, record
from autograder.lms.collect import CANVAS
from autograder.lms.marks import Mark, read_marks
from autograder.lms.people import ClassList, Person
from autograder.lms.tables import write_bytes, write_table

SAME_TIME = (2020, 1, 1, 0, 0, 0)
"""Every member of a feedback zip gets this time, so that equal pages make equal zips."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("assignment", help="the graded assignment")
    parser.add_argument(
        "--list",
        type=Path,
        metavar="CSV",
        help="a fresh worksheet or gradebook export (default: the one that `collect` read)",
    )
    parser.add_argument(
        "--to", type=Path, metavar="DIR", help="where to write (default: build/lms)"
    )
    parser.add_argument(
        "--count-practice",
        action="store_true",
        help="fill the grade column also for practice, so that it enters the LMS's total",
    )
    parser.add_argument(
        "--column", help="Canvas: the assignment's column, if its title is another one"
    )
    parser.add_argument("--no-feedback", action="store_true", help="write no feedback zip")


def run(args: argparse.Namespace, course: Course) -> int:
    target = args.to or course.root / "build" / "lms"
    written, lines = export(
        course,
        args.assignment,
        target,
        listed=args.list,
        count_practice=args.count_practice,
        column=args.column,
        feedback=not args.no_feedback,
    )
    print("\n".join([*lines, *(f"wrote {path}" for path in written)]))
    return 0


def export(
    course: Course,
    assignment: str,
    target: Path,
    *,
    listed: Path | None = None,
    count_practice: bool = False,
    column: str | None = None,
    feedback: bool = True,
) -> tuple[list[Path], list[str]]:
    """Writes the grade CSVs and the feedback zip; returns their paths and what is to be known.

    Raises:
        CourseError: if the assignment has not been graded, or the list does not fit.
    """
    kept = record.load(course, assignment) or record.Record(assignment)
    with gradebook.opened(course) as book:
        try:
            marks = {mark.student: mark for mark in read_marks(course, book, assignment)}
        except MissingEntry:
            raise CourseError(f"{assignment} is not in the gradebook: grade it first.") from None
    found = kept.people
    if listed is not None:
        found = people.with_students(people.read_list(listed), people.known_students(course))
    practice = _practice(assignment)
    counted = count_practice or not practice
    kind = found.kind if found is not None else "plain"
    everybody = found.people if found is not None else [_person(mark) for mark in marks.values()]
    written = []
    if found is not None and kind in ("moodle", "canvas"):
        table = _table(found, marks, assignment, column, counted)
        written.append(target / f"{assignment}-{kind}.csv")
        write_table(written[-1], table.header, table.rows, mark=kind == "moodle")
    table = outgoing.questions_table(kind, everybody, marks, assignment)
    written.append(target / f"{assignment}-questions.csv")
    write_table(written[-1], table.header, table.rows)
    if feedback:
        path = target / f"{assignment}-feedback.zip"
        data, pages = feedback_zip(course, assignment, kept, found, marks)
        if pages:
            write_bytes(path, data)
            written.append(path)
    return written, _said(marks, everybody, practice, counted)


def _table(
    found: ClassList,
    marks: Mapping[str, Mark],
    assignment: str,
    column: str | None,
    counted: bool,
) -> outgoing.Table:
    if found.kind == "moodle":
        return outgoing.moodle_table(found, marks, counted)
    points = next((m.max_score for m in marks.values()), 0.0)
    column = outgoing.canvas_column(found, _title(assignment), column)
    return outgoing.canvas_table(found, marks, column, points, counted)


def _person(mark: Mark) -> Person:
    return Person(
        key=mark.student, first=mark.first, last=mark.last, email=mark.email, student=mark.student
    )


def _practice(assignment: str) -> bool:
    """Are the marks practice marks, which do not count? Unknown assignments count."""
    from autograder.tasks.registry import assignment as tasks_of

    try:
        return tasks_of(assignment).practice
    except CourseError:
        return False


def _title(assignment: str) -> str:
    from autograder.tasks.registry import assignment as tasks_of

    try:
        return tasks_of(assignment).title
    except CourseError:
        return assignment


def _said(
    marks: Mapping[str, Mark], everybody: list[Person], practice: bool, counted: bool
) -> list[str]:
    here = [marks.get(person.student) for person in everybody]
    lines = []
    if practice and not counted:
        lines.append("Practice marks: the grade column is empty (--count-practice fills it).")
    for status in ("ungradable", "missing"):
        n = sum((mark.status if mark else "missing") == status for mark in here)
        if n:
            lines.append(f"{n} {status}: left blank, which is not a zero.")
    n = sum(mark is not None and mark.provisional for mark in here)
    if n:
        lines.append(f"{n} scores are provisional: questions in words are open.")
    unknown = sorted(set(marks) - {person.student for person in everybody})
    if unknown:
        lines.append(
            f"In the gradebook but not on the list, so not exported: {', '.join(unknown)}."
        )
    return lines


# --- feedback ------------------------------------------------------------------------------------


def feedback_zip(
    course: Course,
    assignment: str,
    kept: record.Record,
    found: ClassList | None,
    marks: Mapping[str, Mark],
) -> tuple[bytes, int]:
    """A zip with each student's feedback pages under the names that the LMS gave, and their number.

    Moodle finds the student by the folder's name (`name_number_assignsubmission_file`), Canvas by the
    numbers in the file's name (`name_user_attachment_...`).
    """
    buffer = io.BytesIO()
    pages = 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        students = [person.student for person in found.people] if found is not None else list(marks)
        by_student = {p.student: p for p in found.people} if found is not None else {}
        for student in sorted(students):
            folder = course.feedback / student / assignment
            for page in sorted(folder.glob("*.html")):
                name = _feedback_name(found, by_student.get(student), kept, student, page)
                if name is None:
                    continue
                info = zipfile.ZipInfo(name, SAME_TIME)
                info.compress_type = zipfile.ZIP_DEFLATED
                info.external_attr = 0o644 << 16
                target.writestr(info, page.read_bytes())
                pages += 1
    return buffer.getvalue(), pages


def _feedback_name(
    found: ClassList | None,
    person: Person | None,
    kept: record.Record,
    student: str,
    page: Path,
) -> str | None:
    kind = found.kind if found is not None else "plain"
    places = kept.places.get(student, [])
    if kind == "canvas":
        # Canvas attaches a page to a file that was handed in, so those without one get none.
        match = next((m for place in places if (m := CANVAS.match(place))), None)
        if match is None:
            return None
        late = match["late"] or ""
        return f"{match['name']}_{late}{match['user']}_{match['attempt']}_{page.name}"
    if kind == "moodle" and person is not None:
        return f"{_moodle_folder(person, places, kept)}/{page.name}"
    return f"{student}/{page.name}"


def _moodle_folder(person: Person, places: list[str], kept: record.Record) -> str:
    for place in places:
        # What stands behind it is a file's name, where Moodle was told not to make folders. Moodle
        # splits at the underscores, so a name that has some would not find its way back.
        match = re.match(rf"([^_]*_{person.key}_assignsubmission_file_?)", place)
        if match:
            return match[1]
    name = re.sub(r"[^\w .-]|_", "", person.full) or "participant"
    # Versions of Moodle differ in the last underscore: as in the download that this goes back to.
    others = [place for names in kept.places.values() for place in names]
    end = "_" if any(place.endswith("_assignsubmission_file_") for place in others) else ""
    return f"{name}_{person.key}_assignsubmission_file{end}"
