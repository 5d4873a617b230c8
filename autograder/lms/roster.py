"""`roster`: writes a list of students into the gradebook."""

from __future__ import annotations

import argparse
from pathlib import Path

from autograder.course import Course
from autograder.lms import people


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "list",
        type=Path,
        help="CSV: Moodle's worksheet or participants, Canvas's gradebook, or columns "
        "id, first_name, last_name, email, lms_user_id",
    )


def run(args: argparse.Namespace, course: Course) -> int:
    found = people.with_students(people.read_list(args.list), people.known_students(course))
    new, known = people.enrol(course, found.people, found.kind)
    print(f"Gradebook: {new} students added, {known} brought up to date.")
    return 0
