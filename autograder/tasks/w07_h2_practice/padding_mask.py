"""`padding_mask`: which keys are real."""

from __future__ import annotations

import numpy as np

from autograder.execute.wire import Strided
from autograder.tasks.authoring import Book
from autograder.tasks.model import Case, Checkpoint, FunctionTask

NAME = "padding_mask"
KEYS, ERRORS = "padding_mask-keys", "padding_mask-errors"
DOCSTRING = """Which keys of each sequence are real, when shorter sequences are padded at the end.

Args:
    lengths: 1-D integer array of shape (B,): how many keys of each sequence are real; 0 and n_keys are
        both valid. It is not changed.
    n_keys: number of key positions, n_keys >= 1.

Returns:
    Bool array of shape (B, n_keys), True = real key; the real keys come first.

Raises:
    ValueError: if a length is below 0 or above n_keys.
"""
book = Book(NAME)


def padding_mask(lengths, n_keys):
    if (lengths < 0).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 0..n_keys")
    return np.arange(n_keys) < lengths[:, None]


def _case(lengths: list[int], n_keys: int, note: str, dtype: type = np.int64) -> Case:
    return Case((np.array(lengths, dtype=dtype), n_keys), KEYS, note)


def _error(lengths: list[int], n_keys: int, good: list[int], note: str) -> Case:
    neighbour = (np.array(good), n_keys)
    return Case((np.array(lengths), n_keys), ERRORS, note, neighbour=neighbour)


def public() -> list[Case]:
    return [
        _case([3, 1], 4, "two sequences, four keys"),
        _case([2, 0, 5, 4, 1], 5, "five sequences, five keys; lengths 0 and 5 are valid"),
        _case([3], 6, "a single sequence"),
        _error([2, 5], 4, [2, 4], "a length above n_keys"),
        _error([-1, 3], 4, [0, 3], "a negative length"),
    ]


def probes(rng: np.random.Generator) -> list[Case]:
    n = int(rng.integers(4, 9))
    batch = int(rng.choice([b for b in range(2, 9) if b != n]))
    lengths = rng.integers(0, n + 1, size=batch).tolist()
    lengths[0], lengths[-1] = n, int(rng.integers(1, n))
    high, low = list(lengths), list(lengths)
    place = int(rng.integers(batch))
    high[place], low[place] = n + 1, -int(rng.integers(1, 4))
    good = list(lengths)
    return [
        _case(lengths, n, "several sequences"),
        _case(lengths[::-1], n, "int32 lengths", np.int32),
        _case(rng.integers(0, n + 1, size=n).tolist(), n, "as many sequences as keys"),
        _case([0, n, 1], n, "length 0 and length n_keys"),
        _case([1], 1, "one key"),
        _case([0], 3, "an empty sequence alone"),
        _case([40, 17, 0, 39], 40, "many keys"),
        Case((Strided(np.array(lengths)), n), KEYS, "lengths not contiguous"),
        _error(high, n, good, "a length of n_keys + 1"),
        _error(low, n, good, "a negative length"),
        _error([n + 7], n, [n], "far too long"),
    ]


@book.wrong(
    "mask-inverted",
    fails="keys",
    message="True stands on the padding: that is key_padding_mask's polarity in nn.MultiheadAttention. "
    "Here True = real key. Turn the comparison round, or negate with ~.",
    source="https://github.com/mlwithme/TransformerTranslation/issues/2",
)
def padding_is_true(lengths, n_keys):
    if (lengths < 0).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 0..n_keys")
    return np.arange(n_keys) >= lengths[:, None]


@book.wrong(
    "one-too-many",
    fails="keys",
    message="One padded key counts as real: positions start at 0, so `<=` takes one too many. With length 0 "
    "a row must be all False.",
)
def inclusive(lengths, n_keys):
    if (lengths < 0).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 0..n_keys")
    return np.arange(n_keys) <= lengths[:, None]


@book.wrong(
    "one-too-few",
    fails="keys",
    message="The last real key is missing: positions start at 0, so length 3 means positions 0, 1 and 2. "
    "Count the True entries of each row: they must equal the length.",
)
def exclusive(lengths, n_keys):
    if (lengths < 0).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 0..n_keys")
    return np.arange(1, n_keys + 1) < lengths[:, None]


@book.wrong(
    "transposed",
    fails="keys",
    message="Rows are keys and columns sequences. Rows belong to the batch: the shape is (B, n_keys). Write "
    "lengths[:, None], not arange[:, None].",
)
def keys_in_rows(lengths, n_keys):
    if (lengths < 0).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 0..n_keys")
    return np.arange(n_keys)[:, None] < lengths


@book.wrong(
    "padded-at-the-front",
    fails="keys",
    message="The real keys stand at the end of each row. Here padding comes after the real keys: the first "
    "`length` entries are True.",
)
def left_padded(lengths, n_keys):
    if (lengths < 0).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 0..n_keys")
    return np.arange(n_keys) >= n_keys - lengths[:, None]


@book.wrong(
    "wrong-dtype",
    fails="keys",
    message="The pattern is right, but these are numbers: print .dtype. A mask must be bool; do not convert "
    "it.",
)
def as_integers(lengths, n_keys):
    if (lengths < 0).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 0..n_keys")
    return (np.arange(n_keys) < lengths[:, None]).astype(int)


@book.wrong(
    "one-length-for-all",
    fails="keys",
    message="Every row is like the longest sequence: max(lengths) was used. Each row has its own length: "
    "compare with lengths[:, None].",
)
def longest_for_all(lengths, n_keys):
    if (lengths < 0).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 0..n_keys")
    return np.tile(np.arange(n_keys) < lengths.max(), (len(lengths), 1))


@book.wrong(
    "applied-to-queries-too",
    fails="keys",
    message="The result has a query axis as well, (B, n_keys, n_keys), with padded queries emptied. A "
    "padding mask is about keys only: (B, n_keys). Padded queries are left out of the loss.",
    source="https://github.com/facebookresearch/SymbolicMathematics/issues/19 (which mask hides what)",
)
def pairs(lengths, n_keys):
    if (lengths < 0).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 0..n_keys")
    real = np.arange(n_keys) < lengths[:, None]
    return real[:, :, None] & real[:, None, :]


@book.wrong(
    "extra-axis",
    fails="keys",
    message="The mask has shape (B, 1, n_keys), ready to broadcast over queries. Asked is (B, n_keys); add "
    "the axis where it is used.",
)
def ready_to_broadcast(lengths, n_keys):
    if (lengths < 0).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 0..n_keys")
    return (np.arange(n_keys) < lengths[:, None])[:, None, :]


@book.wrong(
    "lengths-unchecked",
    fails="errors",
    message="Impossible lengths are taken without a word (a negative one gives an empty row, a long one a "
    "full row). Begin with a check of both ends and raise ValueError.",
)
def unchecked(lengths, n_keys):
    return np.arange(n_keys) < lengths[:, None]


@book.wrong(
    "too-long-unchecked",
    fails="errors",
    message="Negative lengths raise, lengths above n_keys do not. Check the upper end too.",
)
def lower_end_only(lengths, n_keys):
    if (lengths < 0).any():
        raise ValueError("a length is negative")
    return np.arange(n_keys) < lengths[:, None]


@book.wrong(
    "negative-unchecked",
    fails="errors",
    message="Lengths above n_keys raise, negative ones do not. Check the lower end too.",
)
def upper_end_only(lengths, n_keys):
    if lengths.max() > n_keys:
        raise ValueError("a length is too large")
    return np.arange(n_keys) < lengths[:, None]


@book.wrong(
    "zero-refused",
    fails="keys errors",
    message="Length 0 raises, but an empty sequence is valid here: its row is all False. Check < 0, not "
    "<= 0 or < 1.",
)
def no_empty_sequences(lengths, n_keys):
    if (lengths < 1).any() or (lengths > n_keys).any():
        raise ValueError("lengths must lie in 1..n_keys")
    return np.arange(n_keys) < lengths[:, None]


@book.wrong(
    "full-length-refused",
    fails="keys errors",
    message="Length n_keys raises, but a sequence without padding is valid. Check > n_keys, not >=.",
)
def no_full_sequences(lengths, n_keys):
    if (lengths < 0).any() or (lengths >= n_keys).any():
        raise ValueError("lengths must lie below n_keys")
    return np.arange(n_keys) < lengths[:, None]


@book.wrong(
    "asserts-instead",
    fails="errors",
    message="Bad lengths are noticed, but assert raises AssertionError. The docstring asks for ValueError.",
)
def asserting(lengths, n_keys):
    assert (lengths >= 0).all()
    assert (lengths <= n_keys).all()
    return np.arange(n_keys) < lengths[:, None]


@book.wrong(
    "array-in-if",
    fails="keys errors",
    message="`if lengths > n_keys` asks an array for one truth value, and numpy refuses with a ValueError of "
    "its own, for good input too. Say .any() or .all().",
    source="https://stackoverflow.com/questions/10062954",
)
def ambiguous(lengths, n_keys):
    if lengths > n_keys or lengths < 0:
        raise ValueError("lengths must lie in 0..n_keys")
    return np.arange(n_keys) < lengths[:, None]


@book.right("loops")
def by_loops(lengths, n_keys):
    out = np.zeros((len(lengths), n_keys), dtype=bool)
    for row, length in zip(out, lengths, strict=True):
        if not 0 <= length <= n_keys:
            raise ValueError(f"{length} is not in 0..{n_keys}")
        row[:length] = True
    return out


@book.right("comprehension")
def by_comprehension(lengths, n_keys):
    if any(n < 0 or n > n_keys for n in lengths):
        raise ValueError("lengths")
    return np.array([[j < n for j in range(n_keys)] for n in lengths], dtype=bool)


@book.right("outer-comparison")
def outer(lengths, n_keys):
    if lengths.min() < 0 or lengths.max() > n_keys:
        raise ValueError("lengths")
    return np.greater.outer(lengths, np.arange(n_keys))


@book.right("tile")
def by_tile(lengths, n_keys):
    if np.any(np.clip(lengths, 0, n_keys) != lengths):
        raise ValueError("lengths")
    return np.tile(np.arange(n_keys), (lengths.size, 1)) < lengths.reshape(-1, 1)


@book.right("where")
def by_where(lengths, n_keys):
    if not np.all((lengths >= 0) & (lengths <= n_keys)):
        raise ValueError("lengths")
    return np.where(np.arange(n_keys)[None] < lengths[:, None], True, False)


@book.right("torch")
def by_torch(lengths, n_keys):
    import torch

    n = torch.tensor(lengths)
    if bool(((n < 0) | (n > n_keys)).any()):
        raise ValueError("lengths")
    return (torch.arange(n_keys)[None] < n[:, None]).numpy()


@book.right("not-the-padding")
def not_padding(lengths, n_keys):
    for n in lengths:
        if n not in range(n_keys + 1):
            raise ValueError("lengths")
    return ~(np.arange(n_keys) >= lengths[:, np.newaxis])


TASK = FunctionTask(
    name=NAME,
    signature="padding_mask(lengths, n_keys)",
    docstring=DOCSTRING,
    checkpoints=(
        Checkpoint(KEYS, "the first `length` keys of each row are real", 1),
        Checkpoint(ERRORS, "lengths outside 0..n_keys raise ValueError", 1),
    ),
    reference=padding_mask,
    public=public,
    probes=probes,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    results=("mask",),
    axes=(("sequence", "key"),),
)
