"""`attention`: scores, softmax and mixture in one function, with a mask and a temperature."""

from __future__ import annotations

import numpy as np

from autograder.execute.wire import Strided
from autograder.tasks.authoring import Book, normal, sizes
from autograder.tasks.model import Case, Checkpoint, FunctionTask
from autograder.tasks.w07_h2_practice import scaled_scores as scores_module
from autograder.tasks.w07_h2_practice import softmax as softmax_module
from autograder.tasks.w07_h2_practice.scaled_scores import scaled_scores
from autograder.tasks.w07_h2_practice.softmax import softmax

NAME = "attention"
PLAIN, TEMPERATURE, ALLOWED, STABLE, ERRORS = (
    f"attention-{word}" for word in ("plain", "temperature", "allowed", "stable", "errors")
)
DOCSTRING = """Scaled dot-product attention with a mask and a temperature.

Args:
    Q: queries, float array of shape (N_q, d_k).
    K: keys, float array of shape (N_k, d_k).
    V: values, float array of shape (N_k, d_v); row j belongs to key j.
    allowed: None (everything is allowed) or a bool array of shape (N_q, N_k), (N_k,), (1, N_k) or
        (N_q, 1). True = may attend.
    temperature: divides the scores, in addition to sqrt(d_k).
    No argument is changed.

Returns:
    (context, weights): float arrays of shapes (N_q, d_v) and (N_q, N_k). Every row of the weights
    sums to 1; blocked keys have weight exactly 0, however large their score.

Raises:
    ValueError: if temperature <= 0, or if a query has no allowed key.

Source: Vaswani et al. (2017), equation 1, https://arxiv.org/abs/1706.03762
"""
LOOSE = {"atol": 1e-5}  # contexts add rounding over the keys (contract 3)
COARSE = {"rtol": 1e-3, "atol": 1e-3}  # scores near 1e4 in float32
book = Book(NAME)

# The notebook's own memory: what a function that reads globals gets.
Q = np.array([[1.0, 0.0]])
K = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
V = np.array([[10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def attention(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


def _mask(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A random mask without empty rows, with something blocked in every row that has room."""
    mask = rng.random((rows, columns)) < 0.5
    for row in mask:
        row[rng.integers(columns)] = True
        if columns > 1 and row.all():
            row[rng.integers(columns)] = False
    return mask


def _large(
    rng: np.random.Generator, n_q: int, n_k: int, d_v: int, dtype: type = np.float64
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole numbers with d_k = 4 and scores near +-1e4: all products and scores are exact."""
    height = rng.integers(9990, 10000, size=n_k).astype(dtype)
    height[0] = 9994.0
    queries = np.zeros((n_q, 4), dtype)
    queries[:, 0] = np.where(np.arange(n_q) % 2 == 0, 2.0, -2.0)
    keys = np.zeros((n_k, 4), dtype)
    keys[:, 0] = height
    keys[:, 1] = rng.integers(-3, 3, size=n_k)
    return queries, keys, normal(rng, n_k, d_v, dtype=dtype)


def _wide(rng: np.random.Generator, n_q: int, n_k: int, d_v: int) -> tuple[np.ndarray, ...]:
    """Scores from -1e4 to 1e4 for one and the same query; the first key is the worst."""
    queries, keys, values = _large(rng, n_q, n_k, d_v)
    queries[:, 0] = 2.0
    keys[0, 0] = -9999.0
    return queries, keys, values


def public() -> list[Case]:
    rng = np.random.default_rng(703)
    q, k, v = normal(rng, 2, 3), normal(rng, 4, 3), normal(rng, 4, 5)
    square = tuple(normal(rng, 3, 3) for _ in range(3))
    mask = np.array([[True, False, True, True], [False, True, False, True]])
    keys = np.array([True, True, False, True])
    rows = np.array([[True], [True]])
    hq, hk, hv = _large(rng, 2, 3, 2)
    spiked = k.copy()
    spiked[2] = 3000.0 * np.sign(q[0])
    empty = np.array([[True, False, True, True], [False] * 4])
    whole = np.full((2, 4), True)
    two = np.array([True, True, False])
    return [
        Case((q, k, v), PLAIN, "no mask, temperature 1", **LOOSE),
        Case(square, PLAIN, "three of everything", **LOOSE),
        Case((q[:1], k, v[:, :1]), PLAIN, "one query, one value component", **LOOSE),
        Case((q, k, v, None, 0.5), TEMPERATURE, "temperature 0.5", **LOOSE),
        Case((q, k, v, None, 3.0), TEMPERATURE, "temperature 3", **LOOSE),
        # Everything allowed: mistakes with masks shall not cost this checkpoint as well.
        Case((q, k, v, whole, 2.0), TEMPERATURE, "mask and temperature 2", **LOOSE),
        Case((q, k, v, mask), ALLOWED, "mask (N_q, N_k)", exact_zero=True, **LOOSE),
        Case((q, k, v, keys), ALLOWED, "mask (N_k,)", exact_zero=True, **LOOSE),
        Case((q, k, v, keys[None]), ALLOWED, "mask (1, N_k)", exact_zero=True, **LOOSE),
        Case((q, k, v, rows), ALLOWED, "mask (N_q, 1)", exact_zero=True, **LOOSE),
        Case((*square, two), ALLOWED, "three of everything, mask (N_k,)", exact_zero=True, **LOOSE),
        Case((hq, hk, hv), STABLE, "scores near +-1e4", **COARSE),
        Case((hq, hk, hv, two), STABLE, "scores near +-1e4, mask", exact_zero=True, **COARSE),
        Case(
            (q, spiked, v, keys), STABLE, "the blocked key has by far the largest score", **COARSE
        ),
        Case((q, k, v, None, 0.0), ERRORS, "temperature 0", neighbour=(q, k, v, None, 0.5)),
        Case((q, k, v, None, -1.0), ERRORS, "temperature -1", neighbour=(q, k, v, None, 1.0)),
        Case((q, k, v, empty), ERRORS, "one query has no allowed key", neighbour=(q, k, v, mask)),
        Case(
            (q, k, v, np.array([[True], [False]])),
            ERRORS,
            "mask (N_q, 1) with an empty row",
            neighbour=(q, k, v, rows),
        ),
        Case(
            (q, k, v, np.full(4, False)),
            ERRORS,
            "mask (N_k,), all blocked",
            neighbour=(q, k, v, whole),
        ),
    ]


def probes(rng: np.random.Generator) -> list[Case]:
    n_q, n_k, d_k, d_v = sizes(rng, 4, low=3)
    q, k, v = normal(rng, n_q, d_k), normal(rng, n_k, d_k), normal(rng, n_k, d_v)
    q32, k32, v32 = (a.astype(np.float32) for a in (q, k, v))
    side = int(rng.integers(3, 6))
    square = tuple(normal(rng, side, side) for _ in range(3))
    mask = _mask(rng, n_q, n_k)
    keys = _mask(rng, 1, n_k)[0]
    rows = np.full((n_q, 1), True)
    large, large32 = _large(rng, 3, 6, 5), _large(rng, 3, 5, 2, np.float32)
    blocked = int(rng.integers(n_k))
    spiked = k.copy()
    spiked[blocked] = 1500.0 * np.sign(q[0])
    without = np.arange(n_k) != blocked
    lone = np.full((n_q, n_k), False)
    lone[:, blocked] = True
    empty = mask.copy()
    empty[int(rng.integers(n_q))] = False
    whole = np.full((n_q, n_k), True)
    warm = float(rng.choice([0.5, 0.25, 2.0, 3.0, 4.0]))
    exact = {"exact_zero": True, **LOOSE}
    no_rows = rows.copy()
    no_rows[-1] = False
    return [
        Case((q, k, v), PLAIN, "all sizes differ", **LOOSE),
        Case((q32, k32, v32), PLAIN, "float32", **LOOSE),
        Case(square, PLAIN, "square", **LOOSE),
        Case((q[:1], k, v), PLAIN, "a single query", **LOOSE),
        Case((q, k, v[:, :1]), PLAIN, "one value component", **LOOSE),
        Case((q, k[:1], v[:1]), PLAIN, "a single key", **LOOSE),
        Case((q[:, :1], k[:, :1], v), PLAIN, "one component a key", **LOOSE),
        Case((Strided(q), Strided(k), Strided(v)), PLAIN, "not contiguous", **LOOSE),
        Case((q, k, v, None, 1.0), PLAIN, "all arguments given", **LOOSE),
        Case((q, k, v, None, warm), TEMPERATURE, "a temperature", **LOOSE),
        Case((q, k, v, None, 2), TEMPERATURE, "temperature as a whole number", **LOOSE),
        Case((q32, k32, v32, None, 0.5), TEMPERATURE, "temperature 0.5, float32", **LOOSE),
        Case((q, k, v, None, 0.02), TEMPERATURE, "a low temperature", **LOOSE),
        Case((q, k, v, None, 150.0), TEMPERATURE, "a high temperature", **LOOSE),
        Case((q, k, v, whole, warm), TEMPERATURE, "mask and temperature", **LOOSE),
        Case((q, k, v, mask), ALLOWED, "mask (N_q, N_k)", **exact),
        Case((q32, k32, v32, Strided(mask)), ALLOWED, "mask not contiguous, float32", **exact),
        Case((q, k, v, keys), ALLOWED, "mask (N_k,)", **exact),
        Case((q, k, v, keys[None]), ALLOWED, "mask (1, N_k)", **exact),
        Case((q, k, v, rows), ALLOWED, "mask (N_q, 1)", **exact),
        Case((*square, np.tril(np.full((side, side), True))), ALLOWED, "a causal mask", **exact),
        Case((q, k, v, lone), ALLOWED, "one allowed key", **exact),
        Case((*square, np.arange(side) != 1), ALLOWED, "square, mask (N_k,)", **exact),
        Case((q[:1], k, v, keys[None]), ALLOWED, "one query, mask (1, N_k)", **exact),
        Case(large, STABLE, "scores near +-1e4", **COARSE),
        Case(large32, STABLE, "scores near +-1e4, float32", **COARSE),
        Case((q, spiked, v, without), STABLE, "the blocked key has the largest score", **COARSE),
        Case(
            (*large, np.arange(6) < 5), STABLE, "large scores and a mask", exact_zero=True, **COARSE
        ),
        Case(_wide(rng, 3, 5, 4), STABLE, "scores from -1e4 to 1e4 in a row", **COARSE),
        Case((q, k, v, None, 0.0), ERRORS, "temperature 0", neighbour=(q, k, v, None, 0.25)),
        Case(
            (q, k, v, mask, -0.5), ERRORS, "a negative temperature", neighbour=(q, k, v, mask, 0.5)
        ),
        Case((q, k, v, None, 0), ERRORS, "temperature 0, an int", neighbour=(q, k, v, None, 1)),
        Case((q, k, v, None, -1e-9), ERRORS, "just below 0", neighbour=(q, k, v, None, 0.02)),
        Case((q, k, v, empty), ERRORS, "a query without allowed key", neighbour=(q, k, v, mask)),
        Case((q, k, v, no_rows), ERRORS, "mask (N_q, 1), one False", neighbour=(q, k, v, rows)),
        Case((q, k, v, np.full(n_k, False)), ERRORS, "(N_k,) all False", neighbour=(q, k, v, keys)),
        Case(
            (q, k, v, np.full((1, n_k), False)),
            ERRORS,
            "(1, N_k) all False",
            neighbour=(q, k, v, keys[None]),
        ),
    ]


@book.wrong(
    "scale-missing",
    fails="plain temperature allowed stable",
    message="The weights are too sharp: the scores were not divided by sqrt(d_k). Call scaled_scores, "
    "or divide by np.sqrt(K.shape[-1]).",
    source="https://github.com/delzac/cntkx/issues/10",
)
def unscaled(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = Q @ K.T / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "scale-from-values",
    fails="plain temperature allowed stable",
    message="The scale is sqrt(d_v), the width of V. It belongs to the products of queries and keys: "
    "sqrt(d_k). Change the width of V alone: the weights may not move.",
    source="https://github.com/juho-lee/set_transformer/issues/18",
)
def scaled_by_values(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = Q @ K.T / np.sqrt(V.shape[-1]) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "scale-number-of-keys",
    fails="plain temperature allowed stable",
    message="The scale is the root of the number of keys, K.shape[0]. Use the length of a key, "
    "K.shape[-1]. Block a key, or add one: the other scores may not change.",
)
def scaled_by_count(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = Q @ K.T / np.sqrt(K.shape[0]) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "raw-scores-with-mask",
    fails="temperature allowed stable",
    message="Without a mask all is right; with one, the raw products are used: the branch for the mask "
    "computes the scores anew and forgets sqrt(d_k) and the temperature. Compute scores once.",
)
def two_branches(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, Q @ K.T, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "mask-of-keys-read-as-queries",
    fails="allowed",
    message="With as many queries as keys, a mask (N_k,) blocks queries in place of keys: the code guesses from "
    "its length. One axis always means keys, as numpy's broadcasting has it: leave the shape alone.",
)
def guessed_by_length(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        if not np.broadcast_to(allowed, scores.shape).any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        if allowed.ndim == 1 and len(allowed) == len(Q):
            allowed = allowed[:, None]
        scores = np.where(allowed, scores, -1e9)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "fill-not-low-enough",
    fails="stable",
    message="A blocked key keeps some weight where all scores are near -10000: -1e4 is no lower than they are. "
    "Fill with -np.inf.",
)
def fill_among_the_scores(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        if not np.broadcast_to(allowed, scores.shape).any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -1e4)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "temperature-multiplied",
    fails="temperature",
    message="A higher temperature sharpens the weights: the scores are multiplied by it. Divide; above "
    "1 softens, below 1 sharpens. Compare the largest weight at 0.5 and at 2.",
)
def times_temperature(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) * temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "temperature-ignored",
    fails="temperature",
    message="The weights are those of temperature 1 at every temperature: it is checked, but never "
    "used. Divide the scores by it before the softmax.",
)
def without_temperature(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K)
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "temperature-inside-root",
    fails="temperature",
    message="The temperature stands under the square root together with d_k, so that 4 acts like 2. "
    "Divide by sqrt(d_k), then by the temperature.",
)
def under_the_root(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = Q @ K.T / np.sqrt(K.shape[-1] * temperature)
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "temperature-after-softmax",
    fails="temperature",
    message="The weights were divided by the temperature, so their rows no longer sum to 1. It belongs "
    "to the scores, before the softmax.",
)
def cooled_weights(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K)
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores) / temperature
    return weights @ V, weights


@book.wrong(
    "mask-after-softmax",
    fails="allowed stable",
    message="Rows with blocked keys no longer sum to 1: the weights were set to 0 after the softmax. "
    "Put -inf into the scores first. Print weights.sum(axis=-1) with a mask.",
    source="https://github.com/huggingface/pytorch-image-models/pull/2236",
)
def masked_late(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    weights = softmax(scaled_scores(Q, K) / temperature)
    if allowed is not None:
        allowed = np.broadcast_to(allowed, weights.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        weights = weights * allowed
    return weights @ V, weights


@book.wrong(
    "mask-after-then-renormalised",
    fails="stable",
    message="Masking after the softmax and dividing by the new sum works only while something is left: "
    "if the blocked key took all the weight, it is 0/0. Mask the scores with -inf first.",
)
def masked_late_and_divided(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    weights = softmax(scaled_scores(Q, K) / temperature)
    if allowed is not None:
        allowed = np.broadcast_to(allowed, weights.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        weights = weights * allowed
        weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "scores-times-mask",
    fails="allowed stable",
    message="The scores were multiplied by the mask: a blocked key gets score 0, and exp(0) is not 0. "
    "Use np.where(allowed, scores, -np.inf).",
    source="https://github.com/georg-wolflein/good-features/pull/1",
)
def zero_scores(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = scores * allowed
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "zero-times-infinity",
    fails="temperature allowed stable",
    message="NaN wherever a key is allowed: 0 * -inf is NaN, not 0. Choose with np.where, do not "
    "multiply a mask by infinity. Try it alone: print(0 * -np.inf).",
    source="https://github.com/lucidrains/memory-compressed-attention/issues/2 (NaN from an infinity)",
)
def infinite_penalty(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = scores + (1 - allowed) * -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "mask-inverted",
    fails="temperature allowed stable errors",
    message="Exactly the blocked keys are used: the polarity is reversed. True = may attend here (and "
    "in SDPA). Block one key and look at which weight is 0.",
    source="https://github.com/mlwithme/TransformerTranslation/issues/2",
)
def inverted(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        scores = np.where(allowed, -np.inf, scores)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "fill-of-1e-9",
    fails="allowed stable",
    message="Blocked keys keep a weight: the fill is -1e-9, which is nearly 0, where -1e9 was meant. "
    "Use -np.inf; then the weight is exactly 0.",
    source="https://github.com/awslabs/gluonts/pull/1401",
)
def tiny_fill(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -1e-9)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "mask-ignored",
    fails="allowed stable",
    message="The weights are those without a mask: np.where returns a new array and its result was not "
    "kept. Assign it: scores = np.where(allowed, scores, -np.inf).",
)
def result_dropped(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "mask-must-be-full",
    fails="allowed stable errors",
    message="scores[~allowed] fits only a mask of the full shape; (N_k,) and (1, N_k) fail. Use "
    "np.where, which broadcasts, or np.broadcast_to(allowed, scores.shape) first.",
)
def indexed(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        scores[~allowed] = -np.inf
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "softmax-wrong-axis",
    fails="plain temperature allowed stable",
    message="The columns of the weights sum to 1: the softmax ran over the queries. Every query shares "
    "out 1 among its keys, so use axis=-1, and print weights.sum(axis=-1).",
)
def over_queries(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = weights / weights.sum(axis=0, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "no-max-shift",
    fails="stable",
    message="Large scores give NaN: exp overflowed inside attention. Subtract each row's maximum before "
    "exp, or call your own softmax.",
)
def unshifted(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores)
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "values-averaged",
    fails="plain temperature allowed stable",
    message="The context is the plain mean of V, whatever the query: the weights are computed and not "
    "used. The context is weights @ V; two different queries must give different contexts.",
)
def plain_mean(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return np.repeat(V.mean(axis=0, keepdims=True), len(Q), axis=0), weights


@book.wrong(
    "argmax-instead-of-mixture",
    fails="plain temperature allowed stable",
    message="The context is the value of the best key alone. Attention mixes: every allowed key "
    "contributes by its weight. Use weights @ V in place of argmax.",
)
def best_only(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return V[weights.argmax(axis=-1)], weights


@book.wrong(
    "weights-from-values",
    fails="plain temperature allowed stable errors",
    message="The queries are compared with V (it fails unless d_v equals d_k). Keys are what a query is "
    "compared with; values are only what is mixed. Use scaled_scores(Q, K).",
)
def compared_with_values(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, V) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "keys-mixed",
    fails="plain temperature allowed stable",
    message="The context is a mixture of the keys: its width is d_k, not d_v. The weights come from the "
    "keys; what is mixed are the values, weights @ V.",
)
def mixing_keys(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights @ K, weights


@book.wrong(
    "softmax-missing",
    fails="plain temperature allowed stable",
    message="The scores themselves are used as weights; they can be negative and do not sum to 1. Pass "
    "them through softmax before the mixture.",
)
def scores_as_weights(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, 0.0)
    return scores @ V, scores


@book.wrong(
    "returns-one-of-two",
    fails="plain temperature allowed stable",
    message="Only the context comes back. The docstring asks for the pair (context, weights): end with "
    "`return context, weights`.",
)
def context_alone(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    return softmax(scores) @ V


@book.wrong(
    "swapped-pair",
    fails="plain temperature allowed stable",
    message="The two results come in the other order. Return (context, weights), as the docstring says.",
)
def weights_first(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights, weights @ V


@book.wrong(
    "empty-row-uniform",
    fails="errors",
    message="A query with no allowed key gets equal weights: with a finite fill (-1e9) all scores are "
    "equal. Nothing is allowed there: check the mask's rows and raise ValueError.",
    source="https://github.com/harvardnlp/annotated-transformer/pull/67",
)
def finite_fill(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        scores = np.where(allowed, scores, -1e9)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "empty-row-zeros",
    fails="errors",
    message="A query with no allowed key gets zeros, as some libraries do. Here it is an error: check "
    "allowed.any(axis=-1) and raise ValueError.",
    source="https://github.com/pytorch/pytorch/issues/27968 (what an empty row does in libraries)",
)
def zeros_for_empty(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = np.nan_to_num(weights / weights.sum(axis=-1, keepdims=True))
    return weights @ V, weights


@book.wrong(
    "empty-row-nan",
    fails="errors",
    message="A query with no allowed key gives NaN. Check the mask before the softmax: if not "
    "allowed.any(axis=-1).all(), raise ValueError.",
    source="https://github.com/pytorch/pytorch/issues/27968",
)
def nan_for_empty(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "empty-only-if-all-empty",
    fails="errors",
    message="The check asks whether anything at all is allowed; a single empty row slips through. Ask "
    "each row: allowed.any(axis=-1), then .all().",
)
def checked_as_a_whole(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        if not allowed.any():
            raise ValueError("nothing is allowed")
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "temperature-unchecked",
    fails="errors",
    message="Temperature 0 gives NaN, and a negative one prefers the worst key; neither raises. Begin "
    "with: if temperature <= 0, raise ValueError.",
)
def any_temperature(Q, K, V, allowed=None, temperature=1.0):
    scores = np.divide(scaled_scores(Q, K), temperature)
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "temperature-zero-allowed",
    fails="errors",
    message="Negative temperatures raise, 0 does not: the comparison is < where <= is needed. Dividing "
    "by 0 gives infinities and NaN.",
)
def zero_slips_through(Q, K, V, allowed=None, temperature=1.0):
    if temperature < 0:
        raise ValueError("temperature must not be negative")
    scores = np.divide(scaled_scores(Q, K), temperature)
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@book.wrong(
    "asserts-instead",
    fails="errors",
    message="The bad input is noticed, but assert raises AssertionError. The docstring asks for "
    "ValueError: `if ...: raise ValueError(...)`.",
)
def asserting(Q, K, V, allowed=None, temperature=1.0):
    assert temperature > 0
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        assert allowed.any(axis=-1).all()
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "changed-argument",
    fails="plain",
    message="The result is right, but Q holds other numbers after the call: `Q /= ...` writes into the "
    "caller's array. Write `Q / ...`, and print Q before and after a call.",
)
def in_place(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    Q /= np.sqrt(K.shape[-1]).astype(Q.dtype)
    scores = Q @ K.T / temperature
    if allowed is not None:
        allowed = np.broadcast_to(allowed, scores.shape)
        if not allowed.any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -np.inf)
    weights = softmax(scores)
    return weights @ V, weights


@book.wrong(
    "reads-global",
    fails="plain temperature allowed stable errors",
    message="The answer never changes: the parameters have other names than the variables in the body, "
    "which are the notebook's own Q, K and V. Use the parameters, and call it with new arrays.",
)
def of_the_notebook(query, key, value, allowed=None, temperature=1.0):
    weights = softmax(scaled_scores(Q, K))
    return weights @ V, weights


@book.right("one-body-no-helpers")
def one_body(Q, K, V, allowed=None, temperature=1.0):
    if not temperature > 0:
        raise ValueError("temperature must be positive")
    scores = Q @ K.T / (np.sqrt(Q.shape[1]) * temperature)
    mask = np.ones(scores.shape, bool) if allowed is None else np.ones(scores.shape, bool) & allowed
    if (~mask).all(axis=1).any():
        raise ValueError("a query has no allowed key")
    scores = np.where(mask, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return weights @ V, weights


@book.right("loops")
def query_by_query(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    n_q, n_k = len(Q), len(K)
    mask = np.broadcast_to(True if allowed is None else allowed, (n_q, n_k))
    weights, context = np.zeros((n_q, n_k)), np.zeros((n_q, V.shape[1]))
    for i in range(n_q):
        open_keys = [j for j in range(n_k) if mask[i, j]]
        if not open_keys:
            raise ValueError(f"query {i} has no allowed key")
        scores = [float(Q[i] @ K[j]) / K.shape[1] ** 0.5 / temperature for j in open_keys]
        e = [np.exp(s - max(scores)) for s in scores]
        for j, share in zip(open_keys, e, strict=True):
            weights[i, j] = share / sum(e)
            context[i] += weights[i, j] * V[j]
    return context, weights


@book.right("einsum-and-list")
def by_einsum(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = np.einsum("qd,kd->qk", Q, K) / (temperature * K.shape[-1] ** 0.5)
    if allowed is not None:
        scores = scores + np.where(allowed, 0.0, -np.inf)
    weights = softmax(scores)
    return [np.einsum("qk,kv->qv", weights, V), weights]


@book.right("finite-fill-with-check")
def large_fill(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q, K) / temperature
    if allowed is not None:
        if not np.broadcast_to(allowed, scores.shape).any(axis=-1).all():
            raise ValueError("a query has no allowed key")
        scores = np.where(allowed, scores, -1e9)
    weights = softmax(scores)
    return weights @ V, weights


@book.right("float32")
def in_float32(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    Q, K, V = (x.astype(np.float32) for x in (Q, K, V))
    scores = Q @ K.T / np.float32(np.sqrt(K.shape[1]))
    scores = scores / np.float32(temperature)
    if allowed is not None:
        scores = np.where(allowed, scores, np.float32(-np.inf))
    weights = softmax(scores)
    return weights @ V, weights


@book.right("torch")
def by_torch(Q, K, V, allowed=None, temperature=1.0):
    import torch

    if temperature <= 0:
        raise ValueError("temperature must be positive")
    q, k, v = (torch.tensor(np.ascontiguousarray(x)) for x in (Q, K, V))
    scores = q @ k.T / k.shape[-1] ** 0.5 / temperature
    if allowed is not None:
        mask = torch.tensor(np.ascontiguousarray(allowed)).expand(scores.shape)
        if not bool(mask.any(dim=-1).all()):
            raise ValueError("a query has no allowed key")
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return (weights @ v).numpy(), weights.numpy()


@book.right("own-error-class")
def own_error(Q, K, V, allowed=None, temperature=1.0):
    class EmptyRow(ValueError):
        """A row without allowed keys."""

    if temperature <= 0:
        raise EmptyRow("temperature")
    scores = scaled_scores(Q, K) / temperature
    scores = scores if allowed is None else np.where(allowed, scores, -np.inf)
    if np.isneginf(scores.max(axis=1)).any():
        raise EmptyRow("no allowed key")
    weights = softmax(scores)
    context = (weights[:, :, None] * V[None, :, :]).sum(axis=1)
    return context, weights


@book.right("only-the-allowed-keys")
def compressed(Q, K, V, allowed=None, temperature=1.0):
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    scores = scaled_scores(Q / temperature, K)
    mask = np.full(scores.shape, True) if allowed is None else np.full(scores.shape, allowed)
    if mask.sum(axis=1).min() == 0:
        raise ValueError("a query has no allowed key")
    weights = np.zeros_like(scores)
    for row, keep, out in zip(scores, mask, weights, strict=True):
        out[keep] = softmax(row[keep])
    return weights.dot(V), weights


TASK = FunctionTask(
    name=NAME,
    signature="attention(Q, K, V, allowed=None, temperature=1.0)",
    docstring=DOCSTRING,
    checkpoints=(
        Checkpoint(PLAIN, "context and weights without a mask, arguments left as they were", 1),
        Checkpoint(TEMPERATURE, "the temperature divides the scores", 1),
        Checkpoint(ALLOWED, "blocked keys get exactly 0, for every shape of mask", 1),
        Checkpoint(STABLE, "large scores do no harm, also where the key is blocked", 1),
        Checkpoint(ERRORS, "temperature <= 0 and a query without allowed key raise ValueError", 1),
    ),
    reference=attention,
    public=public,
    probes=probes,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    calls=("scaled_scores", "softmax"),
    callees=(scores_module.TASK, softmax_module.TASK),
    mutation=PLAIN,
    results=("context", "weights"),
    axes=(("query", "component"), ("query", "key")),
)
