"""`remove_key`: an intervention: what would be retrieved if one memory item were not there?"""

from __future__ import annotations

import numpy as np

from autograder.execute.wire import Strided
from autograder.tasks.authoring import Book, normal, sizes
from autograder.tasks.model import Case, Checkpoint, FunctionTask

NAME = "remove_key"
REMOVED, STABLE = "remove_key-removed", "remove_key-stable"
DOCSTRING = """Attention when one memory item is masked, with the weights shared out among the others.

Args:
    Q, K, V: float arrays of shapes (N_q, d_k), (N_k, d_k), (N_k, d_v), N_k >= 2. They are not changed.
    index: which key is removed, 0 <= index < N_k.

Returns:
    (context, weights): float arrays of shapes (N_q, d_v) and (N_q, N_k). The removed column is exactly 0
    and every row sums to 1, however large the removed key's score was.
"""
LOOSE = {"atol": 1e-5}
COARSE = {"rtol": 1e-3, "atol": 1e-3}  # scores near 1e4 in float32
book = Book(NAME)


def softmax(z):
    shifted = z - z.max(axis=-1, keepdims=True)
    powers = np.exp(shifted)
    return powers / powers.sum(axis=-1, keepdims=True)


def remove_key(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    scores[:, index] = -np.inf
    weights = softmax(scores)
    return weights @ V, weights


def _spiked(q: np.ndarray, k: np.ndarray, index: int, size: float) -> np.ndarray:
    k = k.copy()
    k[index] = size * np.sign(q[0])
    return k


def public() -> list[Case]:
    rng = np.random.default_rng(706)
    q, k, v = normal(rng, 2, 3), normal(rng, 4, 3), normal(rng, 4, 5)
    square = tuple(normal(rng, 3, 3) for _ in range(3))
    exact = {"exact_zero": True, **LOOSE}
    return [
        Case((q, k, v, 1), REMOVED, "the second of four keys", **exact),
        Case((q, k, v, 3), REMOVED, "the last key", **exact),
        Case((*square, 0), REMOVED, "three of everything, the first key", **exact),
        Case(
            (q, _spiked(q, k, 2, 3000.0), v, 2),
            STABLE,
            "the removed key has the largest score",
            **LOOSE,
        ),
        Case(
            (q[:1], _spiked(q, k, 0, 3000.0), v[:, :1], 0),
            STABLE,
            "one query, one component",
            **LOOSE,
        ),
    ]


def probes(rng: np.random.Generator) -> list[Case]:
    n_q, n_k, d_k, d_v = sizes(rng, 4, low=3)
    q, k, v = normal(rng, n_q, d_k), normal(rng, n_k, d_k), normal(rng, n_k, d_v)
    side, index = int(rng.integers(3, 6)), int(rng.integers(1, n_k - 1))
    square = tuple(normal(rng, side, side) for _ in range(3))
    q32, k32, v32 = (x.astype(np.float32) for x in (q, k, v))
    high = np.zeros((n_k, 4), np.float32)
    high[:, 0] = rng.integers(9990, 10000, size=n_k)
    high[index, 0] = 10000.0
    mixed = high.copy()
    mixed[0, 0] = -9999.0
    ask = np.zeros((2, 4), np.float32)
    ask[:, 0] = (2.0, -2.0)
    exact = {"exact_zero": True, **LOOSE}
    return [
        Case((q, k, v, index), REMOVED, "all sizes differ", **exact),
        Case((q, k, v, 0), REMOVED, "the first key", **exact),
        Case((q, k, v, n_k - 1), REMOVED, "the last key", **exact),
        Case((q32, k32, v32, index), REMOVED, "float32", **exact),
        Case((*square, int(rng.integers(side))), REMOVED, "square", **exact),
        Case((q[:1], k, v, index), REMOVED, "a single query", **exact),
        Case((q, k[:2], v[:2], 1), REMOVED, "two keys, so one is left", **exact),
        Case((Strided(q), Strided(k), Strided(v), 1), REMOVED, "not contiguous", **exact),
        Case(
            (q, _spiked(q, k, index, 1500.0), v, index),
            STABLE,
            "the largest score is removed",
            **LOOSE,
        ),
        Case((q[:1], _spiked(q, k, 0, 900.0), v[:, :1], 0), STABLE, "one component", **LOOSE),
        Case((ask, high, v32, index), STABLE, "scores near +-1e4, float32", **COARSE),
        Case((ask, mixed, v32, index), STABLE, "scores from -1e4 to 1e4, float32", **COARSE),
    ]


@book.wrong(
    "not-renormalised",
    fails="removed stable",
    message="The rows no longer sum to 1: the column was set to 0 after the softmax. Put -inf into the scores "
    "instead, so that the others share out the whole. Print weights.sum(axis=-1).",
    source="https://github.com/huggingface/pytorch-image-models/pull/2236",
)
def zeroed_after(Q, K, V, index):
    weights = softmax(Q @ K.T / np.sqrt(K.shape[-1]))
    weights[:, index] = 0.0
    return weights @ V, weights


@book.wrong(
    "renormalised-after",
    fails="stable",
    message="Setting the column to 0 and dividing by the new sum works until the removed key had all the "
    "weight: then it is 0/0. Mask the score with -inf before the softmax.",
)
def divided_after(Q, K, V, index):
    weights = softmax(Q @ K.T / np.sqrt(K.shape[-1]))
    weights[:, index] = 0.0
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "column-deleted",
    fails="removed stable",
    message="The weights have one column too few: the key was cut out with np.delete. The context is right, "
    "but the shape stays (N_q, N_k), with exactly 0 in that column.",
)
def deleted(Q, K, V, index):
    k, v = np.delete(K, index, axis=0), np.delete(V, index, axis=0)
    weights = softmax(Q @ k.T / np.sqrt(K.shape[-1]))
    return weights @ v, weights


@book.wrong(
    "key-set-to-zero",
    fails="removed stable",
    message="The key was replaced by zeros, which gives it the score 0, and exp(0) is not 0. Set its *score* "
    "to -inf.",
)
def zero_key(Q, K, V, index):
    k = K.copy()
    k[index] = 0.0
    weights = softmax(Q @ k.T / np.sqrt(K.shape[-1]))
    return weights @ V, weights


@book.wrong(
    "score-set-to-zero",
    fails="removed stable",
    message="The score was set to 0, and exp(0) is not 0, so the item still counts. Set it to -np.inf.",
    source="https://github.com/georg-wolflein/good-features/pull/1",
)
def zero_score(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    scores[:, index] = 0.0
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "value-set-to-zero",
    fails="removed stable",
    message="Only the value was emptied: the weights are the old ones, and what the item held is missing from "
    "the sum. Removing an item changes the weights: mask its score.",
)
def zero_value(Q, K, V, index):
    v = V.copy()
    v[index] = 0.0
    weights = softmax(Q @ K.T / np.sqrt(K.shape[-1]))
    return weights @ v, weights


@book.wrong(
    "query-removed",
    fails="removed stable",
    message="A row was masked, which is a query (its weights are NaN, or the index fails). Keys are columns: "
    "scores[:, index].",
)
def row_masked(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    scores[index] = -np.inf
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "only-that-key",
    fails="removed stable",
    message="Everything but the key was removed: the condition is the wrong way round. np.arange(n) != index "
    "says which keys stay.",
)
def inverted(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    scores = np.where(np.arange(len(K)) == index, scores, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "nothing-removed",
    fails="removed stable",
    message="The result is that with all keys: np.where returns a new array, and it was not kept. Assign it to "
    "scores.",
)
def not_kept(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    np.where(np.arange(len(K)) == index, -np.inf, scores)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "wrong-neighbour",
    fails="removed stable",
    message="The key before the asked one is removed: indices start at 0, so index - 1 is one off.",
)
def counted_from_one(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    scores[:, index - 1] = -np.inf
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "fill-of-1e-9",
    fails="removed stable",
    message="The item keeps a weight: the fill is -1e-9, nearly 0, where -1e9 was meant. Use -np.inf.",
    source="https://github.com/awslabs/gluonts/pull/1401",
)
def tiny_fill(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    weights = softmax(np.where(np.arange(len(K)) == index, -1e-9, scores))
    return weights @ V, weights


@book.wrong(
    "scale-missing",
    fails="removed stable",
    message="The scores were not divided by sqrt(d_k), so all weights are too sharp, also those of the keys "
    "that stay.",
    source="https://github.com/delzac/cntkx/issues/10",
)
def unscaled(Q, K, V, index):
    scores = Q @ K.T
    scores[:, index] = -np.inf
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "old-context",
    fails="removed stable",
    message="The weights are new, the context is the old one: it was computed before the removal. Compute "
    "weights @ V last.",
)
def context_first(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    context = softmax(scores) @ V
    scores[:, index] = -np.inf
    return context, softmax(scores)


@book.wrong(
    "changed-argument",
    fails="removed",
    message="The result is right, but the caller's V has lost a row of numbers: V[index] = 0 writes into the "
    "argument. Mask the score; V may stay as it is.",
)
def value_overwritten(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    scores[:, index] = -np.inf
    V[index] = 0.0
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "swapped-pair",
    fails="removed stable",
    message="The two results come in the other order. Return (context, weights).",
)
def weights_first(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    scores[:, index] = -np.inf
    weights = softmax(scores)
    return weights, weights @ V


@book.wrong(
    "returns-one-of-two",
    fails="removed stable",
    message="Only the context came back. Return the pair (context, weights).",
)
def context_alone(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    scores[:, index] = -np.inf
    return softmax(scores) @ V


@book.right("where")
def by_where(Q, K, V, index):
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    weights = softmax(np.where(np.arange(len(K)) == index, -np.inf, scores))
    return weights @ V, weights


@book.right("delete-then-insert")
def deleted_and_inserted(Q, K, V, index):
    k, v = np.delete(K, index, 0), np.delete(V, index, 0)
    weights = softmax(Q @ k.T / np.sqrt(K.shape[1]))
    return weights @ v, np.insert(weights, index, 0.0, axis=1)


@book.right("loops")
def by_loops(Q, K, V, index):
    weights = np.zeros((len(Q), len(K)))
    for i, q in enumerate(Q):
        scores = {j: float(q @ K[j]) / K.shape[1] ** 0.5 for j in range(len(K)) if j != index}
        top = max(scores.values())
        total = sum(np.exp(s - top) for s in scores.values())
        for j, s in scores.items():
            weights[i, j] = np.exp(s - top) / total
    return np.array([sum(w * x for w, x in zip(row, V, strict=True)) for row in weights]), weights


@book.right("finite-fill")
def finite_fill(Q, K, V, index):
    scores = np.einsum("qd,kd->qk", Q, K) / np.sqrt(Q.shape[1])
    scores[:, index] = -1e9
    weights = softmax(scores)
    return [weights @ V, weights]


@book.right("torch")
def by_torch(Q, K, V, index):
    import torch

    q, k, v = (torch.tensor(x) for x in (Q, K, V))
    scores = q @ k.T / k.shape[1] ** 0.5
    scores[:, index] = -torch.inf
    weights = torch.softmax(scores, dim=-1)
    return (weights @ v).numpy(), weights.numpy()


@book.right("float32")
def in_float32(Q, K, V, index):
    Q, K, V = (x.astype(np.float32) for x in (Q, K, V))
    scores = Q @ K.T / np.float32(np.sqrt(K.shape[1]))
    scores[:, index] = -np.inf
    weights = softmax(scores)
    return weights @ V, weights


@book.right("additive-mask")
def additive(Q, K, V, index):
    penalty = np.zeros(len(K))
    penalty[index] = -np.inf
    weights = softmax(Q @ K.T / np.sqrt(K.shape[-1]) + penalty)
    return weights @ V, weights


TASK = FunctionTask(
    name=NAME,
    signature="remove_key(Q, K, V, index)",
    docstring=DOCSTRING,
    checkpoints=(
        Checkpoint(REMOVED, "the column is 0, the others share out 1, arguments are unchanged", 1),
        Checkpoint(STABLE, "it also works where the removed key had all the weight", 1),
    ),
    reference=remove_key,
    public=public,
    probes=probes,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    mutation=REMOVED,
    results=("context", "weights"),
    axes=(("query", "component"), ("query", "key")),
)
