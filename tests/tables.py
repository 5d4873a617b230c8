"""Tables that tests make: figures at the end of a run, and the page in docs/ that holds them.

Tests hand in rows with `record_property(kind, row)`. The page is written by `pytest -p tests.tables` alone, and only
when every row is there and every test has passed: an ordinary run of the tests changes no file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conftest import ROOT
from tests.machine import machine

NAME = "tests.tables"
OUTCOMES = ("passed", "failed", "error")


def rows(reporter, kind: str) -> list[dict]:
    """What the tests of this run recorded under a kind; each with the `outcome` of its test."""
    found = []
    for outcome in OUTCOMES:
        for report in reporter.stats.get(outcome, []):
            for name, row in getattr(report, "user_properties", []):
                if name == kind and getattr(report, "when", "") == "call":
                    found.append({**row, "outcome": outcome})
    return found


def failed(reporter) -> bool:
    return any(reporter.stats.get(outcome) for outcome in OUTCOMES[1:])


def markdown(head: Sequence[str], body: Sequence[Sequence[object]]) -> str:
    """A table; what would end a cell is escaped."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(cell_text(cell) for cell in line)} |" for line in lines)


def cell_text(value: object, longest: int = 200) -> str:
    text = " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= longest else f"{text[:longest]}..."


def show(
    reporter, title: str, command: str, figures: Mapping[str, object], table: str, text: str
) -> str:
    """Print the figures; returns the page."""
    reporter.section(title)
    for name, value in figures.items():
        reporter.write_line(f"{name:55} {value}")
    made = markdown(["", ""], list(figures.items()))
    return (
        f"# {title}\n\nMade by `{command}`.\nMachine: {machine()}.\n\n{text}\n\n{made}\n\n{table}\n"
    )


def write(reporter, path: Path, page: str, complete: bool) -> None:
    """Write the page, if that was asked for and nothing is missing in it."""
    if not reporter.config.pluginmanager.has_plugin(NAME):
        return
    if failed(reporter) or not complete:
        reporter.write_line(f"{path.relative_to(ROOT)} is left as it is: not all tests passed")
        return
    path.write_text(page, encoding="utf-8")
    reporter.write_line(f"wrote {path.relative_to(ROOT)}")
