"""`autograded/<assignment>.results.json`: what each student got, and why, as plain data.

The schema is `docs/results.schema.json`. Each student's entry is also kept on its own as soon as it is
final, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from autograder.course import Course, CourseError

SCHEMA_VERSION = 1
STATUSES = ("graded", "repaired", "incomplete", "ungradable", "missing")


def write_json(path: Path, data: object) -> None:
    """Write strict JSON so that a reader sees the old file or the new one, never half of one.

    Raises:
        CourseError: if the folder can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = unfinished(path)
        try:
            with temporary.open("w", encoding="utf-8") as file:
                json.dump(data, file, indent=1, allow_nan=False, ensure_ascii=False)
                file.write("\n")
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CourseError(
            f"can't write {path} ({error.strerror}): make the folder writable or free some space, "
            f"then run this again. What was finished is kept."
        ) from None


def unfinished(path: Path) -> Path:
    """Where this process writes what is to become `path`; it says whose it is, for `sweep`."""
    return path.with_name(f".{path.name}.{os.getpid()}.new")


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def read_json(path: Path) -> dict | None:
    """The object in `path`; None if there is no such file or it is not JSON."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def private(course: Course, assignment: str) -> Path:
    """The run's own folder: nonce and finished entries. nbgrader's commands do not look into it."""
    return course.autograded / ".run" / assignment


def entry_path(course: Course, assignment: str, student: str) -> Path:
    return private(course, assignment) / "students" / f"{student}.json"


def results_path(course: Course, assignment: str) -> Path:
    return course.autograded / f"{assignment}.results.json"


def sweep(course: Course, assignment: str) -> None:
    """Remove what graders that were killed in the middle of a write have left; the lock must be held."""
    own = private(course, assignment)
    places = [course.root, course.autograded, own, own / "students"]
    found = [path for place in places for path in place.glob(".*.new")]
    for path in found + list(course.autograded.glob(f"*/{assignment}/**/.*.new")):
        owner = path.name.split(".")[-2]
        if owner.isdigit() and not _runs(int(owner)):
            path.unlink(missing_ok=True)


def finished(course: Course, assignment: str, student: str, digest: str) -> dict | None:
    """The student's entry, if it was finished for exactly this submission, release and tasks."""
    kept = read_json(entry_path(course, assignment, student))
    if kept is None or kept.get("digest") != digest:
        return None
    return kept.get("entry")


def keep(course: Course, assignment: str, student: str, digest: str, entry: Mapping) -> None:
    """Mark the student's entry as final; the gradebook has been written before."""
    path = entry_path(course, assignment, student)
    write_json(path, {"digest": digest, "entry": entry})


def assemble(course: Course, assignment: str, nonce: str, max_score: float, missing: list[str]):
    """Write the results of all finished students, and of those who handed in nothing; return them."""
    students = {student: missing_entry(max_score) for student in missing}
    for path in sorted((private(course, assignment) / "students").glob("*.json")):
        kept = read_json(path)
        if kept and "entry" in kept:
            students[path.name.removesuffix(".json")] = kept["entry"]
    results = {
        "schema_version": SCHEMA_VERSION,
        "assignment": assignment,
        "nonce": nonce,
        "max_score": max_score,
        "students": dict(sorted(students.items())),
    }
    write_json(results_path(course, assignment), results)
    return results


def missing_entry(max_score: float) -> dict:
    """The entry of a student of the roster who handed in nothing."""
    return {
        "status": "missing",
        "score": None,
        "max_score": max_score,
        "reason": "Nothing was handed in.",
        "repairs": [],
        "notes": [],
        "notebooks": {},
        "checkpoints": {},
    }
