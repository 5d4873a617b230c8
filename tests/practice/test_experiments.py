"""Are recorded experiments judged from what was recorded, and transfer answers by their meaning?"""

import numpy as np
import pytest

from autograder.tasks.w07_h2_practice import entropy, experiments
from autograder.tasks.w07_h2_practice.remove_key import softmax

rng = np.random.default_rng(2026)
Q, K, V = rng.normal(size=(3, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
INPUTS = {"Q_lab": Q, "K_lab": K, "V_lab": V}
SCORES = Q @ K.T / 2.0
SAME = np.tile(K[0], (5, 1))
BIG = V * np.array([[1.0], [1000.0], [1.0], [1.0], [1.0]])
HEATS = (0.5, 1.0, 2.0)


def means(function):
    return np.array([np.mean(function(softmax(SCORES / heat))) for heat in HEATS])


def identical(**changes):
    return {**INPUTS, "same_K": SAME, "same_weights": np.full((3, 5), 0.2), **changes}


def large(**changes):
    right = {"big_V": BIG, "big_weights": softmax(SCORES), "big_context": softmax(SCORES) @ BIG}
    return {**INPUTS, **right, **changes}


def temperature(**changes):
    right = {"entropies": means(entropy.entropy), "sharpest": 0.5}
    return {**INPUTS, **right, **changes}


@pytest.mark.parametrize(
    ("task", "values", "verdict", "names"),
    [
        (experiments.IDENTICAL, identical(), "right", ()),
        (experiments.IDENTICAL, identical(same_weights=[[0.2] * 5] * 3), "right", ()),
        (experiments.IDENTICAL, identical(same_weights=softmax(SCORES)), "wrong", ("old-keys",)),
        (experiments.IDENTICAL, identical(same_K=K), "wrong", ()),
        (experiments.IDENTICAL, identical(same_weights=np.full((5, 3), 0.2)), "wrong", ()),
        (experiments.IDENTICAL, identical(same_weights="uniform"), "wrong", ()),
        (experiments.LARGE, large(), "right", ()),
        (experiments.LARGE, large(big_context=softmax(SCORES) @ V), "wrong", ("old-values",)),
        (experiments.LARGE, large(big_V=V), "wrong", ("changed-argument",)),
        (experiments.LARGE, large(big_V=1000 * V), "wrong", ()),
        (experiments.LARGE, large(big_weights=np.full((3, 5), 0.2)), "wrong", ()),
        (experiments.TEMPERATURE, temperature(), "right", ()),
        (experiments.TEMPERATURE, temperature(sharpest=np.float64(0.5)), "right", ()),
        (experiments.TEMPERATURE, temperature(sharpest=2.0), "wrong", ()),
        (experiments.TEMPERATURE, temperature(sharpest="low"), "wrong", ()),
        (
            experiments.TEMPERATURE,
            temperature(entropies=means(entropy.entropy)[::-1].copy()),
            "wrong",
            ("temperature-multiplied",),
        ),
        (
            experiments.TEMPERATURE,
            temperature(entropies=means(entropy.bits)),
            "wrong",
            ("bits-not-nats",),
        ),
        (
            experiments.TEMPERATURE,
            temperature(entropies=np.ones(3) * np.nan),
            "wrong",
            ("not-finite",),
        ),
    ],
)
def test_a_recorded_experiment(task, values, verdict, names):
    found = task.judge(values)
    assert (found.verdict, found.misconceptions) == (verdict, names), found.message
    assert found.score == (1 if verdict == "right" else 0)


@pytest.mark.parametrize(
    "task", [experiments.IDENTICAL, experiments.LARGE, experiments.TEMPERATURE]
)
def test_nothing_recorded_is_not_attempted_and_half_is_wrong(task):
    assert task.judge(INPUTS).verdict == "not-attempted"
    answers = [name for name in task.names if name not in (*INPUTS, "own_entropy")]
    assert task.judge({**INPUTS, answers[0]: np.ones(3)}).verdict == "wrong"


def test_changed_inputs_are_judged_with_themselves():
    other = 2 * Q
    weights = softmax(other @ K.T / 2)
    values = large(Q_lab=other, big_weights=weights, big_context=weights @ BIG)
    assert experiments.LARGE.judge(values).verdict == "right"


def test_a_mistake_in_entropy_is_paid_for_once():
    own = entropy.bits(softmax(SCORES))
    values = temperature(entropies=means(entropy.bits), own_entropy=own)
    assert experiments.TEMPERATURE.judge(values).verdict == "carried"
    values = temperature(entropies=means(entropy.unsigned), own_entropy=own)
    assert experiments.TEMPERATURE.judge(values).verdict == "wrong"


@pytest.mark.parametrize(
    ("answer", "score", "verdict"),
    [
        ({"attention": "cross", "recurrence": True, "scores": (12, 49)}, 1.0, "right"),
        (
            {"attention": "Cross-Attention", "recurrence": np.True_, "scores": [12, 49]},
            1.0,
            "right",
        ),
        ({"attention": "cross", "recurrence": True, "scores": (49, 12)}, 0.5, "partial"),
        ({"attention": "self", "recurrence": True, "scores": (12, 49)}, 0.5, "partial"),
        ({"attention": "self", "recurrence": False, "scores": (12, 49)}, 0.0, "wrong"),
        ({"attention": "cross", "recurrence": 1, "scores": "12 x 49"}, 0.0, "wrong"),
        ({}, 0.0, "wrong"),
        ("cross", 0.0, "wrong"),
        (None, 0.0, "not-attempted"),
    ],
)
def test_a_described_system(answer, score, verdict):
    found = experiments.CAPTIONS.judge({"captions": answer})
    assert (found.score, found.verdict) == (score, verdict)


def test_the_other_system_has_other_answers():
    right = {"attention": "self", "recurrence": False, "scores": (80, 80)}
    assert experiments.SEARCH.judge({"log_reader": right}).score == 1
    wrong = {"attention": "cross", "recurrence": True, "scores": (80, 1)}
    assert experiments.SEARCH.judge({"log_reader": wrong}).score == 0
