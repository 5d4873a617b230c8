"""Where the course's folders are, and the one error class whose text is meant for people."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class CourseError(Exception):
    """A foreseeable mistake: one line that says what, where, and what to do."""


@dataclass(frozen=True)
class Course:
    """The folders of one course, all below `root`.

    Args:
        root: the repository (or a scratch copy of it); holds `source/`, `release/`, ...
        db_url: SQLAlchemy URL of the gradebook; None means `gradebook.db` below `root`.
    """

    root: Path
    db_url: str | None = None

    @property
    def source(self) -> Path:
        return self.root / "source"

    @property
    def release(self) -> Path:
        return self.root / "release"

    @property
    def submitted(self) -> Path:
        return self.root / "submitted"

    @property
    def autograded(self) -> Path:
        return self.root / "autograded"

    @property
    def feedback(self) -> Path:
        return self.root / "feedback"

    @property
    def gradebook(self) -> str:
        return self.db_url or f"sqlite:///{self.root / 'gradebook.db'}"
