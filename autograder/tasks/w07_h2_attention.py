"""The H2 walkthrough: fourteen checkpoints over the values that its notebooks hold, and one question in words.

Each checkpoint is worth three practice marks: one for the core cell, two for a "change it" run. The judge
recomputes everything here, from the inputs that the student's notebook now holds, so that any in-place
change is fine. What it says is what the helper's own check says in the notebook (the same functions run on
the same numbers); what it believes is only the data.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

import attention_lab as lab
from autograder.tasks.model import (
    AssignmentTasks,
    Checkpoint,
    ManualTask,
    NotebookTasks,
    ValueTask,
    Verdict,
)

CORE, OWN = 1.0, 2.0
MARKS = CORE + OWN
MAX_SIZE, MAX_AXIS = 10_000, 500
MEMORY = ((1, 0), (0, 1), (1, 1))
LESSON: dict[str, Any] = {
    "SEED": 2026,
    "Q": ((1, 0),),
    "K": MEMORY,
    "V": ((10, 0), (0, 10), (10, 10)),
    "values": ((10, 0), (0, 10), (10, 10)),
    "row": ((1, 0, 1),),
    "shift": 0,
    "queries": ((1, 0), (0, 1), (-1, 0)),
    "temperature": 1,
    "X": MEMORY,
    "X_demo": MEMORY,
    "is_real_key": (1, 1, 0),
    "permission": ((1, 0, 0), (1, 1, 0), (1, 1, 0)),
    "query": ((1, 0),),
    "mask": ((1, 1, 1),),
    "V_changed": ((10, 0), (100, 100), (10, 10)),
    "keep": ((1, 0, 1),),
    "shared_key": (1, 1),
    "same_K": ((1, 1), (1, 1), (1, 1)),
    "claim": "each row of causal_weights sums to one",
}
"""What the lesson starts from. `my_Q` is compared with `Q`; the notebooks' `lab.begin` has the same."""

ARRAY_KEYS = ("Q", "K", "V", "scores", "weights", "context", "causal_weights")
SEED_KEYS = (*ARRAY_KEYS, "seed", "interpretation")

OVER_QUERIES = "the mask hides query rows, not key columns | write is_real_key[None, :]"

Values = SimpleNamespace
Check = Callable[[Values], None]


# The reference: the lesson's formulas, written once more on the trusted side.


def scaled_scores(Q: np.ndarray, K: np.ndarray) -> np.ndarray:
    """S = Q K^T / sqrt(d_k); (N_q, d_k), (N_k, d_k) -> (N_q, N_k). Vaswani et al. 2017, eq. 1."""
    return np.einsum("qd,kd->qk", Q, K) / np.sqrt(Q.shape[-1])


def row_softmax(scores: np.ndarray) -> np.ndarray:
    """Softmax over the keys (last axis); -inf gives exactly 0, a row of only -inf gives NaN."""
    powers = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return powers / np.sum(powers, axis=-1, keepdims=True)


def masked(scores: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Scores with -inf wherever `allowed` (True = may attend) is not true."""
    return np.where(np.asarray(allowed, dtype=bool), scores, -np.inf)


def not_later(n: int) -> np.ndarray:
    """The causal permission (n, n): row = query, column = key, True = may attend."""
    return np.arange(n)[None, :] <= np.arange(n)[:, None]


# Reading what the kernel gave. Everything that is not a plain, finite, small array is refused with a reason.


def _array(values: Mapping, name: str, axes: int | None = 2, extreme: bool = False) -> np.ndarray:
    value = _present(values, name)
    foreign = getattr(value, "type", None)
    if isinstance(foreign, str):
        fix = "use .detach().numpy()" if "ensor" in foreign else "use np.array(..., dtype=float)"
        raise lab.CheckError(
            f"`{name}` is a {foreign.rsplit('.', 1)[-1]}",
            f"a numpy array of numbers is needed | {fix}",
        )
    value = np.asarray(value) if isinstance(value, np.generic) else value
    lab.check_array(name, value, None if axes is None else (None,) * axes, finite=not extreme)
    if value.size > MAX_SIZE or max(value.shape, default=0) > MAX_AXIS:
        advice = (
            f"more than {MAX_SIZE} numbers or {MAX_AXIS} rows are not graded | use a small example"
        )
        raise lab.CheckError(f"`{name}` has shape {value.shape}", advice)
    if value.size == 0:
        raise lab.CheckError(f"`{name}` is empty: shape {value.shape}", "no row is left | add one")
    return value


def _present(values: Mapping, name: str) -> Any:
    if name not in values:
        raise lab.CheckError(f"`{name}` is not defined", "not_run")
    return values[name]


def _number(values: Mapping, name: str) -> float:
    value = _present(values, name)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise lab.CheckError(
            f"`{name}` is a {type(value).__name__}", f"one number is needed | write {name} = 1.0"
        )
    return float(value) if abs(value) < 1e300 else float("inf")


def _mask(values: Mapping, name: str, shape: tuple[int | None, ...]) -> np.ndarray:
    value = _array(values, name, len(shape))
    lab.check_array(name, value, shape)
    if not np.isin(value, (0, 1)).all():
        advice = "a permission is True (1) or False (0) | write dtype=bool"
        raise lab.CheckError(f"`{name}` holds other numbers than 0 and 1", advice)
    return value.astype(bool)


def is_lesson(name: str, value: Any) -> bool:
    """Does `value` equal what the lesson starts from? Used to see that an input was really changed."""
    start = LESSON[name.removeprefix("my_")]
    if isinstance(start, str):
        return isinstance(value, str) and value == start
    try:
        same_shape = np.shape(value) == np.shape(start)
        return same_shape and bool(np.allclose(value, start, rtol=0, atol=1e-4))
    except (TypeError, ValueError):
        return False


def _prediction(values: Mapping, name: str) -> Any:
    evidence = values.get("evidence_data")
    predictions = evidence.get("predictions") if isinstance(evidence, dict) else None
    answer = predictions.get(name) if isinstance(predictions, dict) else None
    return None if isinstance(answer, str) and not answer.strip() else answer


def _task(
    grade_id: str, says: str, core: Check, own: Check, names: str, inputs: str, prediction: str
) -> ValueTask:
    """One checkpoint.

    Args:
        core, own: raise `lab.CheckError` unless the property holds for the core cell, the changed run.
        names: variables that they read; `inputs`: those among them of which one must differ from the lesson.
        prediction: the name in `evidence.predict(name, ...)`.
    """
    asked = tuple(names.split())

    def judge(values: Mapping[str, Any]) -> Verdict:
        if not any(name in values for name in asked):
            text = f"None of {', '.join(f'`{n}`' for n in asked[:3])} is there: this section was not run."
            return Verdict(0.0, MARKS, "missing", text)
        core_fault, own_fault = _fault(core, values), _fault(own, values)
        marks = 0.0 if core_fault else CORE
        names_mine = " or ".join(n for n in inputs.split() if n.startswith("my_"))
        todo = []
        if all(is_lesson(n, values.get(n)) for n in inputs.split() if n in values):
            todo.append(f"change {names_mine} in its cell")
        if _prediction(values, prediction) is None:
            todo.append(f'answer evidence.predict("{prediction}", ...)')
        if not own_fault and not todo:
            marks += OWN
        if core_fault or own_fault:
            told = [f"Core cell: {core_fault}"] if core_fault else []
            told += [f"Your change: {own_fault}"] if own_fault and own_fault != core_fault else []
            return Verdict(marks, MARKS, "partial" if marks else "wrong", " ".join(told))
        if todo:
            text = f"Right so far: {says}. For the other {OWN:g} marks {' and '.join(todo)}."
            return Verdict(marks, MARKS, "partial", text)
        return Verdict(marks, MARKS, "right", f"Right: {says}, also with numbers of your own.")

    return ValueTask(Checkpoint(grade_id, says, MARKS), (*asked, "evidence_data"), judge)


def _fault(check: Check, values: Mapping) -> str:
    """What is wrong, in one line; "" if nothing is."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            check(values)
        except lab.CheckError as error:
            parts = (("", error.seen), ("Likely cause: ", error.cause), ("Try: ", error.attempt))
            return " ".join(f"{label}{text}." for label, text in parts if text)
        except (ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
            return f"These arrays do not fit together ({type(error).__name__}). Try: print their shapes."
    return ""


def _weights(
    name: str, seen: np.ndarray, scores: np.ndarray, allowed: np.ndarray | None = None, **known: Any
) -> None:
    """`seen` is the row softmax of the allowed scores; the usual ways to miss it are named first."""
    allowed = np.ones(scores.shape, dtype=bool) if allowed is None else allowed
    _keeps_a_key(name, allowed)
    lab.check_array(name, seen, scores.shape)
    right = row_softmax(masked(scores, allowed))
    known["wrong_axis"] = row_softmax(masked(scores, allowed).T).T
    if not allowed.all():
        known |= {"unmasked": row_softmax(scores), "mask_after": row_softmax(scores) * allowed}
    if not np.allclose(seen, right, rtol=1e-5, atol=1e-6):
        for mistake, result in known.items():
            if np.allclose(seen, result, rtol=1e-5, atol=1e-6):
                raise lab.CheckError(
                    f"`{name}` is not the row softmax of the allowed scores", mistake
                )
        lab.check_weights(name, seen, scores, allowed)
        lab.check_close(name, seen, right)
    lab.check_true(f"`{name}` is exactly 0 where a key is masked", allowed | (seen == 0), "leak")


def _keeps_a_key(name: str, allowed: np.ndarray) -> None:
    lab.check_true(f"each query of `{name}` keeps a key", allowed.any(axis=-1), "empty_row")


# Notebook 1: scores and context.


def _seed(prefix: str) -> Check:
    def check(values):
        seed = _number(values, f"{prefix}SEED")
        lab.check_true(
            f"{prefix}SEED is a whole number from 0 on (it is {seed:g})",
            0 <= seed < 2**63 and seed == int(seed),
            "a seed counts | use 2026 or another whole number",
        )
        exact = int(_present(values, f"{prefix}SEED"))
        draw = _array(values, f"{prefix}draw", 1)
        lab.check_close(f"{prefix}draw", draw, np.random.default_rng(exact).random(3))

    return check


def _paired(K: np.ndarray, V: np.ndarray, k: str, v: str) -> None:
    lab.check_true(
        f"{k} and {v} have as many rows ({len(K)} and {len(V)})",
        len(K) == len(V),
        "no_fit",
    )


def _memory_core(values):
    Q, K, V = (_array(values, name) for name in "QKV")
    lab.check_array("Q", Q, (None, K.shape[-1]))
    _paired(K, V, "K", "V")


def _memory_own(values):
    Q, K, V = (_array(values, name) for name in ("Q", "my_K", "my_V"))
    lab.check_array("my_K", K, (None, Q.shape[-1]))
    _paired(K, V, "my_K", "my_V")
    dots = np.einsum("qd,kd->qk", Q, K)
    lab.check_close("my_dots", _array(values, "my_dots"), dots, transposed=dots.T)


def _scores(query: str, scores: str) -> Check:
    def check(values):
        Q, K, seen = _array(values, query), _array(values, "K"), _array(values, scores)
        lab.check_array(query, Q, (None, K.shape[-1]))
        right = scaled_scores(Q, K)
        lab.check_close(scores, seen, right, unscaled=Q @ K.T)

    return check


def _softmax_core(values):
    scores = _array(values, "scores")
    _weights("weights", _array(values, "weights"), scores)


def _softmax_own(values):
    row, shift = _array(values, "my_row"), _present(values, "my_shift")
    shift = _number(values, "my_shift") if np.ndim(shift) == 0 else _array(values, "my_shift", None)
    lab.check_true(
        "my_shift is one shared number", np.ndim(shift) == 0, "a shift of each | use one"
    )
    lab.check_true("my_shift is finite", np.isfinite(shift), "infinity has no difference | use 100")
    _weights("my_weights", _array(values, "my_weights"), row)


def _context(value: str, context: str) -> Check:
    def check(values):
        weights, V = _array(values, "weights"), _array(values, value)
        lab.check_array(value, V, (weights.shape[-1], None))
        lab.check_close(context, _array(values, context), np.einsum("qk,kv->qv", weights, V))

    return check


# Notebook 2: queries and masks.


def _temperature(prefix: str, weights: str) -> Check:
    def check(values):
        temperature = _number(values, f"{prefix}temperature")
        lab.check_true(
            f"{prefix}temperature is above 0 (it is {temperature:g})",
            np.isfinite(temperature) and temperature > 0,
            "temperature",
        )
        queries, K = _array(values, "queries"), _array(values, "K")
        lab.check_array("queries", queries, (None, K.shape[-1]))
        scores = scaled_scores(queries, K) / temperature
        _weights(weights, _array(values, weights), scores, unscaled=row_softmax(queries @ K.T))

    return check


def _causal(tokens: str, weights: str) -> Check:
    def check(values):
        X, seen = _array(values, tokens), _array(values, weights)
        scores, allowed = scaled_scores(X, X), not_later(len(X))
        _weights(weights, seen, scores, allowed, transposed=row_softmax(masked(scores, allowed.T)))

    return check


def _padding(real: str, weights: str) -> Check:
    def check(values):
        X, seen = _array(values, "X_demo"), _array(values, weights)
        scores = scaled_scores(X, X)
        keys = _mask(values, real, (scores.shape[-1],))
        causal = _mask(values, "allowed", scores.shape)
        allowed = causal & keys
        over_rows = row_softmax(masked(scores, causal & keys[:, None]))
        _weights(weights, seen, scores, allowed, **{OVER_QUERIES: over_rows})

    return check


def _rows(permission: str, weights: str) -> Check:
    def check(values):
        X = _array(values, "X_demo")
        scores = scaled_scores(X, X)
        allowed = _mask(values, permission, scores.shape)
        _keeps_a_key(permission, allowed)
        _weights(weights, _array(values, weights), scores, allowed)

    return check


# Notebook 3: parity and evidence.


def float32_tolerance(V: np.ndarray) -> float:
    """1e-5 on the lesson's values; float32 keeps about seven digits, so it grows with the values."""
    return 1e-5 * max(1.0, float(np.abs(V).max()) / 10)


def _parity(query: str, ours: str, theirs: str, mask: str = "") -> Check:
    def check(values):
        Q, K, V = _array(values, query), _array(values, "K"), _array(values, "V")
        lab.check_array(query, Q, (None, K.shape[-1]))
        _paired(K, V, "K", "V")
        scores = scaled_scores(Q, K)
        if mask:
            allowed = np.broadcast_to(_mask(values, mask, (None, len(K))), scores.shape)
            _keeps_a_key(mask, allowed)
            scores = masked(scores, allowed)
        right, size = row_softmax(scores) @ V, float32_tolerance(V)
        lab.check_close(ours, _array(values, ours), right)
        lab.check_close(theirs, _array(values, theirs), right, rtol=1e-5, atol=size)

    return check


def _new_value(value: str, context: str) -> Check:
    def check(values):
        scores, weights, V = (_array(values, name) for name in ("scores", "weights", "V"))
        _weights("weights", weights, scores)
        changed = _array(values, value)
        lab.check_array(value, changed, V.shape)
        lab.check_true(
            f"{value} differs from V",
            not np.array_equal(changed, V),
            "nothing",
        )
        lab.check_close(context, _array(values, context), weights @ changed)

    return check


def _removal(keep: str, weights: str) -> Check:
    def check(values):
        scores = _array(values, "scores")
        kept = np.broadcast_to(_mask(values, keep, (None, scores.shape[-1])), scores.shape)
        _keeps_a_key(keep, kept)
        lab.check_true(
            f"{keep} removes an item",
            not kept.all(),
            "nothing",
        )
        seen = _array(values, weights)
        _weights(weights, seen, scores, kept)

    return check


def _same_keys(prefix: str) -> Check:
    def check(values):
        K, queries = _array(values, f"{prefix}same_K"), _array(values, "queries")
        lab.check_true(
            f"all rows of {prefix}same_K are equal", np.all(K[:1] == K, axis=-1), "stale"
        )
        scores = scaled_scores(queries, K)
        seen = _array(values, f"{prefix}same_weights")
        _weights(f"{prefix}same_weights", seen, scores)
        keep = np.broadcast_to(_mask(values, "keep", (None, len(K))), scores.shape)
        _keeps_a_key("keep", keep)
        left = _array(values, f"{prefix}same_masked_weights")
        _weights(f"{prefix}same_masked_weights", left, scores, keep)

    return check


def _evidence_core(values):
    evidence = _present(values, "evidence_data")
    if not isinstance(evidence, dict):
        raise lab.CheckError("`evidence_data` is not a dictionary", "not_run")
    missing = [key for key in SEED_KEYS if evidence.get(key) is None]
    if missing:
        raise lab.CheckError(f"not in the evidence: {', '.join(missing)}", "not_run")
    assertions = evidence.get("assertions")
    lab.check_true(
        'the evidence holds the assertion "causal_mask"',
        isinstance(assertions, dict) and assertions.get("causal_mask") is True,
        "not_run",
    )
    kept = {key: _kept(evidence, key) for key in ARRAY_KEYS}
    scores = scaled_scores(kept["Q"], kept["K"])
    lab.check_close('evidence "scores"', kept["scores"], scores)
    _weights('evidence "weights"', kept["weights"], scores)
    lab.check_close('evidence "context"', kept["context"], row_softmax(scores) @ kept["V"])
    X = _array(values, "X_demo")
    _weights(
        'evidence "causal_weights"', kept["causal_weights"], scaled_scores(X, X), not_later(len(X))
    )
    text = evidence["interpretation"]
    lab.check_true(
        "the interpretation is a sentence",
        isinstance(text, str) and len(text.split()) > 3,
        "it is empty or very short | say what the weights support",
    )


def _kept(evidence: dict, key: str) -> np.ndarray:
    """One array of the evidence, from nested lists."""
    rows = evidence[key]
    try:
        found = np.array(rows, dtype=float) if isinstance(rows, (list, tuple, np.ndarray)) else None
    except (TypeError, ValueError):
        found = None
    if found is None or found.ndim != 2:
        raise lab.CheckError(f'evidence "{key}" is not a table of numbers', "stale")
    return _array({key: found}, key)


def _evidence_own(values):
    claim = _present(values, "my_claim")
    lab.check_true(
        "my_claim is a sentence",
        isinstance(claim, str) and bool(claim.strip()),
        "the claim is not text | write it between quotes",
    )
    evidence = values.get("evidence_data")
    assertions = evidence.get("assertions") if isinstance(evidence, dict) else None
    lab.check_true(
        f"claim: {claim:.80}",
        isinstance(assertions, dict) and assertions.get(claim) is True,
        "claim",
    )


HEATMAP_SCHEME = """\
1 mark: says that the heatmap shows how this computation distributes weight over the keys for each query
(where it routes information), AND that this alone does not show that a key caused an outcome, in the
model or in the real world (an intervention is needed, such as masking the key).
0 marks: only one of the two, or the weights are called importances, reasons or explanations."""

SCORES_AND_CONTEXT = (
    _task(
        "seed-repeats",
        "the same seed gives the same numbers again",
        core=_seed(""),
        own=_seed("my_"),
        names="SEED draw my_SEED my_draw",
        inputs="SEED my_SEED",
        prediction="seed",
    ),
    _task(
        "memory-paired",
        "each key has one value, and queries have as many coordinates as keys",
        core=_memory_core,
        own=_memory_own,
        names="Q K V my_K my_V my_dots",
        inputs="Q K V my_K my_V",
        prediction="memory",
    ),
    _task(
        "scores-scaled",
        "each score is a dot product divided by the square root of d_k",
        core=_scores("Q", "scores"),
        own=_scores("my_Q", "my_scores"),
        names="Q K scores my_Q my_scores",
        inputs="Q K my_Q",
        prediction="scores",
    ),
    _task(
        "weights-sum-to-one",
        "softmax makes each row of weights positive with sum one",
        core=_softmax_core,
        own=_softmax_own,
        names="Q K scores weights my_row my_shift my_weights",
        inputs="Q K my_row my_shift",
        prediction="weights",
    ),
    _task(
        "context-weighted-sum",
        "the context is the sum of the values, each times its weight",
        core=_context("V", "context"),
        own=_context("my_values", "my_context"),
        names="Q K V weights context my_values my_context",
        inputs="Q K V my_values",
        prediction="context",
    ),
)

QUERIES_AND_MASKS = (
    _task(
        "temperature-positive",
        "a positive temperature divides the scores, and rows still sum to one",
        core=_temperature("", "W"),
        own=_temperature("my_", "my_W"),
        names="queries K temperature W my_temperature my_W",
        inputs="queries K temperature my_temperature",
        prediction="temperature",
    ),
    _task(
        "causal-future-zero",
        "a query gives every later position exactly zero weight",
        core=_causal("X_demo", "causal_weights"),
        own=_causal("my_X", "my_causal_weights"),
        names="X_demo causal_weights my_X my_causal_weights",
        inputs="X_demo my_X",
        prediction="causal",
    ),
    _task(
        "padding-key-zero",
        "a padded key gets exactly zero weight from every query",
        core=_padding("is_real_key", "combined_weights"),
        own=_padding("my_is_real_key", "my_combined_weights"),
        names="X_demo allowed is_real_key combined_weights my_is_real_key my_combined_weights",
        inputs="X_demo is_real_key my_is_real_key",
        prediction="padding",
    ),
    _task(
        "rows-keep-a-key",
        "no query row is fully masked",
        core=_rows("combined_allowed", "combined_weights"),
        own=_rows("my_permission", "my_permission_weights"),
        names=(
            "X_demo is_real_key combined_allowed combined_weights my_permission "
            "my_permission_weights"
        ),
        inputs="X_demo is_real_key my_permission",
        prediction="permission",
    ),
)

PARITY_AND_EVIDENCE = (
    _task(
        "sdpa-parity",
        "PyTorch's SDPA gives the same context within 1e-5",
        core=_parity("Q", "context", "sdpa_context"),
        own=_parity("my_query", "my_numpy_context", "my_sdpa_context", "my_mask"),
        names="Q K V context sdpa_context my_query my_mask my_numpy_context my_sdpa_context",
        inputs="Q K V my_query my_mask",
        prediction="parity",
    ),
    _task(
        "values-leave-weights",
        "changed values change the context and leave the weights alone",
        core=_new_value("V_changed", "changed_context"),
        own=_new_value("my_V_changed", "my_changed_context"),
        names="Q K V scores weights V_changed changed_context my_V_changed my_changed_context",
        inputs="Q K V V_changed my_V_changed",
        prediction="new_value",
    ),
    _task(
        "removal-renormalises",
        "a removed item gets zero weight and the others sum to one again",
        core=_removal("keep", "removed_weights"),
        own=_removal("my_keep", "my_removed_weights"),
        names="Q K scores keep removed_weights my_keep my_removed_weights",
        inputs="Q K keep my_keep",
        prediction="removal",
    ),
    _task(
        "same-keys-share",
        "equal keys share the weight equally, whatever the query",
        core=_same_keys(""),
        own=_same_keys("my_"),
        names=(
            "queries keep same_K same_weights same_masked_weights my_shared_key my_same_K "
            "my_same_weights my_same_masked_weights"
        ),
        inputs="same_K my_shared_key",
        prediction="same_keys",
    ),
    _task(
        "evidence-complete",
        "the evidence holds nine values that belong together, and its assertions",
        core=_evidence_core,
        own=_evidence_own,
        names="X_demo my_claim",
        inputs="my_claim",
        prediction="claim",
    ),
    ManualTask(
        Checkpoint("heatmap-supports", "what exactly the heatmap supports", 1.0), HEATMAP_SCHEME
    ),
)

ASSIGNMENT = AssignmentTasks(
    name="w07-h2-attention",
    title="W07 H2: Why Attention, and How It Works",
    notebooks=(
        NotebookTasks("1-scores-and-context", SCORES_AND_CONTEXT, minutes=10),
        NotebookTasks("2-queries-and-masks", QUERIES_AND_MASKS, minutes=8),
        NotebookTasks("3-parity-and-evidence", PARITY_AND_EVIDENCE, minutes=7),
    ),
    practice=True,
    evidence="artifacts/w07-h2-attention.json",
)
