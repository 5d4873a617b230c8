"""`mha_mask`: the same permissions in the polarity of `nn.MultiheadAttention`."""

from __future__ import annotations

import numpy as np

from autograder.execute.wire import Strided
from autograder.tasks.authoring import Book, sizes
from autograder.tasks.model import Case, Checkpoint, FunctionTask

NAME = "mha_mask"
POLARITY = "mha_mask-polarity"
DOCSTRING = """Translate permissions into the mask that nn.MultiheadAttention takes as attn_mask.

Args:
    allowed: bool array of shape (N_q, N_k), True = may attend. It is not changed.

Returns:
    Bool array of shape (N_q, N_k), True = blocked.

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html
"""
book = Book(NAME)

# The notebook's own permissions: what a function that reads a global gets.
permission = np.array([[True, False, False], [True, True, False], [True, True, False]])


def mha_mask(allowed):
    return ~allowed


def public() -> list[Case]:
    causal = np.tril(np.ones((4, 4), dtype=bool))
    mixed = np.array([[True, False, True], [False, False, True]])
    return [
        Case((causal,), POLARITY, "a causal mask"),
        Case((mixed,), POLARITY, "two queries, three keys"),
        Case((np.array([[False, True, True, True, False]]),), POLARITY, "a single query"),
    ]


def probes(rng: np.random.Generator) -> list[Case]:
    n_q, n_k = sizes(rng, 2, low=3)
    side = int(rng.integers(3, 7))
    square = rng.random((side, side)) < 0.6
    square[0, 1], square[1, 0] = True, False
    return [
        Case((rng.random((n_q, n_k)) < 0.5,), POLARITY, "some keys blocked"),
        Case((square,), POLARITY, "square, not symmetric"),
        Case((rng.random((1, n_k)) < 0.5,), POLARITY, "a single query"),
        Case((np.ones((n_q, n_k), dtype=bool),), POLARITY, "nothing blocked"),
        Case((rng.random((n_q, 1)) < 0.5,), POLARITY, "a single key"),
        Case((Strided(rng.random((n_k, n_q)) < 0.5),), POLARITY, "not contiguous"),
    ]


@book.wrong(
    "polarity-unchanged",
    fails="polarity",
    message="The mask came back as it was, and in nn.MultiheadAttention True means blocked: exactly the "
    "keys that you allow would be hidden. Negate it with ~.",
    source="https://github.com/mlwithme/TransformerTranslation/issues/2",
)
def unchanged(allowed):
    return allowed


@book.wrong(
    "transposed",
    fails="polarity",
    message="Negated, but transposed as well. Both libraries put queries in rows and keys in columns.",
)
def negated_and_turned(allowed):
    return ~allowed.T


@book.wrong(
    "transposed-only",
    fails="polarity",
    message="The mask was transposed, not negated. A causal mask then looks right except for its diagonal; "
    "try one with 2 queries and 3 keys.",
)
def turned(allowed):
    return allowed.T


@book.wrong(
    "wrong-dtype",
    fails="polarity",
    message="1 - allowed gives the right pattern as integers, and MultiheadAttention takes no integer mask. "
    "Use ~allowed (or np.logical_not), and print .dtype.",
)
def one_minus(allowed):
    return 1 - allowed


@book.wrong(
    "additive-mask",
    fails="polarity",
    message="These are numbers to add to the scores, 0 and -inf. MultiheadAttention would take them, but a "
    "bool mask with True = blocked is asked.",
    source="https://github.com/mlverse/torch/pull/1208 (float masks are added, bool masks fill)",
)
def to_be_added(allowed):
    return np.where(allowed, 0.0, -np.inf)


@book.wrong(
    "changed-argument",
    fails="polarity",
    message="The result is right, but the caller's own mask was negated with it (out=allowed). Return ~allowed, "
    "which makes a new array.",
)
def in_place(allowed):
    return np.logical_not(allowed, out=allowed)


@book.wrong(
    "assumes-causal",
    fails="polarity",
    message="Only the size of the mask is used, and a causal pattern is built anew. Translate the permissions "
    "that you are given: try a mask with a hole in the past.",
)
def always_causal(allowed):
    return np.triu(np.ones(allowed.shape, dtype=bool), k=1)


@book.wrong(
    "rows-reversed",
    fails="polarity",
    message="The rows come in reversed order: [::-1] turns the array round, ~ negates its entries.",
)
def reversed_rows(allowed):
    return allowed[::-1]


@book.wrong(
    "minus-sign",
    fails="polarity",
    message="numpy refuses `-` for bool arrays (TypeError). Logical negation is ~ or np.logical_not.",
    source="https://stackoverflow.com/questions/15998188",
)
def negative(allowed):
    return -allowed


@book.wrong(
    "python-not",
    fails="polarity",
    message="`not` asks the whole array for one truth value, and numpy refuses. Negate every entry with ~.",
    source="https://stackoverflow.com/questions/10062954",
)
def not_array(allowed):
    return not allowed


@book.wrong(
    "returns-tensor",
    fails="polarity",
    message="A torch tensor comes back. numpy in, numpy out: leave torch to the caller.",
)
def as_tensor(allowed):
    import torch

    return ~torch.tensor(allowed)


@book.wrong(
    "reads-global",
    fails="polarity",
    message="The answer is the same for every mask: the body uses the notebook's `permission` in place of "
    "`allowed`.",
)
def of_the_notebook(allowed):
    return ~permission


@book.right("logical-not")
def logical(allowed):
    return np.logical_not(allowed)


@book.right("equals-false")
def equals_false(allowed):
    return allowed == False  # noqa: E712


@book.right("exclusive-or")
def exclusive_or(allowed):
    return allowed ^ True


@book.right("loops")
def by_loops(allowed):
    return np.array([[not entry for entry in row] for row in allowed])


@book.right("integers-and-back")
def integers_and_back(allowed):
    return (1 - allowed.astype(int)).astype(bool)


@book.right("where")
def by_where(allowed):
    return np.where(allowed, False, True)


@book.right("torch-and-back")
def torch_and_back(allowed):
    import torch

    return torch.logical_not(torch.tensor(allowed)).numpy()


TASK = FunctionTask(
    name=NAME,
    signature="mha_mask(allowed)",
    docstring=DOCSTRING,
    checkpoints=(Checkpoint(POLARITY, "True means blocked, entry by entry", 1),),
    reference=mha_mask,
    public=public,
    probes=probes,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    results=("mask",),
    axes=(("query", "key"),),
)
