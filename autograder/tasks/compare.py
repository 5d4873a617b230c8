"""Compares one outcome with another, as plain data.

Every way to differ has a universal name (`UNIVERSAL`), whatever the task: `returns-list`,
`transposed`, `wrong-dtype`, `changed-argument`, ... Names in `FAULTS` say what the mistake is; the
others (`wrong-value`, `wrong-shape`, `raised`, ...) only describe it and are no diagnosis.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograder.execute.wire import Foreign, Opaque, Outcome
from autograder.tasks.model import ATOL, Case

FAULTS = {
    "returns-nothing": "The function returned None. Does its last line say `return`?",
    "returns-list": "The numbers come in a Python list. Return the numpy array itself.",
    "returns-matrix": "The result is a `numpy.matrix`, for which `*` and indexing mean other things. "
    "Use plain arrays (`np.array`, `@`).",
    "returns-masked-array": "The result is a masked array. Put the blocked entries into a plain array.",
    "returns-tensor": "The result is a torch tensor. Turn it into an array with `.detach().numpy()`.",
    "returns-dict": "The result is a dict. Return the values in the order that the docstring says.",
    "returns-one-of-two": "Only one value came back where the docstring asks for a pair.",
    "swapped-pair": "The two results come in the other order. Compare your `return` with the docstring.",
    "transposed": "The result equals the transposed right answer: rows and columns are exchanged. "
    "Rows belong to queries, columns to keys.",
    "extra-axis": "The numbers are right, but the array has an axis of size 1 too many or too few. "
    "Print `.shape` next to the shape in the docstring.",
    "wrong-dtype": "The values agree, but not the dtype: print `.dtype`. A mask must be bool, numbers "
    "must be floating-point.",
    "changed-argument": "The function changed its argument: after the call the caller's array holds "
    "other numbers. Look for `z -= ...`, `z[...] = ...`, `out=` or `np.copyto`, and work on a copy.",
    "reads-global": "The answer is the same whatever the arguments are. The body uses a variable of "
    "the notebook, or a fixed array, in place of its arguments.",
    "undefined-name": "A name in the body is not defined: a slip of the pen, a size that has to come "
    "from an argument (`d_k = K.shape[-1]`), or a cell above that was not run. The error says which "
    "name; if it is spelled as it should be, restart the kernel and run all cells from the top.",
    "not-a-check": "An error came up where the docstring asks for one, but valid input raises too, so "
    "it is not your check that spoke.",
    "error-returned": "The function returned the exception. Write `raise ValueError(...)`.",
}
UNIVERSAL = frozenset(FAULTS) | {
    "wrong-value",
    "wrong-shape",
    "not-finite",
    "wrong-type",
    "raised",
    "not-raised",
    "wrong-error",
    "not-attempted",
    "stopped",
}


@dataclass(frozen=True)
class Difference:
    """How an outcome differs: `kind` is one of `UNIVERSAL`; `sentence` holds no expected value."""

    kind: str
    sentence: str


def _type_name(value: Any) -> str:
    if isinstance(value, (Foreign, Opaque)):
        return value.type
    return type(value).__name__


def _wrong_type(value: Any) -> str:
    """The universal name of a value that is not a plain array."""
    name = _type_name(value).lower()
    if value is None:
        return "returns-nothing"
    if "matrix" in name:
        return "returns-matrix"
    if "maskedarray" in name:
        return "returns-masked-array"
    if "tensor" in name:
        return "returns-tensor"
    if isinstance(value, (list, tuple)):
        return "returns-list"
    if isinstance(value, dict):
        return "returns-dict"
    if name.endswith("error"):
        return "error-returned"
    return "wrong-type"


def close(got: np.ndarray, want: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """Elementwise closeness, where equal infinities and two NaNs count as close."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    with np.errstate(all="ignore"):
        # An infinite `want` would make its own tolerance infinite.
        near = np.isfinite(want) & (np.abs(got - want) <= atol + rtol * np.abs(want))
    both_nan = np.isnan(got) & np.isnan(want)
    return near | (got == want) | both_nan


def _place(index: tuple[int, ...], axes: tuple[str, ...]) -> str:
    if not index:
        return "the value"
    words = axes if len(axes) == len(index) else tuple(f"axis {i} index" for i in range(len(index)))
    return ", ".join(f"{word} {i}" for word, i in zip(words, index, strict=True))


def _array_difference(
    want: np.ndarray,
    got: Any,
    case: Case,
    label: str,
    axes: tuple[str, ...],
    exact: np.ndarray | None,
) -> Difference | None:
    if type(got) is not np.ndarray:
        kind = _wrong_type(got)
        name = _type_name(got)
        return Difference(kind, FAULTS.get(kind, f"The {label} is a {name}, not a numpy array."))
    if got.shape != want.shape:
        return _shape_difference(want, got, case, label)
    if (want.dtype.kind == "b") != (got.dtype.kind == "b") or got.dtype.kind not in "bf":
        same = close(got, want, case.rtol, case.atol).all()
        if same:
            return Difference("wrong-dtype", FAULTS["wrong-dtype"])
        return Difference(
            "wrong-value", f"The {label} has dtype {got.dtype}, and its values differ too."
        )
    good = close(got, want, case.rtol, case.atol)
    if exact is not None:
        good &= ~exact | (got == want)
    if good.all():
        return None
    if got.dtype.kind == "f" and not np.isfinite(got).all() and np.isfinite(want).all():
        bad = tuple(int(i) for i in np.argwhere(~np.isfinite(got))[0])
        what = "NaN" if np.isnan(got[bad]) else "infinity"
        return Difference("not-finite", f"The {label} holds {what}, first at {_place(bad, axes)}.")
    if (
        want.ndim == 2
        and want.shape[0] == want.shape[1]
        and close(got, want.T, case.rtol, case.atol).all()
    ):
        return Difference("transposed", FAULTS["transposed"])
    bad = tuple(int(i) for i in np.argwhere(~good)[0])
    return Difference(
        "wrong-value", f"The {label} has the right shape; it first differs at {_place(bad, axes)}."
    )


def _shape_difference(want: np.ndarray, got: np.ndarray, case: Case, label: str) -> Difference:
    if (
        got.shape == want.shape[::-1]
        and want.ndim > 1
        and close(got, want.T, case.rtol, case.atol).all()
    ):
        return Difference("transposed", FAULTS["transposed"])
    if (
        got.size == want.size
        and [n for n in got.shape if n != 1] == [n for n in want.shape if n != 1]
        and close(got.reshape(want.shape), want, case.rtol, case.atol).all()
    ):
        return Difference("extra-axis", FAULTS["extra-axis"])
    return Difference(
        "wrong-shape", f"The {label} has shape {got.shape} where {want.shape} is asked."
    )


def _value_difference(
    want: Any, got: Any, case: Case, results: tuple[str, ...], axes: tuple[tuple[str, ...], ...]
) -> Difference | None:
    if isinstance(want, tuple):
        return _pair_difference(want, got, case, results, axes)
    if isinstance(want, np.ndarray):
        exact = (want == 0) if case.exact_zero and want.dtype.kind == "f" else None
        return _array_difference(want, got, case, results[0], axes[0] if axes else (), exact)
    if isinstance(want, (bool, np.bool_)):
        if not isinstance(got, (bool, np.bool_)):
            kind = "returns-nothing" if got is None else "wrong-type"
            return Difference(kind, f"The answer is a {_type_name(got)}, not True or False.")
        if bool(got) != bool(want):
            return Difference("wrong-value", f"The answer was {bool(got)}.")
        return None
    if isinstance(got, (bool, np.bool_)) or not isinstance(got, (int, float, np.number)):
        return Difference("wrong-type", f"The {results[0]} is a {_type_name(got)}, not a number.")
    if not close(got, want, case.rtol, case.atol).all():
        return Difference("wrong-value", f"The {results[0]} differs.")
    return None


def _pair_difference(
    want: tuple, got: Any, case: Case, results: tuple[str, ...], axes: tuple[tuple[str, ...], ...]
) -> Difference | None:
    if not isinstance(got, (tuple, list)):
        kind = "returns-one-of-two" if isinstance(got, np.ndarray) else _wrong_type(got)
        return Difference(kind, FAULTS.get(kind, f"The result is a {_type_name(got)}, not a pair."))
    if len(got) != len(want):
        return Difference("wrong-type", f"{len(got)} results came back, {len(want)} are asked.")
    found = None
    for i, (one, other) in enumerate(zip(want, got, strict=True)):
        label = results[i] if i < len(results) else f"result {i}"
        words = axes[i] if i < len(axes) else ()
        # An exact zero is a promise about weights; a context of 0 is a sum that may round.
        exact = (one == 0) if case.exact_zero and "weight" in label else None
        # Contexts add rounding over the keys and get 1e-5; their weights do not.
        close_case = replace(case, atol=ATOL) if case.atol == 1e-5 and "weight" in label else case
        found = _array_difference(one, other, close_case, label, words, exact)
        if found is not None:
            break
    if found is not None and len(want) == 2:
        # Shapes are compared too, so only a real exchange is called one.
        crossed = [
            _array_difference(one, other, case, "", (), None)
            for one, other in zip(want, reversed(list(got)), strict=True)
        ]
        if crossed == [None, None]:
            return Difference("swapped-pair", FAULTS["swapped-pair"])
    return found


def difference(
    case: Case,
    want: Outcome,
    got: Outcome,
    results: tuple[str, ...] = ("result",),
    axes: tuple[tuple[str, ...], ...] = (),
) -> Difference | None:
    """How `got` differs from the trusted `want`, mutation aside; None if it does not.

    Where `want` raised, any ValueError (or subclass) is right; the caller checks the neighbour.
    """
    if got.raised is not None:
        return _raised_difference(want, got)
    if case.returns_only:
        return None
    if want.raised is not None:
        if isinstance(got.value, Opaque) and got.value.type.endswith("Error"):
            return Difference("error-returned", FAULTS["error-returned"])
        return Difference("not-raised", "A ValueError is asked here, and the function returned.")
    return _value_difference(want.value, got.value, case, results, axes)


def _raised_difference(want: Outcome, got: Outcome) -> Difference | None:
    kind, text = got.raised.type, " ".join(got.raised.message.split())[:160]
    if kind == "NotImplementedError":
        return Difference("not-attempted", "Not written yet.")
    if kind in ("KernelDied", "TimeoutError", "Timeout"):
        return Difference("stopped", "The kernel stopped, or ran out of time, in this function.")
    if want.raised is not None:
        if "ValueError" in (kind, *got.raised.bases):
            return None
        return Difference("wrong-error", f"{kind} came up where a ValueError is asked: {text}")
    if kind in ("NameError", "UnboundLocalError"):
        return Difference("undefined-name", f"{FAULTS['undefined-name']} ({text})")
    return Difference("raised", f"Valid input raised {kind}: {text}")


def changed(got: Outcome) -> Difference | None:
    """The difference that a changed argument is."""
    return Difference("changed-argument", FAULTS["changed-argument"]) if got.changed else None


def equal(case: Case, one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are the same mistake: same exception, or same type, shape and values."""
    if one.raised is not None or other.raised is not None:
        if one.raised is None or other.raised is None:
            return False
        # A served candidate's own error class arrives as the nearest class that both sides know.
        a, b = one.raised, other.raised
        return a.type == b.type or a.type in b.bases or b.type in a.bases
    return case.returns_only or _equal_values(case, one.value, other.value)


def _equal_values(case: Case, one: Any, other: Any) -> bool:
    if isinstance(one, (tuple, list)):
        return (
            type(one) is type(other)
            and len(one) == len(other)
            and all(_equal_values(case, a, b) for a, b in zip(one, other, strict=True))
        )
    if isinstance(one, Foreign):
        return (
            isinstance(other, Foreign)
            and one.type.rpartition(".")[2] == other.type.rpartition(".")[2]
            and _equal_values(case, one.array, other.array)
        )
    if isinstance(one, np.ndarray):
        return (
            type(other) is np.ndarray
            and one.shape == other.shape
            and (one.dtype.kind == "b") == (other.dtype.kind == "b")
            and bool(close(other, one, case.rtol, case.atol).all())
        )
    if isinstance(one, (int, float, np.number)) and not isinstance(one, bool):
        return isinstance(other, (int, float, np.number)) and bool(
            close(other, one, case.rtol, case.atol).all()
        )
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys()
    return type(one) is type(other) and bool(one == other)
