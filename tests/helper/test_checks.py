"""Does each check pass what is right, reject what is wrong, and say what was seen, why, and what to try?"""

from __future__ import annotations

import numpy as np
import pytest

import attention_lab as lab

SCORES = np.array([[0.5, -1.0, 2.0], [3.0, 0.0, 0.25]])
ALLOWED = np.array([[True, True, False], [True, True, True]])


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def message(check, *args, **kwargs) -> str:
    with pytest.raises(lab.CheckError) as caught:
        check(*args, **kwargs)
    return str(caught.value)


def test_a_message_has_three_lines_in_order():
    text = message(lab.check_close, "scores", SCORES * 2, SCORES, unscaled=SCORES * 2)
    assert text.splitlines() == [
        "  Seen: `scores`[0, 0] is 1, the property gives 0.5.",
        "  Likely cause: these are raw dot products, not scaled.",
        "  Try: divide by np.sqrt(K.shape[-1]).",
    ]


@pytest.mark.parametrize("name", lab.MISTAKES)
def test_every_known_mistake_has_a_cause_and_an_experiment(name):
    error = lab.CheckError("seen", name)
    assert error.cause
    assert error.attempt
    assert f"Likely cause: {error.cause}." in str(error)


def test_right_values_pass():
    lab.check_array("x", SCORES, (2, 3))
    lab.check_array("x", SCORES, (None, 3))
    lab.check_array("x", np.array([1, 2]))
    lab.check_close("x", SCORES + 1e-7, SCORES)
    lab.check_weights("w", softmax(SCORES), SCORES)
    lab.check_weights("w", softmax(np.where(ALLOWED, SCORES, -np.inf)), SCORES, ALLOWED)
    lab.check_weights("w", softmax(SCORES + 1000), SCORES)
    lab.check_true("yes", True)
    lab.check_true("all", np.array([True, True]))


@pytest.mark.parametrize(
    ("value", "shape", "words"),
    [
        ([1.0, 2.0], None, "`x` is a list"),
        (None, None, "`x` is a NoneType"),
        (1.0, None, "`x` is a float"),
        (np.ones(2).view(np.recarray), None, "`x` is a recarray"),
        (np.ma.masked_array([1.0]), None, "`x` is a MaskedArray"),
        (np.array(["a"]), None, "a numpy array is needed"),
        (np.array([1j]), None, "a numpy array is needed"),
        (np.ones((3, 2)), (2, 3), "queries and keys are swapped"),
        (np.ones((4, 3)), (2, 3), "shape (4, 3), not (2, 3)"),
        (np.ones(3), (2, 3), "shape (3,), not (2, 3)"),
        (np.ones((2, 4)), (None, 3), "not (any, 3)"),
        (np.array([0.0, np.nan]), None, "NaN or infinity, first at [1]"),
        (np.array([[0.0], [np.inf]]), None, "first at [1, 0]"),
    ],
)
def test_type_shape_and_finiteness(value, shape, words):
    assert words in message(lab.check_array, "x", value, shape)


def test_a_tensor_is_told_how_to_become_an_array():
    class Tensor:
        def detach(self):
            return self

    text = message(lab.check_array, "x", Tensor())
    assert "`x` is a Tensor" in text
    assert ".detach().numpy()" in text


def test_type_comes_before_shape_before_finiteness_before_values():
    wrong = np.full((3, 2), np.nan)
    assert "is a list" in message(lab.check_close, "x", wrong.tolist(), SCORES)
    assert "shape" in message(lab.check_close, "x", wrong, SCORES)
    assert "NaN" in message(lab.check_close, "x", wrong.T, SCORES)
    assert "the property gives" in message(lab.check_close, "x", SCORES + 1, SCORES)


def test_nan_never_passes():
    assert message(lab.check_close, "x", np.array([np.nan]), np.array([np.nan]))
    assert message(lab.check_weights, "w", np.array([[np.nan, 1.0]]), np.array([[0.0, 1.0]]))
    assert message(lab.check_true, "t > 0", float("nan") > 0)


def test_a_transposed_square_is_recognised():
    square = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert "queries and keys are swapped" in message(lab.check_close, "x", square.T, square)


def test_a_difference_with_no_known_cause_points_at_its_place():
    seen = SCORES.copy()
    seen[1, 2] = 7
    text = message(lab.check_close, "x", seen, SCORES)
    assert "`x`[1, 2] is 7, the property gives 0.25 (1 of 6 differ)" in text
    assert "run the section from its first cell" in text


@pytest.mark.parametrize(
    ("weights", "allowed", "words"),
    [
        (softmax(SCORES.T).T, True, "axis 0"),
        (np.exp(SCORES), True, "no division by the row's sum"),
        (softmax(SCORES) * ALLOWED, ALLOWED, "the mask came after the softmax"),
        (softmax(SCORES), ALLOWED, "is 0 at masked keys"),
        (np.array([[1.5, -0.5, 0.0], [0.2, 0.3, 0.5]]), True, "the property gives"),
        (np.full((2, 3), 1 / 3), True, "the property gives"),
        (softmax(SCORES), np.zeros((2, 3), dtype=bool), "keeps a key, first at [0]"),
        (softmax(SCORES).astype(int), True, "sum to 1"),
    ],
)
def test_weights_that_are_no_softmax(weights, allowed, words):
    assert words in message(lab.check_weights, "w", weights, SCORES, allowed)


@pytest.fixture
def begun():
    lab._RUN.clear()
    lab.begin(["first", "second", "third"], Q=[[1, 0]], claim="rows sum to one")


def test_one_line_when_it_passes(begun, capsys):
    with lab.checkpoint("first"):
        lab.check_true("fine", True)
    assert capsys.readouterr().out == "✓ first: passed\n"


def test_the_summary_knows_what_is_left_also_after_an_error(begun, capsys):
    with lab.checkpoint("first"):
        lab.check_true("fine", True)
    with pytest.raises(lab.CheckError), lab.checkpoint("second"):
        lab.check_true("rows sum to one", False)
    capsys.readouterr()
    lab.summary()
    assert capsys.readouterr().out.splitlines() == [
        "1 of 3 checkpoints pass.",
        "✗ second: this does not hold: rows sum to one",
        "· third: not run yet",
    ]


def test_the_error_names_its_checkpoint(begun):
    with pytest.raises(lab.CheckError) as caught, lab.checkpoint("second"):
        lab.check_true("x", False)
    assert str(caught.value).startswith("✗ second\n")


def test_a_missing_name_is_explained(begun):
    with pytest.raises(lab.CheckError) as caught, lab.checkpoint("first"):
        lab.check_close("scores", scores_of_nobody, SCORES)  # noqa: F821
    assert "name 'scores_of_nobody' is not defined" in str(caught.value)
    assert "its cell was not run" in str(caught.value)


def test_arrays_that_do_not_fit_are_explained(begun):
    with pytest.raises(lab.CheckError) as caught, lab.checkpoint("first"):
        lab.check_close("x", SCORES, SCORES @ SCORES)
    assert "ValueError: matmul" in str(caught.value)
    assert "do not fit together" in str(caught.value)


def test_an_interrupt_is_not_swallowed(begun):
    with pytest.raises(KeyboardInterrupt), lab.checkpoint("first"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"Q": [[1.0, 0.0]]}, True),
        ({"my_Q": np.array([[1.0, 0.0]])}, True),
        ({"my_Q": np.array([[1.0, 0.0]]), "Q": [[2, 0]]}, False),
        ({"my_Q": [[1.0, 0.001]]}, False),
        ({"my_Q": [[1.0, 0.0], [0.0, 1.0]]}, False),
        ({"my_Q": [1.0, 0.0]}, False),
        ({"my_claim": "rows sum to one"}, True),
        ({"my_claim": "no weight is negative"}, False),
    ],
)
def test_unchanged(begun, inputs, expected):
    assert lab.unchanged(**inputs) is expected
