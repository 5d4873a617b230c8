"""One answer as an example of a misconception, without anything that says whose it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from autograder.course import Course
from autograder.feedback.gather import cell_source, nbgrader_of, read_notebook

LONGEST = 1_200


def anonymous(source: str) -> str | None:
    """The code alone: comments, docstrings and strings in which a name could stand are taken out.

    Returns:
        the code as Python writes it; None if it does not parse or is too long to show.
    """
    if len(source) > 20 * LONGEST:
        return None
    try:
        tree = ast.parse(source)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [line for line in body if not _is_text(line)] or [ast.Pass()]
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                node.value = _blanked(node.value)
        code = ast.unparse(ast.fix_missing_locations(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return code if len(code) <= LONGEST else None


def _is_text(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _blanked(value: str | bytes) -> str:
    # Short words without spaces are subscripts of einsum, modes, dtypes: part of the mistake.
    text = value if isinstance(value, str) else ""
    return text if re.fullmatch(r"[a-z0-9,.\->_]{1,16}", text) else "..."


def example(
    course: Course,
    assignment: str,
    notebook: str,
    function: str,
    students: Sequence[str],
    most: int = 20,
) -> str | None:
    """The shortest answer among the first `most` students that show the misconception."""
    found = []
    for student in students[:most]:
        path = course.autograded / student / assignment / f"{notebook}.ipynb"
        for cell in (read_notebook(Path(path)) or {}).get("cells", []):
            about = nbgrader_of(cell)
            if about.get("grade_id") == function and about.get("solution"):
                code = anonymous(cell_source(cell))
                if code:
                    found.append(code)
    return min(found, key=lambda code: (len(code), code), default=None)
