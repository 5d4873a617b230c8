"""CSV files of learning management systems: read whatever they wrote, write what they can read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from autograder.course import CourseError

SIZE_LIMIT = 20 * 1024 * 1024
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_HARMLESS = re.compile(r"[+-]?\d+(?:\.\d+)?|-")
"""A number, and the dash that Moodle writes for "never"."""


def read_table(path: Path) -> tuple[list[str], list[dict[str, str]]]:
    """The header and the rows of a CSV file with commas, semicolons or tabs, in any usual encoding.

    Raises:
        CourseError: if the file can't be read or has no header.
    """
    try:
        if path.stat().st_size > SIZE_LIMIT:
            raise CourseError(f"{path} is larger than 20 MB, so it is no list of students.")
        data = path.read_bytes()
    except OSError as error:
        raise CourseError(f"{path} can't be read ({error.strerror}).") from None
    lines = list(csv.reader(io.StringIO(_text(data)), delimiter=_delimiter(_text(data))))
    lines = [line for line in lines if any(cell.strip() for cell in line)]
    if not lines or len(lines[0]) < 2:
        raise CourseError(f"{path} is no CSV file with a line of column names.")
    header = [name.strip() for name in lines[0]]
    return header, [
        dict(zip(header, line + [""] * len(header), strict=False)) for line in lines[1:]
    ]


def _text(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _delimiter(text: str) -> str:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return max(",;\t", key=first.count)


def neutral(value: object) -> str:
    """The text of a cell, changed so that no spreadsheet takes it for a formula; numbers stay."""
    text = "" if value is None else str(value)
    if text.startswith(_FORMULA) and not _HARMLESS.fullmatch(text):
        return f"'{text}"
    if text.lstrip(" \u00a0\ufeff").startswith(_FORMULA) and text != text.lstrip(" \u00a0\ufeff"):
        return f"'{text}"
    return text


def write_table(
    path: Path, header: Sequence[str], rows: Iterable[Mapping[str, object]], mark: bool = False
) -> None:
    """Writes a CSV file in UTF-8 with commas; every cell is neutralised.

    Args:
        mark: begin with a byte-order mark, as Moodle's own files do, so that Excel shows names rightly.

    Raises:
        CourseError: if it can't be written.
    """
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow([neutral(name) for name in header])
    for row in rows:
        writer.writerow([neutral(row.get(name)) for name in header])
    write_bytes(path, stream.getvalue().encode("utf-8-sig" if mark else "utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a file so that a reader sees the old one or the new one.

    Raises:
        CourseError: if it can't be written.
    """
    temporary = path.with_name(f".{path.name}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CourseError(f"{path} can't be written ({error.strerror}).") from None


def number(value: float | None) -> str:
    """A mark as text: at most two decimals, no trailing zeros; "" for none."""
    if value is None:
        return ""
    return f"{value:.2f}".rstrip("0").rstrip(".")
