"""Does the comparison see each way to differ, and nothing where there is none?"""

import numpy as np
import pytest

from autograder.execute.wire import Foreign, Opaque, Outcome, Raised
from autograder.tasks.compare import FAULTS, UNIVERSAL, changed, close, difference, equal
from autograder.tasks.model import Case

WANT = np.array([[0.1, 0.9, 0.0], [0.25, 0.25, 0.5]])
CASE = Case((), "f-values")


def kind(got, want=WANT, case=CASE, **more):
    found = difference(case, Outcome(value=want), Outcome(value=got), **more)
    return None if found is None else found.kind


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (WANT.copy(), None),
        (WANT.astype(np.float32), None),
        (np.asfortranarray(WANT), None),
        (WANT + 1e-9, None),
        (None, "returns-nothing"),
        (WANT.tolist(), "returns-list"),
        (Foreign("numpy.matrix", WANT), "returns-matrix"),
        (Foreign("numpy.ma.MaskedArray", WANT), "returns-masked-array"),
        (Foreign("torch.Tensor", WANT), "returns-tensor"),
        ({"weights": 1}, "returns-dict"),
        (Opaque("ValueError"), "error-returned"),
        (WANT.T, "transposed"),
        (WANT[None], "extra-axis"),
        (WANT[:1], "wrong-shape"),
        (WANT + 0.01, "wrong-value"),
        (np.where(WANT == 0, np.nan, WANT), "not-finite"),
        (np.where(WANT == 0, np.inf, WANT), "not-finite"),
        (0.5, "wrong-type"),
    ],
)
def test_how_does_a_float_array_differ(got, expected):
    assert kind(got) == expected
    assert expected is None or expected in UNIVERSAL


def test_is_a_square_transposed_array_recognised():
    square = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert kind(square.T, square) == "transposed"
    assert kind(square, square) is None


def test_must_a_mask_be_bool():
    mask = np.array([[True, False]])
    assert kind(mask, mask) is None
    assert kind(mask.astype(int), mask) == "wrong-dtype"
    assert kind(mask.astype(float), mask) == "wrong-dtype"
    assert kind(~mask, mask) == "wrong-value"


def test_are_whole_numbers_no_floats():
    ones = np.ones(3)
    assert kind(ones.astype(int), ones) == "wrong-dtype"
    assert kind(ones.astype(np.float16), ones) is None


def test_is_an_exact_zero_asked_exactly():
    exact = Case((), "f-values", exact_zero=True)
    nearly = np.where(WANT == 0, 1e-12, WANT)
    assert kind(nearly, case=exact) == "wrong-value"
    assert kind(nearly) is None


def test_nan_and_infinity_are_close_to_nothing_else():
    got = np.array([1.0, np.nan, np.inf, np.inf, 5.0])
    want = np.array([1.0, np.nan, np.inf, -np.inf, np.inf])
    assert close(got, want, 1e-3, 1e-3).tolist() == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ((WANT, WANT.T), None),
        ([WANT, WANT.T], None),
        ((WANT.T, WANT), "swapped-pair"),
        (WANT, "returns-one-of-two"),
        (None, "returns-nothing"),
        ((WANT, WANT.T, 1), "wrong-type"),
        ((WANT, WANT.T.tolist()), "returns-list"),
        ((WANT, WANT.T + 1), "wrong-value"),
    ],
)
def test_how_does_a_pair_differ(got, expected):
    assert kind(got, (WANT, WANT.T), results=("context", "weights")) == expected


def test_does_the_sentence_say_where_and_not_what():
    got = WANT.copy()
    got[1, 2] = 7.0
    found = difference(
        CASE, Outcome(value=WANT), Outcome(value=got), ("weight",), (("query", "key"),)
    )
    assert "query 1, key 2" in found.sentence
    assert "7" not in found.sentence
    assert "0.5" not in found.sentence


def raised(name, *bases):
    return Outcome(raised=Raised(name, bases, "text"))


def test_is_any_valueerror_right_where_one_is_asked():
    want = raised("ValueError")
    assert difference(CASE, want, raised("ValueError")) is None
    assert difference(CASE, want, raised("Empty", "Empty", "ValueError", "Exception")) is None
    assert difference(CASE, want, raised("AssertionError")).kind == "wrong-error"
    assert difference(CASE, want, Outcome(value=WANT)).kind == "not-raised"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ValueError", "raised"),
        ("NameError", "undefined-name"),
        ("NotImplementedError", "not-attempted"),
        ("KernelDied", "stopped"),
    ],
)
def test_what_does_an_unwanted_exception_tell(name, expected):
    assert difference(CASE, Outcome(value=WANT), raised(name)).kind == expected


def test_a_neighbour_need_only_return():
    neighbour = Case((), "f-errors", returns_only=True)
    assert difference(neighbour, Outcome(value=WANT), Outcome(value=None)) is None
    assert difference(neighbour, Outcome(value=WANT), raised("ValueError")).kind == "raised"


def test_is_a_changed_argument_seen():
    assert changed(Outcome(value=WANT, changed=(0,))).kind == "changed-argument"
    assert changed(Outcome(value=WANT)) is None


def test_is_a_verdict_true_or_false_and_nothing_else():
    assert kind(np.bool_(True), True) is None
    assert kind(True, True) is None
    assert kind(False, True) == "wrong-value"
    assert kind(1, True) == "wrong-type"
    assert kind(None, True) == "returns-nothing"


def test_when_are_two_mistakes_the_same():
    bad = np.array([np.nan, 1.0])
    assert equal(CASE, Outcome(value=bad), Outcome(value=bad.copy()))
    assert not equal(CASE, Outcome(value=bad), Outcome(value=np.array([1.0, np.nan])))
    assert not equal(CASE, Outcome(value=bad), Outcome(value=bad.tolist()))
    assert equal(CASE, raised("TypeError"), raised("TypeError"))
    assert not equal(CASE, raised("TypeError"), raised("ValueError"))
    assert not equal(CASE, raised("TypeError"), Outcome(value=bad))
    assert equal(CASE, raised("Own", "Own", "ValueError"), raised("ValueError", "ValueError"))


def test_has_every_fault_a_sentence():
    assert all(text.endswith((".", "?")) for text in FAULTS.values())
