"""Mutants of the references: wrong answers that nobody thought of.

An operator changes one place of a reference's syntax tree: another comparison, another constant, a
dropped keyword, a swapped name, a lost statement. A mutant is *caught* if the judge takes a point from it.
What is not caught must be equivalent: equal to the reference on all inputs that the contract allows, with a
reason in `EQUIVALENT`.
"""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import signal
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import numpy as np

from autograder.tasks import judge
from autograder.tasks.model import FunctionTask

SECONDS = 20  # for one mutant with all its calls; a loop without end is caught by this
OTHER_NONCES = 6  # how many further draws of probes a survivor must equal the reference on

ARITHMETIC = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.Div),
    ast.Div: (ast.Mult, ast.Sub),
    ast.Pow: (ast.Mult,),
    ast.MatMult: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
CALLS = {
    "any": ("all",),
    "all": ("any",),
    "max": ("min", "mean"),
    "min": ("max",),
    "sum": ("mean", "max"),
    "exp": ("exp2", "expm1"),
    "log": ("log2", "log1p"),
    "sqrt": ("square", "cbrt"),
    "tril": ("triu",),
    "ones": ("zeros",),
    "isneginf": ("isinf", "isposinf"),
    "array": ("zeros_like",),
}


SAME_AXIS = "the array has two axes, so that 1 and -1 are the same axis"
SAME_WIDTH = "queries and keys have the same width d_k"
OTHER_INPUT = "the tester asks with another input, which tells right from wrong as well"
SOFTMAX_RAISES = "`softmax` raises for an empty row by itself"
NUMPY_RAISES = "numpy raises ValueError for these sizes by itself"
EQUIVALENT: tuple[tuple[str, str, str], ...] = (
    ("scaled_scores", "2:37", SAME_AXIS),
    ("scaled_scores", "2:29", SAME_WIDTH),
    ("softmax", "3:7: isneginf becomes isinf", "+inf is not asked"),
    ("attention", "6:", "np.where broadcasts, and " + SOFTMAX_RAISES),
    ("attention", "7:", SOFTMAX_RAISES),
    *(("accepts", f"{line}:", OTHER_INPUT) for line in (2, 3, 4, 5, 6, 7, 9)),
    ("accepts", "15:39: arguments", "closeness is nearly symmetric at these tolerances"),
    ("accepts", "15:", "any tolerance between rounding and a fault's size will do"),
    ("accepts", "20:33", "a comparison with an array gives an array by itself"),
    ("accepts", "20:64", "as many arguments are kept as were given"),
    ("accepts", "20:87", "as many arguments are kept as were given"),
    ("accepts", "16:", "no candidate of a run returns more or fewer than two results"),
    ("entropy", "2:42", "it is multiplied by the weight 0, so any positive number will do"),
    ("entropy", "3:46", SAME_AXIS),
    ("torch_attention", "2:15", "torch computes in float64 just as well"),
    ("torch_attention", "4:75", "the axis has one entry, so that 0 and -1 are the same"),
    ("torch_attention", "4:78", "the axis has one entry, so that 0 and -1 are the same"),
    ("remove_key", "2:39", SAME_AXIS),
    ("remove_key", "2:31", SAME_WIDTH),
    ("dot_attention", "2:4: condition never", NUMPY_RAISES),
    ("dot_attention", "2:27: 0 becomes -1", "the array has one axis"),
    ("multi_head_general", "4:", NUMPY_RAISES),
    ("multi_head_general", "6:46", "numpy's reshape takes any negative size for what is left"),
    ("multi_head_general", "7:53", "numpy's reshape takes any negative size for what is left"),
    ("clinic_answer", "12:11: first argument of tuple", "the shapes are tuples already"),
    ("clinic_answer", "8:70: first argument of len", "an empty tuple is false by itself"),
)
"""(task, how the description of a change begins, why it makes no wrong answer)."""


@dataclass(frozen=True)
class Mutant:
    """One changed reference: what was changed, in words, and the function."""

    task: str
    change: str
    function: Callable


@dataclass(frozen=True)
class Survivor:
    """A mutant that lost no point: `reason` says why it is no wrong answer, "" if nobody knows."""

    task: str
    change: str
    reason: str


@dataclass(frozen=True)
class Result:
    """What became of one task's mutants."""

    task: str
    made: int
    caught: int
    survivors: tuple[Survivor, ...]
    missed: tuple[str, ...]
    """Changes that differ from the reference on valid input and lost no point."""


def places(tree: ast.Module) -> Iterator[tuple[str, Callable[[ast.Module], None]]]:
    """Every change: a description, and a function that makes it in a copy of the tree."""
    parameters = [a.arg for a in tree.body[0].args.args]
    for index, node in enumerate(ast.walk(tree)):
        for words, change in _changes(node, parameters):
            at = f"{getattr(node, 'lineno', 1)}:{getattr(node, 'col_offset', 0)}"
            yield f"{at}: {words}", _at(index, change)


def _at(index: int, change: Callable[[ast.AST], None]) -> Callable[[ast.Module], None]:
    def apply(tree: ast.Module) -> None:
        change(list(ast.walk(tree))[index])

    return apply


def _changes(node: ast.AST, parameters: list[str]) -> Iterator[tuple[str, Callable]]:
    """The changes that one node offers."""
    if isinstance(node, ast.BinOp):
        for other in ARITHMETIC.get(type(node.op), ()):
            yield f"{_name(node.op)} becomes {other.__name__}", _set("op", other())
        yield f"left side of {_name(node.op)} alone", _become(lambda n: n.left)
        yield f"right side of {_name(node.op)} alone", _become(lambda n: n.right)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        for other in COMPARISONS.get(type(node.ops[0]), ()):
            yield f"{_name(node.ops[0])} becomes {other.__name__}", _set("ops", [other()])
    elif isinstance(node, ast.BoolOp):
        other = ast.And if isinstance(node.op, ast.Or) else ast.Or
        yield f"{_name(node.op)} becomes {other.__name__}", _set("op", other())
        yield "last condition dropped", lambda n: n.values.pop()
    elif isinstance(node, ast.UnaryOp):
        yield f"{_name(node.op)} dropped", _become(lambda n: n.operand)
    elif isinstance(node, ast.Constant):
        yield from _constants(node)
    elif isinstance(node, ast.Call):
        yield from _calls(node)
    elif isinstance(node, ast.If):
        yield "condition always true", _set("test", ast.Constant(True))
        yield "condition never true", _set("test", ast.Constant(False))
    elif isinstance(node, ast.Raise):
        yield "other exception", _set("exc", ast.Name("AssertionError", ast.Load()))
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        yield "results exchanged", lambda n: n.value.elts.reverse()
        yield "first result alone", lambda n: setattr(n, "value", n.value.elts[0])
    elif isinstance(node, ast.Return) and node.value is not None:
        yield "nothing returned", _set("value", ast.Constant(None))
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for other in parameters:
            if node.id in parameters and other != node.id:
                yield f"{node.id} becomes {other}", _set("id", other)
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield "transposition dropped", _become(lambda n: n.value)
    elif isinstance(node, ast.Assign):
        yield "assignment dropped", _nothing


def _constants(node: ast.Constant) -> Iterator[tuple[str, Callable]]:
    value = node.value
    if value is True or value is False:
        yield f"{value} becomes {not value}", _set("value", not value)
    elif value is None:
        return
    elif isinstance(value, int):
        for other in {value + 1, value - 1, 0} - {value}:
            yield f"{value} becomes {other}", _set("value", other)
    elif isinstance(value, float):
        for other in {value + 1.0, value * 0.5, -value} - {value}:
            yield f"{value} becomes {other}", _set("value", other)


def _calls(node: ast.Call) -> Iterator[tuple[str, Callable]]:
    name = getattr(node.func, "attr", None)
    for other in CALLS.get(name, ()):
        yield f"{name} becomes {other}", lambda n, other=other: setattr(n.func, "attr", other)
    for i, keyword in enumerate(node.keywords):
        yield f"{keyword.arg}= of {name} dropped", lambda n, i=i: n.keywords.pop(i)
    if name == "where" and len(node.args) == 3:
        yield "branches of where exchanged", lambda n: n.args.append(n.args.pop(1))
    elif len(node.args) == 2 and name not in (None, "where"):
        yield f"arguments of {name} exchanged", lambda n: n.args.reverse()
    if len(node.args) >= 1 and isinstance(node.func, (ast.Name, ast.Attribute)):
        yield f"first argument of {name or node.func.id} alone", _become(lambda n: n.args[0])


def _name(op: ast.AST) -> str:
    return type(op).__name__


def _set(field: str, value: Any) -> Callable:
    return lambda node: setattr(node, field, copy.deepcopy(value))


def _become(pick: Callable[[ast.AST], ast.AST]) -> Callable:
    """Turn a node into one of its own parts."""

    def change(node: ast.AST) -> None:
        part = pick(node)
        node.__class__ = part.__class__
        node.__dict__ = part.__dict__

    return change


def _nothing(node: ast.AST) -> None:
    node.__class__ = ast.Pass
    node.__dict__ = {k: v for k, v in node.__dict__.items() if "lineno" in k or "col" in k}


def plain_function(reference: Callable) -> tuple[FunctionType, Callable]:
    """The Python function inside a reference, and how to put another in its place."""
    if isinstance(reference, FunctionType):
        return reference, lambda function: function
    for field in dataclasses.fields(reference):
        inner = getattr(reference, field.name)
        if isinstance(inner, FunctionType):
            return inner, lambda f, name=field.name: dataclasses.replace(reference, **{name: f})
    raise TypeError(f"no plain function in {reference!r}")


def mutants(task: FunctionTask) -> list[Mutant]:
    """All mutants of the task's reference that Python can define."""
    function, wrap = plain_function(task.reference)
    source = textwrap.dedent(inspect.getsource(function))
    tree = ast.parse(source)
    found, seen = [], {ast.unparse(tree)}
    for words, change in places(tree):
        changed = copy.deepcopy(tree)
        change(changed)
        ast.fix_missing_locations(changed)
        text = ast.unparse(changed)
        if text in seen:
            continue
        seen.add(text)
        names = dict(function.__globals__)
        try:
            exec(compile(changed, "<mutant>", "exec"), names)
        except Exception:
            continue
        found.append(Mutant(task.name, words, wrap(names[function.__name__])))
    return found


class _TooLong(BaseException):
    """Not an Exception, so that no mutant can catch it."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Stop what runs in the main thread after `seconds`."""

    def stop(number, frame):
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def loses(task: FunctionTask, mutant: Callable, seed: int) -> bool:
    """Whether the judge takes a point from the mutant, with the probes of `seed`."""
    cases = _cases(task, seed)
    try:
        with time_limit(SECONDS):
            got = judge.outcomes(task, mutant, cases)
    except _TooLong:
        return True
    return bool(judge.check(task, cases, judge.reference_outcomes(task, cases), got).failed)


_CASES: dict[tuple[str, int], list] = {}


def _cases(task: FunctionTask, seed: int) -> list:
    if (task.name, seed) not in _CASES:
        _CASES[task.name, seed] = judge.questions(task, np.random.default_rng(seed))
    return _CASES[task.name, seed]


def reason_of(task: str, change: str) -> str:
    """Why a surviving change makes no wrong answer, "" if `EQUIVALENT` does not say."""
    known = (
        reason for name, start, reason in EQUIVALENT if name == task and change.startswith(start)
    )
    return next(known, "")


def examine(task: FunctionTask, seed: int = 0) -> Result:
    """Play every mutant of one task; what they warn of is of no interest."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _examine(task, seed)


def _examine(task: FunctionTask, seed: int) -> Result:
    caught, survivors, missed = 0, [], []
    made = mutants(task)
    for mutant in made:
        if loses(task, mutant.function, seed):
            caught += 1
        elif any(loses(task, mutant.function, seed + i) for i in range(1, OTHER_NONCES + 1)):
            missed.append(mutant.change)
        else:
            reason = reason_of(task.name, mutant.change)
            survivors.append(Survivor(task.name, mutant.change, reason))
    return Result(task.name, len(made), caught, tuple(survivors), tuple(missed))
