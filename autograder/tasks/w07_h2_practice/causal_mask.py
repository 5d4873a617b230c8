"""`causal_mask`: a query may look at itself and at what came before."""

from __future__ import annotations

import numpy as np

from autograder.tasks.authoring import Book
from autograder.tasks.model import Case, Checkpoint, FunctionTask

NAME = "causal_mask"
PAST = "causal_mask-past"
DOCSTRING = """Which positions may attend to which, when the future is hidden.

Args:
    n: length of the sequence, n >= 1.

Returns:
    Bool array of shape (n, n), True = may attend; row = query, column = key. Position t may attend to
    positions 0..t, itself included.
"""
book = Book(NAME)


def causal_mask(n):
    return np.tril(np.ones((n, n), dtype=bool))


def public() -> list[Case]:
    return [Case((n,), PAST, f"n = {n}") for n in (3, 1, 4)]


def probes(rng: np.random.Generator) -> list[Case]:
    longer = [int(n) for n in rng.choice(np.arange(6, 13), size=3, replace=False)]
    return [Case((n,), PAST, f"n = {n}") for n in (1, 2, 5, *longer, 40)]


@book.wrong(
    "transposed",
    fails="past",
    message="Rows and columns are exchanged: the first query sees everything and the last only itself. "
    "Row = query. Print the mask for n = 3: the first row must be [True, False, False].",
    source="https://github.com/marin-community/levanter/pull/102",
)
def upper_triangle(n):
    return np.triu(np.ones((n, n), dtype=bool))


@book.wrong(
    "self-hidden",
    fails="past",
    message="The diagonal is False: a position cannot see itself, and the first row is empty. Position t "
    "may attend to 0..t inclusive: use k=0, or <= in place of <.",
    source="https://github.com/RVC-Boss/GPT-SoVITS/issues/965 (which diagonal to block)",
)
def without_self(n):
    return np.tril(np.ones((n, n), dtype=bool), k=-1)


@book.wrong(
    "next-token-visible",
    fails="past",
    message="Each position sees one step of the future: the diagonal is shifted (k=1). For n = 3 the first "
    "row must be [True, False, False].",
    source="https://github.com/RVC-Boss/GPT-SoVITS/issues/965",
)
def one_ahead(n):
    return np.tril(np.ones((n, n), dtype=bool), k=1)


@book.wrong(
    "mask-inverted",
    fails="past",
    message="True stands where the future is: this says what is blocked, MultiheadAttention's polarity. "
    "Here True = may attend. Negate it with ~.",
    source="https://github.com/karpathy/nanoGPT/issues/170 (the same doubt: tril or triu)",
)
def blocked_is_true(n):
    return np.triu(np.ones((n, n), dtype=bool), k=1)


@book.wrong(
    "wrong-dtype",
    fails="past",
    message="The pattern is right, but these are numbers: print .dtype. A mask must be bool, or ~mask and "
    "mask[...] mean something else. Use dtype=bool.",
    source="https://github.com/rasbt/LLMs-from-scratch/issues/279 (a triangle of ones as the mask)",
)
def ones_and_zeros(n):
    return np.tril(np.ones((n, n)))


@book.wrong(
    "additive-mask",
    fails="past",
    message="This is a mask to be added to scores, 0 and -inf. Permissions are asked here: True where the "
    "entry is 0.",
    source="https://github.com/timeseriesAI/tsai/issues/171",
)
def to_be_added(n):
    return np.where(np.tril(np.ones((n, n), dtype=bool)), 0.0, -np.inf)


@book.wrong(
    "everything-visible",
    fails="past",
    message="Every entry is True, so nothing of the future is hidden. Compare the index of the key with "
    "that of the query, or use np.tril.",
    source="https://github.com/rainmaker22/SMART/issues/42",
)
def no_mask(n):
    return np.ones((n, n), dtype=bool)


@book.wrong(
    "only-self",
    fails="past",
    message="Only the diagonal is True: each position sees itself and nothing before it. The past belongs "
    "to the permissions: np.tril, not np.eye.",
)
def diagonal(n):
    return np.eye(n, dtype=bool)


@book.wrong(
    "only-past-of-last",
    fails="past",
    message="All rows are equal, like a padding mask. A causal mask gives each query its own row: one more "
    "key than the row above.",
)
def one_row_for_all(n):
    return np.tile(np.arange(n) < n - 1, (n, 1))


@book.wrong(
    "counted-from-the-end",
    fails="past",
    message="The triangle hangs in the wrong corner (np.fliplr or a reversed axis): the first query sees the "
    "last key. Print n = 3.",
)
def flipped(n):
    return np.fliplr(np.tril(np.ones((n, n), dtype=bool)))


@book.wrong(
    "returns-list",
    fails="past",
    message="The permissions come in nested lists. Wrap them: np.array(rows, dtype=bool).",
)
def nested_lists(n):
    return [[j <= i for j in range(n)] for i in range(n)]


@book.wrong(
    "reads-global",
    fails="past",
    message="The mask always has the same size: the body uses 3, the lesson's length, in place of n.",
)
def always_three(n):
    return np.tril(np.ones((3, 3), dtype=bool))


@book.wrong(
    "one-too-long",
    fails="past",
    message="The mask has n + 1 rows and columns. Positions run from 0 to n - 1: np.arange(n).",
)
def one_more(n):
    return np.tril(np.ones((n + 1, n + 1), dtype=bool))


@book.wrong(
    "cut-from-a-fixed-block",
    fails="past",
    message="Right up to n = 5, then too small: the mask is cut from a block of fixed size. Build it for n.",
    source="https://github.com/karpathy/nanoGPT/issues/170 (a buffer of block size)",
    public_only=True,
)
def from_a_block(n):
    return np.tril(np.ones((5, 5), dtype=bool))[:n, :n]


@book.right("compare-positions")
def positions(n):
    return np.arange(n)[None, :] <= np.arange(n)[:, None]


@book.right("loops")
def by_loops(n):
    mask = np.zeros((n, n), dtype=bool)
    for query in range(n):
        for key in range(query + 1):
            mask[query, key] = True
    return mask


@book.right("not-the-future")
def not_future(n):
    return ~np.triu(np.ones((n, n), dtype=bool), k=1)


@book.right("tri")
def by_tri(n):
    return np.tri(n, dtype=bool)


@book.right("outer-comparison")
def outer(n):
    return np.greater_equal.outer(np.arange(n), np.arange(n))


@book.right("from-lists")
def from_lists(n):
    return np.array([[j <= i for j in range(n)] for i in range(n)])


@book.right("torch")
def by_torch(n):
    import torch

    return torch.ones(n, n).tril().bool().numpy()


@book.right("transposed-triangle")
def transposed_triangle(n):
    return np.triu(np.full((n, n), True)).T


TASK = FunctionTask(
    name=NAME,
    signature="causal_mask(n)",
    docstring=DOCSTRING,
    checkpoints=(Checkpoint(PAST, "each query sees itself and the past, and nothing later", 1),),
    reference=causal_mask,
    public=public,
    probes=probes,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    results=("mask",),
    axes=(("query", "key"),),
)
