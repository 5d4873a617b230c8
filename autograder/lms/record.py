"""What `collect` keeps of a download, so that grades and feedback find their way back."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from autograder.course import Course, CourseError
from autograder.grade.results import read_json, write_json
from autograder.lms.people import ClassList, Person


@dataclass
class Record:
    """One assignment's download.

    Args:
        assignment: its name.
        people: the LMS's list, ids decided; None if there was none (a plain folder).
        places: student -> names in the download (Moodle's folder, Canvas's file), as they were.
        late: students whose files Canvas marked as late.
    """

    assignment: str
    people: ClassList | None = None
    places: dict[str, list[str]] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)


def _path(course: Course, assignment: str):
    # Hidden, so that nobody takes it for a student.
    return course.submitted / ".lms" / f"{assignment}.json"


def save(course: Course, record: Record) -> None:
    """Keeps the record beside the submissions."""
    write_json(_path(course, record.assignment), asdict(record))


def load(course: Course, assignment: str) -> Record | None:
    """The record of the last download, None if there was none.

    Raises:
        CourseError: if it is damaged.
    """
    path = _path(course, assignment)
    if not path.exists():
        return None
    data = read_json(path)
    try:
        people = data.pop("people")
        if people is not None:
            rows = tuple(Person(**row) for row in people["people"])
            people = ClassList(people["kind"], tuple(people["header"]), rows)
        return Record(people=people, **data)
    except (AttributeError, KeyError, TypeError):
        raise CourseError(f"{path} is damaged; run `collect` again.") from None
