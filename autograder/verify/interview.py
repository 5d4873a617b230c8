"""Runs a student's notebook in a kernel and asks it for data: values, and what its functions return.

Whatever the notebook prints or claims is kept for the reader and never believed. The order matters:

1. the cells, top to bottom; the values of a checkpoint just before its cell, a function right after its own;
2. after the last cell, the values again, then the probes (so that no cell can print them);
3. last of all the candidates of a tester task, when every other answer is sealed.

A cell or a probe that kills the kernel is left out and the rest is run again, so that what had passed stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import nbformat
import numpy as np

from autograder.execute.wire import Outcome
from autograder.tasks import judge
from autograder.tasks.model import CandidateTask, Case, FunctionTask, NotebookTasks, ValueTask

RESTARTS = 4


class GraderFault(Exception):
    """The grader's own machine is at fault: nothing may be concluded about the student."""


@dataclass
class Answers:
    """What one notebook answered. `own` is from right after the answer's cell, `last` from the end."""

    outputs: dict[int, list] = field(default_factory=dict)
    values_own: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    values_last: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    calls_own: dict[str, list[Outcome]] = field(default_factory=dict)
    calls_last: dict[str, list[Outcome]] = field(default_factory=dict)
    evidence: Mapping[str, Any] | None = None
    notes: list[str] = field(default_factory=list)


Probes = Mapping[str, Sequence[Case]]
"""The questions of one notebook, by the name of the function; drawn once from the run's nonce."""


def draw(tasks: NotebookTasks, nonce: str) -> Probes:
    """The probes of one notebook; equal for every student of the run that `nonce` names."""
    return {
        part.name: judge.questions(part, generator(nonce, part.name))
        for part in tasks.parts
        if isinstance(part, FunctionTask)
    }


def generator(nonce: str, name: str) -> np.random.Generator:
    """The random generator of one task in the run that `nonce` names."""
    return np.random.default_rng([int(nonce, 16), *name.encode()])


def interview(
    executor,
    nb: nbformat.NotebookNode,
    tasks: NotebookTasks,
    probes: Probes,
    files=(),
) -> Answers:
    """Run the notebook and ask it everything.

    Args:
        executor: `autograder.execute.Executor`.
        nb: the repaired notebook; it is not changed.
        probes: what `draw` gave for this run.
        files: the other files that the student handed in.
    """
    skipped_cells: dict[int, str] = {}
    skipped_calls: set[str] = set()
    for _ in range(RESTARTS + 1):
        with executor.kernel(files=files) as kernel:
            talk = _Talk(kernel, nb, tasks, probes, skipped_cells, skipped_calls)
            culprit = talk.hold()
        if culprit is None:
            break
        if isinstance(culprit, int):
            skipped_cells[culprit] = _cell_name(nb, culprit)
        else:
            skipped_calls.add(culprit)
    answers = talk.answers
    for index, name in skipped_cells.items():
        answers.outputs.setdefault(index, talk.fatal_outputs.get(index, []))
        answers.notes.append(
            f"The cell {name} stopped Python (it exited, ran out of time or memory, or crashed); "
            f"it was left out, and the rest was run without it."
        )
    answers.notes += [
        f"`{name}` stopped Python when it was called; nothing else was lost."
        for name in sorted(skipped_calls)
    ]
    return answers


def _cell_name(nb, index: int) -> str:
    cell = nb.cells[index]
    name = cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id", "")
    return f"`{name}` (cell {index + 1})"


def _last_line(outputs: list) -> str:
    """The last line of what a failed cell shows."""
    texts = [o.get("evalue") or o.get("text") or "" for o in outputs]
    lines = [line for text in texts for line in str(text).splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it showed nothing"


class _Talk:
    """One conversation with one kernel; `hold` returns what killed it, None if nothing did."""

    def __init__(self, kernel, nb, tasks, probes, skipped_cells, skipped_calls):
        self.kernel, self.nb, self.tasks, self.probes = kernel, nb, tasks, probes
        self.skipped_cells, self.skipped_calls = skipped_cells, skipped_calls
        self.answers = Answers()
        self.fatal_outputs: dict[int, list] = {}
        self.value_tasks = {
            part.checkpoint.grade_id: part for part in tasks.parts if isinstance(part, ValueTask)
        }
        self.functions = [p for p in tasks.parts if isinstance(p, FunctionTask)]
        self.callables = {part.name for part in self.functions}
        self.bound: set[str] = set()

    def hold(self) -> int | str | None:
        culprit = self._run_cells()
        if culprit is None:
            culprit = self._ask_values()
        if culprit is None:
            culprit = self._probe()
        return culprit

    def _run_cells(self) -> int | None:
        first = True
        for index, cell in enumerate(self.nb.cells):
            if cell.cell_type != "code":
                continue
            grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if grade_id in self.value_tasks:
                names = self.value_tasks[grade_id].names
                self.answers.values_own[grade_id] = self.kernel.values(names)
            if index in self.skipped_cells:
                continue
            done = self.kernel.execute(cell.source)
            self.answers.outputs[index] = done.outputs
            if grade_id == "setup" and first and done.status == "error":
                raise GraderFault(
                    f"the course's own setup cell fails here: {_last_line(done.outputs)}"
                )
            first = False
            if done.status == "dead" or not self.kernel.alive:
                self.fatal_outputs[index] = done.outputs
                return index
            if grade_id in self.callables and self.kernel.bind(f"{grade_id}@own", grade_id):
                self.bound.add(f"{grade_id}@own")
        return None

    def _ask_values(self) -> None:
        names = sorted({name for task in self.value_tasks.values() for name in task.names})
        found = self.kernel.values([*names, "evidence_data"]) if names else {}
        for grade_id, task in self.value_tasks.items():
            self.answers.values_last[grade_id] = {
                name: found[name] for name in task.names if name in found
            }
        self.answers.evidence = found.get("evidence_data")
        for name in self.callables:
            if self.kernel.bind(f"{name}@last", name):
                self.bound.add(f"{name}@last")

    def _probe(self) -> str | None:
        sealed_last = sorted(self.functions, key=lambda task: isinstance(task, CandidateTask))
        for task in sealed_last:
            for moment, store in (
                ("own", self.answers.calls_own),
                ("last", self.answers.calls_last),
            ):
                key = f"{task.name}@{moment}"
                if key not in self.bound or key in self.skipped_calls:
                    continue
                store[task.name] = self._ask(task, key)
                if not self.kernel.alive:
                    return key
        return None

    def _ask(self, task: FunctionTask, key: str) -> list[Outcome]:
        cases = self.probes[task.name]
        if isinstance(task, CandidateTask):
            return [self.kernel.serve(key, judge.answer(case)) for case in cases]
        return self.kernel.call(key, [case.args for case in cases])
