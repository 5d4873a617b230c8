"""Judges a `FunctionTask` from plain outcomes: points, misconceptions, errors carried forward.

    cases = questions(task, rng)              # what to ask, neighbours of error cases included
    own = kernel.call("softmax@own", calls(cases))  # the caller's business
    verdicts = judge(task, cases, own, last, earlier={"scaled_scores": ("scale-missing",)})
    earlier["softmax"] = diagnosed(verdicts)

Nothing here runs student code, and no sentence that comes out holds an input or an expected value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from autograder.execute.wire import Outcome, Raised, Strided
from autograder.tasks.compare import FAULTS, Difference, changed, difference, equal
from autograder.tasks.model import Candidate, CandidateTask, Case, FunctionTask, Verdict
from autograder.tasks.play import play, rebound

MAX_VARIANTS = 60
MAX_INNER = 1
_NO_CODE = (lambda: None).__code__
CARRIED = (
    "Right, given what your {callees} returns: with that mistake in place this is what the "
    "contract "
    "gives. The points are yours; repair {callees} and run this cell again."
)
REBOUND = "The name `{name}` was bound again after its answer cell; both were judged and the "
"better counts."


def questions(task: FunctionTask, rng: np.random.Generator) -> list[Case]:
    """Everything to ask: public cases, probes, and each error case's neighbour right after it."""
    # A tester's public candidates are those that the student's notebook has; grading has others.
    public = [] if isinstance(task, CandidateTask) else task.public()
    return with_neighbours([*public, *task.probes(rng)])


def with_neighbours(cases: Iterable[Case]) -> list[Case]:
    out: list[Case] = []
    for case in cases:
        out.append(case)
        if case.neighbour is not None:
            out.append(replace(case, args=case.neighbour, neighbour=None, returns_only=True))
    return out


def calls(cases: Sequence[Case]) -> list[tuple]:
    """The argument tuples of `cases`, for `kernel.call`."""
    return [case.args for case in cases]


def answer(case: Case) -> Callable[[Sequence[Any]], Outcome]:
    """For `kernel.serve`: answers one call of the candidate in `case`."""
    candidate: Candidate = case.args[0]
    return lambda args: play(candidate.function, args)


def outcomes(task: FunctionTask, function: Any, cases: Sequence[Case]) -> list[Outcome]:
    """What a trusted `function` gives on every case."""
    return [play(function, case.args) for case in cases]


@dataclass(frozen=True)
class Checked:
    """One object's differences, case by case."""

    differences: list[Difference | None]
    mutations: list[Difference | None]
    passed: dict[str, bool]

    @property
    def failed(self) -> set[str]:
        return {grade_id for grade_id, good in self.passed.items() if not good}


def check(
    task: FunctionTask, cases: Sequence[Case], want: Sequence[Outcome], got: Sequence[Outcome]
) -> Checked:
    """Which checkpoints `got` passes. A short `got` (a dead kernel) is filled with failures."""
    got = [*got, *[Outcome(raised=Raised("KernelDied"))] * (len(cases) - len(got))]
    differences = [
        difference(c, w, g, task.results, task.axes)
        for c, w, g in zip(cases, want, got, strict=True)
    ]
    for i, case in enumerate(cases):
        # An error counts only if the valid neighbour, asked right after it, returns.
        if case.neighbour is not None and differences[i] is None:
            follower = got[i + 1] if i + 1 < len(got) else Outcome(raised=Raised("KernelDied"))
            if follower.raised is not None:
                differences[i] = Difference("not-a-check", FAULTS["not-a-check"])
    mutations = [changed(g) for g in got]
    passed = {checkpoint.grade_id: True for checkpoint in task.checkpoints}
    asked = {case.checkpoint for case in cases}
    for grade_id in passed:
        passed[grade_id] = grade_id in asked
    for case, bad, mutation in zip(cases, differences, mutations, strict=True):
        if bad is not None:
            passed[case.checkpoint] = False
        if mutation is not None:
            passed[task.mutation or case.checkpoint] = False
    if task.mutation and any(d is not None and d.kind == "not-attempted" for d in differences):
        passed[task.mutation] = False
    return Checked(differences, mutations, passed)


def _same(case: Case, want: Outcome, mine: Outcome, theirs: Outcome, right: bool) -> bool:
    """Whether `mine` is what the misconception gives; at an error case it may also be right."""
    if equal(case, theirs, mine):
        return set(theirs.changed) <= set(mine.changed)
    return want.raised is not None and right


def _same_error(want: Outcome, mine: Outcome, theirs: Outcome) -> bool:
    """Where a value was asked for, an error names a mistake only if it says the same.

    Any slip may raise; only its text tells `if allowed:` from a mask that blocks everything.
    """
    if want.raised is not None or mine.raised is None or theirs.raised is None:
        return True
    return mine.raised.mark == theirs.raised.mark


_WANTED: dict[tuple[str, int], tuple[Any, list[Outcome]]] = {}


def reference_outcomes(task: FunctionTask, cases: Sequence[Case]) -> list[Outcome]:
    """The trusted outcomes, computed once for a whole class."""
    key = (task.name, id(cases))
    if key not in _WANTED or _WANTED[key][0] is not cases:
        if len(_WANTED) >= 64:
            _WANTED.clear()
        if isinstance(task, CandidateTask):
            want = [Outcome(value=case.args[0].right) for case in cases]
        else:
            want = outcomes(task, task.reference, cases)
        _WANTED[key] = (cases, want)
    return _WANTED[key][1]


_KNOWN: dict[tuple[str, int], tuple[Any, list]] = {}


def _known(task: FunctionTask, cases: Sequence[Case], want: Sequence[Outcome]) -> list[tuple]:
    """Each misconception with its outcomes and failed checkpoints, computed once for a whole class.

    The list of cases is the key, by identity; it is kept alive beside the answer.
    """
    key = (task.name, id(cases))
    if key not in _KNOWN or _KNOWN[key][0] is not cases:
        found = []
        for wrong in task.misconceptions:
            theirs = outcomes(task, wrong.implementation, cases)
            found.append((wrong, theirs, check(task, cases, want, theirs).failed))
        if len(_KNOWN) >= 64:
            _KNOWN.clear()
        _KNOWN[key] = (cases, found)
    return _KNOWN[key][1]


@dataclass(frozen=True)
class Match:
    name: str
    message: str
    cases: int


def matches(
    task: FunctionTask,
    cases: Sequence[Case],
    want: Sequence[Outcome],
    got: Sequence[Outcome],
    checked: Checked,
) -> dict[str, list[Match]]:
    """For every failed checkpoint the misconceptions whose outcomes equal the student's.

    A misconception matches if its outcomes are the student's on every case of the checkpoint (an error
    case may also be right). Of several, those that agree on the most cases of the whole task are named.
    """
    found: dict[str, dict[Match, int]] = {grade_id: {} for grade_id in checked.failed}
    for wrong, theirs, fails in _known(task, cases, want):
        alike = [
            equal(c, t, g) and _same_error(w, g, t)
            for c, w, t, g in zip(cases, want, theirs, got, strict=True)
        ]
        same = [
            _same(c, w, g, t, d is None) and _same_error(w, g, t)
            for c, w, g, t, d in zip(cases, want, got, theirs, checked.differences, strict=True)
        ]
        for grade_id in checked.failed & fails:
            local = [s for s, c in zip(same, cases, strict=True) if c.checkpoint == grade_id]
            if all(local):
                found[grade_id][Match(wrong.name, wrong.message, len(local))] = sum(alike)
    return {
        grade_id: [m for m, count in likely.items() if count == max(likely.values())]
        for grade_id, likely in found.items()
    }


def variants(task: FunctionTask, earlier: Mapping[str, Sequence[str]]) -> list[Any]:
    """References that call misconceived callees, for every diagnosed combination (bounded)."""
    choices = []
    for callee in task.callees:
        names = earlier.get(callee.name, ())
        wrong = [m.implementation for m in callee.misconceptions if m.name in names]
        # A callee that is right may itself call something that was diagnosed.
        wrong += variants(callee, earlier)[:MAX_INNER]
        choices.append([(callee.name, None), *[(callee.name, w) for w in wrong]])
    found: list[Any] = []
    for combination in product(*choices):
        names = {name: wrong for name, wrong in combination if wrong is not None}
        if not names:
            continue
        if task.given is not None:
            found.extend(task.given(names))
        else:
            for function in (task.reference, *[a.implementation for a in task.alternatives]):
                used = set(getattr(function, "__code__", _NO_CODE).co_names) & set(names)
                if used == set(names):
                    found.append(rebound(function, names))
    return found[:MAX_VARIANTS]


def _carried(
    task: FunctionTask,
    cases: Sequence[Case],
    want: Sequence[Outcome],
    got: Sequence[Outcome],
    checked: Checked,
    earlier: Mapping[str, Sequence[str]],
) -> set[str]:
    """Failed checkpoints that are right given the earlier misconceptions."""
    found: set[str] = set()
    for variant in variants(task, earlier):
        theirs = outcomes(task, variant, cases)
        same = [
            _same(c, w, g, t, d is None)
            for c, w, g, t, d in zip(cases, want, got, theirs, checked.differences, strict=True)
        ]
        for grade_id in checked.failed - found:
            local = [s for s, c in zip(same, cases, strict=True) if c.checkpoint == grade_id]
            mutated = task.mutation == grade_id and any(
                set(g.changed) - set(t.changed) for g, t in zip(got, theirs, strict=True)
            )
            if local and all(local) and not mutated:
                found.add(grade_id)
        if found == checked.failed:
            break
    return found


def _below(task: FunctionTask) -> list[str]:
    """Names of everything that the task calls, however deep."""
    found = [name for callee in task.callees for name in (callee.name, *_below(callee))]
    return list(dict.fromkeys(found))


def _constant(cases: Sequence[Case], want: Sequence[Outcome], got: Sequence[Outcome]) -> bool:
    """Whether one and the same answer came for three or more inputs with different right
    answers."""
    pairs = [
        (c, w, g)
        for c, w, g in zip(cases, want, got, strict=True)
        if w.raised is None and g.raised is None and not c.returns_only
    ]
    if len(pairs) < 3 or any(isinstance(w.value, (bool, np.bool_)) for _, w, _ in pairs):
        return False
    first = pairs[0]
    same = all(equal(first[0], first[2], g) for _, _, g in pairs[1:])
    varied = sum(not equal(first[0], first[1], w) for _, w, _ in pairs[1:])
    return same and varied >= 2


def _fault(
    checkpoint: str, task: FunctionTask, cases: Sequence[Case], checked: Checked
) -> Difference | None:
    """The universal fault that all failing cases of a checkpoint share."""
    bad = [
        d
        for c, d in zip(cases, checked.differences, strict=True)
        if c.checkpoint == checkpoint and d is not None and not c.returns_only
    ]
    kinds = {d.kind for d in bad}
    if len(kinds) == 1 and bad[0].kind in FAULTS:
        return bad[0]
    if not bad:
        return next((m for m in checked.mutations if m is not None), None)
    return None


def _mutated(
    checkpoint: str, task: FunctionTask, cases: Sequence[Case], checked: Checked
) -> Difference | None:
    """The changed argument that counts in a checkpoint, whatever else is wrong there."""
    for case, mutation in zip(cases, checked.mutations, strict=True):
        if mutation is not None and (task.mutation or case.checkpoint) == checkpoint:
            return mutation
    return None


def _first(checkpoint: str, cases: Sequence[Case], checked: Checked) -> str:
    for case, bad in zip(cases, checked.differences, strict=True):
        if case.checkpoint == checkpoint and bad is not None:
            if case.args and isinstance(case.args[0], Candidate):
                return f"{bad.sentence} The candidate: {case.note}."
            where = f" Input: {case.note}{shapes(case)}." if case.note or shapes(case) else ""
            return bad.sentence + where
    return ""


def shapes(case: Case) -> str:
    """The shapes of a case's arrays, e.g. ` (3, 4), (5, 4)`: sizes are no secret, numbers are."""
    found = []
    for arg in case.args:
        array = arg.array if isinstance(arg, Strided) else arg
        if isinstance(array, np.ndarray):
            found.append(str(array.shape))
    return f" {', '.join(found)}" if found else ""


def _wrong_message(
    grade_id: str,
    task: FunctionTask,
    cases: Sequence[Case],
    checked: Checked,
    named: Sequence[Match],
    fault: Difference | None,
) -> str:
    parts = []
    if named:
        count = named[0].cases
        names = " and ".join(f"`{m.name}`" for m in named)
        what = "input" if count == 1 else "inputs"
        parts.append(f"On {count} of {count} {what} your {task.name} gives what {names} gives.")
        parts.extend(dict.fromkeys(m.message for m in named))
    if fault is not None and fault.kind not in {m.name for m in named}:
        parts.append(fault.sentence)
    if not parts:
        parts.append(_first(grade_id, cases, checked))
    return " ".join(part for part in parts if part)


def _judge_one(
    task: FunctionTask,
    cases: Sequence[Case],
    want: Sequence[Outcome],
    got: Sequence[Outcome],
    earlier: Mapping[str, Sequence[str]],
) -> dict[str, Verdict]:
    checked = check(task, cases, want, got)
    got = [*got, *[Outcome(raised=Raised("KernelDied"))] * (len(cases) - len(got))]
    verdicts: dict[str, Verdict] = {}
    kinds = {d.kind for d in checked.differences if d is not None}
    unwritten = kinds == {"not-attempted"}
    named = {} if unwritten or not checked.failed else matches(task, cases, want, got, checked)
    carried = (
        _carried(task, cases, want, got, checked, earlier) if checked.failed and earlier else set()
    )
    constant = bool(checked.failed) and not unwritten and _constant(cases, want, got)
    for checkpoint in task.checkpoints:
        grade_id, points = checkpoint.grade_id, checkpoint.points
        if checked.passed[grade_id]:
            verdicts[grade_id] = Verdict(points, points, "right", f"Right: {checkpoint.property}.")
        elif unwritten:
            verdicts[grade_id] = Verdict(0.0, points, "not-attempted", "Not written yet.")
        elif grade_id in carried:
            known = [name for name in _below(task) if earlier.get(name)]
            callees = " and ".join(f"`{name}`" for name in known)
            verdicts[grade_id] = Verdict(points, points, "carried", CARRIED.format(callees=callees))
        else:
            fault = _fault(grade_id, task, cases, checked)
            fault = fault or _mutated(grade_id, task, cases, checked)
            if constant:
                fault = Difference("reads-global", FAULTS["reads-global"])
            found = named.get(grade_id, [])
            names = [m.name for m in found]
            if fault is not None and fault.kind not in names:
                names.append(fault.kind)
            message = _wrong_message(grade_id, task, cases, checked, found, fault)
            verdicts[grade_id] = Verdict(0.0, points, "wrong", message, tuple(names))
    return verdicts


def judge(
    task: FunctionTask,
    cases: Sequence[Case],
    own: Sequence[Outcome] | None,
    last: Sequence[Outcome] | None,
    earlier: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Verdict]:
    """Verdicts by grade_id.

    Args:
        cases: as `questions` made them; `own` and `last` hold one outcome for each.
        own: outcomes of the object bound right after the answer cell; None if the name was unbound.
        last: outcomes of the object bound after the last cell; None if unbound, or the same object.
        earlier: names of the misconceptions diagnosed in functions that this one calls.
    """
    want = reference_outcomes(task, cases)
    return _better(task, cases, want, (own, last), earlier or {})


def _better(
    task: FunctionTask,
    cases: Sequence[Case],
    want: Sequence[Outcome],
    moments: tuple[Sequence[Outcome] | None, Sequence[Outcome] | None],
    earlier: Mapping[str, Sequence[str]],
) -> dict[str, Verdict]:
    """The better of the two moments' verdicts, with a note if they differ."""
    given = [got for got in moments if got is not None]
    if not given:
        text = f"`{task.name}` is not defined: its answer cell did not run, or was renamed."
        return {c.grade_id: Verdict(0.0, c.points, "missing", text) for c in task.checkpoints}
    judged = [_judge_one(task, cases, want, got, earlier) for got in given]
    if len(judged) == 1:
        return judged[0]
    totals = [sum(v.score for v in verdicts.values()) for verdicts in judged]
    best = judged[1] if totals[1] >= totals[0] else judged[0]
    if totals[0] == totals[1]:
        return best
    note = REBOUND.format(name=task.name)
    return {grade_id: replace(v, notes=(*v.notes, note)) for grade_id, v in best.items()}


def diagnosed(verdicts: Mapping[str, Verdict]) -> tuple[str, ...]:
    """All misconceptions named in a task's verdicts, for the `earlier` of the functions that call
    it."""
    return tuple(dict.fromkeys(name for v in verdicts.values() for name in v.misconceptions))
