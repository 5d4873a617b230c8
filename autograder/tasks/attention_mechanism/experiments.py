"""What is judged from values that the notebooks hold: recorded experiments, trained weights, words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from autograder.execute.wire import Foreign
from autograder.tasks.attention_mechanism import bahdanau_decoder
from autograder.tasks.attention_mechanism._given import softmax
from autograder.tasks.model import Checkpoint, ManualTask, ValueTask, Verdict

MEMORY = np.array([[1.0, 0.0, 0.2], [0.5, 0.5, 0.1], [0.1, 0.9, 0.3]])
"""cat, sat, mat: the encoder states of the worked example."""
START_STATE = np.array([0.9, 0.1, 0.2])
LENGTHS = np.array([3, 5, 2])
T_ENC = 5
SYMBOLS, START = 10, 10
BARS = {5: 0.9, 15: 0.8}
"""Token accuracy asked of the trained copiers; ten reference seeds all pass (docs/copy-task.md)."""


def _verdict(checkpoint: Checkpoint, good: bool, message: str, names: tuple = ()) -> Verdict:
    if good:
        return Verdict(
            checkpoint.points, checkpoint.points, "right", f"Right: {checkpoint.property}."
        )
    return Verdict(0.0, checkpoint.points, "wrong", message, names)


def _array(value: Any) -> np.ndarray | None:
    """A numpy array or a tensor's content, None for anything else."""
    value = value.array if isinstance(value, Foreign) else value
    return value if isinstance(value, np.ndarray) else None


STATE = Checkpoint("my_state-third-wins", "the moved state gives the third word most weight", 1)


def judge_state(values: Mapping[str, Any]) -> Verdict:
    state = _array(values.get("my_state"))
    if state is None or state.shape != (3,) or not np.isfinite(state.astype(float)).all():
        return _verdict(STATE, False, "`my_state` must be a numpy array of three finite numbers.")
    if np.allclose(state, START_STATE):
        return Verdict(0.0, 1.0, "not-attempted", "The state still is the lesson's: move it.")
    weights = softmax(MEMORY @ state)
    good = weights[2] > weights[:2].max()
    text = (
        f"Word {int(weights.argmax())} has most weight. Move the state towards the third row of H."
    )
    return _verdict(STATE, bool(good), text)


POLARITY = Checkpoint(
    "blocked-polarity", "True stands at padding, as nn.MultiheadAttention asks", 1
)


def judge_polarity(values: Mapping[str, Any]) -> Verdict:
    if values.get("blocked") is None:
        return Verdict(0.0, 1.0, "not-attempted", "`blocked` is not set yet.")
    blocked = _array(values["blocked"])
    real = np.arange(T_ENC) < LENGTHS[:, None]
    if blocked is None or blocked.shape != real.shape or blocked.dtype != bool:
        return _verdict(POLARITY, False, f"`blocked` must be a bool tensor of shape {real.shape}.")
    if (blocked == real).all():
        text = (
            "True stands at the real tokens. This module blocks where its mask is True: invert it."
        )
        return _verdict(POLARITY, False, text, ("polarity-not-inverted",))
    text = (
        "Compare `blocked` with the lengths, row by row: True belongs at padding, and only there."
    )
    return _verdict(POLARITY, bool((blocked == ~real).all()), text)


TRAINED = Checkpoint("copy-trained", "the trained weights copy sequences that nobody has seen", 2)


class Copier(nn.Module):
    """The notebook's AttentionCopier, run with one `step` or another."""

    def __init__(self, step, d_emb: int, d_h: int, d_attn: int):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS + 1, d_emb)
        self.encoder = nn.GRU(d_emb, d_h, batch_first=True)
        self.decoder = bahdanau_decoder.Decoder(SYMBOLS + 1, d_emb, d_h, d_h, d_attn)
        self.step = step

    @torch.no_grad()
    def forward(self, source):
        states, last = self.encoder(self.embedding(source))
        token, state = torch.full((len(source),), START), last[0]
        allowed, said = torch.ones(source.shape, dtype=torch.bool), []
        for _ in range(source.shape[1]):
            logits, state, _ = self.step(self.decoder, token, state, states, allowed)
            token = logits.argmax(dim=1)
            said.append(token)
        return torch.stack(said, dim=1)


def copied(weights: Any, length: int, step) -> float | None:
    """Token accuracy of the weights on sequences of the grader; None if they do not fit the model."""
    try:
        state = {name: torch.from_numpy(np.array(_array(a))) for name, a in weights.items()}
        d_emb, d_h = state["embedding.weight"].shape[1], state["encoder.weight_hh_l0"].shape[1]
        d_attn = state["decoder.W_a.weight"].shape[0]
        if max(d_emb, d_h, d_attn) > 512:
            return None
        model = Copier(step, d_emb, d_h, d_attn)
        model.load_state_dict(state)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError, RuntimeError):
        return None
    random = torch.Generator().manual_seed(90_210 + length)
    source = torch.randint(SYMBOLS, (200, length), generator=random)
    return float((model.eval()(source) == source).float().mean())


def step_probe_arguments() -> list[np.ndarray]:
    """What the locked cell `step_probe` asks the student's step; the cell says the same."""
    rng = np.random.default_rng(14)
    sizes = [(7, 3), (6, 5), (6, 4), (1, 6), (15, 7), (15, 5), (15,), (15,), (7, 9), (7,)]
    asked = [rng.normal(size=size) for size in sizes]
    asked += [np.array([5, 1]), rng.normal(size=(2, 5)), rng.normal(size=(2, 8, 4))]
    return [*asked, np.arange(8) < np.array([[6], [3]])]


def misconceived(probe: Any) -> str:
    """The misconception of `step` that gives what the student's step gave, "" if there is none."""
    if not isinstance(probe, (list, tuple)) or len(probe) != 3:
        return ""
    seen = [_array(one) for one in probe]

    def same(step) -> bool:
        want = step(*step_probe_arguments())
        return all(
            a is not None
            and a.dtype.kind == "f"
            and a.shape == w.shape
            and np.allclose(a, w, rtol=1e-4, atol=1e-5)
            for a, w in zip(seen, want, strict=True)
        )

    task = bahdanau_decoder.TASK
    if same(task.reference):
        return ""
    return next((m.name for m in task.misconceptions if same(m.implementation)), "")


def judge_trained(values: Mapping[str, Any]) -> Verdict:
    """One mark a length; the grader decodes sequences of its own with the weights it was given.

    A known mistake in `step` has its own checkpoint and is not counted again here: the training code is
    complete, and with the mistake it gives what it must give.
    """
    found = {}
    for length in BARS:
        weights = values.get(f"trained_{length}")
        if isinstance(weights, dict):
            found[length] = copied(weights, length, bahdanau_decoder.right)
    if not found:
        return Verdict(0.0, TRAINED.points, "not-attempted", "There are no trained weights yet.")
    told, score = [], 0.0
    for length, bar in BARS.items():
        seen = found.get(length)
        if seen is None:
            told.append(f"Length {length}: no weights of an AttentionCopier are there.")
        else:
            score += seen >= bar
            told.append(f"Length {length}: {seen:.2f} of the tokens are right, {bar} is asked.")
    if score == len(BARS):
        return _verdict(TRAINED, True, "")
    mistake = misconceived(values.get("step_probe"))
    if mistake and None not in found.values() and len(found) == len(BARS):
        text = f"Trained as the notebook says; {mistake} in your step was counted there, not here."
        return Verdict(TRAINED.points, TRAINED.points, "carried", text)
    return Verdict(score, TRAINED.points, "partial" if score else "wrong", " ".join(told))


COUNTERFACTUAL = Checkpoint(
    "counterfactual-masked", "the masked position has weight 0 and the others share its part", 1
)


def judge_counterfactual(values: Mapping[str, Any]) -> Verdict:
    keep = _array(values.get("my_keep"))
    before, after = _array(values.get("weights_before")), _array(values.get("weights_after"))
    if keep is None or before is None or after is None:
        text = "`my_keep`, `weights_before` and `weights_after` must be arrays: run the section."
        return _verdict(COUNTERFACTUAL, False, text)
    if keep.dtype != bool or keep.ndim != 1 or before.shape != after.shape or before.ndim != 2:
        text = "`my_keep` must be a bool array, one entry a source position."
        return _verdict(COUNTERFACTUAL, False, text)
    if keep.all():
        return Verdict(0.0, 1.0, "not-attempted", "Nothing is masked yet: put one False into it.")
    if before.shape[1] != keep.size or not keep.any():
        return _verdict(COUNTERFACTUAL, False, "Mask one position or several, but not all.")
    left = before.astype(float) * keep
    want = left / left.sum(axis=1, keepdims=True)
    good = (after[:, ~keep] == 0).all() and np.allclose(after, want, rtol=1e-3, atol=1e-4)
    text = (
        "The weights after masking are not those before, with the position left out and shared out."
    )
    return _verdict(COUNTERFACTUAL, bool(good), text)


WORDS = ManualTask(
    Checkpoint("explanation-words", "what the two experiments allow one to say", 1),
    """One mark for an answer with both halves: (1) in the copy task the weights matter for the output
(permuting them destroys it), in the classifier they do not (permuting leaves the predictions alone), so
that a heatmap alone cannot tell the two cases apart; (2) what would be needed: an ablation or a
counterfactual (masking, permuting, other weights) on the model and the task in question. Half a mark for
one half. "Attention is never an explanation" and "attention is an explanation" both miss the first half.""",
)
MOVED_STATE = ValueTask(STATE, ("my_state",), judge_state)
MASK_POLARITY = ValueTask(POLARITY, ("blocked",), judge_polarity)
COPY_TRAINED = ValueTask(TRAINED, ("step_probe", "trained_5", "trained_15"), judge_trained)
MASKED_OUT = ValueTask(
    COUNTERFACTUAL, ("my_keep", "weights_before", "weights_after"), judge_counterfactual
)
