"""`scaled_scores`: how well each query fits each key."""

from __future__ import annotations

import numpy as np

from autograder.execute.wire import Strided
from autograder.tasks.authoring import Book, normal, sizes
from autograder.tasks.model import Case, Checkpoint, FunctionTask

NAME = "scaled_scores"
PRODUCTS, SCALE = "scaled_scores-products", "scaled_scores-scale"
DOCSTRING = """Scaled dot-product scores of every query with every key.

Args:
    Q: queries, float array of shape (N_q, d_k). It is not changed.
    K: keys, float array of shape (N_k, d_k). It is not changed.

Returns:
    Float array of shape (N_q, N_k): row = query, column = key, each entry q . k / sqrt(d_k).

Source: Vaswani et al. (2017), equation 1, https://arxiv.org/abs/1706.03762
"""
book = Book(NAME)

# The notebook's own memory: what a function that reads a global gets.
K = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def scaled_scores(Q, K):
    return Q @ K.T / np.sqrt(K.shape[-1])


def public() -> list[Case]:
    rng = np.random.default_rng(701)
    return [
        Case((normal(rng, 2, 1), normal(rng, 4, 1)), PRODUCTS, "d_k = 1, so that the scale is 1"),
        Case((normal(rng, 3, 1), normal(rng, 3, 1)), PRODUCTS, "as many queries as keys, d_k = 1"),
        Case((normal(rng, 2, 3), normal(rng, 4, 3)), SCALE, "d_k = 3"),
        Case((normal(rng, 3, 3), normal(rng, 3, 3)), SCALE, "three of everything, not symmetric"),
        Case((normal(rng, 1, 5), normal(rng, 4, 5)), SCALE, "a single query"),
    ]


def probes(rng: np.random.Generator) -> list[Case]:
    n_q, n_k, d_k = sizes(rng, 3, low=3)
    other = sizes(rng, 3, low=3)
    square = int(rng.integers(3, 6))
    big_q = rng.integers(-60, 60, size=(5, 4)).astype(np.float32)
    big_k = rng.integers(-60, 60, size=(7, 4)).astype(np.float32)
    return [
        Case((normal(rng, n_q, 1), normal(rng, n_k, 1)), PRODUCTS, "d_k = 1"),
        Case(
            (normal(rng, n_k, 1, dtype=np.float32), normal(rng, n_q, 1, dtype=np.float32)),
            PRODUCTS,
            "d_k = 1, float32",
        ),
        Case((normal(rng, n_q, d_k), normal(rng, n_k, d_k)), SCALE, "all sizes differ"),
        Case(
            (
                normal(rng, other[0], other[1], dtype=np.float32),
                normal(rng, other[2], other[1], dtype=np.float32),
            ),
            SCALE,
            "float32",
        ),
        Case((normal(rng, square, square), normal(rng, square, square)), SCALE, "square"),
        Case((normal(rng, 1, d_k), normal(rng, n_k, d_k)), SCALE, "a single query"),
        Case((normal(rng, n_q, d_k), normal(rng, 1, d_k)), SCALE, "a single key"),
        Case(
            (Strided(normal(rng, n_q, d_k)), Strided(normal(rng, n_k, d_k))),
            SCALE,
            "arrays that are not contiguous",
        ),
        # Whole numbers and d_k = 4: the scores are large and exact in float32.
        Case((big_q, big_k), SCALE, "large scores"),
    ]


@book.wrong(
    "scale-missing",
    fails="scale",
    message="These are the raw dot products: the division by sqrt(d_k) is missing. Divide by "
    "np.sqrt(K.shape[-1]) and compare the spread of the scores at d_k = 1 and d_k = 64.",
    source="https://github.com/delzac/cntkx/issues/10",
)
def scale_missing(Q, K):
    return Q @ K.T


@book.wrong(
    "scale-without-root",
    fails="scale",
    message="The scores are divided by d_k itself, so they are sqrt(d_k) times too small. Take the "
    "square root, and check with d_k = 4, where a dot product of 4 must give 2.",
)
def scale_without_root(Q, K):
    return Q @ K.T / K.shape[-1]


@book.wrong(
    "scale-multiplied",
    fails="scale",
    message="The scores are multiplied by sqrt(d_k) where they should be divided: they grow with d_k "
    "twice over. Exchange * and /, and check with d_k = 4.",
    source="https://github.com/esceptico/perceiver-io/issues/9 (the inverse slip)",
)
def scale_multiplied(Q, K):
    return Q @ K.T * np.sqrt(K.shape[-1])


@book.wrong(
    "scale-number-of-keys",
    fails="products scale",
    message="The scale is the root of the number of keys, K.shape[0]. It must be the length of one "
    "key, K.shape[-1]. Try the same query with one more key: no old score may change.",
)
def scale_number_of_keys(Q, K):
    return Q @ K.T / np.sqrt(K.shape[0])


@book.wrong(
    "scale-number-of-queries",
    fails="products scale",
    message="The scale is the root of the number of queries, Q.shape[0]. It must be the length of one "
    "query, Q.shape[-1]. Ask one query alone, then two: the first row may not change.",
)
def scale_number_of_queries(Q, K):
    return Q @ K.T / np.sqrt(Q.shape[0])


@book.wrong(
    "scale-number-of-axes",
    fails="products scale",
    message="The scores are divided by sqrt(2) always: len(Q.shape) counts the axes, and the lesson's "
    "d_k happens to be 2 as well. Use Q.shape[-1] and try d_k = 3.",
)
def scale_number_of_axes(Q, K):
    return Q @ K.T / np.sqrt(len(Q.shape))


@book.wrong(
    "transposed",
    fails="products scale",
    message="Rows and columns are exchanged: there is one row for each key. Rows belong to queries. "
    "Print the shapes with 2 queries and 4 keys; the product is Q @ K.T.",
)
def keys_in_rows(Q, K):
    return K @ Q.T / np.sqrt(K.shape[-1])


@book.wrong(
    "cosine-similarity",
    fails="products scale",
    message="The vectors were brought to length 1 first, which gives cosines. Scaling divides by one "
    "number, sqrt(d_k); the lengths stay in. Double a query: its scores must double.",
)
def cosines(Q, K):
    long_q = np.linalg.norm(Q, axis=-1, keepdims=True)
    long_k = np.linalg.norm(K, axis=-1, keepdims=True)
    return (Q / long_q) @ (K / long_k).T


@book.wrong(
    "key-not-transposed",
    fails="products scale",
    message="Q @ K multiplies queries with columns of K; it fails unless there happen to be d_k keys. "
    "A score is a query times a key, and keys are rows: transpose K.",
)
def not_transposed(Q, K):
    return Q @ K / np.sqrt(K.shape[-1])


@book.wrong(
    "elementwise-product",
    fails="products scale",
    message="Q * K multiplies entry by entry, and fits only as many queries as keys. Every query meets "
    "every key: use the matrix product Q @ K.T.",
)
def elementwise(Q, K):
    return Q * K / np.sqrt(K.shape[-1])


@book.wrong(
    "products-not-summed",
    fails="products scale",
    message="The result still has the axis d_k: the products of the components were not added up. Sum "
    "over the last axis, or let @ do both.",
)
def not_summed(Q, K):
    return Q[:, None, :] * K[None, :, :] / np.sqrt(K.shape[-1])


@book.wrong(
    "distance-for-product",
    fails="products scale",
    message="These are distances between queries and keys, not dot products. A score is large where "
    "query and key point the same way: multiply and add, do not subtract.",
)
def distances(Q, K):
    return -np.linalg.norm(Q[:, None] - K[None], axis=-1) / np.sqrt(K.shape[-1])


@book.wrong(
    "changed-argument",
    fails="scale",
    message="The scores are right, but Q holds other numbers after the call: `Q /= ...` writes into the "
    "caller's array. Write `Q / ...`, and print Q before and after a call.",
)
def in_place(Q, K):
    Q /= np.sqrt(K.shape[-1]).astype(Q.dtype)
    return Q @ K.T


@book.wrong(
    "returns-list",
    fails="products scale",
    message="The numbers come in nested Python lists. Return the array: leave out .tolist().",
)
def as_list(Q, K):
    return (Q @ K.T / np.sqrt(K.shape[-1])).tolist()


@book.wrong(
    "returns-matrix",
    fails="products scale",
    message="The result is a numpy.matrix, for which * means another product. Use plain arrays.",
)
def as_matrix(Q, K):
    return np.matrix(Q) * np.matrix(K).T / np.sqrt(K.shape[-1])


@book.wrong(
    "rounded",
    fails="products scale",
    message="The scores are rounded to two digits. Return what was computed; rounding is for printing.",
)
def rounded(Q, K):
    return np.round(Q @ K.T / np.sqrt(K.shape[-1]), 2)


@book.right("einsum")
def by_einsum(Q, K):
    return np.einsum("qd,kd->qk", Q, K) / np.sqrt(Q.shape[1])


@book.right("loops")
def by_loops(Q, K):
    out = np.zeros((len(Q), len(K)))
    for q in range(len(Q)):
        for k in range(len(K)):
            out[q, k] = sum(a * b for a, b in zip(Q[q], K[k], strict=True)) / len(Q[q]) ** 0.5
    return out


@book.right("scale-the-queries-first")
def scaled_queries(Q, K):
    return (Q / np.sqrt(Q.shape[-1])) @ K.transpose()


@book.right("inner")
def by_inner(Q, K):
    return np.inner(Q, K) * K.shape[1] ** -0.5


@book.right("float32")
def in_float32(Q, K):
    return (Q.astype(np.float32) @ K.astype(np.float32).T) / np.float32(np.sqrt(K.shape[1]))


@book.right("broadcast-and-sum")
def by_broadcast(Q, K):
    return (Q[:, None, :] * K[None, :, :]).sum(axis=2) / np.sqrt(K.shape[1])


@book.right("dot-and-math")
def by_dot(Q, K):
    import math

    return np.dot(Q, np.swapaxes(K, 0, 1)) / math.sqrt(np.size(K, 1))


@book.right("keys-first-then-transposed")
def transposed_back(Q, K):
    return (K @ Q.T).T / np.sqrt(Q.shape[-1])


TASK = FunctionTask(
    name=NAME,
    signature="scaled_scores(Q, K)",
    docstring=DOCSTRING,
    checkpoints=(
        Checkpoint(PRODUCTS, "one row for each query, one dot product for each key", 1),
        Checkpoint(SCALE, "the scores are divided by sqrt(d_k)", 1),
    ),
    reference=scaled_scores,
    public=public,
    probes=probes,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    results=("score",),
    axes=(("query", "key"),),
)
