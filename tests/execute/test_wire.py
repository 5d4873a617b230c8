"""Values cross as data, and what is not in the format is refused before anything is built."""

import numpy as np
import pytest
import torch

from autograder.execute import wire


def same(left, right) -> bool:
    if isinstance(left, np.ndarray):
        return (
            type(right) is np.ndarray
            and left.dtype == right.dtype
            and left.shape == right.shape
            and left.tobytes() == right.tobytes()
        )
    if isinstance(left, (list, tuple)):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and left != left:
        return type(left) is type(right) and right != right
    return type(left) is type(right) and left == right


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(10**40),
        0.1,
        float("nan"),
        float("-inf"),
        "żółw\n",
        [1, (2.5, "x"), []],
        {"a": 1, 2: [None]},
        np.float32(0.5),
        np.bool_(True),
        np.int64(-3),
        np.zeros((0, 3)),
        np.array(3.0),
        np.arange(6, dtype=">i4").reshape(2, 3).astype("<i4"),
        np.array([[True, False]]),
        np.array([np.nan, np.inf, -0.0], dtype=np.float16),
    ],
    ids=repr,
)
def test_values_survive_the_way_there_and_back(value):
    assert same(value, wire.decode(wire.unpack(wire.pack({"v": wire.encode(value)})[4:])["v"]))


def test_big_endian_arrays_keep_their_values():
    array = np.arange(5, dtype=">f8")
    assert (wire.decode(wire.encode(array)) == array).all()


def test_extended_precision_crosses_as_float64():
    third = np.longdouble(1) / 3
    for value in (third, np.array([third, 2 * third])):
        back = wire.decode(wire.encode(value))
        assert type(back) is not wire.Opaque
        assert back.dtype == np.float64
        assert (back == np.asarray(value, dtype=np.float64)).all()


def test_a_strided_argument_arrives_strided_writable_and_equal():
    array = np.arange(6.0).reshape(2, 3)
    for marked in (wire.Strided(array), np.asfortranarray(array)):
        back = wire.decode(wire.encode(marked))
        assert not back.flags.c_contiguous
        assert back.flags.writeable
        assert (back == array).all()
    assert wire.decode(wire.encode(array)).flags.c_contiguous


class Lying(np.ndarray):
    def __eq__(self, other):
        return True

    def tobytes(self, *args):
        return b"forged!!"


def test_subclasses_are_foreign_and_their_methods_are_not_asked():
    back = wire.decode(wire.encode(np.zeros(1).view(Lying)))
    assert back.type.endswith("Lying")
    assert back.array.tolist() == [0.0]
    assert type(back.array) is np.ndarray


def test_tensors_are_foreign_with_their_values():
    back = wire.decode(wire.encode(torch.ones(2, requires_grad=True)))
    assert (back.type, back.array.tolist()) == ("torch.Tensor", [1.0, 1.0])
    assert wire.decode(wire.encode(torch.ones(2, dtype=torch.bfloat16))).array is None


@pytest.mark.parametrize("value", [object(), len, np.array(["a"]), np.array([1j]), {1, 2}, 1j])
def test_what_is_not_data_is_opaque(value):
    assert isinstance(wire.decode(wire.encode(value)), wire.Opaque)


def test_too_large_and_too_deep_values_are_opaque():
    deep = []
    for _ in range(100):
        deep = [deep]
    loop = []
    loop.append(loop)
    for value in (deep, loop, "x" * 10**6, np.zeros(10**8, dtype=np.int8), 1 << 10**5, [0] * 10**6):
        assert "too large" in wire.decode(wire.encode(value)).type


ARRAY = {"t": "array", "dtype": "<f8", "shape": [1], "data": "AAAAAAAAAAA="}


def test_a_well_formed_array_is_read():
    assert wire.decode(ARRAY).tolist() == [0.0]


@pytest.mark.parametrize(
    "message",
    [
        None,
        [],
        "x",
        {"t": "pickle", "v": "gASVAAAA"},
        {"t": "int", "v": "9" * 5000},
        {"t": "int", "v": "__import__('os')"},
        {"t": "int", "v": 3},
        {"t": "float", "v": "zero"},
        {"t": "bool", "v": 1},
        {"t": "str", "v": "x" * 10**6},
        {"t": "list", "v": {"0": 1}},
        {"t": "dict", "v": [["a"]]},
        ARRAY | {"dtype": "O"},
        ARRAY | {"dtype": "<f16"},
        ARRAY | {"dtype": "<U9"},
        ARRAY | {"shape": [2]},
        ARRAY | {"shape": [-1]},
        ARRAY | {"shape": [True]},
        ARRAY | {"shape": [10**9, 10**9]},
        ARRAY | {"shape": [0, 10**30]},
        ARRAY | {"shape": [1] * 40},
        ARRAY | {"data": "AAAAAAAAAA!="},
        ARRAY | {"data": 5},
        {"t": "scalar", "dtype": "<f8", "data": "AAAA"},
        {"t": "foreign", "type": "torch.Tensor", "array": 3},
        {"t": "foreign", "type": 3, "array": None},
        {"t": "opaque"},
    ],
    ids=lambda message: str(message)[:60],
)
def test_malformed_values_are_refused(message):
    with pytest.raises(wire.MalformedMessage):
        wire.decode(message)


def test_a_deeply_nested_message_is_refused():
    value = {"t": "none"}
    for _ in range(50):
        value = {"t": "list", "v": [value]}
    with pytest.raises(wire.MalformedMessage):
        wire.decode(value)


def test_unhashable_keys_do_not_break_a_dict():
    pair = [ARRAY, {"t": "none"}]
    assert list(wire.decode({"t": "dict", "v": [pair]}).values()) == [None]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[1]",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 5000,
        b"[" + b"0," * 500_000 + b"0]",
    ],
    ids=lambda body: str(body[:12]),
)
def test_malformed_frames_are_refused(body):
    with pytest.raises(wire.MalformedMessage):
        wire.unpack(body)


def test_an_announced_length_is_bounded():
    assert wire.frame_length(b"\0\0\0\5") == 5
    with pytest.raises(wire.MalformedMessage):
        wire.frame_length(b"\xff\xff\xff\xff")


@pytest.mark.parametrize(
    "outcome",
    [
        [],
        {"changed": 3},
        {"changed": [-1], "value": {"t": "none"}},
        {"changed": [], "raised": "ValueError"},
        {"changed": [], "raised": {"type": "E", "bases": [3], "message": ""}},
        {"changed": [], "raised": {"type": "E", "bases": [], "message": "x" * 5000}},
        {"changed": []},
    ],
    ids=repr,
)
def test_malformed_outcomes_are_refused(outcome):
    with pytest.raises(wire.MalformedMessage):
        wire.decode_outcome(outcome)


def test_an_outcome_survives():
    outcome = wire.Outcome(raised=wire.raised_from(KeyError("k")), changed=(1,))
    back = wire.decode_outcome(wire.encode_outcome(outcome))
    assert back == outcome
    assert back.raised.bases[:2] == ("KeyError", "LookupError")
