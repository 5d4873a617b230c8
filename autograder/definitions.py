"""Which files define how an assignment is judged; digests of them decide what is still valid."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable
from pathlib import Path

from autograder.tasks.registry import MODULES

PACKAGE = Path(__file__).resolve().parent
JUDGING = ("verify", "ingest", "grade", "execute")


def judging_files(assignment: str) -> list[Path]:
    """The code that judges `assignment`: the shared machinery and its own definition, no other's."""
    files = [path for part in JUDGING for path in (PACKAGE / part).rglob("*.py")]
    own = _module_files(MODULES[assignment])
    others = {
        path
        for name, module in MODULES.items()
        if name != assignment
        for path in _module_files(module)
    }
    shared = set((PACKAGE / "tasks").glob("*.py")) - others
    return sorted({*files, *shared, *own})


def _module_files(module: str) -> list[Path]:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return []
    path = Path(spec.origin).resolve()
    return list(path.parent.rglob("*.py")) if path.name == "__init__.py" else [path]


def digest(files: Iterable[Path], *texts: str) -> str:
    """SHA-256 over names and contents of `files`, and over `texts`."""
    sums = hashlib.sha256()
    for text in texts:
        sums.update(text.encode() + b"\0")
    for path in sorted(files, key=lambda p: (p.name, str(p))):
        sums.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return sums.hexdigest()
