"""Who is in the class: rows of the LMS's lists, and the id under which the course knows each.

Names never identify anybody. In Moodle it is the participant number, in Canvas the user's number;
the list that the LMS gives leads from there to the e-mail address or login.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.course import Course, CourseError
from autograder.lms.tables import read_table

SAFE_ID = re.compile(r"^[^\W_][\w.@+-]{0,63}\Z")
"""Ids that can be the name of a folder anywhere: letters and digits of any script, and `. _ @ + -`."""
MOODLE_NAMES: Mapping[str, tuple[str, ...]] = {
    "key": ("identifier", "id", "identifikator", "identifiant", "identificador"),
    "full": ("full name", "vollständiger name", "nom complet", "nombre completo"),
    "first": ("first name", "vorname", "prénom", "nombre"),
    "last": ("last name", "surname", "nachname", "nom", "nom de famille", "apellido(s)"),
    "email": ("email address", "e-mail-adresse", "adresse de courriel", "dirección de correo"),
    "login": ("username", "anmeldename"),
    "number": ("id number", "id-nummer"),
    "status": ("status", "statut", "estado"),
    "submitted": ("last modified (submission)", "zuletzt geändert (abgabe)"),
}


@dataclass(frozen=True)
class Person:
    """One row of a list: `key` identifies in the LMS, `student` in the course ("" until decided)."""

    key: str
    full: str = ""
    first: str = ""
    last: str = ""
    email: str = ""
    login: str = ""
    number: str = ""
    status: str = ""
    submitted: str = ""
    student: str = ""
    row: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ClassList:
    """A list of the LMS: its kind (`moodle`, `canvas`, `plain`), its columns and people."""

    kind: str
    header: tuple[str, ...]
    people: tuple[Person, ...]


def read_list(path: Path) -> ClassList:
    """Reads Moodle's grading worksheet, Canvas's gradebook export, or a plain roster.

    Raises:
        CourseError: if it is none of them, or if two rows have the same identifier.
    """
    header, rows = read_table(path)
    lower = [name.casefold() for name in header]
    if "student" in lower and "id" in lower:
        found = ClassList("canvas", tuple(header), tuple(_canvas(rows)))
    elif "id" in lower and {"first_name", "last_name", "email", "lms_user_id"} & set(lower):
        found = ClassList("plain", tuple(header), tuple(_plain(rows)))
    elif lower[0] in MOODLE_NAMES["key"] or set(lower) & set(MOODLE_NAMES["email"]):
        found = ClassList("moodle", tuple(header), tuple(_moodle(header, rows)))
    else:
        raise CourseError(
            f"{path} is no grading worksheet of Moodle, no gradebook of Canvas and no roster with the "
            "columns id, first_name, last_name, email."
        )
    if not found.people:
        raise CourseError(f"{path} names nobody.")
    twice = [key for key, n in Counter(p.key for p in found.people).items() if n > 1]
    if twice:
        raise CourseError(f"{path} has the identifier {twice[0]!r} twice; download it again.")
    return found


def _moodle(header: Sequence[str], rows: Iterable[Mapping[str, str]]) -> Iterable[Person]:
    columns = {
        what: next((name for name in header if name.casefold() in names), None)
        for what, names in MOODLE_NAMES.items()
    }
    for row in rows:
        values = {what: row[name].strip() if name else "" for what, name in columns.items()}
        match = re.search(r"(\d+)$", values.pop("key"))
        email = values["email"]
        if not match and not email:
            continue
        yield Person(key=match[1] if match else email, row=dict(row), **values)


def _canvas(rows: Iterable[Mapping[str, str]]) -> Iterable[Person]:
    for row in rows:
        values = {name.casefold(): (value or "").strip() for name, value in row.items()}
        key = values["id"]
        # The second and third lines hold the points possible and notes, and the last a test student.
        if not key.isdigit():
            continue
        last, _, first = values["student"].partition(",")
        login = values.get("sis login id", "")
        yield Person(
            key=key,
            full=values["student"],
            first=first.strip(),
            last=last.strip(),
            email=login if "@" in login else "",
            login=login,
            number=values.get("sis user id", ""),
            row=dict(row),
        )


def _plain(rows: Iterable[Mapping[str, str]]) -> Iterable[Person]:
    for row in rows:
        values = {name.casefold(): (value or "").strip() for name, value in row.items()}
        if not SAFE_ID.match(values["id"]):
            raise CourseError(
                f"The roster's id {values['id'][:40]!r} can't be a folder's name: use letters, digits, "
                "and . _ @ + - only."
            )
        yield Person(
            key=values["id"],
            full=f"{values.get('first_name', '')} {values.get('last_name', '')}".strip(),
            first=values.get("first_name", ""),
            last=values.get("last_name", ""),
            email=values.get("email", ""),
            number=values.get("lms_user_id", ""),
            student=values["id"],
            row=dict(row),
        )


# --- ids -----------------------------------------------------------------------------------------


def with_students(found: ClassList, known: Iterable[Person]) -> ClassList:
    """The list with every person's id in the course decided; no two people get the same.

    A person whom the gradebook knows (by LMS number or e-mail) keeps that id. Others get
    their login or the part of the e-mail address before the @ where nobody else has it, else the whole
    address, else `participant-<number>`.
    """
    known = list(known)
    # A participant number of Moodle is another one in each assignment.
    by_number = {p.key: p.student for p in known if p.key} if found.kind == "canvas" else {}
    emails = Counter(p.email.casefold() for p in known if p.email)
    by_email = {
        p.email.casefold(): p.student for p in known if p.email and emails[p.email.casefold()] == 1
    }
    ids = {p.student.casefold(): p.student for p in known if p.email}
    taken: dict[str, Person] = {}
    decided: dict[str, str] = {}
    for person in found.people:
        student = (
            person.student or by_number.get(person.key) or by_email.get(person.email.casefold())
        )
        student = student or ids.get(person.email.casefold() or "-", "")
        if student and student.casefold() not in taken:
            decided[person.key] = student
            taken[student.casefold()] = person
    short = Counter(
        _short(p).casefold() for p in found.people if p.key not in decided and _short(p)
    )
    for person in found.people:
        if person.key in decided:
            continue
        prefix = "canvas" if found.kind == "canvas" else "participant"
        brief = _short(person)
        wishes = [brief] if brief and short[brief.casefold()] == 1 else []
        wishes += [person.email.casefold(), f"{prefix}-{person.key}"]
        student = next(
            (
                wish
                for wish in wishes
                if SAFE_ID.match(wish)
                and wish.casefold() not in taken
                and wish.casefold() not in ids
            ),
            None,
        )
        if student is None:
            raise CourseError(
                f"No id can be found for {person.full or person.key!r}: the gradebook has somebody else "
                f"under each. Give them one with the `roster` command."
            )
        decided[person.key] = student
        taken[student.casefold()] = person
    people = tuple(replace(p, student=decided[p.key]) for p in found.people)
    return replace(found, people=people)


def _short(person: Person) -> str:
    text = (person.login or person.email).partition("@")[0].casefold()
    return text if SAFE_ID.match(text) else ""


def known_students(course: Course) -> list[Person]:
    """The students in the gradebook; `key` is the LMS number."""
    from autograder.grade import gradebook

    with gradebook.opened(course) as book:
        return [
            Person(
                key=student.lms_user_id or "",
                first=student.first_name or "",
                last=student.last_name or "",
                email=student.email or "",
                student=student.id,
            )
            for student in book.students
        ]


def enrol(course: Course, people: Iterable[Person], kind: str) -> tuple[int, int]:
    """Writes people into the gradebook; returns how many are new and how many were known.

    What the list leaves empty stays as it is in the gradebook.
    """
    from autograder.grade import gradebook

    new = 0
    total = 0
    with gradebook.opened(course) as book:
        known = {student.id for student in book.students}
        for person in people:
            first, last = person.first, person.last
            if not first and not last and person.full:
                first, _, last = person.full.rpartition(" ")
            number = person.number if kind == "plain" else person.key
            values = {
                "first_name": first,
                "last_name": last,
                "email": person.email,
                # A participant number of Moodle belongs to one assignment, so it is not kept.
                "lms_user_id": "" if kind == "moodle" else number,
            }
            values = {name: value[:128] for name, value in values.items() if value}
            book.update_or_create_student(person.student, **values)
            new += person.student not in known
            total += 1
    return new, total - new
