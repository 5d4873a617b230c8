"""Are right answers accepted and wrong ones named, for every function of the assignment?"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

from autograder.tasks import judge
from autograder.tasks.attention_mechanism import ASSIGNMENT, bahdanau_decoder, diagnose_shapes
from autograder.tasks.authoring import answer_source
from autograder.tasks.model import FunctionTask

TASKS = {
    part.name: part
    for notebook in ASSIGNMENT.notebooks
    for part in notebook.parts
    if isinstance(part, FunctionTask)
}
WRONG = [(name, wrong) for name, task in TASKS.items() for wrong in task.misconceptions]
RIGHT = [
    (name, label, function)
    for name, task in TASKS.items()
    for label, function in [
        ("reference", task.reference),
        *((other.name, other.implementation) for other in task.alternatives),
    ]
]


def verdicts(task, function, seed):
    """The verdicts on the public cases (seed None) or on everything that a run asks."""
    cases = judge.with_neighbours(task.public())
    if seed is not None:
        cases = judge.questions(task, np.random.default_rng(seed))
    return judge.judge(task, cases, judge.outcomes(task, function, cases), None)


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(
    ("name", "label", "function"), RIGHT, ids=lambda x: x if isinstance(x, str) else "function"
)
def test_right_answers_get_full_marks(name, label, function, seed):
    found = verdicts(TASKS[name], function, seed)
    assert {v.verdict for v in found.values()} == {"right"}, found


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize(("name", "wrong"), WRONG, ids=lambda x: getattr(x, "name", x))
def test_a_misconception_loses_its_own_checkpoints_under_its_own_name(name, wrong, seed):
    found = verdicts(TASKS[name], wrong.implementation, seed)
    assert {g for g, v in found.items() if v.verdict != "right"} == set(wrong.fails)
    assert all(wrong.name in found[grade_id].misconceptions for grade_id in wrong.fails)


def keeping_the_keys(self, token, state, encoder_states, allowed):
    """Right in the first step of a decoder; in the next sentence it scores the states of the first."""
    if not hasattr(self, "keys"):
        self.keys = self.U_a(encoder_states)
    scores = self.v_a(torch.tanh(self.W_a(state).unsqueeze(1) + self.keys)).squeeze(2)
    weights = torch.softmax(scores.masked_fill(~allowed, -torch.inf), dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def test_what_a_decoder_keeps_from_another_sentence_shows():
    task = bahdanau_decoder.TASK
    found = verdicts(task, bahdanau_decoder.Adapted(keeping_the_keys), 1)
    assert {v.verdict for v in found.values()} == {"wrong"}


def test_there_are_enough_of_both():
    for task in TASKS.values():
        assert len(task.misconceptions) >= 8, task.name
        assert len(task.alternatives) >= 6, task.name
        for wrong in task.misconceptions:
            assert wrong.message.count(".") + wrong.message.count(":") >= 2, wrong.name


def test_names_and_grade_ids_are_unique():
    names = [wrong.name for task in TASKS.values() for wrong in task.misconceptions]
    ids = [c.grade_id for notebook in ASSIGNMENT.notebooks for c in notebook.checkpoints()]
    assert len(set(names)) == len(names)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    "task", [bahdanau_decoder.TASK, diagnose_shapes.TASK], ids=lambda t: t.name
)
def test_answers_of_adapted_tasks_are_answer_cells(task):
    for one in (task.reference, *(w.implementation for w in task.misconceptions)):
        text = answer_source(one, task.cell)
        compile(text, "cell", "exec")
        assert f" {task.cell}(" in text


def test_every_probe_has_sizes_that_hide_no_transpose():
    for name in ("additive_attention", "general_attention", "multi_head_general"):
        cases = TASKS[name].probes(np.random.default_rng(3))
        assert any("square" in case.note for case in cases), name
        assert any(case.args[1].shape[0] == 1 for case in cases if "one enc" in case.note) or (
            name == "multi_head_general"
        )


def test_references_live_in_the_tasks_alone():
    for task in TASKS.values():
        assert "autograder.tasks" in inspect.getmodule(type(task)).__name__
