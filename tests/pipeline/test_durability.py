"""Kill the grader and go on: is the outcome that of an undisturbed run? (`make check-durability`: a large class.)"""

from __future__ import annotations

import json
import sqlite3

import pytest

from . import durability
from .durability import Run, Scale

NAME = durability.NAME
NOTEBOOK = ("1-scores-and-context",)
AIMS = (
    durability.CREATING,
    durability.RANDOM,
    durability.TRANSACTION,
    durability.BETWEEN,
    durability.RESULTS,
    durability.RANDOM,
)


def test_a_grader_that_is_killed_again_and_again_ends_as_if_it_had_not_been(tmp_path):
    outcome = durability.torment(tmp_path, Scale(12, len(AIMS), NOTEBOOK, AIMS))
    assert outcome.faults() == []
    assert len(outcome.kills) == len(AIMS)
    assert any(kill.wrote for kill in outcome.kills)
    assert outcome.kept
    assert outcome.edits


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two courses with one class and one nonce, both graded."""
    folder = tmp_path_factory.mktemp("pair")
    runs = [Run(folder / name, Scale(4, 0, NOTEBOOK)) for name in ("one", "other")]
    for run in runs:
        run.grade()
    return runs


def write(run: Run, statement: str) -> None:
    with sqlite3.connect(run.root / "gradebook.db") as book:
        assert book.execute(statement).rowcount
    book.close()


def test_marks_and_comments_of_people_survive_regrading(pair):
    run = pair[0]
    write(run, "update grade set manual_score = 2.5")
    write(run, "update comment set manual_comment = 'seen by a person'")
    run.grade("--force")
    rows = durability.gradebook(run.root)
    assert {row[3] for row in rows["grade"]} == {2.5}
    assert {row[3] for row in rows["comment"]} == {"seen by a person"}
    for table, column in (("grade", "manual_score"), ("comment", "manual_comment")):
        write(run, f"update {table} set {column} = null")
    run.grade("--force")


def test_the_comparison_sees_what_is_lost_and_what_is_left(pair):
    one, other = pair
    assert durability.compare(one, other) == []
    write(other, "update grade set auto_score = null where auto_score > 0")
    assert "grade: lost" in durability.compare(one, other)[0]
    (other.autograded / ".half.json.1.new").write_text("{")
    graded = other.autograded / "student-001" / NAME / f"{NOTEBOOK[0]}.ipynb"
    graded.write_text(graded.read_text().replace("passes", "fails"))
    text = "\n".join(durability.compare(one, other))
    assert "autograded/.half.json.1.new is not in both" in text
    assert f"{NOTEBOOK[0]}.ipynb differs" in text
    (other.private / "students" / "student-001.json").write_text(json.dumps({"entry": {}}))
    assert "student-001" in other.stamps()
