"""`entropy`: how spread out the weights of each query are."""

from __future__ import annotations

import numpy as np

from autograder.execute.wire import Strided
from autograder.tasks.authoring import Book, sizes
from autograder.tasks.model import Case, Checkpoint, FunctionTask

NAME = "entropy"
NATS, ZERO = "entropy-nats", "entropy-zero"
DOCSTRING = """Entropy of each row of attention weights, in nats.

Args:
    weights: float array of shape (N_q, N_k), rows that sum to 1; entries may be exactly 0. It is not
        changed.

Returns:
    Float array of shape (N_q,): minus the sum of w log w over the keys, with 0 log 0 = 0. It is 0 for a
    row that attends to one key, log(N_k) for a uniform row.
"""
book = Book(NAME)


def entropy(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return -(weights * np.log(safe)).sum(axis=-1)


def _rows(rng: np.random.Generator, n_q: int, n_k: int, dtype: type = np.float64) -> np.ndarray:
    grown = np.exp(rng.normal(size=(n_q, n_k)))
    return (grown / grown.sum(axis=-1, keepdims=True)).astype(dtype)


def _with_zeros(rng: np.random.Generator, n_q: int, n_k: int, dtype: type = np.float64):
    weights = _rows(rng, n_q, n_k)
    weights[:, 1:][rng.random((n_q, n_k - 1)) < 0.4] = 0.0
    weights[0, -1] = 0.0
    return (weights / weights.sum(axis=-1, keepdims=True)).astype(dtype)


def _peaked(n_q: int, n_k: int) -> np.ndarray:
    """Rows with weights from nearly 1 down to 1e-5, each at another key."""
    row = 10.0 ** -np.minimum(np.arange(n_k) + 1.0, 5.0)
    row[0] = 1 - row[1:].sum()
    return np.stack([np.roll(row, query) for query in range(n_q)])


def public() -> list[Case]:
    rng = np.random.default_rng(704)
    return [
        Case((np.array([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]]),), NATS, "two queries, three keys"),
        Case((_rows(rng, 3, 3),), NATS, "three queries, three keys"),
        Case((np.full((1, 4), 0.25),), NATS, "a uniform row"),
        Case((_peaked(2, 5),), NATS, "very small weights, none of them 0"),
        Case((np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]),), ZERO, "rows with zeros"),
        Case((np.eye(2),), ZERO, "each query attends to one key"),
    ]


def probes(rng: np.random.Generator) -> list[Case]:
    n_q, n_k = sizes(rng, 2, low=3)
    side = int(rng.integers(3, 6))
    return [
        Case((_rows(rng, n_q, n_k),), NATS, "several queries"),
        Case((_rows(rng, n_k, n_q, np.float32),), NATS, "float32"),
        Case((_rows(rng, side, side),), NATS, "as many queries as keys"),
        Case((_rows(rng, 1, n_k),), NATS, "a single query"),
        Case((Strided(_rows(rng, n_q, n_k)),), NATS, "not contiguous"),
        Case((np.full((n_q, n_k), 1 / n_k),), NATS, "uniform rows"),
        Case((_peaked(side, n_k + 3),), NATS, "very small weights, none of them 0"),
        Case((_with_zeros(rng, n_q, n_k),), ZERO, "rows with zeros"),
        Case((_with_zeros(rng, n_k, n_q, np.float32),), ZERO, "rows with zeros, float32"),
        Case((np.eye(side)[rng.permutation(side)],), ZERO, "one key each"),
        Case((np.ones((n_q, 1)),), ZERO, "a single key"),
    ]


@book.wrong(
    "bits-not-nats",
    fails="nats zero",
    message="These are bits: log2 was used. Nats take np.log; a uniform row of 4 must give log(4) = 1.386, "
    "not 2.",
    source="https://example-a.com/answer/49973680",
)
def bits(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return -(weights * np.log2(safe)).sum(axis=-1)


@book.wrong(
    "base-ten",
    fails="nats zero",
    message="The logarithm has base 10. Nats take np.log; a uniform row of 4 must give 1.386.",
)
def base_ten(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return -(weights * np.log10(safe)).sum(axis=-1)


@book.wrong(
    "sign-missing",
    fails="nats zero",
    message="The entropy is negative: log of a weight below 1 is negative, so the sum needs a minus in front.",
)
def unsigned(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return (weights * np.log(safe)).sum(axis=-1)


@book.wrong(
    "zero-times-minus-infinity",
    fails="zero",
    message="A weight of 0 gives NaN, because 0 * log(0) is 0 * -inf. Replace 0 by 1 inside the log (log 1 = "
    "0), or leave those terms out of the sum.",
    source="https://stackoverflow.com/questions/56665350",
)
def unsafe(weights):
    return -(weights * np.log(weights)).sum(axis=-1)


@book.wrong(
    "wrong-axis",
    fails="nats zero",
    message="The sum runs over the queries: there is one number for each key. Sum over axis=-1; the shape "
    "must be (N_q,).",
)
def over_queries(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return -(weights * np.log(safe)).sum(axis=0)


@book.wrong(
    "one-number-for-all",
    fails="nats zero",
    message="A single number came back: the sum has no axis. Every query has its own entropy: axis=-1.",
    source="https://example-a.com/answer/39627718",
)
def total(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return -(weights * np.log(safe)).sum()


@book.wrong(
    "zeros-filtered-out",
    fails="nats zero",
    message="weights[weights > 0] flattens the array, so that all rows are summed into one number. Keep the "
    "shape: np.where(weights > 0, weights, 1) inside the log.",
    source="https://example-a.com/answer/39627718",
)
def flattened(weights):
    some = weights[weights > 0]
    return np.array([-(some * np.log(some)).sum()])


@book.wrong(
    "mean-for-sum",
    fails="nats zero",
    message="The terms are averaged over the keys, so the entropy is N_k times too small. Take the sum: the "
    "weights are the averaging.",
)
def averaged(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return -(weights * np.log(safe)).mean(axis=-1)


@book.wrong(
    "extra-axis",
    fails="nats zero",
    message="The shape is (N_q, 1): keepdims=True keeps an axis that is not asked. Leave it out.",
)
def kept_axis(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return -(weights * np.log(safe)).sum(axis=-1, keepdims=True)


@book.wrong(
    "large-epsilon",
    fails="nats zero",
    message="A constant of 0.01 inside the log shifts every row. Replace only the zeros, or take something as "
    "small as 1e-12.",
)
def shifted(weights):
    return -(weights * np.log(weights + 0.01)).sum(axis=-1)


@book.wrong(
    "small-weights-dropped",
    fails="nats",
    message="Very small weights are left out, as if they were 0: the comparison has a limit. Only a weight of "
    "exactly 0 adds nothing; compare with `> 0`.",
)
def above_a_limit(weights):
    safe = np.where(weights > 5e-4, weights, 1.0)
    return -(weights * np.log(safe)).sum(axis=-1)


@book.wrong(
    "relative-to-uniform",
    fails="nats zero",
    message="The entropy was divided by log(N_k), so that a uniform row gives 1. Nats are asked: leave out the "
    "division.",
)
def relative(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return -(weights * np.log(safe)).sum(axis=-1) / np.log(weights.shape[-1])


@book.wrong(
    "perplexity",
    fails="nats zero",
    message="This is exp(entropy), the effective number of keys. Leave out the exp.",
)
def effective_number(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return np.exp(-(weights * np.log(safe)).sum(axis=-1))


@book.wrong(
    "weight-missing",
    fails="nats zero",
    message="The logs are summed without their weights. Each log is multiplied by its own weight: w * log(w).",
)
def unweighted(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return -np.log(safe).sum(axis=-1)


@book.wrong(
    "changed-argument",
    fails="zero",
    message="The entropy is right, but the caller's zeros are gone: weights[weights == 0] = ... writes into "
    "the argument. Use np.where, or work on a copy.",
)
def zeros_overwritten(weights):
    weights[weights == 0] = 1e-12
    return -(weights * np.log(weights)).sum(axis=-1)


@book.wrong(
    "returns-list",
    fails="nats zero",
    message="A list of numbers came back. Return an array: np.array([...]).",
)
def as_list(weights):
    safe = np.where(weights > 0, weights, 1.0)
    return [float(-(w * np.log(s)).sum()) for w, s in zip(weights, safe, strict=True)]


@book.right("loops")
def by_loops(weights):
    out = np.zeros(len(weights))
    for i, row in enumerate(weights):
        for w in row:
            if w > 0:
                out[i] -= w * np.log(w)
    return out


@book.right("tiny-epsilon")
def tiny(weights):
    return -np.sum(weights * np.log(weights + 1e-12), axis=1)


@book.right("nan-sum")
def nan_sum(weights):
    return -np.nansum(weights * np.log(weights), axis=-1)


@book.right("log-where")
def log_where(weights):
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -np.einsum("qk,qk->q", weights, logs)


@book.right("torch")
def by_torch(weights):
    import torch

    return torch.special.entr(torch.tensor(weights)).sum(dim=-1).numpy()


@book.right("row-by-row-filter")
def filtered_rows(weights):
    return np.array([-(r[r > 0] * np.log(r[r > 0])).sum() for r in weights])


@book.right("float32")
def in_float32(weights):
    w = weights.astype(np.float32)
    return (w * -np.log(np.where(w == 0, np.float32(1), w))).sum(axis=1)


@book.right("extended-precision")
def in_long_double(weights):
    w = weights.astype(np.longdouble)
    return -(w * np.log(np.where(w > 0, w, 1))).sum(axis=-1)


@book.right("nan-to-num")
def repaired(weights):
    return -(weights * np.nan_to_num(np.log(weights))).sum(axis=-1)


TASK = FunctionTask(
    name=NAME,
    signature="entropy(weights)",
    docstring=DOCSTRING,
    checkpoints=(
        Checkpoint(NATS, "one entropy for each query, in nats", 1),
        Checkpoint(ZERO, "0 log 0 counts as 0", 1),
    ),
    reference=entropy,
    public=public,
    probes=probes,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    results=("entropy",),
    axes=(("query",),),
)
