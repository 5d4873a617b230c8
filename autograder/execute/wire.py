"""Values as data: what the grader and a student's process tell each other.

Everything that crosses is JSON, with arrays as base64 of their raw bytes: no pickle, so reading a
message
can never run code. The grader reads with `decode`, which takes every byte as hostile: types, sizes,
depth
and counts are checked before anything is built. The student's process writes with `encode`, which
never
calls a method that the student's objects could have overridden when their exact type is a plain
one.

This module is loaded in the student's process before any of the student's code runs. It keeps the
builtins
that it needs as its own globals, so that a lesson in monkeypatching does not break the grading.
That is for
robustness only: whoever owns a process can forge what it says, and nothing here relies on it.
"""

from __future__ import annotations

import binascii
import builtins
import importlib.util
import json
import re
import struct
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Functions take their builtins from here, so that a student's `builtins.len = None` does not reach them.
__builtins__ = dict(vars(builtins))

_ndarray, _generic, _dtype, _float64 = np.ndarray, np.generic, np.dtype, np.float64
_frombuffer, _empty, _asarray = np.frombuffer, np.empty, np.asarray
_ascontiguous = np.ascontiguousarray
_tobytes = np.ndarray.tobytes
_b64encode = binascii.b2a_base64
_a2b = binascii.a2b_base64
_is_base64 = re.compile(r"[A-Za-z0-9+/]*={0,2}").fullmatch
_modules = sys.modules

MAX_DEPTH = 12
MAX_NODES = 20_000
MAX_BYTES = 16 * 2**20  # of one message, arrays included
MAX_TEXT = 200_000
MAX_DIMENSIONS = 16
MAX_INT_BITS = 4096


class MalformedMessage(Exception):
    """The student's process sent something that is not in this format; it costs that question
    only."""


@dataclass(frozen=True)
class Foreign:
    """An array-like that is not exactly a numpy array; `array` is its content where that could be
    had."""

    type: str
    array: np.ndarray | None = None


@dataclass(frozen=True)
class Opaque:
    """An object that is not data; only the name of its type is known."""

    type: str


@dataclass(frozen=True)
class Strided:
    """Marks an argument that the student's function shall get as a non-contiguous array."""

    array: np.ndarray


@dataclass(frozen=True)
class Raised:
    """The exception that a call ended with; `bases` are the names of its classes, its own first."""

    type: str
    bases: tuple[str, ...] = ()
    message: str = ""
    mark: str = field(default="", compare=False)
    """A digest of how the message begins: tells whether two errors say the same, and shows nothing."""


@dataclass(frozen=True)
class Outcome:
    """What one call did: the value it returned or what it raised, and which arguments it
    modified."""

    value: Any = None
    raised: Raised | None = None
    changed: tuple[int, ...] = ()
    after: tuple[tuple[int, Any], ...] = field(default=(), compare=False)
    """(index, value) of changed arguments; only the grader's own functions fill it."""


class TooLarge(Exception):
    """Raised inside `encode` when a budget is used up."""


class _Budget:
    __slots__ = ("bytes", "nodes")

    def __init__(self, nodes: int = MAX_NODES, size: int = MAX_BYTES // 2) -> None:
        self.nodes, self.bytes = nodes, size

    def take(self, size: int = 0) -> None:
        self.nodes -= 1
        self.bytes -= size
        if self.nodes < 0 or self.bytes < 0:
            raise TooLarge


# ---------------------------------------------------------------------------------------- encode


def encode(obj: Any) -> dict:
    """The wire form of `obj`; objects that are not data become `opaque`, too large ones as well."""
    try:
        return _encode(obj, _Budget(), 0)
    except TooLarge:
        return {"t": "opaque", "type": type_name(type(obj)) + " (too large)"}


def type_name(cls: type) -> str:
    """`module.qualname` of a class; builtins without their module."""
    try:
        module = type.__getattribute__(cls, "__module__")
        name = type.__getattribute__(cls, "__qualname__")
        text = name if module == "builtins" else f"{module}.{name}"
        return text[:200] if type(text) is str else "unknown"
    except Exception:
        return "unknown"


def _encode(obj: Any, budget: _Budget, depth: int) -> dict:
    budget.take()
    if depth > MAX_DEPTH:
        raise TooLarge
    cls = type(obj)
    if obj is None:
        return {"t": "none"}
    if cls is bool:
        return {"t": "bool", "v": obj}
    if cls is Strided:
        return _array(obj.array, budget, strided=True)
    if cls is _ndarray:
        return _array(obj, budget)
    if issubclass(cls, _generic):
        return _scalar(obj, budget)
    if issubclass(cls, _ndarray) or _is_tensor(cls):
        return _foreign(obj, cls, budget)
    if issubclass(cls, int):
        if int.bit_length(obj) > MAX_INT_BITS:
            raise TooLarge
        return {"t": "int", "v": int.__repr__(obj)}
    if issubclass(cls, float):
        return {"t": "float", "v": float.__repr__(obj)}
    if issubclass(cls, str):
        text = str.__str__(obj)
        if len(text) > MAX_TEXT:
            raise TooLarge
        budget.take(len(text))
        # A lone surrogate is a legal str but not legal UTF-8.
        return {"t": "str", "v": text.encode("utf-8", "replace").decode("utf-8")}
    if issubclass(cls, (list, tuple)):
        kind = list if issubclass(cls, list) else tuple
        if kind.__len__(obj) > budget.nodes:
            raise TooLarge
        items = [_encode(item, budget, depth + 1) for item in kind.__iter__(obj)]
        return {"t": "list" if kind is list else "tuple", "v": items}
    if issubclass(cls, dict):
        if dict.__len__(obj) > budget.nodes:
            raise TooLarge
        pairs = [
            [_encode(key, budget, depth + 1), _encode(value, budget, depth + 1)]
            for key, value in dict.items(obj)
        ]
        return {"t": "dict", "v": pairs}
    return {"t": "opaque", "type": type_name(cls)}


def _plain(dtype: np.dtype) -> bool:
    return dtype.kind in "biuf" and dtype.itemsize <= 8


def _narrow(value: Any) -> Any:
    """Extended precision, which differs between machines, as float64."""
    wide = value.dtype.kind == "f" and value.dtype.itemsize > 8
    return value.astype(_float64) if wide else value


def _array(array: np.ndarray, budget: _Budget, strided: bool = False) -> dict:
    array = _narrow(array)
    dtype = array.dtype
    if not _plain(dtype):
        return {"t": "opaque", "type": f"numpy.ndarray[{dtype}]"[:200]}
    budget.take(array.nbytes)
    strided = strided or not array.flags.c_contiguous
    little = dtype.newbyteorder("<") if dtype.byteorder == ">" else dtype
    if little is not dtype:
        array = array.astype(little)
    out = {
        "t": "array",
        "dtype": little.str.replace("=", "<"),
        "shape": list(array.shape),
        "data": _b64encode(_tobytes(array, "C"), newline=False).decode("ascii"),
    }
    if strided:
        out["order"] = "strided"
    return out


def _scalar(value: np.generic, budget: _Budget) -> dict:
    value = _narrow(value)
    dtype = value.dtype
    if not _plain(dtype):
        return {"t": "opaque", "type": type_name(type(value))}
    raw = _tobytes(_ascontiguous(value, dtype=dtype.newbyteorder("<")), "C")
    budget.take(len(raw))
    return {
        "t": "scalar",
        "dtype": dtype.newbyteorder("<").str,
        "data": _b64encode(raw, newline=False).decode("ascii"),
    }


def _is_tensor(cls: type) -> bool:
    torch = _modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    return type(tensor) is not None and isinstance(tensor, type) and issubclass(cls, tensor)


def _foreign(obj: Any, cls: type, budget: _Budget) -> dict:
    try:
        if issubclass(cls, _ndarray):
            array = _ndarray.view(obj, _ndarray)
        else:
            array = obj.detach().cpu().resolve_conj().resolve_neg().numpy()
        array = _array(_asarray(array), budget)
        array = array if array["t"] == "array" else None
    except TooLarge:
        raise
    except Exception:
        array = None
    return {"t": "foreign", "type": type_name(cls), "array": array}


def encode_outcome(outcome: Outcome) -> dict:
    """The wire form of an outcome."""
    out: dict = {"changed": list(outcome.changed)}
    if outcome.raised is not None:
        raised = outcome.raised
        out["raised"] = {
            "type": raised.type,
            "bases": list(raised.bases),
            "message": raised.message,
        }
    else:
        out["value"] = encode(outcome.value)
    if outcome.after:
        out["after"] = [[index, encode(value)] for index, value in outcome.after]
    return out


def raised_from(error: BaseException) -> Raised:
    """Describe an exception; its own `__str__` may be hostile, so that it is asked with care."""
    cls = type(error)
    try:
        message = str(error)
        message = message if type(message) is str else ""
    except BaseException:
        message = ""
    names = [type_name(base) for base in type.__getattribute__(cls, "__mro__")]
    return Raised(
        type=names[0].rsplit(".", 1)[-1],
        bases=tuple(name.rsplit(".", 1)[-1] for name in names if name != "object")[:30],
        message=message.encode("utf-8", "replace").decode("utf-8")[:2000],
    )


# ---------------------------------------------------------------------------------------- decode


def decode(data: Any) -> Any:
    """The value that a wire form stands for.

    Raises:
        MalformedMessage: for anything that `encode` could not have made.
    """
    try:
        return _decode(data, _Budget(size=MAX_BYTES), 0)
    except TooLarge:
        raise MalformedMessage("a value is too large") from None
    except (RecursionError, MemoryError, ValueError, TypeError, OverflowError) as error:
        raise MalformedMessage(f"a value cannot be read ({type(error).__name__})") from None


def _field(data: dict, key: str, cls: type) -> Any:
    value = data.get(key)
    if type(value) is not cls:
        raise MalformedMessage(f"field {key!r} is missing or of another type")
    return value


def _text(data: dict, key: str, limit: int) -> str:
    value = _field(data, key, str)
    if len(value) > limit:
        raise MalformedMessage(f"field {key!r} is too long")
    return value


def _decode(data: Any, budget: _Budget, depth: int) -> Any:
    budget.take()
    if type(data) is not dict or depth > MAX_DEPTH + 2:
        raise MalformedMessage("a value is not an object, or nested too deeply")
    kind = _field(data, "t", str)
    if kind == "none":
        return None
    if kind == "bool":
        return _field(data, "v", bool)
    if kind == "int":
        text = _text(data, "v", 2 + MAX_INT_BITS // 3)
        if not text.lstrip("-").isascii() or not text.lstrip("-").isdigit():
            raise MalformedMessage("not an integer")
        return int(text)
    if kind == "float":
        return float(_text(data, "v", 64))
    if kind == "str":
        text = _text(data, "v", MAX_TEXT)
        budget.take(len(text))
        return text
    if kind in ("list", "tuple"):
        items = [_decode(item, budget, depth + 1) for item in _field(data, "v", list)]
        return items if kind == "list" else tuple(items)
    if kind == "dict":
        return dict(_decode_pair(pair, budget, depth) for pair in _field(data, "v", list))
    if kind == "array":
        return _decode_array(data, budget)
    if kind == "scalar":
        dtype = _decode_dtype(data)
        raw = _decode_bytes(data, dtype.itemsize, budget)
        return _frombuffer(raw, dtype=dtype)[0]
    if kind == "foreign":
        inner = data.get("array")
        array = None if inner is None else _decode_array(inner, budget)
        return Foreign(_text(data, "type", 200), array)
    if kind == "opaque":
        return Opaque(_text(data, "type", 300))
    raise MalformedMessage(f"unknown kind {kind[:20]!r}")


def _decode_pair(pair: Any, budget: _Budget, depth: int) -> tuple:
    if type(pair) is not list or len(pair) != 2:
        raise MalformedMessage("a dict entry is not a pair")
    key = _decode(pair[0], budget, depth + 1)
    if not isinstance(key, (str, int, float, bool, type(None))):
        # Keys that are tuples, arrays, ... are rare and may not be hashable: only their look is
        # kept.
        key = repr(key)[:200]
    return key, _decode(pair[1], budget, depth + 1)


def _decode_dtype(data: dict) -> np.dtype:
    text = _text(data, "dtype", 4)
    if text[:1] not in ("<", "|") or text[1:2] not in ("b", "i", "u", "f"):
        raise MalformedMessage("dtype is not one of bool, int, uint, float")
    if text[2:] not in ("1", "2", "4", "8"):
        raise MalformedMessage("dtype has no such size")
    return _dtype(text)


def _decode_bytes(data: dict, size: int, budget: _Budget) -> bytearray:
    text = _field(data, "data", str)
    budget.take(size)
    if len(text) != 4 * ((size + 2) // 3):
        raise MalformedMessage("an array's bytes do not fit its shape")
    raw = bytearray(b64decode(text))
    if len(raw) != size:
        raise MalformedMessage("an array's bytes do not fit its shape")
    return raw


def b64decode(text: str) -> bytes:
    """Bytes from base64; raises ValueError for anything else."""
    if not _is_base64(text):
        raise ValueError("not base64")
    return _a2b(text)


def _decode_array(data: Any, budget: _Budget) -> np.ndarray:
    if type(data) is not dict or data.get("t") != "array":
        raise MalformedMessage("not an array")
    dtype = _decode_dtype(data)
    shape = _field(data, "shape", list)
    if len(shape) > MAX_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        raise MalformedMessage("a shape is not a list of sizes")
    size = dtype.itemsize
    for n in shape:
        size *= n
        if size > MAX_BYTES or n > MAX_BYTES:
            raise MalformedMessage("an array is too large")
    array = _frombuffer(_decode_bytes(data, size, budget), dtype=dtype).reshape(shape)
    if data.get("order") == "strided":
        roomy = _empty((*shape, 2), dtype=dtype)
        roomy[..., 0] = array
        return roomy[..., 0]
    return array


def decode_outcome(data: Any) -> Outcome:
    """Read an outcome; raises MalformedMessage."""
    if type(data) is not dict:
        raise MalformedMessage("an outcome is not an object")
    changed = _field(data, "changed", list)
    if len(changed) > 100 or any(type(i) is not int or not 0 <= i < 100 for i in changed):
        raise MalformedMessage("the list of changed arguments is not one")
    raised = data.get("raised")
    if raised is None:
        return Outcome(value=decode(data.get("value")), changed=tuple(changed))
    if type(raised) is not dict:
        raise MalformedMessage("an exception is not an object")
    bases = _field(raised, "bases", list)
    if len(bases) > 30 or any(type(name) is not str or len(name) > 200 for name in bases):
        raise MalformedMessage("the bases of an exception are not names")
    return Outcome(
        raised=Raised(_text(raised, "type", 200), tuple(bases), _text(raised, "message", 2000)),
        changed=tuple(changed),
    )


# ---------------------------------------------------------------------------------------- frames

_HEADER = struct.Struct(">I")
MAX_FRAME = MAX_BYTES + MAX_BYTES // 2
MAX_COMMAS = 400_000  # a JSON text of brackets alone takes fifty times its size in memory


def _private_copy(name: str):
    """A module of our own copy, whose functions see our builtins and nobody's patches."""
    spec = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__builtins__"] = __builtins__
    spec.loader.exec_module(module)
    return module


_dumps = _private_copy("json.encoder").JSONEncoder(separators=(",", ":")).encode
_raw_decode = json.JSONDecoder().raw_decode


def _loads(body: bytes) -> Any:
    text = body.decode("utf-8")
    value, end = _raw_decode(text)
    if end != len(text):
        raise ValueError("more than one value")
    return value


def pack(message: dict) -> bytes:
    """One frame: four bytes of length, then JSON in UTF-8."""
    body = _dumps(message).encode("utf-8", "replace")
    if len(body) > MAX_FRAME:
        raise TooLarge
    return _HEADER.pack(len(body)) + body


def frame_length(header: bytes) -> int:
    """The announced length of a frame; raises MalformedMessage when it is out of bounds."""
    (length,) = _HEADER.unpack(header)
    if length > MAX_FRAME:
        raise MalformedMessage("a message is too long")
    return length


def unpack(body: bytes) -> dict:
    """The message in a frame's body; raises MalformedMessage."""
    if body.count(b",") + body.count(b"[") + body.count(b"{") > MAX_COMMAS:
        raise MalformedMessage("a message has too many parts")
    try:
        message = _loads(body)
    except (ValueError, RecursionError, MemoryError):
        raise MalformedMessage("a message is not JSON") from None
    if type(message) is not dict:
        raise MalformedMessage("a message is not an object")
    return message
