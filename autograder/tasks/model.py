"""What a task is. Everything about one thing that a student produces is said here, once.

Two kinds of `Part` are judged:

* `FunctionTask`: a function that the student writes. Its reference, its cases, its misconceptions
  and its alternatives are data; judging it is the same code for every function.
* `ValueTask`: values that the student's notebook now holds, recomputed from the inputs it holds.

A part never sees the student's process: it lists what to ask (`autograder.verify` asks), and
judges the answers, which are plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

RTOL = 2e-5
ATOL = 2e-6


@dataclass(frozen=True)
class Verdict:
    """What one checkpoint earned, and the sentence that says why.

    Args:
        score: practice marks earned, 0 <= score <= max_score.
        verdict: one of `right`, `carried` (right given an earlier misconception), `partial`,
            `wrong`, `not-attempted`, `missing` (the cell or its name was never run), `manual` (a
            person decides).
        misconceptions: names of the misconceptions whose outcomes equal the student's.
        message: what was seen, the likely cause, what to try; no hidden input, no expected value.
        notes: what was reported and not punished (a rebound name, evidence that disagrees, ...).
    """

    score: float
    max_score: float
    verdict: str
    message: str
    misconceptions: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Checkpoint:
    """One locked, graded cell: `grade_id` (`<function>-<property>`), property in words, points."""

    grade_id: str
    property: str
    points: float


@dataclass(frozen=True)
class Case:
    """One input on which a function is asked.

    Args:
        args: positional arguments (arrays, ints, floats, None), in the signature's order.
        checkpoint: grade_id of the checkpoint in which this case counts.
        note: what is special about it, in words that may be shown to the student.
        rtol, atol: tolerance of this case; the reason stands in the task.
        exact_zero: entries that are 0 in the reference's weights must be exactly 0.
        neighbour: for an error case, the args of its valid neighbour, which must return.
    """

    args: tuple
    checkpoint: str
    note: str = ""
    rtol: float = RTOL
    atol: float = ATOL
    neighbour: tuple | None = None
    exact_zero: bool = False
    returns_only: bool = False
    """The call need only return: the neighbour of an error case (`judge.questions` makes these)."""


@dataclass(frozen=True)
class Misconception:
    """A named wrong implementation.

    Args:
        name: slug, unique in its task, e.g. `softmax-wrong-axis`.
        implementation: the wrong function. Its source (inspect.getsource) becomes an answer cell,
            so it may use only np, torch, F, nn and the notebook's own names.
        fails: grade_ids of the checkpoints that it must lose, and no others.
        message: symptom, likely cause, what to try next.
        source: where it was seen (a link or a name), "" if it is our own.
        public_only: right on the public cases, wrong on probes; the local verdict then differs.
    """

    name: str
    implementation: Callable
    fails: tuple[str, ...]
    message: str
    source: str = ""
    public_only: bool = False


@dataclass(frozen=True)
class Alternative:
    """A correct implementation written differently; it must get full marks."""

    name: str
    implementation: Callable


@dataclass(frozen=True)
class FunctionTask:
    """A function that students write; its `name` is also the answer cell's grade_id."""

    name: str
    signature: str
    docstring: str
    checkpoints: tuple[Checkpoint, ...]
    reference: Callable
    public: Callable[[], Sequence[Case]]
    probes: Callable[[np.random.Generator], Sequence[Case]]
    misconceptions: tuple[Misconception, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    calls: tuple[str, ...] = ()
    given: Callable[[Mapping[str, Callable]], Sequence[Callable]] | None = None
    """`given({"softmax": wrong})` -> reference variants that call the misconceived callees.

    None: the reference and every alternative, with their global names rebound
    (`judge.variants`)."""
    callees: tuple[FunctionTask, ...] = ()
    """The tasks of the functions in `calls`; where a misconception's name is looked up."""
    mutation: str = ""
    """grade_id of the checkpoint that a changed argument costs; "" = the one of each case."""
    results: tuple[str, ...] = ("result",)
    """What the returned value or pair is called in messages, e.g. ("context", "weights")."""
    axes: tuple[tuple[str, ...], ...] = ()
    """The words for the axes of each result, e.g. (("query", "component"), ("query", "key"))."""


@dataclass(frozen=True)
class Candidate:
    """One function shown to a student's `accepts`, which sees neither its name nor its source.

    Args:
        name: for the grader's reports only.
        function: a plain Python function of the grader; it may change its arguments.
        right: whether `accepts` must return True for it.
        checkpoint: grade_id of the checkpoint in which it counts.
    """

    name: str
    function: Callable
    right: bool
    checkpoint: str

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


@dataclass(frozen=True)
class CandidateTask(FunctionTask):
    """A function that judges other functions (`accepts`); asked when all other answers are sealed.

    The only argument of each of its cases is a `Candidate`. The grader serves it
    (`kernel.serve(key, judge.answer(case))`), so that the student's process never holds one.
    """


@dataclass(frozen=True)
class ValueTask:
    """Checkpoints over values that the notebook holds (the walkthrough, recorded experiments).

    Args:
        checkpoint: the locked cell with the points.
        names: variables asked for just before the checkpoint cell runs, and after the last cell.
        judge: `judge(values) -> Verdict`; `values` maps each name to a decoded value (numpy array,
            scalar, str, list, dict, `wire.Foreign`) and lacks the names that were not bound. The
            better of the two moments counts.
    """

    checkpoint: Checkpoint
    names: tuple[str, ...]
    judge: Callable[[Mapping[str, Any]], Verdict]


@dataclass(frozen=True)
class ManualTask:
    """A question in words: a person gives the point; `scheme` is the mark scheme."""

    checkpoint: Checkpoint
    scheme: str


Part = FunctionTask | ValueTask | ManualTask


@dataclass(frozen=True)
class NotebookTasks:
    """What is judged in one notebook, in its order; `name` is the file's stem."""

    name: str
    parts: tuple[Part, ...]
    minutes: int = 10

    def checkpoints(self) -> tuple[Checkpoint, ...]:
        found: list[Checkpoint] = []
        for part in self.parts:
            several = isinstance(part, FunctionTask)
            found.extend(part.checkpoints if several else [part.checkpoint])
        return tuple(found)


@dataclass(frozen=True)
class AssignmentTasks:
    """One assignment: `name` is its folder under `source/`."""

    name: str
    title: str
    notebooks: tuple[NotebookTasks, ...]
    practice: bool = True
    """Practice marks: left out of the LMS total unless switched on."""
    evidence: str = ""
    """Evidence file that its notebooks write, e.g. `artifacts/w07-h2-attention.json`; "" if
    none."""
    extra: Mapping[str, Any] = field(default_factory=dict)

    def notebook(self, name: str) -> NotebookTasks:
        return next(n for n in self.notebooks if n.name == name)
