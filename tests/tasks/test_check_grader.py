"""Would check-grader notice if the grader were wrong?"""

from dataclasses import replace

import nbformat
import pytest

from autograder import check_grader, mutants
from autograder.check_grader import Counts, Findings, Played
from autograder.course import Course
from autograder.tasks.registry import assignment

PRACTICE = assignment("w07-h2-practice")
MASKS = PRACTICE.notebook("2-masks")
FULL = {c.grade_id: c.points for c in MASKS.checkpoints()}
FAILS = frozenset({"padding_mask-keys"})


def entry(name):
    told = {"misconceptions": [name], "message": "m"}
    return {"checkpoints": dict.fromkeys(FULL, told)}


PLAYED = Played("s", "misconception", "padding_mask", "mask-inverted", "2-masks", FAILS)


def test_a_mistake_that_loses_its_own_is_fine():
    scores = {**FULL, "padding_mask-keys": 0.0}
    problems, named = check_grader.judge_played(PLAYED, PRACTICE, scores, entry("mask-inverted"))
    assert (problems, named) == ([], True)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (FULL, "padding_mask-keys has 1, not 0"),
        ({**FULL, "padding_mask-keys": 0.0, "causal_mask-past": 0.0}, "causal_mask-past has 0.0"),
        ({"padding_mask-keys": 0.0}, "causal_mask-past has None"),
    ],
)
def test_a_point_too_many_or_too_few_is_a_problem(scores, expected):
    problems, _ = check_grader.judge_played(PLAYED, PRACTICE, scores, entry("mask-inverted"))
    assert any(expected in text for text in problems)


def test_another_name_is_not_the_right_name():
    scores = {**FULL, "padding_mask-keys": 0.0}
    _, named = check_grader.judge_played(PLAYED, PRACTICE, scores, entry("one-too-many"))
    assert not named


def findings(**changes):
    result = mutants.Result("padding_mask", 200, 200, (), ())
    counts = {"padding_mask": Counts(8, 8, 8, 6, 6, result)}
    return replace(Findings("w07-h2-practice", counts, 28.0, 0.0), **changes)


def test_good_figures_are_no_problem():
    found = findings()
    check_grader._bars(found, PRACTICE)
    assert found.problems == []
    assert found.automatic == 28


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (findings(untouched=1.0), "untouched release gets 1"),
        (
            findings(counts={"f": Counts(8, 8, 7, 6, 6, mutants.Result("f", 200, 200, (), ()))}),
            "only 7 of 8 misconceptions are named",
        ),
        (
            findings(counts={"f": Counts(8, 8, 8, 6, 6, mutants.Result("f", 9, 9, (), ()))}),
            "only 9 mutants",
        ),
        (
            findings(
                counts={"f": Counts(8, 8, 8, 6, 6, mutants.Result("f", 200, 199, (), ("x",)))}
            ),
            "a mutant is not caught: x",
        ),
        (
            findings(
                counts={
                    "f": Counts(
                        8,
                        8,
                        8,
                        6,
                        6,
                        mutants.Result("f", 200, 199, (mutants.Survivor("f", "y", ""),), ()),
                    )
                }
            ),
            "survives without a reason: y",
        ),
    ],
)
def test_bad_figures_are_problems(found, expected):
    check_grader._bars(found, PRACTICE)
    assert any(expected in text for text in found.problems)


def test_every_mistake_and_alternative_is_a_submission_with_one_answer_replaced():
    course = Course(check_grader.Path(__file__).resolve().parents[2])
    right = {
        n.name: nbformat.read(course.source / PRACTICE.name / f"{n.name}.ipynb", as_version=4)
        for n in PRACTICE.notebooks
    }
    made = list(check_grader.submissions(PRACTICE, right))
    students = [played.student for played, _ in made]
    assert len(set(students)) == len(students) > 240
    played, notebooks = next(m for m in made if m[0].name == "blocked-counts-as-zero")
    assert list(notebooks) == ["1-attention"]
    before = {c.id: c.source for c in right["1-attention"].cells}
    changed = [c.id for c in notebooks["1-attention"].cells if before[c.id] != c.source]
    assert changed == ["softmax"]
    assert played.fails == {"softmax-masked"}


def test_figures_are_replaced_section_by_section(tmp_path):
    course = Course(tmp_path)
    for name in ("w07-h2-attention", "w07-h2-practice"):
        (course.source / name).mkdir(parents=True)
        (course.source / name / "a.ipynb").write_text("{}")
    check_grader.write_figures(course, Findings("w07-h2-practice", {}, 28.0, 0.0, 28.0))
    check_grader.write_figures(course, Findings("w07-h2-attention", {}, 42.0, 14.0, 42.0))
    check_grader.write_figures(course, Findings("w07-h2-practice", {}, 27.0, 0.0, 28.0))
    text = (tmp_path / check_grader.FIGURES).read_text()
    assert text.index("## w07-h2-attention") < text.index("## w07-h2-practice")
    assert text.count("## w07-h2-practice") == 1
    assert "reference gets 27" in text
    assert "reference gets 28" not in text
