"""`masked_softmax`: weights for a batch of sequences of unequal length (the easy exercise)."""

from __future__ import annotations

import numpy as np

from autograder.tasks.attention_mechanism._given import huge, normal, strided
from autograder.tasks.model import (
    Alternative,
    Case,
    Checkpoint,
    FunctionTask,
    Misconception,
)

ZEROS = "masked_softmax-zeros"
STABLE = "masked_softmax-stable"
EMPTY = "masked_softmax-empty"
ARGUMENTS = "masked_softmax-arguments"


def reference(scores, lengths):
    if (lengths < 1).any():
        raise ValueError("a sequence without tokens has no weights")
    real = np.arange(scores.shape[1]) < lengths[:, None]
    kept = np.where(real, scores, -np.inf)
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _case(rng, lengths, T_enc, dtype=np.float64, note="", apart=False, where=ZEROS):
    lengths = np.array(lengths)
    args = (normal(rng, len(lengths), T_enc, dtype=dtype), lengths)
    args = strided(*args) if apart else args
    return Case(args, where, note, exact_zero=True, returns_only=where == ARGUMENTS)


def _padded_peak(rng, dtype=np.float64):
    """The padding holds the largest number of its row by far."""
    scores = rng.integers(-3, 4, size=(3, 6)).astype(dtype)
    lengths = np.array([2, 4, 5])
    for row, length in enumerate(lengths):
        scores[row, length:] = 4000.0 + row
    note = "padding holds the largest numbers"
    return Case((scores, lengths), STABLE, note, exact_zero=True, **huge(dtype))


def _padded_beyond(rng, dtype=np.float64):
    """The padding holds numbers that no finite constant brings down."""
    scores = rng.integers(-3, 4, size=(3, 5)).astype(dtype)
    lengths = np.array([4, 1, 3])
    scores[np.arange(5) >= lengths[:, None]] = 1e30
    return Case((scores, lengths), STABLE, "padding holds 1e30", exact_zero=True, **huge(dtype))


def _far_apart(rng, dtype=np.float64):
    """Rows around +9000, 0 and -9000; inside a row the scores lie close together."""
    scores = rng.integers(-6, 7, size=(3, 5)) / 4.0
    scores[0] += 9000.0
    scores[2] -= 9000.0
    note = "rows near 9000, 0 and -9000"
    args = (scores.astype(dtype), np.array([4, 2, 3]))
    return Case(args, STABLE, note, exact_zero=True, **huge(dtype))


def _empty(rng, lengths, T_enc, dtype=np.float64):
    lengths = np.array(lengths)
    scores = normal(rng, len(lengths), T_enc, dtype=dtype)
    near = (scores, np.maximum(lengths, 1))
    return Case((scores, lengths), EMPTY, "one length is 0", neighbour=near)


def public():
    rng = np.random.default_rng(10)
    return [
        _case(rng, [2, 5, 3], 5, note="lengths 2, 5 and 3"),
        _case(rng, [1, 4, 3, 2], 4, note="as many sequences as positions"),
        _padded_peak(rng),
        _far_apart(rng),
        _padded_beyond(rng),
        _empty(rng, [2, 0, 4], 5),
        _case(rng, [3, 1], 4, note="the scores before and after", where=ARGUMENTS),
    ]


def probes(rng):
    return [
        _case(rng, [4, 1], 7, note="two sequences", apart=True),
        _case(rng, [6, 2, 5, 3], 6, np.float32, "float32"),
        _case(rng, [1, 3, 2], 3, note="as many sequences as positions"),
        _case(rng, [2], 5, note="one sequence"),
        _case(rng, [1, 1, 1], 1, note="one position"),
        _padded_peak(rng, np.float32),
        _far_apart(rng, np.float32),
        _padded_beyond(rng, np.float32),
        _empty(rng, [0, 3], 4, np.float32),
        _empty(rng, [3, 2, 0], 5),
        _case(rng, [2, 3, 1], 5, note="the scores before and after", where=ARGUMENTS),
    ]


def padding_ignored(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def masked_after(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.where(np.arange(scores.shape[1]) < lengths[:, None], weights, 0.0)


def masked_after_and_renormalised(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    e = np.where(np.arange(scores.shape[1]) < lengths[:, None], e, 0.0)
    return e / e.sum(axis=1, keepdims=True)


def tiny_fill(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    kept = np.where(np.arange(scores.shape[1]) < lengths[:, None], scores, -1e-9)
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def times_zero(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    kept = scores * (np.arange(scores.shape[1]) < lengths[:, None])
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def added_fill(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    kept = scores + np.where(np.arange(scores.shape[1]) < lengths[:, None], 0.0, -1e9)
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def fill_is_one_too_long(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    kept = np.where(np.arange(scores.shape[1]) <= lengths[:, None], scores, -np.inf)
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def inverted(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    kept = np.where(np.arange(scores.shape[1]) < lengths[:, None], -1e9, scores)
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def padded_in_front(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    n = scores.shape[1]
    kept = np.where(np.arange(n) >= n - lengths[:, None], scores, -np.inf)
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def over_the_batch(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    kept = np.where(np.arange(scores.shape[1]) < lengths[:, None], scores, -1e9)
    e = np.exp(kept - kept.max(axis=0, keepdims=True))
    return e / e.sum(axis=0, keepdims=True)


def one_sum_for_all(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    kept = np.where(np.arange(scores.shape[1]) < lengths[:, None], scores, -np.inf)
    e = np.exp(kept - kept.max())
    return e / e.sum()


def one_maximum_for_all(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    kept = np.where(np.arange(scores.shape[1]) < lengths[:, None], scores, -np.inf)
    e = np.exp(kept - kept.max())
    return e / e.sum(axis=1, keepdims=True)


def no_shift(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    e = np.exp(scores) * (np.arange(scores.shape[1]) < lengths[:, None])
    return e / e.sum(axis=1, keepdims=True)


def longest_for_all(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    kept = np.where(np.arange(scores.shape[1]) < lengths.max(), scores, -np.inf)
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def empty_gives_zeros(scores, lengths):
    real = np.arange(scores.shape[1]) < lengths[:, None]
    kept = np.where(real, scores, -np.inf)
    top = np.where(lengths[:, None] > 0, kept.max(axis=1, keepdims=True), 0.0)
    e = np.exp(kept - top)
    return e / np.maximum(e.sum(axis=1, keepdims=True), 1e-300)


def empty_gives_nan(scores, lengths):
    kept = np.where(np.arange(scores.shape[1]) < lengths[:, None], scores, -np.inf)
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def empty_becomes_uniform(scores, lengths):
    kept = np.where(np.arange(scores.shape[1]) < lengths[:, None], scores, -1e9)
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def in_place(scores, lengths):
    if (lengths < 1).any():
        raise ValueError
    scores[np.arange(scores.shape[1]) >= lengths[:, None]] = -np.inf
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _rows(scores, lengths):
    weights = np.zeros(scores.shape)
    for row, length in enumerate(lengths):
        if length == 0:
            raise ValueError(f"row {row} is empty")
        e = np.exp(scores[row, :length] - np.max(scores[row, :length]))
        weights[row, :length] = e / e.sum()
    return weights


def _finite_fill(scores, lengths):
    if np.min(lengths) == 0:
        raise ValueError("length 0")
    kept = np.where(np.arange(scores.shape[1])[None, :] < lengths[:, None], scores, -1e9)
    e = np.exp(kept - kept.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _torch(scores, lengths):
    import torch

    if not np.all(lengths > 0):
        raise ValueError("every sequence needs a token")
    x = torch.tensor(np.ascontiguousarray(scores))
    padding = torch.arange(x.shape[1])[None] >= torch.tensor(np.ascontiguousarray(lengths))[:, None]
    return torch.softmax(x.masked_fill(padding, float("-inf")), dim=1).numpy()


def _additive_mask(scores, lengths):
    if 0 in lengths.tolist():
        raise ValueError("length 0")
    mask = np.zeros(scores.shape)
    for row, length in enumerate(lengths):
        mask[row, length:] = -np.inf
    logits = scores + mask
    return np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))


def _copy_then_fill(scores, lengths):
    if any(n < 1 for n in lengths):
        raise ValueError("length 0")
    kept = scores.copy()
    kept[np.arange(kept.shape[1]) >= lengths.reshape(-1, 1)] = np.finfo(kept.dtype).min
    e = np.exp(kept - kept.max(1)[:, None])
    return e / e.sum(1)[:, None]


def _single_precision(scores, lengths):
    if lengths.min() < 1:
        raise ValueError("length 0")
    real = np.arange(scores.shape[1]) < lengths[:, None]
    kept = np.where(real, scores, -np.inf).astype(np.float32)
    e = np.exp(kept - kept.max(axis=1, keepdims=True))
    return (e / e.sum(axis=1, keepdims=True)).astype(np.float32)


VALUED = (ZEROS, STABLE)
TASK = FunctionTask(
    name="masked_softmax",
    signature="masked_softmax(scores, lengths)",
    docstring="""Softmax over the real tokens of each sequence; padding gets weight 0.

Args:
    scores: (B, T_enc), float; one row a sequence. Padding stands at the end of a row and holds any
        finite number, perhaps the largest of the row.
    lengths: (B,), int; how many tokens of each row are real, 1 to T_enc.

Returns:
    weights, (B, T_enc): exactly 0 at padding; each row sums to 1, also for scores of +-10,000.
    The scores are left as they were.

Raises:
    ValueError: if a length is 0.""",
    checkpoints=(
        Checkpoint(ZEROS, "padding gets exactly 0, and the rest of each row sums to 1", 2),
        Checkpoint(STABLE, "a huge number in the padding, or in another row, does no harm", 1),
        Checkpoint(EMPTY, "a sequence of length 0 raises ValueError", 1),
        Checkpoint(ARGUMENTS, "the scores are left as they were", 1),
    ),
    reference=reference,
    public=public,
    probes=probes,
    mutation=ARGUMENTS,
    misconceptions=(
        Misconception(
            "mask-padding-ignored",
            padding_ignored,
            VALUED,
            "Padding has weight: `lengths` is not used for the scores. Put -inf where the position is "
            "at or beyond the length, then take the softmax.",
        ),
        Misconception(
            "mask-after-softmax",
            masked_after,
            VALUED,
            "The rows sum to less than 1: padding was set to 0 after the softmax had shared out its "
            "part. Mask the scores, before the softmax.",
        ),
        Misconception(
            "mask-after-softmax-renormalised",
            masked_after_and_renormalised,
            (STABLE,),
            "0/0 where the padding holds a huge number: the maximum and the exponentials were taken "
            "with the padding in. Mask the scores first.",
        ),
        Misconception(
            "mask-tiny-fill",
            tiny_fill,
            VALUED,
            "Padding has weight: it was filled with -1e-9, which is almost 0, and e^0 is 1. You meant "
            "-1e9; -np.inf is exact.",
            "CONTRACTS: a fill of -1e-9, seen in public code",
        ),
        Misconception(
            "mask-times-zero",
            times_zero,
            VALUED,
            "Padding has weight: its score was multiplied by 0, and a score of 0 has weight e^0 = 1 "
            "before the division. Use -np.inf.",
        ),
        Misconception(
            "mask-added",
            added_fill,
            (STABLE,),
            "Padding has weight where it holds a larger number than the -1e9 that was added to it. "
            "Put -np.inf in its place: np.where(real, scores, -np.inf).",
        ),
        Misconception(
            "mask-one-too-long",
            fill_is_one_too_long,
            VALUED,
            "The first padded position has weight: `<=` stands where `<` belongs. Positions count from "
            "0, so a sequence of length 2 has the positions 0 and 1.",
        ),
        Misconception(
            "mask-inverted",
            inverted,
            VALUED,
            "Padding has all the weight: the mask is the wrong way round. Print it for lengths [2]: "
            "True must stand at the two real tokens.",
        ),
        Misconception(
            "mask-padded-in-front",
            padded_in_front,
            VALUED,
            "The first positions are 0: the mask takes padding to stand in front. Here it stands at "
            "the end of each row.",
        ),
        Misconception(
            "mask-softmax-over-batch",
            over_the_batch,
            VALUED,
            "The columns sum to 1, not the rows: the softmax ran over axis 0, so that sequences "
            "compete with each other. Use axis=1 in max and sum, with keepdims=True.",
        ),
        Misconception(
            "mask-one-sum-for-all",
            one_sum_for_all,
            VALUED,
            "The whole array sums to 1, and no row does: one sum was taken over everything. Use "
            "`sum(axis=1, keepdims=True)`.",
        ),
        Misconception(
            "mask-one-maximum-for-all",
            one_maximum_for_all,
            (STABLE,),
            "NaN in a row whose scores lie far below those of another row: one maximum was "
            "subtracted from all. Use `max(axis=1, keepdims=True)`.",
            "CONTRACTS: one global maximum with far lower rows, seen in public code",
        ),
        Misconception(
            "mask-no-shift",
            no_shift,
            (STABLE,),
            "NaN for scores of 9000: e to that power is too large for a float. Subtract the largest "
            "real score of the row first.",
        ),
        Misconception(
            "mask-longest-for-all",
            longest_for_all,
            VALUED,
            "All rows are masked like the longest sequence. Compare positions with each row's own "
            "length: `np.arange(T_enc) < lengths[:, None]`.",
        ),
        Misconception(
            "mask-empty-gives-zeros",
            empty_gives_zeros,
            (EMPTY,),
            "A sequence of length 0 got a row of zeros. That row does not sum to 1, and nobody "
            "notices; raise ValueError.",
        ),
        Misconception(
            "mask-empty-gives-nan",
            empty_gives_nan,
            (EMPTY,),
            "A sequence of length 0 got a row of NaN (0/0). Check the lengths first, and raise "
            "ValueError.",
        ),
        Misconception(
            "mask-empty-becomes-uniform",
            empty_becomes_uniform,
            (EMPTY,),
            "A sequence of length 0 got equal weights on padding: with a fill of -1e9 everywhere all "
            "scores are equal. Check the lengths first, and raise ValueError.",
        ),
        Misconception(
            "mask-in-place",
            in_place,
            (ARGUMENTS,),
            "After the call the caller's scores hold -inf: `scores[...] = ...` writes into the "
            "argument. Use np.where, which makes a new array.",
        ),
    ),
    alternatives=(
        Alternative("row-by-row", _rows),
        Alternative("finite-fill", _finite_fill),
        Alternative("torch", _torch),
        Alternative("additive-mask-logsumexp", _additive_mask),
        Alternative("copy-then-fill", _copy_then_fill),
        Alternative("single-precision", _single_precision),
    ),
    results=("weights",),
    axes=(("sequence", "position"),),
)
