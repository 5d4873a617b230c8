"""Which words of an exception may be shown: a function must not tell its hidden inputs by what it raises.

Messages of Python and numpy that help (shapes that do not fit, a name that is not defined) are kept. All others are
left out, and a class of the student's own goes by the name of the nearest one that Python has.
"""

from __future__ import annotations

import builtins
import hashlib
import re

from .wire import Outcome, Raised

_NAME = r"'[A-Za-z_]\w{0,23}'"
_SHAPES = r"[\d(),\[\]x =nmk?<>|-]{0,80}"
_KEPT = re.compile(
    "|".join(
        (
            rf"operands could not be broadcast together with shapes {_SHAPES}",
            rf"could not broadcast input array from shape {_SHAPES} into shape {_SHAPES}",
            rf"matmul: Input operand \d has a mismatch in its core dimension \d, with gufunc signature {_SHAPES}"
            rf" \(size \d+ is different from \d+\)",
            rf"shapes {_SHAPES} (and {_SHAPES} )?not aligned: {_SHAPES}( \(dim \d\) != {_SHAPES} \(dim \d\))?",
            r"axis \d+ is out of bounds for array of dimension \d",
            r"index \d+ is out of bounds for axis \d with size \d+",
            rf"cannot reshape array of size \d+ into shape {_SHAPES}",
            rf"name {_NAME} is not defined",
            r"(list|tuple) index out of range",
            r"division by zero",
            rf"{_NAME} object (has no attribute {_NAME}|is not (callable|subscriptable|iterable))",
            r"[A-Za-z_]\w{0,23}\(\) (takes|missing) [\w ]{1,60}(: '\w{1,24}'( and '\w{1,24}')*)?",
            r"[A-Za-z_]\w{0,23}\(\) got an unexpected keyword argument '\w{1,24}'",
            r"unsupported operand type\(s\) for [-+*/@%&|^=*]{1,3}: '[\w.]{1,24}' and '[\w.]{1,24}'",
            r"maximum recursion depth exceeded[ \w]{0,40}",
            r"The truth value of an array with more than one element is ambiguous\. Use a\.any\(\) or a\.all\(\)",
            rf"mat1 and mat2 shapes cannot be multiplied \({_SHAPES} and {_SHAPES}\)",
            r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at non-singleton dimension \d",
        )
    )
)
_OTHERS = {"AxisError", "LinAlgError", "UFuncTypeError"}
_KNOWN = _OTHERS | {
    name
    for name, cls in vars(builtins).items()
    if isinstance(cls, type) and issubclass(cls, BaseException)
}


def mark(message: str) -> str:
    """A digest of how a message begins."""
    return hashlib.sha256(message[:80].encode("utf-8", "replace")).hexdigest()[:16]


def discreet(outcome: Outcome) -> Outcome:
    """The outcome with nothing in its exception that a function could have put there about its inputs."""
    if outcome.raised is None:
        return outcome
    raised = outcome.raised
    bases = tuple(name for name in raised.bases if name in _KNOWN)
    kind = raised.type if raised.type in _KNOWN else next(iter(bases), "Exception")
    message = raised.message if _KEPT.fullmatch(raised.message) else ""
    told = Raised(kind, bases, message, mark(raised.message))
    return Outcome(raised=told, changed=outcome.changed)
