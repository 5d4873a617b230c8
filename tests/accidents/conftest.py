"""Prints the table of accidents at the end of a run."""

from __future__ import annotations

import re

KEY = re.compile(r"test_(?P<how>in_a_class|alone)_no_point_is_lost\w*\[(?P<name>\w+)\]")
HOW = {"in_a_class": "in a class", "alone": "alone"}


def pytest_terminal_summary(terminalreporter) -> None:
    from .bank import ACCIDENTS

    outcomes: dict[str, dict[str, str]] = {}
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            match = KEY.search(report.nodeid)
            if match:
                outcomes.setdefault(match["name"], {})[match["how"]] = outcome
    if not outcomes:
        return
    out = terminalreporter
    out.section("accidents")
    out.write_line(f"{'accident':45} {'must become':18} {'  '.join(HOW.values())}")
    for one in ACCIDENTS:
        found = outcomes.get(one.name, {})
        marks = "  ".join(f"{found.get(how, '-'):{len(title)}}" for how, title in HOW.items())
        out.write_line(f"{one.name:45} {one.status:18} {marks}")
    for how, title in HOW.items():
        good = sum(found.get(how) == "passed" for found in outcomes.values())
        out.write_line(f"{title}: {good} of {len(ACCIDENTS)} kinds of accident as they must be")
