"""Calls a function in this process and reports an `Outcome`, as the student's kernel would.

Only for the grader's own functions (references, misconceptions, alternatives, candidates): nothing
that a student wrote is ever called here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from autograder.execute.messages import mark
from autograder.execute.wire import Foreign, Opaque, Outcome, Raised, Strided


def strided(array: np.ndarray) -> np.ndarray:
    """A writable array of equal values that is not contiguous."""
    if array.ndim == 0:
        return array.copy()
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    view = wide[..., ::2]
    view[...] = array
    return view


def fresh(args: Sequence[Any]) -> list[Any]:
    """Private copies of the arguments; `Strided` ones become non-contiguous arrays."""
    out = []
    for arg in args:
        if isinstance(arg, Strided):
            out.append(strided(arg.array))
        elif isinstance(arg, np.ndarray):
            out.append(arg.copy())
        else:
            out.append(copy.copy(arg))
    return out


def plain(value: Any, depth: int = 0) -> Any:
    """`value` as it looks after a journey over the wire."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is np.ndarray and value.dtype.kind in "biuf":
        return value.copy()
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value
    if type(value) in (list, tuple) and depth < 4:
        return type(value)(plain(item, depth + 1) for item in value)
    if type(value) is dict and depth < 4:
        return {key: plain(item, depth + 1) for key, item in value.items()}
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return Foreign(name, np.array(value))
    if name.startswith("torch."):
        array = value.detach().cpu().numpy() if hasattr(value, "detach") else None
        return Foreign(name, array)
    return Opaque(name)


def same_bits(before: Any, after: Any) -> bool:
    """Whether an argument still is what it was, NaN included."""
    if isinstance(before, np.ndarray):
        return (
            before.shape == after.shape
            and before.dtype == after.dtype
            and before.tobytes() == after.tobytes()
        )
    return True


def play(function: Callable, args: Sequence[Any]) -> Outcome:
    """What `function` gives for private copies of `args`."""
    given, before = fresh(args), fresh(args)
    raised, value = None, None
    # Nothing global (stdout, warning filters) is touched here: several threads play at once.
    with np.errstate(all="ignore"):
        try:
            value = plain(function(*given))
        except Exception as error:
            bases = tuple(base.__name__ for base in type(error).__mro__[1:])
            message = str(error)
            raised = Raised(type(error).__name__, bases, message[:300], mark(message))
    changed = tuple(
        i for i, (old, new) in enumerate(zip(before, given, strict=True)) if not same_bits(old, new)
    )
    after = tuple((i, plain(given[i])) for i in changed)
    return Outcome(value=value, raised=raised, changed=changed, after=after)


def rebound(function: Callable, names: dict[str, Callable]) -> Callable:
    """A copy of `function` in which the global `names` mean other functions."""
    known = {**function.__globals__, **names}
    twin = FunctionType(
        function.__code__, known, function.__name__, function.__defaults__, function.__closure__
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    return twin
