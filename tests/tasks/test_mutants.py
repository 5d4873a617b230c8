"""Do the mutants differ from the reference, and is a hole in the probes seen?"""

import time
from dataclasses import replace

import numpy as np

from autograder import mutants
from autograder.tasks.model import Case
from autograder.tasks.w07_h2_practice import causal_mask, padding_mask, softmax


def test_every_mutant_is_another_text_and_a_function():
    made = mutants.mutants(softmax.TASK)
    assert len(made) > 25
    changes = [mutant.change for mutant in made]
    assert len(set(changes)) == len(changes)
    assert all(callable(mutant.function) for mutant in made)


def test_all_mutants_of_padding_mask_are_caught():
    result = mutants.examine(padding_mask.TASK)
    assert result.caught == result.made
    assert not result.survivors
    assert not result.missed


def test_a_hole_in_the_probes_is_seen():
    blind = replace(
        causal_mask.TASK,
        public=lambda: [],
        probes=lambda rng: [Case((1,), "causal_mask-past")],
    )
    result = mutants.examine(blind)
    assert result.survivors
    assert all(not survivor.reason for survivor in result.survivors)


def test_a_mutant_that_other_probes_catch_is_missed():
    draws = iter(range(100))

    def probes(rng):
        return [Case((1 if next(draws) == 0 else 4,), "causal_mask-past")]

    result = mutants.examine(
        replace(causal_mask.TASK, name="seldom", probes=probes, public=lambda: [])
    )
    assert result.missed


def test_a_known_survivor_has_its_reason():
    result = mutants.examine(softmax.TASK)
    assert [s.reason for s in result.survivors] == ["+inf is not asked"]


def test_an_endless_mutant_counts_as_caught(monkeypatch):
    monkeypatch.setattr(mutants, "SECONDS", 1)

    def endless(n):
        while True:
            time.sleep(0.01)

    assert mutants.loses(causal_mask.TASK, endless, 0)
    assert not mutants.loses(causal_mask.TASK, causal_mask.TASK.reference, 0)


def test_the_time_limit_leaves_no_alarm():
    with mutants.time_limit(5):
        assert np.ones(1).sum() == 1
    assert mutants.signal.alarm(0) == 0
