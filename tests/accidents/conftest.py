"""Prints the table of accidents at the end of a run."""

from __future__ import annotations

import re

KEY = re.compile(r"every_repair_is_told\[(?P<assignment>[\w-]+)-(?P<name>\w+)\]")


def pytest_terminal_summary(terminalreporter) -> None:
    from .bank import ACCIDENTS

    outcomes: dict[str, dict[str, str]] = {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            match = KEY.search(report.nodeid)
            if match:
                outcomes.setdefault(match["name"], {})[match["assignment"]] = outcome
    if not outcomes:
        return
    assignments = sorted({name for found in outcomes.values() for name in found})
    out = terminalreporter
    out.section("accidents")
    out.write_line(f"{'accident':45} {'must become':18} {'  '.join(assignments)}")
    for one in ACCIDENTS:
        found = outcomes.get(one.name, {})
        marks = "  ".join(f"{found.get(name, '-'):{len(name)}}" for name in assignments)
        out.write_line(f"{one.name:45} {one.status:18} {marks}")
    good = sum(set(found.values()) == {"passed"} for found in outcomes.values())
    out.write_line(f"{good} of {len(ACCIDENTS)} kinds of accident as they must be")
