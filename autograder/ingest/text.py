"""Questions about a cell's source: is it the same, does it parse, which names does it bind."""

from __future__ import annotations

import ast
import re
import warnings
from functools import lru_cache

PARSE_LIMIT = 200_000
"""Longer sources are not parsed: no lesson needs them, and parsing is not free."""

_FILE = "<student's cell>"
# Submissions are read in threads, so the filter is set once; catch_warnings is not safe there.
warnings.filterwarnings("ignore", module=_FILE)

_MAGIC_LINE = re.compile(r"^(\s*)(?:%|!|\?).*$")
_MAGIC_VALUE = re.compile(r"^(\s*[\w, ]+=\s*)(?:%|!).*$")
_HELP_LINE = re.compile(r"^(\s*)[\w.]+\?{1,2}\s*$")
_FOREIGN_CELL = re.compile(
    r"^\s*%%(?:bash|sh|script|html|HTML|javascript|js|latex|markdown|svg|writefile|file|perl|ruby)\b"
)
_DEFINITION = re.compile(r"^(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_WORD = re.compile(r"[^\W\d]\w*")


@lru_cache(maxsize=2048)
def normal(source: str) -> str:
    """The source without what editors change: line ends, trailing blanks, blank lines around it."""
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def without_magics(source: str) -> str:
    """The source with IPython's lines replaced by Python of the same number of lines."""
    lines = []
    for line in source.split("\n"):
        line = _MAGIC_LINE.sub(r"\1pass", line)
        line = _MAGIC_VALUE.sub(r"\1None", line)
        lines.append(_HELP_LINE.sub(r"\1pass", line))
    return "\n".join(lines)


@lru_cache(maxsize=512)
def parse(source: str) -> ast.Module | None:
    """The syntax tree of a code cell, or None if it isn't Python that can be read."""
    if len(source) > PARSE_LIMIT or _FOREIGN_CELL.match(source):
        return None
    try:
        return ast.parse(without_magics(source), _FILE)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=2048)
def runs_alone(source: str) -> bool:
    """Could IPython compile this cell? A `return` outside of a function can be parsed, but not compiled.

    IPython takes off the indentation that the first line has; a cell of another language is left to it.
    """
    if len(source) > PARSE_LIMIT or _FOREIGN_CELL.match(source):
        return True
    text = without_magics(normal(source))
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    if indent:
        text = "\n".join(line.removeprefix(indent) for line in text.split("\n"))
    try:
        compile(text, _FILE, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


@lru_cache(maxsize=4096)
def bound(source: str) -> frozenset[str]:
    """Names that running this cell binds at its top level (definitions, imports, assignments)."""
    tree = parse(source)
    if tree is None:
        return frozenset(_DEFINITION.findall(source[:PARSE_LIMIT]))
    return frozenset(_bound(tree.body))


def _bound(body: list[ast.stmt]) -> set[str]:
    names: set[str] = set()
    for node in body:
        names |= statement_names(node)
        for part in ("body", "orelse", "finalbody"):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names |= _bound(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            names |= _bound(handler.body)
    return names


def statement_names(node: ast.stmt) -> set[str]:
    """Names that this one statement binds, not looking into its body."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For):
        targets = [node.target]
    elif isinstance(node, ast.With):
        targets = [item.optional_vars for item in node.items if item.optional_vars]
    return {
        name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
    }


def words(source: str) -> set[str]:
    """Every identifier that the source mentions, wherever."""
    return set(_WORD.findall(source[:PARSE_LIMIT]))
