"""Does the end of `grade` show at a glance who needs the instructor?"""

import io

from rich.console import Console

from autograder.grade.command import MANY, table, totals
from autograder.grade.submission import (
    PROVISIONAL,
    UNTOUCHED,
    _blank,
    _without_notebooks,
)


def results(size: int) -> dict:
    students = {f"demo-{i:03}": one("graded", f"Graded. {PROVISIONAL}") for i in range(size)}
    students["demo-cut"] = one("ungradable", "1-scores: The file is cut off.", None)
    students["demo-blank"] = one("graded", UNTOUCHED, 0.0)
    return {"assignment": "hw", "max_score": 6, "students": students}


def one(status: str, reason: str, score: float | None = 4.0) -> dict:
    return {"status": status, "reason": reason, "score": score}


def text(found: dict) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(table(found))
    return console.export_text()


def test_a_large_class_shows_only_who_is_not_just_graded():
    said = text(results(MANY))
    assert "demo-cut" in said
    assert "demo-blank" in said
    assert "demo-005" not in said
    assert "whoever is not just graded" in said


def test_a_small_class_shows_everybody():
    assert "demo-005" in text(results(10))


def test_the_totals_count_each_state():
    said = totals(results(10))
    assert said.startswith("11 graded, 1 ungradable. 10 wait for a mark by hand.")
    assert "report" in said


def test_nothing_is_missing_and_something_else_is_ungradable():
    assert _without_notebooks([])[0] == "missing"
    status, reason = _without_notebooks(["all.zip"])
    assert status == "ungradable"
    assert "`all.zip`" in reason
    assert ".ipynb files are needed" in reason
    many = _without_notebooks([f"{i}.txt" for i in range(9)])[1]
    assert "`5.txt`" not in many


def test_an_answer_as_released_is_told_from_one_that_waits_or_is_wrong():
    assert _blank({"verdict": "not-attempted", "score": 0.0})
    assert _blank({"verdict": "manual", "score": 0.0})
    assert not _blank({"verdict": "manual", "score": None})
    assert not _blank({"verdict": "wrong", "score": 0.0})
