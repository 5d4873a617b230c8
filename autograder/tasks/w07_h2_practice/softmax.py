"""`softmax`: a row of scores becomes a row of weights."""

from __future__ import annotations

import numpy as np

from autograder.execute.wire import Strided
from autograder.tasks.authoring import Book, normal, sizes
from autograder.tasks.model import Case, Checkpoint, FunctionTask

NAME = "softmax"
ROWS, STABLE, MASKED = "softmax-rows", "softmax-stable", "softmax-masked"
DOCSTRING = """Softmax over the last axis.

Args:
    z: float array of shape (..., n), one axis or more. Entries may be -inf (blocked) and as large as
        +-1e4. It is not changed.

Returns:
    Float array of the same shape. Every row sums to 1; where z is -inf the weight is exactly 0.

Raises:
    ValueError: if a row holds nothing but -inf: then there is nothing to choose from.
"""
INF = np.inf
book = Book(NAME)


def softmax(z):
    top = z.max(axis=-1, keepdims=True)
    if np.isneginf(top).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(z - top)
    return grown / grown.sum(axis=-1, keepdims=True)


def _blocked(z: np.ndarray, *places: tuple[int, ...]) -> np.ndarray:
    z = z.copy()
    for place in places:
        z[place] = -INF
    return z


def _empty_row(z: np.ndarray, row: int) -> np.ndarray:
    z = z.copy()
    z[row] = -INF
    return z


def public() -> list[Case]:
    rng = np.random.default_rng(702)
    far = np.array([[2.0, 0.0, 1.0], [-9000.0, -9001.0, -9003.0]])
    some = normal(rng, 2, 4)
    return [
        Case((normal(rng, 2, 4),), ROWS, "two rows of four"),
        Case((normal(rng, 5),), ROWS, "a single row, one axis"),
        Case((normal(rng, 3, 3),), ROWS, "three rows of three"),
        Case((normal(rng, 2, 3, 4),), ROWS, "three axes"),
        Case((np.array([[1e4, 9999.0, 9998.0, 0.0]]),), STABLE, "scores near 1e4"),
        Case((np.array([[-1e4, -9999.0], [-1e4, 1e4]]),), STABLE, "scores near -1e4"),
        Case((far,), STABLE, "one row far below the other"),
        Case(
            (_blocked(some, (0, 2), (1, 0), (1, 1)),), MASKED, "some entries -inf", exact_zero=True
        ),
        Case(
            (np.array([[-1e4, -1e4, -INF]]),), MASKED, "the allowed ones at -1e4", exact_zero=True
        ),
        Case((_empty_row(some, 1),), MASKED, "a row of only -inf", neighbour=(some,)),
        Case((np.full(3, -INF),), MASKED, "only -inf, one axis", neighbour=(some[0],)),
    ]


def probes(rng: np.random.Generator) -> list[Case]:
    a, b, c = sizes(rng, 3, low=3, high=6)
    square = int(rng.integers(3, 6))
    top = np.sort(rng.integers(9990, 10001, size=(a, b)).astype(np.float64), axis=-1)
    far = normal(rng, 3, b)
    far[1] -= 9000.0
    far[2] -= 800.0
    plain = normal(rng, a, b)
    holes = plain.copy()
    holes[:, :-1][rng.random((a, b - 1)) < 0.5] = -INF
    holes[0, 0] = -INF
    # Exponents are exact in float32 here, but students may compute in it: 1e-3 (contract 3).
    loose = {"rtol": 1e-3, "atol": 1e-3}
    lowest = np.full((2, c), -1e4)
    lowest[1, 0] = -INF
    return [
        Case((plain,), ROWS, "rows of the same length"),
        Case((normal(rng, b, a, dtype=np.float32),), ROWS, "float32"),
        Case((normal(rng, square, square),), ROWS, "square"),
        Case((normal(rng, c),), ROWS, "one axis"),
        Case((normal(rng, 2, a, b),), ROWS, "three axes"),
        Case((normal(rng, 2, 3, 1, c),), ROWS, "four axes"),
        Case((normal(rng, a, 1),), ROWS, "rows of one entry"),
        Case((Strided(normal(rng, a, c)),), ROWS, "not contiguous"),
        Case((4 * normal(rng, 1, c),), ROWS, "a single row"),
        Case((top,), STABLE, "large scores", **loose),
        Case((-top.astype(np.float32),), STABLE, "large negative scores, float32", **loose),
        Case((far,), STABLE, "rows of very different height", **loose),
        Case((rng.choice([-1e4, 1e4, 0.0], size=(b, a)),), STABLE, "extremes mixed", **loose),
        Case((holes,), MASKED, "some entries -inf", exact_zero=True),
        Case((holes.astype(np.float32),), MASKED, "some -inf, float32", exact_zero=True),
        Case((holes[None],), MASKED, "some -inf, three axes", exact_zero=True),
        Case((lowest,), MASKED, "the allowed entries are at -1e4", exact_zero=True, **loose),
        Case((_empty_row(plain, a - 1),), MASKED, "a row of only -inf", neighbour=(holes,)),
        Case(
            (np.where(np.arange(2)[:, None, None] == 1, -INF, plain[None]),),
            MASKED,
            "rows of only -inf, three axes",
            neighbour=(np.stack([plain, plain]),),
        ),
        Case((np.full(c, -INF),), MASKED, "only -inf, one axis", neighbour=(plain[0],)),
    ]


@book.wrong(
    "wrong-axis",
    fails="rows stable masked",
    message="The columns sum to 1, not the rows: the sum runs over axis 0, the queries. Print "
    "`softmax(z).sum(axis=-1)`, and use axis=-1 with keepdims=True in the maximum and in the sum.",
    source="https://stackguides.com/questions/45817372/python-command-np-sumx-axis-0-and-softmax-function",
)
def over_the_queries(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(z - z.max(axis=0, keepdims=True))
    return grown / grown.sum(axis=0, keepdims=True)


@book.wrong(
    "sum-over-everything",
    fails="rows stable masked",
    message="All the weights together sum to 1, not each row: the sum has no axis. Give it axis=-1 and "
    "keepdims=True, then print the row sums of a 2x3 input.",
    source="the shifted variant in https://stackoverflow.com/questions/34968722",
)
def one_sum(z):
    top = z.max(axis=-1, keepdims=True)
    if np.isneginf(top).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(z - top)
    return grown / grown.sum()


@book.wrong(
    "one-max-for-all-rows",
    fails="stable",
    message="One maximum of the whole array is subtracted, and a row far below it underflows to 0/0. Take "
    "the maximum of each row (axis=-1, keepdims=True), and try rows that lie 9000 apart.",
    source="https://shusei-e.github.io/deep%20learning/softmax_without_overflow/",
)
def global_max(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(z - z.max())
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "no-max-shift",
    fails="stable masked",
    message="exp overflows for large scores, or all terms vanish for very low ones: inf/inf and 0/0 are "
    "NaN. Subtract each row's maximum before exp; the weights stay the same. Try z + 1000.",
    source="https://stackoverflow.com/questions/61567597",
)
def unshifted(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(z)
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "exponents-clamped",
    fails="stable",
    message="Clipping the scores hides the overflow and changes the answer: all scores beyond the limit "
    "become equal. Subtract the row maximum, which changes nothing.",
)
def clamped(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(np.where(np.isneginf(z), z, np.clip(z, -500, 500)))
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "minimum-shifted",
    fails="stable masked",
    message="The row's minimum is subtracted, so the exponents are positive and overflow (and -inf as "
    "minimum gives NaN). Subtract the maximum: then no exponent is above 0.",
)
def least_first(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(z - z.min(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "keepdims-missing",
    fails="rows stable masked",
    message="Without keepdims=True the maximum and the sum lose the row axis, and numpy lines them up "
    "with the columns (or fails). Print their shapes, then add keepdims=True to both.",
    source="the failing variant in https://stackoverflow.com/questions/34968722",
)
def axis_lost(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(z - z.max(axis=-1))
    return grown / grown.sum(axis=-1)


@book.wrong(
    "python-sum",
    fails="rows stable masked",
    message="Python's built-in sum adds the rows together, as axis 0 would. Use the array's own "
    ".sum(axis=-1, keepdims=True), and look at the row sums.",
)
def builtin_sum(z):
    top = z.max(axis=-1, keepdims=True)
    if np.isneginf(top).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(z - top)
    return grown / sum(grown)


@book.wrong(
    "changed-argument",
    fails="rows",
    message="The weights are right, but z holds other numbers after the call: `z -= ...` writes into "
    "the caller's array. Write `shifted = z - ...`, and print z before and after a call.",
    source="https://github.com/frank690/sffresch-code",
)
def in_place(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    z -= z.max(axis=-1, keepdims=True)
    grown = np.exp(z)
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "empty-row-nan",
    fails="masked",
    message="A row of only -inf gives NaN (-inf minus -inf) in place of an error. Look for a row whose "
    "maximum is -inf, and raise ValueError there.",
    source="what the lesson's own softmax does",
)
def nan_for_empty(z):
    grown = np.exp(z - z.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "empty-row-uniform",
    fails="masked",
    message="A row of only -inf comes out uniform: -inf was replaced by a large negative number, and "
    "equal numbers share equally. Nothing is allowed there, so raise ValueError.",
    source="https://github.com/harvardnlp/annotated-transformer/pull/67",
)
def uniform_for_empty(z):
    z = np.where(np.isneginf(z), -1e9, z)
    grown = np.exp(z - z.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "empty-row-zeros",
    fails="masked",
    message="A row of only -inf comes out as zeros, which do not sum to 1: an error was papered over "
    "(nan_to_num). Raise ValueError for such a row.",
)
def zeros_for_empty(z):
    grown = np.exp(z - z.max(axis=-1, keepdims=True))
    return np.nan_to_num(grown / grown.sum(axis=-1, keepdims=True))


@book.wrong(
    "asserts-instead",
    fails="masked",
    message="The empty row is noticed, but with assert, which raises AssertionError (and is left out "
    "under python -O). Write `if ...: raise ValueError(...)`.",
)
def asserting(z):
    top = z.max(axis=-1, keepdims=True)
    assert not np.isneginf(top).any()
    grown = np.exp(z - top)
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "raises-for-any-blocked-entry",
    fails="masked",
    message="A single -inf already raises. Blocked entries are normal; only a row with nothing else is "
    "an error: test the row (all, axis=-1), not the entry.",
)
def too_strict(z):
    if np.isneginf(z).any():
        raise ValueError("blocked entries")
    grown = np.exp(z - z.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "raises-only-if-all-empty",
    fails="masked",
    message="The check asks whether the whole array is -inf; one empty row among others slips through "
    "as NaN. Test every row: all(axis=-1), then any().",
)
def too_lax(z):
    if np.isneginf(z).all():
        raise ValueError("nothing is allowed")
    grown = np.exp(z - z.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "blocked-counts-as-zero",
    fails="masked",
    message="-inf was replaced by 0, and exp(0) is not 0: the blocked entries get weight. Leave -inf "
    "as it is; exp(-inf) is exactly 0.",
    source="https://github.com/georg-wolflein/good-features/pull/1",
)
def blocked_as_zero(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    z = np.where(np.isneginf(z), 0.0, z)
    grown = np.exp(z - z.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "exponential-missing",
    fails="rows stable masked",
    message="The scores are divided by their sum without exp, so negative weights appear. Put np.exp "
    "between the shift and the division, and look at a row with negative scores.",
)
def no_exponential(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    return z / z.sum(axis=-1, keepdims=True)


@book.wrong(
    "log-softmax",
    fails="rows stable masked",
    message="These are logarithms of the weights: negative numbers that do not sum to 1. Take exp of "
    "the result, or divide instead of subtracting the log of the sum.",
)
def logarithms(z):
    top = z.max(axis=-1, keepdims=True)
    if np.isneginf(top).any():
        raise ValueError("a row has no allowed entry")
    return z - top - np.log(np.exp(z - top).sum(axis=-1, keepdims=True))


@book.wrong(
    "sigmoid",
    fails="rows stable masked",
    message="Each entry is squashed by itself, so a row does not sum to 1. Softmax divides by the sum "
    "of the row: raise one score, and all other weights must fall.",
)
def squashed(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    return 1 / (1 + np.exp(-z))


@book.wrong(
    "sign-reversed",
    fails="rows stable masked",
    message="The lowest score gets the largest weight: a sign is wrong in front of the scores. The "
    "exponent is z - max, not max - z.",
)
def reversed_sign(z):
    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(z.max(axis=-1, keepdims=True) - z)
    return grown / grown.sum(axis=-1, keepdims=True)


@book.wrong(
    "not-normalised",
    fails="rows stable masked",
    message="The largest entry of every row is 1: the exponentials were not divided by their sum. "
    "Divide by .sum(axis=-1, keepdims=True).",
)
def undivided(z):
    top = z.max(axis=-1, keepdims=True)
    if np.isneginf(top).any():
        raise ValueError("a row has no allowed entry")
    return np.exp(z - top)


@book.wrong(
    "returns-list",
    fails="rows stable masked",
    message="The weights come in nested Python lists. Return the array: leave out .tolist().",
)
def as_list(z):
    top = z.max(axis=-1, keepdims=True)
    if np.isneginf(top).any():
        raise ValueError("a row has no allowed entry")
    grown = np.exp(z - top)
    return (grown / grown.sum(axis=-1, keepdims=True)).tolist()


@book.right("log-sum-exp")
def by_logarithm(z):
    top = z.max(axis=-1, keepdims=True)
    if (top == -np.inf).any():
        raise ValueError("nothing to choose from")
    return np.exp(z - top - np.log(np.exp(z - top).sum(axis=-1, keepdims=True)))


@book.right("row-by-row")
def by_rows(z):
    rows = z.reshape(-1, z.shape[-1])
    out = np.empty(rows.shape)
    for i, row in enumerate(rows):
        if np.all(row == -np.inf):
            raise ValueError(f"row {i} is empty")
        e = np.exp(row - max(row))
        out[i] = e / sum(e)
    return out.reshape(z.shape)


@book.right("apply-along-axis")
def along_axis(z):
    def one(row):
        if not np.isfinite(row).any():
            raise ValueError("empty")
        e = np.exp(row - np.max(row))
        return e / np.sum(e)

    return np.apply_along_axis(one, -1, z)


@book.right("float32")
def in_float32(z):
    z = z.astype(np.float32)
    if np.isneginf(z).all(-1).any():
        raise ValueError("empty row")
    e = np.exp(z - np.amax(z, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


@book.right("torch")
def by_torch(z):
    import torch

    if np.isneginf(z).all(axis=-1).any():
        raise ValueError("empty row")
    return torch.softmax(torch.tensor(z), dim=-1).numpy()


@book.right("last-axis-first")
def moved_axis(z):
    moved = np.moveaxis(z, -1, 0)
    if (moved.max(axis=0) == -np.inf).any():
        raise ValueError("empty row")
    e = np.exp(moved - moved.max(axis=0))
    return np.moveaxis(e / e.sum(axis=0), 0, -1)


@book.right("finite-fill-with-check")
def finite_fill(z):
    if not np.isfinite(z).any(axis=-1).all():
        raise ValueError("empty row")
    z = np.where(z == -np.inf, -1e9, z)
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / np.einsum("...n->...", e)[..., None]


@book.right("copy-then-in-place")
def on_a_copy(z):
    z = np.array(z, dtype=float)
    top = z.max(axis=-1)[..., np.newaxis]
    if np.isinf(top).any():
        raise ValueError("empty row")
    z -= top
    np.exp(z, out=z)
    z /= z.sum(axis=-1, keepdims=True)
    return z


TASK = FunctionTask(
    name=NAME,
    signature="softmax(z)",
    docstring=DOCSTRING,
    checkpoints=(
        Checkpoint(ROWS, "every row of the last axis sums to 1, and z is left as it was", 1),
        Checkpoint(STABLE, "scores near +-1e4 neither overflow nor vanish", 1),
        Checkpoint(MASKED, "-inf gives exactly 0, a row of only -inf raises ValueError", 1),
    ),
    reference=softmax,
    public=public,
    probes=probes,
    misconceptions=tuple(book.misconceptions),
    alternatives=tuple(book.alternatives),
    mutation=ROWS,
    results=("weight",),
    axes=(("row", "entry"),),
)
