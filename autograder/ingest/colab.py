"""Rewrites lines that only work on the student's own machine or in Colab.

Each rewriting keeps the student's line in a comment, so that nothing of the work is hidden, and is
reported. Only lines that would fail or do harm under grading are touched: installations, Drive mounts
and other parts of `google.colab`, changes to folders that exist in Colab alone, plot windows, and
`%reset`, which would take the answers away before they are asked.
"""

from __future__ import annotations

import ast
import re

from autograder.ingest.text import parse

_QUICK = re.compile(
    r"pip|conda|google|matplotlib|\.use\(|switch_backend|chdir|\bapt|/content|mamba|%reset"
)
_INSTALL = re.compile(
    r"^(\s*)(?:[\w, ]+=\s*)?[%!]\s*(?:(?:\S*python[\d.]*|\{?sys\.executable\}?)\s+-m\s+|sudo\s+|uv\s+)*"
    r"(?:pip[\d.]*|conda|mamba|apt|apt-get)\b.*$"
)
_CHANGE_FOLDER = re.compile(r"^(\s*)%cd\s+[\"']?/content\b.*$")
_RESET = re.compile(r"^(\s*)%reset(?:_selective)?\b.*$")
_GUI = re.compile(r"^(\s*)%matplotlib\s+(?!inline\b|--list\b|-l\b)\S+.*$")
_GUI_NAME = re.compile(r"^(?:tk|qt|gtk|wx|mac|webagg|nbagg|ipympl|widget|notebook)", re.IGNORECASE)
_LEFT_OUT = "left out when grading:"
_ABSENT = (
    'type("Absent", (), {"__getattr__": lambda s, n: s, "__call__": lambda s, *a, **k: s, '
    '"__iter__": lambda s: iter(())})()'
)


def rewrite(source: str) -> tuple[str, list[str]]:
    """The code with such lines made harmless, and a phrase for each kind that was found.

    The number of lines stays the same. `import google.colab` inside `try:` stays, because
    programs use it to ask where they run, and the honest answer is an ImportError.
    """
    if not _QUICK.search(source):
        return source, []
    found: list[str] = []
    lines = _lines(source.split("\n"), found)
    lines = _statements("\n".join(lines), found).split("\n")
    return "\n".join(lines), list(dict.fromkeys(found))


def _lines(lines: list[str], found: list[str]) -> list[str]:
    result: list[str] = []
    inside = ""
    continued = False
    for line in lines:
        if continued:
            continued = line.rstrip().endswith("\\")
            result.append(f"# {line}")
            continue
        if not inside:
            new = _line(line, found)
            if new is not None:
                continued = line.rstrip().endswith("\\")
                result.append(new.rstrip("\\ ") if continued else new)
                continue
        inside = _inside_text(line, inside)
        result.append(line)
    return result


def _line(line: str, found: list[str]) -> str | None:
    if match := _INSTALL.match(line):
        found.append("installing packages")
        return f"{match[1]}pass  # {_LEFT_OUT} {line.strip()}"
    if match := _CHANGE_FOLDER.match(line):
        found.append("changing to a folder of Colab")
        return f"{match[1]}pass  # {_LEFT_OUT} {line.strip()}"
    if match := _RESET.match(line):
        found.append("deleting all variables")
        return f"{match[1]}pass  # {_LEFT_OUT} {line.strip()}"
    if match := _GUI.match(line):
        found.append("opening plot windows")
        return f"{match[1]}%matplotlib inline"
    return None


def _inside_text(line: str, inside: str) -> str:
    """The triple quote that is open after this line, or "". Escapes are not looked at."""
    position = 0
    while True:
        if inside:
            end = line.find(inside, position)
            if end < 0:
                return inside
            inside, position = "", end + 3
        else:
            starts = [(line.find(q, position), q) for q in ('"""', "'''")]
            starts = [(at, q) for at, q in starts if at >= 0]
            if not starts:
                return ""
            at, inside = min(starts)
            if "#" in line[:at] and not any(q in line[: line.index("#")] for q in "\"'"):
                return ""
            position = at + 3


def _statements(source: str, found: list[str]) -> str:
    tree = parse(source)
    if tree is None:
        return source
    lines = source.split("\n")
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    changes: list[tuple[ast.stmt, str, str]] = []
    for node in ast.walk(tree):
        if id(node) in guarded and isinstance(node, ast.Import | ast.ImportFrom):
            continue
        new = _statement(node)
        if new is not None:
            changes.append((node, *new))
    # Backwards, so that positions of what is still to come stay right.
    for node, new, what in sorted(changes, key=lambda c: (c[0].lineno, c[0].col_offset))[::-1]:
        _replace(lines, node, new)
        found.append(what)
    return "\n".join(lines)


def _replace(lines: list[str], node: ast.stmt, new: str) -> None:
    first, last = node.lineno - 1, node.end_lineno - 1
    # ast counts columns in UTF-8 bytes.
    start = lines[first].encode()[: node.col_offset].decode()
    end = lines[last].encode()[node.end_col_offset :].decode()
    old = lines[first : last + 1]
    comment = f"  # {_LEFT_OUT} {old[0].strip()}" if not end.strip() else ""
    lines[first] = f"{start}{new}{end.rstrip()}{comment}"
    for number, text in enumerate(old[1:], first + 1):
        lines[number] = f"# {text}"


def _statement(node: ast.AST) -> tuple[str, str] | None:
    colab = "using Colab's own module"
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[:2] == [
        "google",
        "colab",
    ]:
        names = [alias.asname or alias.name for alias in node.names if alias.name != "*"]
        return "; ".join(f"{name} = {_ABSENT}" for name in names) or "pass", colab
    if isinstance(node, ast.ImportFrom) and node.module == "google":
        names = [alias.asname or alias.name for alias in node.names]
        if any(alias.name == "colab" for alias in node.names):
            return "; ".join(f"{name} = {_ABSENT}" for name in names), colab
    if isinstance(node, ast.Import):
        mine = [a for a in node.names if a.name.split(".")[:2] == ["google", "colab"]]
        if mine:
            others = [a for a in node.names if a not in mine]
            parts = [f"{(a.asname or 'google')} = {_ABSENT}" for a in mine]
            if others:
                parts.append(ast.unparse(ast.Import(names=others)))
            return "; ".join(dict.fromkeys(parts)), colab
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        return _call(node.value)
    return None


def _call(call: ast.Call) -> tuple[str, str] | None:
    function = call.func
    first = call.args[0] if call.args else None
    text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
    if not isinstance(function, ast.Attribute) or not text:
        return None
    if function.attr == "chdir" and text.startswith("/content"):
        return "pass", "changing to a folder of Colab"
    if function.attr in ("use", "switch_backend") and _GUI_NAME.match(text):
        return "pass", "opening plot windows"
    if function.attr in ("magic", "run_line_magic") and text.startswith("matplotlib"):
        return "pass", "opening plot windows"
    return None
