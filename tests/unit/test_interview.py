"""What the interview asks and when, with kernels that are played."""

from __future__ import annotations

from types import SimpleNamespace

import nbformat
import pytest

from autograder.tasks.model import Checkpoint, NotebookTasks, ValueTask, Verdict
from autograder.verify.interview import GraderFault, draw, interview


class Kernel:
    """Answers from a table: cell source -> status; values by name, after the cell that sets them."""

    def __init__(self, statuses):
        self.statuses, self.alive, self.bound, self.ran = statuses, True, {}, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def execute(self, source):
        self.ran.append(source)
        status = self.statuses.get(source, "ok")
        if status == "dead":
            self.alive = False
        elif status == "ok" and "=" in source:
            name, value = source.split("=")
            self.bound[name.strip()] = float(value)
        return SimpleNamespace(status=status, outputs=[])

    def values(self, names):
        return {n: self.bound[n] for n in names if n in self.bound} if self.alive else {}

    def bind(self, key, name):
        return False


class Executor:
    def __init__(self, statuses=()):
        self.statuses, self.kernels = dict(statuses), []

    def kernel(self, files=()):
        self.kernels.append(Kernel(self.statuses))
        return self.kernels[-1]


def judge(values):
    right = values.get("x") == 1
    return Verdict(float(right), 1.0, "right" if right else "wrong", "")


TASKS = NotebookTasks("nb", (ValueTask(Checkpoint("x-is-one", "x is one", 1), ("x",), judge),))


def notebook(*sources):
    cells = []
    for source in sources:
        cell = nbformat.v4.new_code_cell(source)
        if source in ("setup", "check"):
            name = {"setup": "setup", "check": "x-is-one"}[source]
            cell.metadata["nbgrader"] = {"grade_id": name, "grade": source == "check"}
        cells.append(cell)
    return nbformat.v4.new_notebook(cells=cells)


def ask(executor, *sources):
    return interview(executor, notebook(*sources), TASKS, draw(TASKS, "0" * 32))


def test_values_are_asked_before_the_checkpoint_and_after_the_last_cell():
    answers = ask(Executor(), "setup", "x = 1", "check", "x = 5")
    assert answers.values_own["x-is-one"] == {"x": 1.0}
    assert answers.values_last["x-is-one"] == {"x": 5.0}


def test_a_cell_that_kills_is_left_out_and_the_rest_is_run_again():
    executor = Executor({"die": "dead"})
    answers = ask(executor, "setup", "die", "x = 1", "check")
    assert answers.values_own["x-is-one"] == {"x": 1.0}
    assert len(executor.kernels) == 2
    assert "die" not in executor.kernels[1].ran
    assert "stopped Python" in answers.notes[0]


def test_a_setup_cell_that_fails_is_the_graders_fault_and_no_zero():
    with pytest.raises(GraderFault, match="setup cell fails"):
        ask(Executor({"setup": "error"}), "setup", "x = 1", "check")


def test_a_setup_cell_that_fails_after_student_code_is_the_students():
    answers = ask(Executor({"setup": "error"}), "x = 1", "setup", "check")
    assert answers.values_own["x-is-one"] == {"x": 1.0}
