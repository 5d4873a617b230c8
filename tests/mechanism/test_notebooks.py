"""Do the notebooks hold what the experiment measured, and what the tasks ask?"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest

from autograder.tasks.attention_mechanism import ASSIGNMENT, bahdanau_decoder, experiments
from autograder.tasks.model import FunctionTask
from experiments import copy_task, reference_seeds
from experiments.copy_report import accuracies

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "source" / "attention-mechanism"


def notebook(name: str):
    return nbformat.read(SOURCE / f"{name}.ipynb", as_version=4)


def cell(name: str, cell_id: str) -> str:
    return next(c.source for c in notebook(name).cells if c.id == cell_id)


def bare(text: str) -> str:
    """Code without spaces, so that only words count."""
    return re.sub(r"\s+|,(?=\s*[)\]}])", "", text)


@pytest.mark.parametrize(
    ("cell_id", "start"),
    [
        ("remembered", "@contextlib.contextmanager"),
        ("attention-copier", "class AttentionCopier"),
        ("decode", "def decode("),
        ("plain-copier", "class PlainCopier"),
        ("plain-greedy", "def plain_greedy"),
        ("train", "def train("),
        ("accuracy", "@torch.no_grad()\ndef accuracy"),
        ("progress-bar", "class Bar"),
    ],
)
def test_the_notebook_trains_with_the_experiment_s_own_code(cell_id, start):
    text = Path(copy_task.__file__).read_text(encoding="utf-8")
    assert bare(start) in bare(cell("3-copy-task", cell_id))
    assert bare(cell("3-copy-task", cell_id)) in bare(text)


def test_the_short_training_is_the_one_that_ten_seeds_passed():
    for length, updates in reference_seeds.SETTINGS.items():
        text = cell("3-copy-task", f"train-length-{length}")
        assert f'trained("attention", {length}, {updates})' in text
    assert f"solved={reference_seeds.SOLVED}" in cell("3-copy-task", "train-length-5")
    rows = json.loads((copy_task.RESULTS / "reference-seeds.json").read_text("utf-8"))
    assert len({row["seed"] for row in rows}) == 10
    assert all(row["accuracy"] > experiments.BARS[row["length"]] for row in rows)


def test_the_published_numbers_are_the_results():
    names: dict = {}
    exec(cell("3-copy-task", "published-results"), names)
    for kind, told in (("attention", names["ATTENTION"]), ("plain", names["PLAIN"])):
        for length, seen in accuracies(kind).items():
            assert np.allclose(told[length], seen, atol=6e-4), (kind, length)


def test_the_prompt_is_the_committed_copy():
    names: dict = {}
    exec(cell("2-padding-and-heads", "prompt"), names)
    kept = (ROOT / "docs" / "prompt-attention-shapes.md").read_text(encoding="utf-8")
    assert names["PROMPT"] == kept
    for needed in ("name: attention-shapes", "phase: 5", "lesson: 10", "1. ", "4. ", "Refuse"):
        assert needed in kept
    assert "outputs/prompt-attention-shapes.md" in cell("2-padding-and-heads", "write-prompt")


def test_the_drawing_is_the_committed_one_and_has_words():
    names: dict = {}
    for cell_id in ("draw-box", "draw-attention"):
        exec(cell("1-additive-and-luong", cell_id), names)
    call = re.search(
        r"attention_svg\((.*?)\n?\)\n", cell("1-additive-and-luong", "show-attention"), re.S
    )
    picture, words = eval(f"attention_svg({call.group(1)})", names)
    assert (ROOT / "assets" / "attention.svg").read_text(encoding="utf-8") == picture + "\n"
    assert f"<title>{words}</title>" in picture
    assert 'role="img"' in (ROOT / "assets" / "attention-heatmap.svg").read_text("utf-8")


def test_the_shapes_table_uses_the_letters_of_the_docstrings():
    names = {"evidence": type("E", (), {"record": lambda self, **values: None})()}
    exec(cell("1-additive-and-luong", "shapes-table"), names)
    letters = {letter for _, letters, _ in names["TABLE"] for letter in letters.split()}
    docstrings = " ".join(
        part.docstring for n in ASSIGNMENT.notebooks for part in n.parts
        if isinstance(part, FunctionTask)
    )  # fmt: skip
    assert letters == set(names["SIZES"])
    assert all(letter in docstrings for letter in letters)


def test_the_locked_probe_asks_what_the_judge_compares():
    names = {"np": np, "contextlib": contextlib, "decoder_step": lambda *asked: asked}
    exec(cell("3-copy-task", "step_probe"), names)
    for told, wanted in zip(names["step_probe"], experiments.step_probe_arguments(), strict=True):
        assert np.array_equal(told, wanted)


def test_a_known_mistake_in_step_is_recognised_and_a_right_step_is_not():
    asked = experiments.step_probe_arguments()
    for one in (bahdanau_decoder.TASK.reference, *(
        a.implementation for a in bahdanau_decoder.TASK.alternatives)):  # fmt: skip
        assert experiments.misconceived(list(one(*asked))) == ""
    wrong = next(m for m in bahdanau_decoder.TASK.misconceptions if m.name == "decoder-no-tanh")
    assert experiments.misconceived(list(wrong.implementation(*asked))) == wrong.name
    assert experiments.misconceived(None) == ""
    assert experiments.misconceived([1, 2, 3]) == ""


def test_trained_weights_are_judged_by_what_they_copy():
    model = copy_task.AttentionCopier(d_emb=4, d_h=6, d_attn=3)
    weights = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    untrained = experiments.judge_trained({"trained_5": weights, "trained_15": weights})
    assert (untrained.verdict, untrained.score) == ("wrong", 0)
    assert experiments.judge_trained({}).verdict == "not-attempted"
    assert experiments.judge_trained({"trained_5": {"x": 1}, "trained_15": weights}).score == 0
    wrong = next(m for m in bahdanau_decoder.TASK.misconceptions if m.name == "decoder-no-tanh")
    probe = list(wrong.implementation(*experiments.step_probe_arguments()))
    carried = experiments.judge_trained(
        {"step_probe": probe, "trained_5": weights, "trained_15": weights}
    )
    assert (carried.verdict, carried.score) == ("carried", 2)


@pytest.mark.parametrize(
    ("state", "verdict"),
    [([0.1, 0.9, 0.3], "right"), ([0.9, 0.1, 0.2], "not-attempted"), ([0.9, 0.2, 0.2], "wrong")],
)
def test_the_moved_state(state, verdict):
    assert experiments.judge_state({"my_state": np.array(state)}).verdict == verdict


def test_the_polarity_of_the_mask():
    real = np.arange(5) < np.array([[3], [5], [2]])
    assert experiments.judge_polarity({"blocked": ~real}).verdict == "right"
    turned = experiments.judge_polarity({"blocked": real})
    assert turned.misconceptions == ("polarity-not-inverted",)
    assert experiments.judge_polarity({"blocked": None}).verdict == "not-attempted"
    assert experiments.judge_polarity({"blocked": (~real).astype(float)}).verdict == "wrong"


def test_the_counterfactual():
    keep = np.array([True, False, True])
    before = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    after = before * keep / (before * keep).sum(axis=1, keepdims=True)
    values = {"my_keep": keep, "weights_before": before, "weights_after": after}
    assert experiments.judge_counterfactual(values).verdict == "right"
    values["weights_after"] = before * keep
    assert experiments.judge_counterfactual(values).verdict == "wrong"
    values["my_keep"] = np.ones(3, dtype=bool)
    assert experiments.judge_counterfactual(values).verdict == "not-attempted"
