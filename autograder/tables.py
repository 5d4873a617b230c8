"""Tables of outcomes on the public inputs, for the diagnosis in a student's notebook.

A released notebook holds no reference and no misconception, only what they give on the public inputs:
the reference's results in full, and of each misconception a fingerprint of every result that differs
(kind, shape, checksum). `attention_lab.diagnose` compares a student's function with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import attention_lab
from autograder.execute.wire import Foreign, Outcome
from autograder.tasks import judge
from autograder.tasks.compare import FAULTS
from autograder.tasks.model import Candidate, Case, FunctionTask, NotebookTasks
from autograder.tasks.play import fresh

# What `attention_lab` can see of a value, and the universal name that it has in grading.
KINDS = {
    "NoneType": "returns-nothing",
    "list": "returns-list",
    "tuple": "returns-list",
    "matrix": "returns-matrix",
    "MaskedArray": "returns-masked-array",
    "Tensor": "returns-tensor",
    "dict": "returns-dict",
    "ndarray, one": "returns-one-of-two",
    "NoneType, one": "returns-nothing",
    "turned": "transposed",
    "dtype": "wrong-dtype",
    "changed": "changed-argument",
    "NameError": "undefined-name",
    "UnboundLocalError": "undefined-name",
}


def public_tables(tasks: NotebookTasks) -> dict:
    """Everything that `attention_lab.load_tables` needs for one notebook; {} if it has no functions."""
    found = {
        part.name: task_table(part, judge.with_neighbours(part.public()))
        for part in tasks.parts
        if isinstance(part, FunctionTask) and part.public()
    }
    if not found:
        return {}
    return {"faults": {kind: [name, FAULTS[name]] for kind, name in KINDS.items()}, "tasks": found}


def task_table(task: FunctionTask, cases: Sequence[Case]) -> dict:
    """The table of one function."""
    want = judge.reference_outcomes(task, cases)
    rows = []
    for case, outcome in zip(cases, want, strict=True):
        labels = task.results if len(task.results) > 1 else ()
        rows.append(
            {
                "args": [_argument(arg) for arg in fresh(case.args)],
                "check": case.checkpoint,
                "note": case.note,
                "rtol": case.rtol,
                "atol": case.atol,
                "zero": [n for n in labels if "weight" in n] or list(task.results)
                if case.exact_zero
                else [],
                "want": _wanted(case, outcome),
                "print": None if case.returns_only else fingerprint(outcome, brief=True),
            }
        )
    wrong = {}
    for misconception in task.misconceptions:
        theirs = judge.outcomes(task, misconception.implementation, cases)
        fails = judge.check(task, cases, want, theirs).failed
        if fails:
            wrong[misconception.name] = {
                "outcomes": _outcomes(cases, want, theirs),
                "fails": sorted(fails),
                "moves": any(outcome.changed for outcome in theirs),
                "message": misconception.message,
            }
    return {
        "name": task.name,
        "checks": [c.grade_id for c in task.checkpoints],
        "results": list(task.results),
        "axes": [list(axes) for axes in task.axes] or [[] for _ in task.results],
        "mutation": task.mutation,
        "cases": rows,
        "wrong": wrong,
        "carried": _carried(task, cases, want),
    }


def _carried(task: FunctionTask, cases: Sequence[Case], want: Sequence[Outcome]) -> list:
    """What the reference gives when one callee, or each callee, is misconceived in a known way."""
    found = []
    for callee in task.callees:
        for misconception in callee.misconceptions:
            earlier = {callee.name: (misconception.name,)}
            for function in judge.variants(task, earlier)[:1]:
                theirs = judge.outcomes(task, function, cases)
                outcomes = _outcomes(cases, want, theirs)
                if any(outcome is not None for outcome in outcomes):
                    found.append([{callee.name: misconception.name}, outcomes])
    return found


def _outcomes(cases: Sequence[Case], want: Sequence[Outcome], theirs: Sequence[Outcome]) -> list:
    """Fingerprints, None where they equal the reference's."""
    return [
        None if judge.equal(case, one, other) else fingerprint(other, brief=one.raised is not None)
        for case, one, other in zip(cases, want, theirs, strict=True)
    ]


def fingerprint(outcome: Outcome, brief: bool = False) -> list:
    """`attention_lab.fingerprint` of an outcome, with its numbers cut to seven digits.

    Args:
        brief: of an error keep the type alone; its text counts where a value was asked for.
    """
    if outcome.raised is not None:
        kind, text = outcome.raised.type, outcome.raised.message
        return [kind if brief else kind + f" {text}"[:80], 0.0, 0.0]
    kind, total, size = attention_lab.fingerprint(_alive(outcome.value))
    return [kind, _short(total), _short(size)]


class Tensor:
    """Stands for a torch tensor; `detach` is how the helper recognises one."""

    def __init__(self, array: np.ndarray):
        self.array = array

    def detach(self) -> np.ndarray:
        return self.array


def _alive(value: Any) -> Any:
    """A value as the student's process would hold it."""
    if isinstance(value, Foreign) and value.array is not None:
        if value.type.endswith("matrix"):
            return np.matrix(value.array)
        if value.type.endswith("MaskedArray"):
            return np.ma.MaskedArray(value.array)
        return Tensor(value.array)
    if isinstance(value, (list, tuple)):
        return type(value)(_alive(item) for item in value)
    return value


def _short(number: float) -> float:
    return float(f"{number:.7g}")


def _wanted(case: Case, outcome: Outcome) -> Any:
    if case.returns_only:
        return "returns"
    if outcome.raised is not None:
        return "ValueError"
    if isinstance(outcome.value, (bool, np.bool_)):
        return bool(outcome.value)
    parts = outcome.value if isinstance(outcome.value, tuple) else (outcome.value,)
    return [_array(part) for part in parts]


def _argument(arg: Any) -> Any:
    if isinstance(arg, Candidate):
        return arg.name  # the notebook makes it from the student's own function
    return _array(arg) if isinstance(arg, np.ndarray) else arg


def _array(array: np.ndarray) -> dict:
    if array.dtype.kind == "f":
        numbers = [_short(float(number)) for number in array.ravel()]
        shaped = np.array(numbers, dtype=object).reshape(array.shape).tolist()
    else:
        shaped = array.astype(int).tolist()
    return {"array": shaped, "dtype": array.dtype.str}
