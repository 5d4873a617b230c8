"""Reads nbgrader_config.py, so that our commands and nbgrader's see one course and one gradebook."""

from __future__ import annotations

from pathlib import Path

from traitlets.config import Config, PyFileConfigLoader

from autograder.course import Course, CourseError

NAME = "nbgrader_config.py"


def load_config(course: Course) -> Config:
    """nbgrader's configuration of this course, with this course's root and gradebook.

    Raises:
        CourseError: if the folder has no nbgrader_config.py.
    """
    config = _read(course.root)
    config.CourseDirectory.root = str(course.root)
    config.CourseDirectory.db_url = course.gradebook
    return config


def open_course(root: Path, db_url: str | None = None) -> Course:
    """The course at `root`; its gradebook is `db_url`, else the config's, else gradebook.db there."""
    root = root.resolve()
    if db_url is None and (root / NAME).exists():
        configured = _read(root).CourseDirectory.get("db_url")
        db_url = configured if isinstance(configured, str) else None
    return Course(root, db_url)


def _read(root: Path) -> Config:
    if not (root / NAME).exists():
        raise CourseError(
            f"{root} has no {NAME}: run this from the course's folder, or name it with --root."
        )
    return PyFileConfigLoader(NAME, path=str(root)).load_config()
