"""What a function raises may say what is wrong, but not what it was given."""

import numpy as np
import pytest

from autograder.execute.messages import discreet
from autograder.execute.wire import Outcome, raised_from


def told(error) -> str:
    return discreet(Outcome(raised=raised_from(error))).raised.message


def broken(action) -> Exception:
    try:
        action()
    except Exception as error:
        return error
    raise AssertionError("it did not raise")


def missing(a, b):
    return a


@pytest.mark.parametrize(
    "action",
    [
        lambda: np.ones((2, 3)) + np.ones((4, 5)),
        lambda: np.ones((2, 3)) @ np.ones((2, 3)),
        lambda: np.dot(np.ones((2, 3)), np.ones((2, 3))),
        lambda: np.ones(3).sum(axis=2),
        lambda: np.ones(3)[7],
        lambda: np.ones(3).reshape(2, 2),
        lambda: undefined_name,  # noqa: F821
        lambda: None.shape,
        lambda: missing(1),
        lambda: missing(1, 2, c=3),
        lambda: 1 / 0,
        lambda: "a" - 1,
        lambda: bool(np.ones(2)),
    ],
)
def test_helpful_messages_are_kept(action):
    error = broken(action)
    assert told(error) == str(error)


class Own0123(ValueError):
    pass


@pytest.mark.parametrize(
    "text",
    [
        "[0.123 4.567]",
        "x" * 100,
        "name '" + "a" * 60 + "' is not defined",
        "operands could not be broadcast together with shapes 0.123",
        "index 1 is out of bounds for axis 0 with size 3 [0.5]",
    ],
)
def test_other_words_are_left_out(text):
    assert told(ValueError(text)) == ""


def test_a_class_of_ones_own_goes_by_a_known_name():
    raised = discreet(Outcome(raised=raised_from(Own0123("x")))).raised
    assert (raised.type, raised.bases[0]) == ("ValueError", "ValueError")
    value = Outcome(value=3)
    assert discreet(value) is value
