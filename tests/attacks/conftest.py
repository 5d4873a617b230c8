"""Prints what became of the attacks at the end of a run; `make check-attacks` writes docs/attacks.md from it."""

from __future__ import annotations

from tests import tables
from tests.conftest import ROOT

TEXT = """A class of attackers hands in the walkthrough among honest students, and is graded by the real command. Each
attack's control is the same notebook without it: an honest, wrong answer. An attack succeeds if it earns more than
its control, or if a file, the gradebook, a process, the network or an output shows that it reached what it must
not. Attacks on what a notebook's own process holds are tried once more on functions that the grader asks with hidden
inputs. What the same attacks do to stock nbgrader is in [another table](attacks-on-stock.md)."""
HEAD = ("kind", "attack", "what it does", "what became of it", "on functions", "succeeded")


def pytest_terminal_summary(terminalreporter) -> None:
    from .bank import attacks

    found = {row["name"]: row for row in tables.rows(terminalreporter, "attack")}
    asked = {row["name"]: row for row in tables.rows(terminalreporter, "attack on functions")}
    class_wide = tables.rows(terminalreporter, "class under attack")
    if not found:
        return
    bank = {attack.name: attack for attack in attacks()}
    body = []
    for name, attack in bank.items():
        row = found.get(name, {"became": "not run", "how": ["not run"]})
        on_functions = {True: "yes", False: "no"}.get(asked.get(name, {}).get("succeeded"), "-")
        body.append(
            (
                attack.kind,
                name,
                attack.aim,
                row["became"],
                on_functions,
                ", ".join(row["how"]) or "no",
            )
        )
    honest = class_wide[0] if class_wide else {"kept": "?", "honest": "?"}
    figures = {
        "kinds of attack": len(bank),
        "that succeed": sum(bool(row["how"]) for row in found.values()),
        "tried on functions as well": len(asked),
        "that succeed there": sum(row["succeeded"] for row in asked.values()),
        "honest students among them": honest["honest"],
        "of these with the points that they had alone": honest["kept"],
    }
    table = tables.markdown(HEAD, body)
    page = tables.show(
        terminalreporter,
        "The attacks, and what became of them",
        "make check-attacks",
        figures,
        table,
        TEXT,
    )
    complete = found.keys() == bank.keys() and bool(asked) and bool(class_wide)
    tables.write(terminalreporter, ROOT / "docs" / "attacks.md", page, complete)
