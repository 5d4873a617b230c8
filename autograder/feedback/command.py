"""`python -m autograder feedback ASSIGNMENT`: the feedback pages of a graded class."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path

from autograder.course import Course, CourseError
from autograder.feedback.gather import (
    Gradebook,
    expected,
    read_marks,
    read_notebook,
    read_results,
    standing,
)
from autograder.feedback.render import feedback_page


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("assignment", help="folder name of the assignment under source/")
    parser.add_argument("--student", help="one student's id (default: everyone)")
    parser.add_argument("--quiet", action="store_true", help="print nothing when all is well")


def write_student(
    course: Course, assignment: str, student: str, entry: Mapping, marks: Gradebook
) -> list[Path]:
    """Write the pages of one student, one for each notebook of the assignment.

    Args:
        entry: the student's entry in the results.
        marks: the gradebook's marks, from `read_marks`.

    Raises:
        CourseError: if the pages cannot be written.
    """
    if Path(student).name != student or student in ("", ".", ".."):
        raise CourseError(f"{student!r} is no student id: it would be written outside feedback/.")
    graded = course.autograded / student / assignment
    folder = course.feedback / student / assignment
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in expected(assignment, entry):
            notebook = read_notebook(graded / f"{name}.ipynb")
            summary = standing(assignment, student, name, entry, notebook, marks.get(student, {}))
            shown = None if summary.status in ("missing", "ungradable") else notebook
            page = folder / f"{name}.html"
            page.write_text(feedback_page(summary, shown), encoding="utf-8")
            written.append(page)
        # nbgrader compares these to see whether its own command has anything to do.
        if (graded / "timestamp.txt").exists():
            shutil.copyfile(graded / "timestamp.txt", folder / "timestamp.txt")
    except OSError as error:
        raise CourseError(
            f"the feedback of {student} cannot be written to {folder} ({error.strerror}): "
            f"make that folder writable."
        ) from None
    return written


def write_all(course: Course, assignment: str, student: str | None = None) -> list[Path]:
    """Write the pages of a class, or of one student; everybody else's are written if one fails.

    Raises:
        CourseError: if the assignment or the student has no results, or some pages failed.
    """
    results = read_results(course, assignment)
    entries = results["students"]
    if student is not None and student not in entries:
        raise CourseError(f"{student!r} is not among the results of {assignment!r}.")
    marks = read_marks(course.gradebook, assignment, student)
    pages: list[Path] = []
    problems: list[str] = []
    for name in [student] if student is not None else sorted(entries):
        try:
            pages.extend(write_student(course, assignment, name, entries[name], marks))
        except CourseError as error:
            problems.append(str(error))
    if problems:
        more = f" ({len(problems) - 1} more like this)" if len(problems) > 1 else ""
        raise CourseError(f"{problems[0]}{more} {len(pages)} other pages are written.")
    return pages


def run(args: argparse.Namespace, course: Course) -> int:
    pages = write_all(course, args.assignment, args.student)
    if not args.quiet:
        students = len({page.parent.parent.name for page in pages})
        print(f"feedback/: {len(pages)} pages for {students} student{'s' if students != 1 else ''}")
    return 0
