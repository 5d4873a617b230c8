"""No attack succeeds: a class of them, graded by the real command among honest students."""

import pytest

from . import judge, stock
from .bank import attacks

ATTACKS = attacks()


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory):
    attacked = judge.Class(tmp_path_factory.mktemp("attacked"))
    try:
        yield attacked.run()
    finally:
        attacked.close()


def test_there_are_at_least_45_kinds_of_attack():
    assert len({attack.name for attack in ATTACKS}) >= 45


def test_the_class_and_the_course_are_unharmed(verdicts, record_property):
    kept = sum(verdicts.honest.values())
    record_property("class under attack", {"honest": len(verdicts.honest), "kept": kept})
    assert verdicts.general == []


@pytest.mark.parametrize("name", [attack.name for attack in ATTACKS])
def test_the_attack_fails(verdicts, name, record_property):
    row = {
        "name": name,
        "became": verdicts.became.get(name, "?"),
        "how": verdicts.found.get(name, ["not judged"]),
    }
    record_property("attack", row)
    assert verdicts.found[name] == []


def test_each_attack_succeeds_against_stock_nbgrader_or_has_a_note_why_not():
    page = (judge.ROOT / "docs" / "attacks-on-stock.md").read_text("utf-8")
    results = stock.recorded(page)
    assert results.keys() == {attack.name for attack in ATTACKS}
    succeed = sum(succeeds == "yes" for succeeds, _ in results.values())
    assert f"{succeed} of the {len(results) - len(stock.NOT_RUN)} that were run succeed" in page
    unexplained = [a.name for a in ATTACKS if results[a.name][0] == "no" and not stock.why_not(a)]
    assert unexplained == []
    assert stock.with_notes(page) == page, "run `python -m tests.attacks.stock --notes`"
    changed = page.replace("| no | ", "| no | because ", 1)
    assert stock.with_notes(changed) == page


def test_the_judge_sees_a_success(tmp_path):
    """The judge itself is tested: a class whose traces are planted by hand is found guilty."""
    attacked = judge.Class(
        tmp_path / "planted" if (tmp_path / "planted").mkdir() is None else tmp_path, []
    )
    try:
        attack = ATTACKS[0]
        mark = attacked.mark(attack)
        folder = attacked.scratch.root / "autograded" / attack.name / judge.ASSIGNMENT
        folder.mkdir(parents=True)
        notebook = attacked.wrong()
        notebook.cells[-1].outputs = [
            judge.nbformat.v4.new_output(
                "stream", text=f"{attacked.boast(attack)} {attacked.secrets['BOOK']}"
            )
        ]
        judge.nbformat.write(notebook, folder / f"{judge.NOTEBOOK}.ipynb")
        (attacked.scratch.root / mark).write_text("x")
        results = {"students": {attack.name: {"score": 99.0, "reason": attacked.boast(attack)}}}
        path = attacked.scratch.root / "autograded" / f"{judge.ASSIGNMENT}.results.json"
        path.write_text(judge.json.dumps(results))
        attacked.listener.heard.append(mark)
        found = " ".join(attacked.judge(attack, control=1.0))
        for sign in ("earned 99", "secret BOOK", "reached", "in the results", "network", "wrote"):
            assert sign in found
    finally:
        attacked.close()
