"""Plain data between the grader and the student's process: JSON only, bounded before decoding."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

MAX_ARRAY_BYTES = 16_000_000
MAX_DEPTH = 8
MAX_ITEMS = 10_000


class MalformedMessage(Exception):
    """The child sent something that is not a value of this format; it costs that question only."""


@dataclass(frozen=True)
class Raised:
    """An exception as data: its type's name, the names of all its base classes, its text."""

    type: str
    bases: tuple[str, ...] = ()
    message: str = ""


@dataclass(frozen=True)
class Foreign:
    """A tensor, matrix, masked array or other array-like; `array` holds its numbers if it has
    any."""

    type: str
    array: np.ndarray | None = None


@dataclass(frozen=True)
class Opaque:
    """Any other object: only the name of its type is known."""

    type: str


@dataclass(frozen=True)
class Strided:
    """Marks an argument that the child shall build as a non-contiguous, writable array."""

    array: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """What one call gave: a value, or an exception, and which arguments it changed."""

    value: Any = None
    raised: Raised | None = None
    changed: tuple[int, ...] = ()


def _array(array: np.ndarray) -> dict:
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}


def encode(obj: Any, depth: int = 0) -> dict:
    """The JSON form of `obj`."""
    if depth > MAX_DEPTH:
        return {"t": "opaque", "type": "too-deep"}
    if obj is None:
        return {"t": "none"}
    if type(obj) is bool:
        return {"t": "bool", "v": obj}
    if type(obj) is int:
        return {"t": "int", "v": str(obj)}
    if type(obj) is float:
        return {"t": "float", "v": repr(obj)}
    if type(obj) is str:
        return {"t": "str", "v": obj}
    if isinstance(obj, Strided):
        return {"t": "array", **_array(obj.array), "order": "strided"}
    if type(obj) is np.ndarray and obj.dtype.kind in "biuf":
        order = {} if obj.flags.c_contiguous else {"order": "strided"}
        return {"t": "array", **_array(obj), **order}
    if isinstance(obj, np.generic) and obj.dtype.kind in "biuf":
        return {"t": "scalar", "dtype": obj.dtype.str, "data": _array(np.asarray(obj))["data"]}
    if isinstance(obj, Foreign):
        inner = None if obj.array is None else encode(obj.array, depth + 1)
        return {"t": "foreign", "type": obj.type, "array": inner}
    if isinstance(obj, (list, tuple)) and len(obj) <= MAX_ITEMS:
        kind = "list" if isinstance(obj, list) else "tuple"
        return {"t": kind, "v": [encode(item, depth + 1) for item in obj]}
    if isinstance(obj, dict) and len(obj) <= MAX_ITEMS:
        pairs = [[encode(k, depth + 1), encode(v, depth + 1)] for k, v in obj.items()]
        return {"t": "dict", "v": pairs}
    kind = type(obj)
    return {"t": "opaque", "type": f"{kind.__module__}.{kind.__qualname__}"}


def decode(data: Any, depth: int = 0) -> Any:
    """The value that `data` stands for.

    Raises:
        MalformedMessage: if it is not in the format of `encode`.
    """
    if depth > MAX_DEPTH or not isinstance(data, dict):
        raise MalformedMessage("not a value")
    try:
        return _decode(data, depth)
    except MalformedMessage:
        raise
    except Exception as error:
        raise MalformedMessage(str(error)) from error


def _decode(data: dict, depth: int) -> Any:
    kind = data.get("t")
    if kind == "none":
        return None
    if kind == "bool":
        return bool(data["v"])
    if kind == "int":
        return int(data["v"])
    if kind == "float":
        return float(data["v"])
    if kind == "str":
        return str(data["v"])
    if kind in ("array", "scalar"):
        dtype = np.dtype(data["dtype"])
        if dtype.kind not in "biuf" or len(data["data"]) > 2 * MAX_ARRAY_BYTES:
            raise MalformedMessage("array type or size")
        flat = np.frombuffer(base64.b64decode(data["data"], validate=True), dtype)
        return flat[0] if kind == "scalar" else flat.reshape(data["shape"]).copy()
    if kind == "foreign":
        inner = data.get("array")
        return Foreign(str(data["type"]), None if inner is None else decode(inner, depth + 1))
    if kind in ("list", "tuple"):
        items = [decode(item, depth + 1) for item in data["v"][:MAX_ITEMS]]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return {decode(k, depth + 1): decode(v, depth + 1) for k, v in data["v"][:MAX_ITEMS]}
    if kind == "opaque":
        return Opaque(str(data["type"]))
    raise MalformedMessage(f"unknown kind {kind!r}")
