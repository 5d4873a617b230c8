"""`torch_attention`: the same context from PyTorch's own attention."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F

from autograder.execute.wire import Strided
from autograder.tasks.authoring import Book, normal, sizes
from autograder.tasks.model import Case, Checkpoint, FunctionTask

NAME = "torch_attention"
CONTEXT, MASK = "torch_attention-context", "torch_attention-mask"
DOCSTRING = """The context of `attention`, computed by F.scaled_dot_product_attention.

Args:
    Q, K, V: float arrays of shapes (N_q, d_k), (N_k, d_k), (N_k, d_v). They are not changed.
    allowed: None, or a bool array of shape (N_q, N_k) or (1, N_k), True = may attend; no row is empty.

Returns:
    numpy array of shape (N_q, d_v).

Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html
"""
LOOSE = {"atol": 1e-5}  # float32 inside torch (contract 3)
COARSE = {"rtol": 1e-3, "atol": 1e-3}  # scores near 1e4 in float32
torch.set_num_threads(1)
book = Book(NAME)


def torch_attention(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K, V))
    mask = None if allowed is None else torch.tensor(allowed)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).numpy()[0, 0]


def _large(rng: np.random.Generator, n_q: int, n_k: int, d_v: int) -> tuple[np.ndarray, ...]:
    """Scores from -1e4 to 1e4, exact in float32, with the best two of each query close together."""
    queries, keys = np.zeros((n_q, 4)), np.zeros((n_k, 4))
    queries[:, 0] = np.where(np.arange(n_q) % 2 == 0, 2.0, -2.0)
    keys[:, 0] = np.where(np.arange(n_k) % 2 == 0, 9999.0, -9999.0)
    keys[:, 1] = rng.integers(-3, 3, size=n_k)
    keys[:2, 0] += (1.0, -1.0)
    return queries, keys, normal(rng, n_k, d_v)


def public() -> list[Case]:
    rng = np.random.default_rng(705)
    q, k, v = normal(rng, 2, 3), normal(rng, 4, 3), normal(rng, 4, 5)
    square = tuple(normal(rng, 3, 3) for _ in range(3))
    mask = np.array([[True, False, True, True], [False, True, False, True]])
    hq, hk, hv = _large(rng, 2, 5, 3)
    return [
        Case((q, k, v), CONTEXT, "no mask", **LOOSE),
        Case(square, CONTEXT, "three of everything", **LOOSE),
        Case((q[:1], k, v[:, :1]), CONTEXT, "one query, one value component", **LOOSE),
        Case((q, k, v, mask), MASK, "mask (N_q, N_k)", **LOOSE),
        Case((q, k, v, mask[:1]), MASK, "mask (1, N_k)", **LOOSE),
        Case((*square, np.tril(np.ones((3, 3), bool))), MASK, "a causal mask", **LOOSE),
        Case((hq, hk, hv), CONTEXT, "scores from -1e4 to 1e4", **COARSE),
        Case((hq, hk, hv, _all_but_the_best(2, 5)), MASK, "blocked keys score highest", **COARSE),
    ]


def _all_but_the_best(n_q: int, n_k: int) -> np.ndarray:
    """A mask for `_large` that blocks every key with a high score."""
    return np.arange(n_k) % 2 != np.arange(n_q)[:, None] % 2


def probes(rng: np.random.Generator) -> list[Case]:
    n_q, n_k, d_k, d_v = sizes(rng, 4, low=3)
    q, k, v = normal(rng, n_q, d_k), normal(rng, n_k, d_k), normal(rng, n_k, d_v)
    mask = rng.random((n_q, n_k)) < 0.5
    mask[np.arange(n_q), rng.integers(n_k, size=n_q)] = True
    mask[0] = np.arange(n_k) != 1
    side = int(rng.integers(3, 6))
    square = tuple(normal(rng, side, side) for _ in range(3))
    q32, k32, v32 = (x.astype(np.float32) for x in (q, k, v))
    large = _large(rng, 3, 6, 4)
    return [
        Case((q, k, v), CONTEXT, "all sizes differ", **LOOSE),
        Case((q32, k32, v32), CONTEXT, "float32", **LOOSE),
        Case(square, CONTEXT, "square", **LOOSE),
        Case((q[:1], k, v), CONTEXT, "a single query", **LOOSE),
        Case((q, k, v[:, :1], None), CONTEXT, "one value component", **LOOSE),
        Case((Strided(q), Strided(k), Strided(v)), CONTEXT, "not contiguous", **LOOSE),
        Case((q, k, v, mask), MASK, "mask (N_q, N_k)", **LOOSE),
        Case((q32, k32, v32, Strided(mask)), MASK, "float32, mask not contiguous", **LOOSE),
        Case((q, k, v, mask[:1]), MASK, "mask (1, N_k)", **LOOSE),
        Case((*square, np.tril(np.ones((side, side), bool))), MASK, "a causal mask", **LOOSE),
        Case((q[:, :1], k[:, :1], v), CONTEXT, "one component a key", **LOOSE),
        Case(large, CONTEXT, "scores from -1e4 to 1e4", **COARSE),
        Case((*large, _all_but_the_best(3, 6)), MASK, "blocked keys score highest", **COARSE),
    ]


@book.wrong(
    "mask-inverted",
    fails="mask",
    message="Exactly the blocked keys are used. F.scaled_dot_product_attention takes True = may attend, as "
    "your mask has it; only nn.MultiheadAttention is the other way round. Leave out the ~.",
    source="https://github.com/pytorch/pytorch/pull/103835 (the polarity had to be clarified)",
)
def inverted(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K, V))
    mask = None if allowed is None else ~torch.tensor(allowed)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).numpy()[0, 0]


@book.wrong(
    "mask-ignored",
    fails="mask",
    message="The context is the one without a mask: `allowed` does not reach the call. Pass it as attn_mask.",
    source="https://github.com/pytorch/pytorch/issues/118025",
)
def without_mask(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K, V))
    return F.scaled_dot_product_attention(q, k, v).numpy()[0, 0]


@book.wrong(
    "mask-added-as-numbers",
    fails="mask",
    message="The mask was turned into floats, and a float mask is added to the scores: allowed keys get +1, "
    "blocked ones stay. Keep it bool.",
    source="https://github.com/mlverse/torch/pull/1208",
)
def float_mask(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K, V))
    mask = None if allowed is None else torch.tensor(allowed, dtype=torch.float32)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).numpy()[0, 0]


@book.wrong(
    "always-causal",
    fails="context mask",
    message="is_causal=True hides the future also where no mask is given. Leave it out, and pass `allowed`.",
)
def causal(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K, V))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True).numpy()[0, 0]


@book.wrong(
    "scaled-twice",
    fails="context mask",
    message="The weights are too flat: Q was divided by sqrt(d_k) and the function divides again. Pass Q as "
    "it is.",
)
def twice(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K, V))
    mask = None if allowed is None else torch.tensor(allowed)
    q = q / np.sqrt(Q.shape[-1])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).numpy()[0, 0]


@book.wrong(
    "scale-switched-off",
    fails="context mask",
    message="The weights are too sharp: scale=1 switches the division by sqrt(d_k) off. Leave `scale` out.",
)
def unscaled(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K, V))
    mask = None if allowed is None else torch.tensor(allowed)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0).numpy()[0, 0]


@book.wrong(
    "returns-tensor",
    fails="context mask",
    message="A torch tensor came back. numpy in, numpy out: end with .numpy().",
)
def as_tensor(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K, V))
    mask = None if allowed is None else torch.tensor(allowed)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)[0, 0]


@book.wrong(
    "extra-axis",
    fails="context mask",
    message="The result still has the batch and head axes, (1, 1, N_q, d_v). Take [0, 0] out of it.",
)
def axes_left(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K, V))
    mask = None if allowed is None else torch.tensor(allowed)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).numpy()


@book.wrong(
    "keys-for-values",
    fails="context mask",
    message="Keys were passed as values too, so the keys are mixed and the width is d_k. The order is query, "
    "key, value.",
)
def keys_mixed(Q, K, V, allowed=None):
    q, k = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K))
    mask = None if allowed is None else torch.tensor(allowed)
    return F.scaled_dot_product_attention(q, k, k, attn_mask=mask).numpy()[0, 0]


@book.wrong(
    "dtypes-mixed",
    fails="context mask",
    message="torch refuses to mix float32 and float64 (RuntimeError). Convert Q, K and V alike.",
)
def mixed_types(Q, K, V, allowed=None):
    q = torch.tensor(Q, dtype=torch.float32)
    k, v = (torch.tensor(x, dtype=torch.float64) for x in (K, V))
    mask = None if allowed is None else torch.tensor(allowed)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).numpy()


@book.wrong(
    "numpy-passed-in",
    fails="context mask",
    message="F.scaled_dot_product_attention takes tensors, not arrays (TypeError). Convert with torch.tensor.",
)
def no_tensors(Q, K, V, allowed=None):
    return F.scaled_dot_product_attention(Q, K, V, attn_mask=allowed)


@book.wrong(
    "changed-argument",
    fails="context",
    message="The context is right, but Q holds other numbers after the call: torch.from_numpy shares the "
    "array's memory, and `q *= ...` writes into it. Use torch.tensor, or q = q * ...",
    source="https://docs.pytorch.org/docs/stable/generated/torch.from_numpy.html",
)
def shared_memory(Q, K, V, allowed=None):
    q, k, v = (torch.from_numpy(x) for x in (Q, K, V))
    q *= Q.shape[-1] ** -0.5
    mask = None if allowed is None else torch.tensor(allowed)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0).numpy()


@book.wrong(
    "values-averaged",
    fails="context mask",
    message="Every query gets the plain mean of V. Let the function weigh the values by query and key.",
)
def plain_mean(Q, K, V, allowed=None):
    return np.tile(V.mean(axis=0), (len(Q), 1))


@book.wrong(
    "half-precision",
    fails="context mask",
    message="The context agrees to three digits only: the tensors are float16. Use torch.float32.",
)
def in_half(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float16)[None, None] for x in (Q, K, V))
    mask = None if allowed is None else torch.tensor(allowed)
    got = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return got.float().numpy()[0, 0]


@book.wrong(
    "fill-not-low-enough",
    fails="mask",
    message="A blocked key with a large score still takes part: -100 was added to it, and the score is larger. "
    "Pass the mask as bool, or add -inf.",
)
def hundred_less(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float32)[None, None] for x in (Q, K, V))
    mask = (
        None if allowed is None else torch.tensor(np.where(allowed, 0.0, -100.0).astype(np.float32))
    )
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).numpy()[0, 0]


@book.wrong(
    "exponential-overflows",
    fails="context mask",
    message="NaN for large scores: exp of 1e4 is infinite, and inf / inf is NaN. "
    "F.scaled_dot_product_attention subtracts the largest score first; call it.",
)
def plain_exponentials(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float64) for x in (Q, K, V))
    powers = torch.exp(q @ k.T / q.shape[-1] ** 0.5)
    if allowed is not None:
        powers = powers * torch.tensor(allowed)
    return (powers / powers.sum(dim=-1, keepdim=True) @ v).numpy()


@book.right("without-batch-axes")
def two_dimensional(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x) for x in (Q, K, V))
    mask = None if allowed is None else torch.tensor(allowed)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).numpy()


@book.right("one-batch-axis")
def batch_only(Q, K, V, allowed=None):
    q, k, v = (torch.from_numpy(x.astype("float32")).unsqueeze(0) for x in (Q, K, V))
    kw = {} if allowed is None else {"attn_mask": torch.from_numpy(allowed.copy())}
    return F.scaled_dot_product_attention(q, k, v, **kw).squeeze(0).numpy()


@book.right("additive-mask")
def additive(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x, dtype=torch.float64)[None, None] for x in (Q, K, V))
    mask = None if allowed is None else torch.tensor(np.where(allowed, 0.0, -np.inf))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)[0, 0].detach().numpy()


@book.right("expanded-mask")
def expanded(Q, K, V, allowed=None):
    q, k, v = (torch.as_tensor(np.ascontiguousarray(x)).float()[None, None] for x in (Q, K, V))
    mask = torch.ones(len(Q), len(K), dtype=torch.bool)
    if allowed is not None:
        mask = mask & torch.as_tensor(np.ascontiguousarray(allowed))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.0).numpy()[0, 0]


@book.right("by-hand-in-torch")
def by_hand(Q, K, V, allowed=None):
    q, k, v = (torch.tensor(x) for x in (Q, K, V))
    scores = q @ k.T / q.shape[-1] ** 0.5
    if allowed is not None:
        scores = scores.masked_fill(~torch.tensor(allowed), -torch.inf)
    return (torch.softmax(scores, dim=-1) @ v).numpy()


@book.right("query-by-query")
def one_query(Q, K, V, allowed=None):
    k, v = torch.tensor(K).double(), torch.tensor(V).double()
    rows = []
    for i in range(len(Q)):
        keep = (
            slice(None)
            if allowed is None
            else torch.tensor(np.broadcast_to(allowed, (len(Q), len(K)))[i].copy())
        )
        q = torch.tensor(Q[i : i + 1]).double()
        rows.append(F.scaled_dot_product_attention(q, k[keep], v[keep]))
    return torch.cat(rows).numpy()


@book.right("float32-result")
def rounded_result(Q, K, V, allowed=None):
    with torch.no_grad():
        args = [torch.tensor(np.array(x), dtype=torch.double)[None, None, :, :] for x in (Q, K, V)]
        mask = torch.tensor(np.array(allowed))[None, None] if allowed is not None else None
        out = F.scaled_dot_product_attention(*args, attn_mask=mask)
    return out.numpy()[0, 0].astype(np.float32)


TASK = FunctionTask(
    name=NAME,
    signature="torch_attention(Q, K, V, allowed=None)",
    docstring=DOCSTRING,
    checkpoints=(
        Checkpoint(CONTEXT, "the same context as a numpy array, arguments left as they were", 1),
        Checkpoint(MASK, "True = may attend", 1),
    ),
    reference=torch_attention,
    public=public,
    probes=probes,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    mutation=CONTEXT,
    results=("context",),
    axes=(("query", "component"),),
)
