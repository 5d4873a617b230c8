"""What is said in two places is said alike: notebooks, task definition, lesson."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import attention_lab as lab
from autograder.notebook_check import meta
from autograder.tasks.model import ManualTask
from autograder.tasks.w07_h2_attention import ASSIGNMENT, HEATMAP_SCHEME, LESSON
from tests.walkthrough.play import NOTEBOOKS, play, source

ONE, TWO, THREE = NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_each_checkpoint_states_its_property_and_points(name):
    cells = {meta(c)["grade_id"]: c for c in source(name).cells if meta(c).get("grade")}
    text = "\n".join(cell.source for cell in source(name).cells)
    for checkpoint in ASSIGNMENT.notebook(name).checkpoints():
        cell = cells[checkpoint.grade_id]
        if cell.cell_type == "code":
            assert cell.source.splitlines()[0] == f"# Property: {checkpoint.property}."
            assert f'with lab.checkpoint("{checkpoint.grade_id}"):' in cell.source
        unit = "mark" if checkpoint.points == 1 else "marks"
        assert f"**Checkpoint: {checkpoint.property} ({checkpoint.points:g} {unit})**" in text


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_notebook_knows_its_checkpoints_and_the_lesson_from_the_start(name, tmp_path):
    played = play(name, [], tmp_path)
    parts = ASSIGNMENT.notebook(name).parts
    assert list(played.signs) == [
        p.checkpoint.grade_id for p in parts if not isinstance(p, ManualTask)
    ]
    for key, start in played.names["start"].items():
        if key in LESSON:  # beside these, notebook 1 holds two printed results
            assert np.array_equal(start, np.array(LESSON[key])), key
        else:
            assert key in ("scores", "weights")
    assert set(lab._LESSON) >= set(played.names["start"])


def test_twelve_checkpoints_at_least_and_one_question_in_words():
    checkpoints = [c for notebook in ASSIGNMENT.notebooks for c in notebook.checkpoints()]
    assert len(checkpoints) == 15
    assert [
        p.checkpoint.points
        for n in ASSIGNMENT.notebooks
        for p in n.parts
        if isinstance(p, ManualTask)
    ] == [1]
    assert sum(c.points for c in checkpoints) == 43
    assert sum(notebook.minutes for notebook in ASSIGNMENT.notebooks) == 25


def test_the_mark_scheme_in_the_notebook_is_the_definition_s():
    (cell,) = [cell for cell in source(THREE).cells if cell.id == "heatmap-supports"]
    scheme = cell.source.split("### BEGIN MARK SCHEME\n")[1].split("\n### END MARK SCHEME")[0]
    assert scheme == HEATMAP_SCHEME


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_section_predicts_runs_explains_changes_and_checks(name):
    ids = [cell.id for cell in source(name).cells]
    checks = [
        meta(c)["grade_id"]
        for c in source(name).cells
        if meta(c).get("grade") and c.cell_type == "code"
    ]
    changes = [cell_id for cell_id in ids if cell_id.startswith("your-change-")]
    assert len(changes) == len(checks)
    previous = 0
    for change, check in zip(changes, checks, strict=True):
        section = ids[previous : ids.index(check)]
        assert any(cell_id.startswith("predict-") for cell_id in section), section
        assert section.index(change) > 0
        previous = ids.index(check)


def test_every_changed_run_has_names_of_its_own():
    for name in NOTEBOOKS:
        for cell in source(name).cells:
            if cell.id.startswith("your-change-"):
                bound = [line.split(" = ")[0] for line in cell.source.splitlines() if " = " in line]
                assert bound
                assert all(word.startswith("my_") for word in bound), bound


def test_the_numbers_of_the_lesson(tmp_path):
    held = {name: play(name, [], tmp_path).names for name in NOTEBOOKS}
    one, two, three = held[ONE], held[TWO], held[THREE]
    for notebook in (one, three):
        assert np.allclose(notebook["scores"], [[0.7071, 0, 0.7071]], atol=5e-5)
        assert np.allclose(notebook["weights"], [[0.4011, 0.1978, 0.4011]], atol=5e-5)
        assert np.allclose(notebook["context"], [[8.0222, 5.9889]], atol=5e-5)
        assert notebook["SEED"] == 2026
    assert one["Q"].shape == (1, 2)
    assert one["K"].shape == one["V"].shape == (3, 2)
    assert np.array_equal(two["causal_weights"][0], [1, 0, 0])
    assert np.array_equal(three["causal_weights"], two["causal_weights"])
    assert two["temperature"] == 1
    assert np.all(two["combined_weights"][:, 2] == 0)
    assert np.allclose(three["sdpa_context"], three["context"], rtol=0, atol=1e-5)
    assert np.array_equal(three["V_changed"][1], [100, 100])
    assert np.allclose(three["removed_weights"], [[0.5, 0, 0.5]])
    assert np.allclose(three["same_weights"], 1 / 3)
    assert np.allclose(three["same_masked_weights"], [[0.5, 0, 0.5]] * 3)


def test_every_generator_has_the_seed(tmp_path):
    run_1 = next(c.source for c in source(ONE).cells if c.id == "run-1")
    for call in ("random.seed(SEED)", "np.random.seed(SEED)", "np.random.default_rng(SEED)"):
        assert call in run_1
    play(THREE, [], tmp_path)
    assert torch.initial_seed() == 2026
    assert torch.are_deterministic_algorithms_enabled()
