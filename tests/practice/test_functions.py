"""Is every practice task what it promises: right work right, each mistake named, at any nonce?"""

from functools import cache

import numpy as np
import pytest

from autograder.execute.wire import Strided
from autograder.tasks import judge
from autograder.tasks.authoring import answer_source
from autograder.tasks.model import CandidateTask, FunctionTask
from autograder.tasks.play import fresh, rebound
from autograder.tasks.registry import assignment

PRACTICE = assignment("w07-h2-practice")
TASKS = [p for n in PRACTICE.notebooks for p in n.parts if isinstance(p, FunctionTask)]
SEEDS = (3, 14, 159)
NAMES = {task.name: task for task in TASKS}


def ids(task):
    return task.name


@cache
def asked(name, seed):
    """One list of cases for a task and a seed: the judge keeps what the mistakes give on it."""
    return judge.questions(NAMES[name], np.random.default_rng(seed))


def judged(task, function, seed, earlier=None):
    cases = asked(task.name, seed)
    return judge.judge(task, cases, judge.outcomes(task, function, cases), None, earlier)


def lost(found):
    return {grade_id for grade_id, verdict in found.items() if verdict.score < verdict.max_score}


WRONG = [(task, wrong) for task in TASKS for wrong in task.misconceptions]
RIGHT = [(task, other) for task in TASKS for other in task.alternatives]


def test_there_are_ten_functions():
    assert list(NAMES) == [
        "scaled_scores",
        "softmax",
        "attention",
        "accepts",
        "causal_mask",
        "padding_mask",
        "mha_mask",
        "entropy",
        "remove_key",
        "torch_attention",
    ]


@pytest.mark.parametrize("task", TASKS, ids=ids)
def test_there_are_enough_mistakes_and_alternatives(task):
    assert len(task.misconceptions) >= 8
    assert len(task.alternatives) >= 6
    names = [wrong.name for wrong in task.misconceptions]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("task", TASKS, ids=ids)
def test_the_reference_gets_everything(task, seed):
    assert not lost(judged(task, task.reference, seed))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("task", "other"), RIGHT, ids=lambda x: x.name)
def test_an_alternative_gets_everything(task, other, seed):
    found = judged(task, other.implementation, seed)
    assert not lost(found), {g: found[g].message for g in lost(found)}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("task", "wrong"), WRONG, ids=lambda x: x.name)
def test_a_mistake_loses_its_own_checkpoints_under_its_own_name(task, wrong, seed):
    found = judged(task, wrong.implementation, seed)
    assert lost(found) == set(wrong.fails)
    for grade_id in wrong.fails:
        assert wrong.name in found[grade_id].misconceptions


@pytest.mark.parametrize(("task", "wrong"), WRONG, ids=lambda x: x.name)
def test_a_message_says_what_to_do_and_holds_no_numbers(task, wrong):
    assert len(wrong.message) > 40
    assert wrong.message.count(".") >= 1
    assert "np.array([[" not in wrong.message


@pytest.mark.parametrize("task", TASKS, ids=ids)
def test_a_stub_gets_nothing(task):
    def stub(*args):
        raise NotImplementedError

    found = judged(task, stub, 1)
    assert {verdict.verdict for verdict in found.values()} == {"not-attempted"}
    assert sum(verdict.score for verdict in found.values()) == 0


@pytest.mark.parametrize("name", ["scaled_scores", "attention", "torch_attention", "remove_key"])
def test_no_two_sizes_are_equal_unless_the_case_says_so(name):
    task = NAMES[name]
    for case in task.probes(np.random.default_rng(5)):
        if any(word in case.note for word in ("square", "causal", "single", "one ", "two keys")):
            continue
        arrays = [a for a in fresh(case.args)[:3] if isinstance(a, np.ndarray)]
        sizes = {arrays[0].shape[0], arrays[1].shape[0], arrays[0].shape[1]}
        assert len(sizes) == 3, case.note


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("name", ["attention", "remove_key"])
def test_no_score_lies_beyond_ten_thousand(name, seed):
    task = NAMES[name]
    for case in [*task.public(), *task.probes(np.random.default_rng(seed))]:
        if case.neighbour is None:
            q, k, *rest = fresh(case.args)
            heat = rest[2] if name == "attention" and len(rest) > 2 else 1.0
            scores = q.astype(float) @ k.T.astype(float) / np.sqrt(k.shape[1]) / heat
            assert np.abs(scores).max() <= 1e4 * 1.0001, case.note


@pytest.mark.parametrize("task", TASKS, ids=ids)
def test_the_kinds_of_input_that_the_contract_names_are_asked(task):
    if task.name in ("causal_mask", "padding_mask", "accepts"):
        return
    cases = list(task.probes(np.random.default_rng(2)))
    kinds = {getattr(a, "dtype", None) for c in cases for a in fresh(c.args)}
    assert any(isinstance(arg, Strided) for c in cases for arg in c.args)
    if task.name != "mha_mask":
        assert {np.dtype("float32"), np.dtype("float64")} <= kinds


@pytest.mark.parametrize(("task", "wrong"), WRONG, ids=lambda x: x.name)
def test_a_mistake_is_a_cell_that_can_be_run(task, wrong):
    text = answer_source(wrong.implementation, task.name)
    assert text.startswith(f"def {task.name}(")
    compile(text, task.name, "exec")


@pytest.mark.parametrize("wrong", NAMES["softmax"].misconceptions, ids=lambda m: m.name)
def test_a_mistake_in_softmax_costs_attention_nothing(wrong):
    softmax, attention = NAMES["softmax"], NAMES["attention"]
    earlier = {"softmax": judge.diagnosed(judged(softmax, wrong.implementation, 7))}
    student = rebound(attention.reference, {"softmax": wrong.implementation})
    assert not lost(judged(attention, student, 7, earlier))


@pytest.mark.parametrize("wrong", NAMES["scaled_scores"].misconceptions, ids=lambda m: m.name)
def test_a_mistake_in_scores_costs_the_tester_nothing(wrong):
    earlier = {"scaled_scores": (wrong.name,)}
    mine = rebound(NAMES["attention"].reference, {"scaled_scores": wrong.implementation})
    student = rebound(NAMES["accepts"].reference, {"attention": mine})
    assert not lost(judged(NAMES["accepts"], student, 7, earlier))
    assert lost(judged(NAMES["accepts"], student, 7))


def test_nothing_is_carried_for_a_mistake_of_its_own():
    wrong = NAMES["attention"].misconceptions[0]
    found = judged(NAMES["attention"], wrong.implementation, 7, {"softmax": ("wrong-axis",)})
    assert lost(found) == set(wrong.fails)


@pytest.mark.parametrize("seed", SEEDS)
def test_candidates_are_shuffled_and_of_both_kinds_in_each_checkpoint(seed):
    task = NAMES["accepts"]
    assert isinstance(task, CandidateTask)
    cases = task.probes(np.random.default_rng(seed))
    for checkpoint in task.checkpoints:
        kinds = [c.args[0].right for c in cases if c.checkpoint == checkpoint.grade_id]
        assert kinds.count(True) == 3
        assert kinds.count(False) >= 6
    orders = [tuple(c.note for c in task.probes(np.random.default_rng(s))) for s in (1, 2)]
    assert orders[0] != orders[1]


def test_behaviours_of_public_code_that_pass_the_worked_example_are_named():
    named = {name: {wrong.name for wrong in task.misconceptions} for name, task in NAMES.items()}
    assert {"fill-of-1e-9", "raw-scores-with-mask", "mask-ignored"} <= named["attention"]
    assert {"scale-number-of-keys", "scale-number-of-axes"} <= named["scaled_scores"]
    assert {"python-sum", "one-max-for-all-rows", "exponents-clamped"} <= named["softmax"]
