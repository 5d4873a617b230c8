"""Recorded experiments, transfer questions and the question in words of `3-experiments`.

The experiments are judged from what the notebook holds: the recorded results are computed again from the
recorded inputs, so that a student may change the inputs. Predictions are not judged at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autograder.execute.wire import Outcome
from autograder.tasks.compare import close, equal
from autograder.tasks.model import Case, Checkpoint, ManualTask, ValueTask, Verdict
from autograder.tasks.play import play
from autograder.tasks.w07_h2_practice import entropy

TEMPERATURES = (0.5, 1.0, 2.0)


class Wrong(Exception):
    """Why recorded values are not right; `name` is the misconception's name, if it has one."""

    def __init__(self, message: str, name: str = ""):
        super().__init__(message)
        self.name = name


class Carried(Exception):
    """The recorded values are right, given an earlier mistake."""


def _task(
    grade_id: str,
    what: str,
    points: float,
    inputs: tuple[str, ...],
    answers: tuple[str, ...],
    examine: Callable[[Mapping[str, Any]], None],
) -> ValueTask:
    checkpoint = Checkpoint(grade_id, what, points)

    def judge(values: Mapping[str, Any]) -> Verdict:
        there = [name for name in answers if values.get(name) is not None]
        if not there:
            return Verdict(0.0, points, "not-attempted", "Not written yet.")
        if len(there) < len(answers):
            names = ", ".join(f"`{name}`" for name in answers if name not in there)
            return Verdict(0.0, points, "wrong", f"Not recorded: {names}.")
        try:
            examine(values)
        except Carried as given:
            return Verdict(points, points, "carried", str(given))
        except Wrong as problem:
            names = (problem.name,) if problem.name else ()
            return Verdict(0.0, points, "wrong", str(problem), names)
        return Verdict(points, points, "right", f"Right: {what}.")

    return ValueTask(checkpoint, (*inputs, *answers), judge)


def _array(values: Mapping[str, Any], name: str, axes: int) -> np.ndarray:
    value = values.get(name)
    if isinstance(value, (list, tuple)):
        try:
            value = np.array(value, dtype=float)
        except (TypeError, ValueError):
            value = None
    if type(value) is not np.ndarray or value.dtype.kind not in "fiu":
        raise Wrong(f"`{name}` is not an array of numbers.")
    if value.ndim != axes:
        raise Wrong(f"`{name}` has {value.ndim} axes; {axes} are asked.")
    if not np.isfinite(value).all():
        raise Wrong(f"`{name}` holds NaN or infinity.", "not-finite")
    return value.astype(float)


def _weights(q: np.ndarray, k: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    if q.shape[-1] != k.shape[-1]:
        raise Wrong(
            "Queries and keys have no common length; restore the first cell of this section."
        )
    scores = q @ k.T / np.sqrt(k.shape[-1]) / temperature
    grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def _agrees(got: np.ndarray, want: np.ndarray, atol: float = 1e-5) -> bool:
    return got.shape == want.shape and bool(close(got, want, 1e-4, atol).all())


def _identical(values: Mapping[str, Any]) -> None:
    q, k = _array(values, "Q_lab", 2), _array(values, "K_lab", 2)
    same, weights = _array(values, "same_K", 2), _array(values, "same_weights", 2)
    if same.shape != k.shape:
        raise Wrong(
            f"`same_K` has shape {same.shape}, K_lab has {k.shape}: one row for each memory item."
        )
    if not close(same, np.tile(same[0], (len(same), 1)), 0, 1e-9).all():
        raise Wrong(
            "The rows of `same_K` are not all the same vector. Compare same_K[0] with same_K[1]."
        )
    if _agrees(weights, _weights(q, k)) and not _agrees(weights, _weights(q, same)):
        raise Wrong("These are the weights of the old keys: pass same_K, not K_lab.", "old-keys")
    if not _agrees(weights, _weights(q, same)):
        raise Wrong(
            "`same_weights` are not the softmax weights of Q_lab with same_K. Print their shape and row "
            "sums; all scores of a query are equal here."
        )


def _large(values: Mapping[str, Any]) -> None:
    q, k, v = (_array(values, name, 2) for name in ("Q_lab", "K_lab", "V_lab"))
    big, weights, context = (_array(values, n, 2) for n in ("big_V", "big_weights", "big_context"))
    if big.shape != v.shape:
        raise Wrong(f"`big_V` has shape {big.shape}, V_lab has {v.shape}.")
    moved = (big != v).any(axis=1)
    if moved.sum() != 1:
        raise Wrong(
            f"{moved.sum()} rows of `big_V` differ from V_lab; exactly one shall. If it is 0, V_lab itself "
            f"was changed: begin with V_lab.copy().",
            "changed-argument" if not moved.any() else "",
        )
    if np.abs(big[moved]).max() < 100 * max(1.0, np.abs(v).max()) / 2:
        raise Wrong("The changed row of `big_V` is not large: multiply it by 1000.")
    if not _agrees(weights, _weights(q, k)):
        raise Wrong(
            "`big_weights` are not the softmax weights of Q_lab and K_lab; V has no part in them."
        )
    if _agrees(context, _weights(q, k) @ v):
        raise Wrong("`big_context` is the old context: mix big_V, not V_lab.", "old-values")
    if not _agrees(context, _weights(q, k) @ big, 1e-3):
        raise Wrong("`big_context` is not big_weights @ big_V.")


def _mean_entropies(q: np.ndarray, k: np.ndarray, function: Callable) -> np.ndarray:
    rows = [np.mean(function(_weights(q, k, heat))) for heat in TEMPERATURES]
    return np.array(rows, dtype=float)


def _temperatures(values: Mapping[str, Any]) -> None:
    q, k = _array(values, "Q_lab", 2), _array(values, "K_lab", 2)
    got = _array(values, "entropies", 1)
    if got.shape != (3,):
        raise Wrong(
            f"`entropies` has shape {got.shape}: one mean entropy for each of 0.5, 1 and 2."
        )
    mean = _mean_entropies(q, k, entropy.entropy)
    if not _agrees(got, mean):
        _carry(values, q, k, got)
        _not_these(got, mean, len(q))
    if _sharpest(values) != TEMPERATURES[int(np.argmin(mean))]:
        raise Wrong("`sharpest` is not the temperature with the lowest entropy.")


def _carry(values: Mapping[str, Any], q: np.ndarray, k: np.ndarray, got: np.ndarray) -> None:
    """Raise Carried if the numbers are those of the student's own `entropy`.

    What that function returns stands in `own_entropy`, written by a locked cell; it is believed only if
    it is what a known misconception gives. Nobody gains by forging it.
    """
    own = values.get("own_entropy")
    sample = Case((_weights(q, k),), "", atol=1e-5)
    for wrong in entropy.TASK.misconceptions:
        theirs = play(wrong.implementation, sample.args)
        if theirs.raised is None and equal(sample, theirs, Outcome(value=own)):
            mean = _mean_entropies(q, k, wrong.implementation)
            if _agrees(got, mean) and _sharpest(values) == TEMPERATURES[int(np.argmin(mean))]:
                raise Carried(
                    "Right, given what your `entropy` returns: the point is yours. Repair `entropy` and "
                    "run this again."
                )


def _not_these(got: np.ndarray, mean: np.ndarray, queries: int) -> None:
    if _agrees(got, mean[::-1]):
        raise Wrong(
            "The three numbers come in the other order, or the scores were multiplied by the "
            "temperature. Low temperature means sharp weights and low entropy.",
            "temperature-multiplied",
        )
    if _agrees(got * np.log(2), mean):
        raise Wrong("These are bits; take np.log, not np.log2.", "bits-not-nats")
    if _agrees(got, mean * queries):
        raise Wrong("These are sums over the queries; take the mean.", "sum-for-mean")
    raise Wrong(
        "`entropies` are not the mean entropies at temperatures 0.5, 1 and 2, in this order."
    )


def _sharpest(values: Mapping[str, Any]) -> float:
    sharpest = values.get("sharpest")
    if isinstance(sharpest, np.ndarray) and sharpest.size == 1:
        sharpest = sharpest.reshape(-1)[0]
    if isinstance(sharpest, bool) or not isinstance(sharpest, (int, float, np.number)):
        raise Wrong("`sharpest` is not a number: record the temperature itself.")
    return float(sharpest)


def _system(
    grade_id: str, name: str, attention: str, recurrence: bool, scores: tuple[int, int]
) -> ValueTask:
    """A described system: half a point for two right answers of three, the whole for all."""
    what = f"`{name}`: self or cross, with or without recurrence, shape of the score matrix"
    checkpoint = Checkpoint(grade_id, what, 1)

    def judge(values: Mapping[str, Any]) -> Verdict:
        given = values.get(name)
        if given is None:
            return Verdict(0.0, 1, "not-attempted", "Not written yet.")
        if not isinstance(given, dict):
            return Verdict(0.0, 1, "wrong", f"`{name}` is not a dict with the three answers.")
        wrong, names = [], []
        said = str(given.get("attention", "")).strip().lower().replace("_", "-").replace(" ", "-")
        if said.removesuffix("-attention") != attention:
            wrong.append(
                "self or cross: ask where queries and where keys come from, one stream or two"
            )
        loop = given.get("recurrence")
        if not isinstance(loop, (bool, np.bool_)) or bool(loop) != recurrence:
            wrong.append("recurrence: ask whether any state is computed from the state before it")
        shape = given.get("scores")
        shape = shape.tolist() if isinstance(shape, np.ndarray) else shape
        shape = tuple(shape) if isinstance(shape, (list, tuple)) else ()
        if any(isinstance(n, bool) or not isinstance(n, (int, np.integer)) for n in shape):
            shape = ()
        if shape != scores:
            if shape == scores[::-1]:
                names.append("transposed")
            wrong.append("shape of the scores: one row for each query, one column for each key")
        score = {0: 1.0, 1: 0.5}.get(len(wrong), 0.0)
        if not wrong:
            return Verdict(1.0, 1, "right", "Right: all three answers.")
        message = f"{3 - len(wrong)} of 3 right. Think again about " + "; ".join(wrong) + "."
        return Verdict(score, 1, "partial" if score else "wrong", message, tuple(names))

    return ValueTask(checkpoint, (name,), judge)


IDENTICAL = _task(
    "record-identical-keys",
    "identical keys were tried, and the weights recorded",
    1,
    ("Q_lab", "K_lab"),
    ("same_K", "same_weights"),
    _identical,
)
LARGE = _task(
    "record-large-value",
    "one value was made large, and weights and context recorded",
    1,
    ("Q_lab", "K_lab", "V_lab"),
    ("big_V", "big_weights", "big_context"),
    _large,
)
TEMPERATURE = _task(
    "record-temperatures",
    "mean entropies at temperatures 0.5, 1 and 2, and the sharpest",
    1,
    ("Q_lab", "K_lab", "own_entropy"),
    ("entropies", "sharpest"),
    _temperatures,
)
CAPTIONS = _system("transfer-captions", "captions", "cross", True, (12, 49))
SEARCH = _system("transfer-log", "log_reader", "self", False, (80, 80))
WORDS = ManualTask(
    Checkpoint("words-heatmap", "what a heatmap of attention supports, and what it does not", 1),
    scheme="""One point in all.
0.5 for what the heatmap supports: where this computation routes information (weights for this input, row =
query, column = key), or an equal statement.
0.5 for saying that it is no proof of why the outcome occurred AND naming an intervention that would test it
(change a value with queries and keys fixed, mask the item and renormalise, compare the outcome).
Take 0.25 off if rows and columns are confused. Style, length and language are not marked.""",
)
