"""What reading a submission yields: plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from nbformat import NotebookNode


@dataclass
class Ingested:
    """One expected notebook of one student.

    Args:
        name: the released notebook's stem.
        notebook: repaired, nbformat 4.5, without outputs; None if it can't be graded.
        original: as the student saved it (outputs kept, names of people removed); None if unreadable.
        repairs: one plain sentence for each thing that was put right.
        problem: why it can't be graded and what to do; None if it can.
        missing: nothing was handed in for this name.
        path: the file that counted.
    """

    name: str
    notebook: NotebookNode | None = None
    original: NotebookNode | None = None
    repairs: list[str] = field(default_factory=list)
    problem: str | None = None
    missing: bool = False
    path: Path | None = None


@dataclass
class Submission:
    """All of one student's notebooks for one assignment.

    Args:
        student, assignment: from the folder `submitted/<student>/<assignment>`.
        notebooks: an entry for every expected name, in the order asked for.
        notes: what was found besides (refused links, files that were not passed on, spare copies).
        files: other files that may be given to the student's kernel: regular, small, shadowing nothing.
        others: names of what was handed in and is no notebook.
    """

    student: str
    assignment: str
    notebooks: dict[str, Ingested] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
