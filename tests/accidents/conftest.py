"""Prints what became of the accidents at the end of a run; `make check-accidents` writes docs/accidents.md from it."""

from __future__ import annotations

from tests import tables
from tests.conftest import ROOT

TEXT = """Each accident happens to a perfect submission: in a class of the walkthrough, graded by the real command, one
accident in each notebook; and alone, in a submission of one notebook of the practice. No right answer may lose a point,
no batch may stop, the others must not be affected, and every repair must be told. What can't be repaired is ungradable
with a reason, and never a 0."""
HEAD = ("accident", "became", "what is told", "points lost in a class", "alone")


def pytest_terminal_summary(terminalreporter) -> None:
    from .bank import ACCIDENTS

    together, alone = (
        {row["name"]: row for row in tables.rows(terminalreporter, kind)}
        for kind in ("accident in a class", "accident alone")
    )
    batch = tables.rows(terminalreporter, "batch")
    if not together and not alone:
        return
    unknown = {"status": "not run", "told": "", "lost": None, "said": False}
    body = []
    for one in ACCIDENTS:
        row, lonely = together.get(one.name, unknown), alone.get(one.name, unknown)
        body.append((_title(one), row["status"], row["told"], _lost(row), _lost(lonely)))
    graded = [*together.values(), *alone.values()]
    repaired = [row for row in graded if row["status"] == "repaired"]
    others = batch[0] if batch else {"others": "?", "affected": "?", "stopped": "?"}
    figures = {
        "kinds of accident": len(ACCIDENTS),
        "submissions with one: in a class, alone": f"{len(together)}, {len(alone)}",
        "right answers that lost a point": sum(bool(row["lost"]) for row in graded),
        "repaired notebooks": len(repaired),
        "of these with the repair told": sum(row["said"] for row in repaired),
        "ungradable, with the reason told": sum(
            row["said"] for row in graded if row["status"] == "ungradable"
        ),
        "ungradable that got a 0": sum(row["zero"] for row in graded if "zero" in row),
        "batches that stopped": others["stopped"],
        "other students in the class; affected": f"{others['others']}; {others['affected']}",
    }
    page = tables.show(
        terminalreporter,
        "The accidents, and what became of them",
        "make check-accidents",
        figures,
        tables.markdown(HEAD, body),
        TEXT,
    )
    complete = len(together) == len(alone) == len(ACCIDENTS) and bool(batch)
    tables.write(terminalreporter, ROOT / "docs" / "accidents.md", page, complete)


def _title(one) -> str:
    name = one.name.replace("_", " ")
    return f"{name}: {one.doc.splitlines()[0]}" if one.doc else name


def _lost(row: dict) -> str:
    if row["status"] == "ungradable":
        return "no score"
    return "?" if row["lost"] is None else f"{row['lost']:g}"
