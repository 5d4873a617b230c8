"""Attention functions, right and faulty, that a student's `accepts` is shown.

They run on the grader's side; the student's process only sees an object that answers calls. The faulty
ones keep types and shapes, so that a tester that compares numbers, errors and masks finds every one.
`local_candidates` is another, smaller set: the checkpoint in the student's notebook makes it from the
student's own `attention`, so that no reference is in the release.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autograder.tasks.model import Candidate, Case

FORMULA, MASKS, CONTRACT = "accepts-formula", "accepts-masks", "accepts-contract"


def make(
    scale: Callable = lambda q, k, v: np.sqrt(k.shape[-1]),
    heat: Callable = lambda scores, t: scores / t,
    mask: Callable = lambda scores, allowed: np.where(allowed, scores, -np.inf),
    late: Callable = lambda weights, allowed: weights,
    normalise: Callable | None = None,
    mix: Callable = lambda weights, v: weights @ v,
    check_temperature: Callable = lambda t: t <= 0,
    check_rows: bool = True,
    error: type = ValueError,
    finish: Callable = lambda context, weights: (context, weights),
) -> Callable:
    """An attention function; each argument replaces one step of the right one."""

    def candidate(q, k, v, allowed=None, temperature=1.0):
        if check_temperature(temperature):
            raise error("temperature must be positive")
        scores = heat(q @ k.T / scale(q, k, v), temperature)
        if allowed is not None:
            full = np.broadcast_to(allowed, scores.shape)
            if check_rows and not full.any(axis=-1).all():
                raise error("a query has no allowed key")
            scores = mask(scores, allowed)
        weights = (normalise or rows)(scores)
        if allowed is not None:
            weights = late(weights, allowed)
        return finish(mix(weights, v), weights)

    return candidate


def rows(scores: np.ndarray) -> np.ndarray:
    grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def columns(scores: np.ndarray) -> np.ndarray:
    grown = np.exp(scores - scores.max(axis=0, keepdims=True))
    return grown / grown.sum(axis=0, keepdims=True)


def unshifted(scores: np.ndarray) -> np.ndarray:
    grown = np.exp(scores)
    return grown / grown.sum(axis=-1, keepdims=True)


def one_query_at_a_time(query, key, value, permitted=None, tau=1.0):
    """Right, in loops, with other argument names."""
    if tau <= 0:
        raise ValueError("tau")
    permitted = np.broadcast_to(True if permitted is None else permitted, (len(query), len(key)))
    if not permitted.any(axis=1).all():
        raise ValueError("no key")
    weights = np.zeros((len(query), len(key)))
    for i, row in enumerate(permitted):
        scores = (key[row] @ query[i]) / np.sqrt(query.shape[1]) / tau
        weights[i, row] = np.exp(scores - scores.max())
        weights[i] /= weights[i].sum()
    return weights @ value, weights


def strict_about_shapes(q, k, v, allowed=None, temperature=1.0):
    """Right; it also refuses shapes that do not fit, which is allowed."""
    if q.shape[1] != k.shape[1] or len(k) != len(v):
        raise ValueError("shapes")
    return make()(q, k, v, allowed, temperature)


def centres_a_column(q, k, v, allowed=None, temperature=1.0):
    """Right numbers, and the caller's keys are no longer what they were.

    A softmax does not see a constant that is added to a row of scores, so that calling the right
    function with the changed keys shows nothing: the arrays have to be compared.
    """
    found = make()(q, k, v, allowed, temperature)
    k[:, 0] -= k[:, 0].mean()
    return found


class _Own(ValueError):
    """A subclass of ValueError is a ValueError."""


RIGHT = {
    "right": make(),
    "right, in loops": one_query_at_a_time,
    "right, strict about shapes": strict_about_shapes,
    "right, float32 results": make(
        finish=lambda c, w: (c.astype(np.float32), w.astype(np.float32))
    ),
    "right, a list of two": make(finish=lambda c, w: [c, w]),
    "right, a subclass of ValueError": make(error=_Own),
    "right, finite fill": make(mask=lambda s, m: np.where(m, s, -1e9)),
    "right, scale in two steps": make(
        scale=lambda q, k, v: q.shape[1] ** 0.25 * k.shape[1] ** 0.25
    ),
}
FAULTY = {
    FORMULA: {
        "scores are not scaled": make(scale=lambda q, k, v: 1.0),
        "scores are divided by d_k": make(scale=lambda q, k, v: k.shape[-1]),
        "scale from the width of the values": make(scale=lambda q, k, v: np.sqrt(v.shape[-1])),
        "softmax over the queries": make(normalise=columns),
        "the best value alone": make(mix=lambda w, v: v[w.argmax(axis=-1)]),
        "the mean of the values": make(mix=lambda w, v: np.tile(v.mean(axis=0), (len(w), 1))),
        "temperature is ignored": make(heat=lambda s, t: s),
        "temperature multiplies": make(heat=lambda s, t: s * t),
        "scores returned in place of weights": make(normalise=lambda s: s),
    },
    MASKS: {
        "mask is ignored": make(mask=lambda s, m: s),
        "mask is inverted": make(mask=lambda s, m: np.where(m, -np.inf, s), check_rows=False),
        "mask after the softmax": make(mask=lambda s, m: s, late=lambda w, m: w * m),
        "blocked scores become 0": make(mask=lambda s, m: s * m),
        "a fill of -1": make(mask=lambda s, m: np.where(m, s, -1.0)),
        "only masks of the full shape": make(
            mask=lambda s, m: (
                np.where(m[:, : s.shape[1]], s, -np.inf) if m.shape == s.shape else m[:, :, 0]
            )
        ),
        "with a mask the scale is forgotten": make(mask=lambda s, m: np.where(m, 3.0 * s, -np.inf)),
    },
    CONTRACT: {
        "temperature 0 is taken": make(
            check_temperature=lambda t: t < 0, heat=lambda s, t: s / (t or 1)
        ),
        "a negative temperature is taken": make(check_temperature=lambda t: t == 0),
        "an empty row becomes uniform": make(
            mask=lambda s, m: np.where(m, s, -1e9), check_rows=False
        ),
        "an empty row becomes zeros": make(
            normalise=lambda s: np.nan_to_num(rows(s)), check_rows=False
        ),
        "AssertionError in place of ValueError": make(error=AssertionError),
        "a column of the keys is centred in place": centres_a_column,
        "large scores overflow": make(normalise=unshifted),
        "a blocked key of large score takes everything": make(
            mask=lambda s, m: s,
            late=lambda w, m: (w * m) / (w * m).sum(axis=-1, keepdims=True),
        ),
    },
}


def pool(rng: np.random.Generator) -> list[Case]:
    """One run's candidates: every fault, and for each checkpoint three right ones; shuffled."""
    found = []
    rounded = "right, float32 results"  # always there: it tells an exact comparison
    others = [name for name in RIGHT if name != rounded]
    for checkpoint, faulty in FAULTY.items():
        for name in [rounded, *rng.permutation(others)[:2]]:
            found.append(Candidate(str(name), RIGHT[name], True, checkpoint))
        found.extend(Candidate(name, f, False, checkpoint) for name, f in faulty.items())
    mixed = [found[i] for i in rng.permutation(len(found))]
    return [Case((candidate,), candidate.checkpoint, note=candidate.name) for candidate in mixed]


def local_candidates(attention):
    def asserting(*args):
        try:
            return attention(*args)
        except ValueError as error:
            raise AssertionError(error) from None

    return {
        "your own attention": attention,
        "your own, float32 in a list": lambda *a: [np.float32(x) for x in attention(*a)],
        "scores twice as large": lambda q, *rest: attention(2 * q, *rest),
        "temperature ignored": lambda q, k, v, m=None, t=1: attention(q, k, v, m, t and t / abs(t)),
        "mask ignored": lambda q, k, v, m=None, t=1: attention(q, k, v, None, t),
        "temperature 0 taken": lambda q, k, v, m=None, t=1: attention(q, k, v, m, t or 1),
        "AssertionError for ValueError": asserting,
        "keys shifted": lambda q, k, *r: (attention(q, k, *r), np.subtract(k, 1, out=k))[0],
        "large scores overflow": lambda q, k, *rest: [
            x * (np.nan if np.abs(q @ k.T).max() > 700 else 1) for x in attention(q, k, *rest)
        ],
    }


LOCAL_CHECKS = {
    FORMULA: ("scores twice as large", "temperature ignored"),
    MASKS: ("mask ignored",),
    CONTRACT: (
        "temperature 0 taken",
        "AssertionError for ValueError",
        "keys shifted",
        "large scores overflow",
    ),
}


def local_cases(attention: Callable) -> list[Case]:
    """The cases of the checkpoint in the student's notebook; never used in grading."""
    functions = local_candidates(attention)
    right = ("your own attention", "your own, float32 in a list")
    return [
        Case((Candidate(name, functions[name], name in right, checkpoint),), checkpoint, note=name)
        for checkpoint, faulty in LOCAL_CHECKS.items()
        for name in (*right, *faulty)
    ]
