"""Does a student see in the notebook what the grader will say, from tables without any code?"""

import json
from functools import cache

import numpy as np
import pytest

import attention_lab as lab
from autograder import tables
from autograder.tasks import judge
from autograder.tasks.model import CandidateTask, FunctionTask
from autograder.tasks.play import rebound
from autograder.tasks.registry import assignment
from autograder.tasks.w07_h2_practice.attention import attention
from autograder.tasks.w07_h2_practice.candidates import local_candidates

PRACTICE = assignment("w07-h2-practice")
TASKS = [p for n in PRACTICE.notebooks for p in n.parts if isinstance(p, FunctionTask)]
NAMES = {task.name: task for task in TASKS}
ANSWERS = [
    (task, name, function, public_only)
    for task in TASKS
    for name, function, public_only in [
        ("reference", task.reference, False),
        *[(a.name, a.implementation, False) for a in task.alternatives],
        *[(m.name, m.implementation, m.public_only) for m in task.misconceptions],
    ]
]
LOCAL = local_candidates(attention)


@pytest.fixture(scope="module")
def texts():
    """The tables as a release embeds them."""
    return [json.dumps(tables.public_tables(notebook)) for notebook in PRACTICE.notebooks]


@cache
def asked(name):
    return judge.questions(NAMES[name], np.random.default_rng(11))


@pytest.fixture(autouse=True)
def loaded(texts):
    """The tables of all three notebooks, as a released one loads them."""
    lab._NAMED.clear()
    for text in texts:
        found = json.loads(text)
        lab._TABLES.setdefault("tasks", {}).update(found["tasks"])
        lab._TABLES["faults"] = found["faults"]
    yield
    lab._TABLES.clear()
    lab._NAMED.clear()


def local(task, grade_id, function):
    if isinstance(task, CandidateTask):
        return lab.diagnose(grade_id, lambda name: function(LOCAL[name]))
    return lab.diagnose(grade_id, function)


@pytest.mark.parametrize(
    ("task", "name", "function", "public_only"), ANSWERS, ids=lambda x: getattr(x, "name", None)
)
def test_the_local_verdict_is_the_graders(task, name, function, public_only):
    cases = asked(task.name)
    graded = judge.judge(task, cases, judge.outcomes(task, function, cases), None)
    for checkpoint in task.checkpoints:
        verdict, names, _, _ = local(task, checkpoint.grade_id, function)
        if public_only:
            assert verdict == "right"
            assert graded[checkpoint.grade_id].verdict == "wrong"
            continue
        assert verdict == graded[checkpoint.grade_id].verdict, checkpoint.grade_id
        if verdict == "wrong":
            assert name in names
        else:
            assert not names


def test_the_message_names_the_mistake_its_cause_and_an_experiment():
    wrong = next(m for m in NAMES["softmax"].misconceptions if m.name == "wrong-axis")
    with pytest.raises(lab.CheckError) as caught:
        lab.check_task("softmax-rows", wrong.implementation)
    text = str(caught.value)
    assert "this equals wrong-axis on 4 of 4 inputs" in text
    assert "Likely cause: The columns sum to 1" in text
    assert "Try: Print" in text


def test_several_matches_are_all_named():
    wrong = next(m for m in NAMES["remove_key"].misconceptions if m.name == "fill-of-1e-9")
    names = lab.diagnose("remove_key-removed", wrong.implementation)[1]
    assert {"fill-of-1e-9", "score-set-to-zero", "key-set-to-zero"} <= set(names)


def test_no_match_points_at_the_first_difference_and_does_not_guess():
    def nearly(Q, K):
        scores = Q @ K.T / np.sqrt(K.shape[-1])
        scores[-1, 1] += 0.5
        return scores

    verdict, names, seen, advice = lab.diagnose("scaled_scores-scale", nearly)
    assert (verdict, names, advice) == ("wrong", [], [])
    assert "query 1 key 1: " in seen


def test_what_is_not_written_is_said_calmly(capsys):
    def stub(z):
        raise NotImplementedError

    lab.check_task("softmax-rows", stub)
    assert capsys.readouterr().out == "○ softmax-rows: not written yet.\n"


def test_a_carried_error_is_said(capsys):
    wrong = next(m for m in NAMES["softmax"].misconceptions if m.name == "wrong-axis")
    student = rebound(attention, {"softmax": wrong.implementation})
    assert lab.diagnose("attention-plain", student)[0] == "wrong"
    lab.diagnose("softmax-rows", wrong.implementation)
    lab.check_task("attention-plain", student)
    assert "right, given what your softmax returns" in capsys.readouterr().out
    lab.check_task("softmax-rows", NAMES["softmax"].reference)
    assert lab.diagnose("attention-plain", student)[0] == "wrong"  # mended, so it excuses nothing


def test_an_error_names_a_mistake_only_if_it_says_the_same():
    def ambiguous(Q, K, V, allowed=None, temperature=1.0):
        if allowed:
            return attention(Q, K, V, allowed, temperature)
        return attention(Q, K, V, None, temperature)

    verdict, names, seen, _ = lab.diagnose("attention-allowed", ambiguous)
    assert (verdict, names) == ("wrong", [])
    assert "truth value of an array" in seen
    cases = asked("attention")
    graded = judge.judge(
        NAMES["attention"], cases, judge.outcomes(NAMES["attention"], ambiguous, cases), None
    )
    assert graded["attention-allowed"].misconceptions == ()
    raises = next(m for m in NAMES["softmax"].misconceptions if m.name == "keepdims-missing")
    assert raises.name in lab.diagnose("softmax-rows", raises.implementation)[1]


def test_a_faults_name_is_told_for_an_unknown_function():
    names = lab.diagnose("scaled_scores-scale", lambda Q, K: None)[1]
    assert names == ["returns-nothing"]
    names = lab.diagnose("softmax-rows", lambda z: z.tolist())[1]
    assert names == ["returns-list"]


@pytest.mark.parametrize("notebook", PRACTICE.notebooks, ids=lambda n: n.name)
def test_the_tables_are_small_data_without_code(notebook):
    text = json.dumps(tables.public_tables(notebook), separators=(",", ":"))
    assert len(text) < 110_000
    assert "def " not in text
    assert "lambda" not in text
    assert "np.where(allowed, scores, -np.inf)\\n" not in text


def test_tables_are_the_same_in_every_build():
    notebook = PRACTICE.notebooks[2]
    assert json.dumps(tables.public_tables(notebook)) == json.dumps(tables.public_tables(notebook))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.ones((2, 3)), np.ones((2, 3)) + 1e-12, True),
        (np.ones((2, 3)), np.ones((3, 2)), False),
        (np.ones(3), np.ones(3, bool), False),
        (np.ones(3), [1.0, 1.0, 1.0], False),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), True),
        (np.array([np.nan, 1.0]), np.array([1.0, np.nan]), False),
        (np.array([np.inf]), np.array([-np.inf]), False),
        (ValueError("a"), ValueError("a"), True),
        (ValueError("a"), ValueError("b"), False),
        (ValueError("a"), TypeError("a"), False),
        (None, np.ones(1), False),
        ((np.ones(2), np.zeros(3)), (np.ones(2), np.zeros(3)), True),
        ((np.ones(2), np.zeros(3)), (np.zeros(2), np.ones(3)), False),
    ],
)
def test_fingerprints_are_equal_where_results_are(one, other, same):
    a, b = lab.fingerprint(one), lab.fingerprint(other)
    assert (a[0] == b[0] and abs(a[1] - b[1]) < 1e-6) == same
