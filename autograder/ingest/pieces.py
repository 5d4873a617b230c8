"""The cells of a submitted notebook while they are being repaired, and of the release beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from autograder.ingest.text import bound, normal


@dataclass(eq=False)
class Piece:
    """One submitted cell, or a part of one that was cut off."""

    kind: str
    source: str
    id: str = ""
    grade_id: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return normal(self.source)


@dataclass(frozen=True, eq=False)
class Released:
    """One cell of the release, with what is asked about it again and again."""

    index: int
    cell: dict
    kind: str
    text: str
    id: str
    grade_id: str | None
    locked: bool
    graded: bool
    names: frozenset[str]

    @property
    def source(self) -> str:
        return self.cell["source"]

    @property
    def called(self) -> str:
        return self.grade_id or self.id

    @property
    def answer(self) -> bool:
        return self.grade_id is not None and not self.locked

    def said(self) -> str:
        """How a sentence for the student begins."""
        if self.grade_id is None:
            return f"The cell `{self.called}`"
        return f"The {'locked' if self.locked else 'answer'} cell `{self.called}`"


def released_cells(notebook: dict) -> list[Released]:
    """The release's cells; `names` is what running the cell binds (of an answer: its function)."""
    cells = []
    for index, cell in enumerate(notebook["cells"]):
        settings = cell["metadata"].get("nbgrader") or {}
        kind = cell["cell_type"]
        cells.append(
            Released(
                index=index,
                cell=cell,
                kind=kind,
                text=normal(cell["source"]),
                id=cell.get("id", ""),
                grade_id=settings.get("grade_id"),
                locked=bool(settings.get("locked")),
                graded=bool(settings.get("grade")),
                names=bound(cell["source"]) if kind == "code" else frozenset(),
            )
        )
    return cells


def submitted_pieces(notebook: dict) -> list[Piece]:
    """The student's cells, in the notebook's order."""
    pieces = []
    for cell in notebook["cells"]:
        settings = cell["metadata"].get("nbgrader")
        settings = settings if isinstance(settings, dict) else {}
        grade_id = settings.get("grade_id")
        tags = cell["metadata"].get("tags")
        pieces.append(
            Piece(
                kind=cell["cell_type"],
                source=cell["source"],
                id=cell.get("id", ""),
                grade_id=grade_id if isinstance(grade_id, str) else None,
                settings=dict(settings),
                tags=tuple(tags) if isinstance(tags, list) else (),
            )
        )
    return pieces
