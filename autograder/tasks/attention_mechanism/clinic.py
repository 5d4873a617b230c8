"""The shape clinic's patients: broken attention code, its diagnosis, a fix of one line, a regression test.

Every patient is a function with one wrong line. `tensor` has the wrong shape there, `right` is the shape it
should have, `fix` replaces the line. `docs/shape-clinic.md` is made from this list
(`python -m autograder.tasks.attention_mechanism.clinic`), tests play every patient, broken and repaired.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

T_ENC, T_DEC, D_H, D_S, D_ATTN, B, N_HEADS = 6, 4, 8, 10, 5, 3, 2
"""Sizes of which no two are equal, so that no wrong shape fits by chance."""

ADDITIVE = """\
def attend(s, H, W_a, U_a, v_a):
    query = W_a @ s
    keys = H @ U_a.T
    scores = np.tanh(keys + query) @ v_a
    e = np.exp(scores - scores.max())
    weights = e / e.sum()
    return weights @ H, weights
"""
GENERAL = """\
def attend(s, H, W):
    query = W.T @ s
    scores = H @ query
    e = np.exp(scores - scores.max())
    weights = e / e.sum()
    return weights @ H, weights
"""
DOT = """\
def attend(s, H):
    scores = H @ s
    e = np.exp(scores - scores.max())
    weights = e / e.sum()
    return weights @ H, weights
"""
BATCH = """\
def attend(S, H, W):
    scores = S @ W @ H.transpose(1, 2)
    weights = scores.softmax(dim=2)
    output = weights @ H
    return output, weights
"""
HEADS = """\
def attend(s, H, W):
    queries = s.reshape(len(W), -1)
    states = H.reshape(len(H), len(W), -1).transpose(1, 0, 2)
    scores = (queries[:, None, :] @ W @ states.transpose(0, 2, 1))[:, 0]
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return (weights[:, None] @ states).reshape(-1), weights
"""
SOUND = {"additive": ADDITIVE, "general": GENERAL, "dot": DOT, "batch": BATCH, "heads": HEADS}


@dataclass(frozen=True)
class Patient:
    """One broken implementation.

    Args:
        kind: which sound implementation it is, apart from one line.
        line, broken: the sound line (the fix) and the wrong one that stands in its place.
        tensor, right, has: the tensor with the wrong shape, the shape it should have, and the one it has.
        silent: whether it runs without an error and only the numbers or shapes are wrong.
    """

    name: str
    kind: str
    line: str
    broken: str
    tensor: str
    right: str
    has: str
    silent: bool = False

    @property
    def source(self) -> str:
        found = SOUND[self.kind].replace(self.line, self.broken)
        if found == SOUND[self.kind]:
            raise ValueError(f"{self.name}: its line is not in the sound implementation")
        return found


PATIENTS = (
    Patient(
        "transposed W_a", "additive", "query = W_a @ s", "query = W_a.T @ s",
        "W_a as used", "(d_attn, d_s)", "(d_s, d_attn)",
    ),
    Patient(
        "transpose of U_a left out", "additive", "keys = H @ U_a.T", "keys = H @ U_a",
        "U_a as used", "(d_h, d_attn)", "(d_attn, d_h)",
    ),
    Patient(
        "v_a as a column", "additive", "@ v_a", "@ v_a[:, None]",
        "scores", "(T_enc,)", "(T_enc, 1)",
    ),
    Patient(
        "scores as a column against their own maxima", "additive",
        "e = np.exp(scores - scores.max())",
        "scores = scores[:, None]; e = np.exp(scores - scores[:, 0])",
        "e", "(T_enc,)", "(T_enc, T_enc)", True,
    ),
    Patient(
        "the state as a column", "additive", "query = W_a @ s", "query = W_a @ s[:, None]",
        "query", "(d_attn,)", "(d_attn, 1)",
    ),
    Patient(
        "context of projected states", "additive", "return weights @ H, weights",
        "return weights @ keys, weights", "context", "(d_h,)", "(d_attn,)", True,
    ),
    Patient(
        "tanh summed, not projected", "additive", "np.tanh(keys + query) @ v_a",
        "np.tanh(keys + query) * v_a", "scores", "(T_enc,)", "(T_enc, d_attn)",
    ),
    Patient(
        "W the wrong way round", "general", "query = W.T @ s", "query = W @ s",
        "W as used", "(d_h, d_s)", "(d_s, d_h)",
    ),
    Patient(
        "W reshaped for a transpose", "general", "query = W.T @ s",
        "query = W.reshape(W.shape[1], W.shape[0]) @ s",
        "W as used", "the transpose (d_h, d_s)", "(d_h, d_s), its numbers in another order", True,
    ),
    Patient(
        "encoder states transposed", "general", "scores = H @ query", "scores = H.T @ query",
        "H as used", "(T_enc, d_h)", "(d_h, T_enc)",
    ),
    Patient(
        "product by broadcasting", "dot", "scores = H @ s", "scores = (H * s).sum(axis=1)",
        "s", "(d_h,)", "(1,), stretched", True,
    ),
    Patient(
        "weights not summed", "dot", "return weights @ H, weights",
        "return weights[:, None] * H, weights", "context", "(d_h,)", "(T_enc, d_h)", True,
    ),
    Patient(
        "softmax over the queries", "batch", "softmax(dim=2)", "softmax(dim=1)",
        "weights as normalised", "over T_enc, dim 2", "over T_dec, dim 1", True,
    ),
    Patient(
        "batch and time exchanged", "batch", "H.transpose(1, 2)", "H.transpose(0, 2)",
        "H as used", "(batch, d_h, T_enc)", "(d_h, T_enc, batch)",
    ),
    Patient(
        "mean over the batch", "batch", "output = weights @ H", "output = weights.mean(0) @ H",
        "weights as used", "(batch, T_dec, T_enc)", "(T_dec, T_enc), stretched over the batch", True,
    ),
    Patient(
        "heads cut by reshape alone", "heads",
        "states = H.reshape(len(H), len(W), -1).transpose(1, 0, 2)",
        "states = H.reshape(len(W), len(H), -1)",
        "states", "(n_heads, T_enc, d_h/n_heads) by a transpose", "the same sizes, positions mixed", True,
    ),
    Patient(
        "heads merged component by component", "heads",
        "return (weights[:, None] @ states).reshape(-1), weights",
        "return (weights[:, None] @ states)[:, 0].T.reshape(-1), weights",
        "heads before merging", "(n_heads, d_h/n_heads)", "(d_h/n_heads, n_heads)", True,
    ),
)  # fmt: skip


def load(source: str):
    """The function `attend` of a source text (the project's own, from this file)."""
    names: dict[str, Any] = {"np": np, "torch": torch}
    exec(source, names)
    return names["attend"]


def inputs(kind: str) -> tuple:
    """Arguments for one kind."""
    rng = np.random.default_rng(10)
    H = rng.normal(size=(T_ENC, D_H))
    if kind == "additive":
        shapes = [(D_S,), None, (D_ATTN, D_S), (D_ATTN, D_H), (D_ATTN,)]
        return tuple(H if shape is None else rng.normal(size=shape) for shape in shapes)
    if kind == "general":
        return rng.normal(size=D_S), H, rng.normal(size=(D_S, D_H))
    if kind == "dot":
        return rng.normal(size=D_H), H
    if kind == "heads":
        return (
            rng.normal(size=D_S),
            H,
            rng.normal(size=(N_HEADS, D_S // N_HEADS, D_H // N_HEADS)) / 2,
        )
    shapes = [(B, T_DEC, D_S), (B, T_ENC, D_H), (D_S, D_H)]
    return tuple(torch.from_numpy(rng.normal(size=shape)) for shape in shapes)


def regression_test(kind: str, attend) -> None:
    """The test that a repaired function passes and a broken one fails: shapes, sums, then what it is for.

    Raises:
        AssertionError: or whatever the function itself raises.
    """
    args = inputs(kind)
    context, weights = attend(*args)
    want = {
        "batch": ((B, T_DEC, D_H), (B, T_DEC, T_ENC)),
        "heads": ((D_H,), (N_HEADS, T_ENC)),
    }.get(kind, ((D_H,), (T_ENC,)))
    assert tuple(context.shape) == want[0], f"context {tuple(context.shape)}, not {want[0]}"
    assert tuple(weights.shape) == want[1], f"weights {tuple(weights.shape)}, not {want[1]}"
    sums = np.asarray(weights.sum(-1))
    assert np.allclose(sums, 1), f"the weights sum to {sums.ravel()[:3]}"
    assert np.allclose(np.asarray(weights), by_loops(kind, args)), "other weights than by loops"
    assert np.allclose(np.asarray(context), mixed(kind, args[1], weights)), "not a mixture of H"
    if kind == "dot":
        try:
            attend(np.ones(1), args[1])
        except ValueError:
            return
        raise AssertionError("a state of size 1 was stretched over d_h components")


def by_loops(kind: str, args: tuple) -> np.ndarray:
    """The weights, one score at a time, without any array product that could broadcast."""
    if kind == "batch":
        S, H, W = (a.numpy() for a in args)
        rows = [[_row([s @ W @ h for h in one]) for s in S[b]] for b, one in enumerate(H)]
        return np.array(rows)
    s, H = args[0], args[1]
    if kind == "additive":
        W_a, U_a, v_a = args[2:]
        return _row([float(v_a @ np.tanh(W_a @ s + U_a @ h)) for h in H])
    if kind == "heads":
        parts = zip(np.split(s, N_HEADS), np.split(H, N_HEADS, axis=1), args[2], strict=True)
        return np.array([_row([q @ M @ h for h in part]) for q, part, M in parts])
    return _row([float(s @ args[2] @ h) if kind == "general" else float(s @ h) for h in H])


def _row(scores: list) -> np.ndarray:
    e = np.exp(np.array(scores) - max(scores))
    return e / e.sum()


def mixed(kind: str, H, weights) -> np.ndarray:
    """What the weights make of the encoder states, one state at a time."""
    H, weights = np.asarray(H), np.asarray(weights)
    if kind == "batch":
        return np.stack([[sum(a * h for a, h in zip(row, one, strict=True)) for row in rows]
                         for rows, one in zip(weights, H, strict=True)])  # fmt: skip
    if kind == "heads":
        parts = np.split(H, N_HEADS, axis=1)
        return np.concatenate(
            [
                sum(a * h for a, h in zip(row, part, strict=True))
                for row, part in zip(weights, parts, strict=True)
            ]
        )
    return sum(a * h for a, h in zip(weights, H, strict=True))


def page() -> str:
    """The clinic as a page."""
    sizes = f"T_enc {T_ENC}, T_dec {T_DEC}, d_h {D_H}, d_s {D_S}, d_attn {D_ATTN}, batch {B}"
    lines = [
        "# The shape clinic",
        "",
        "Made by `python -m autograder.tasks.attention_mechanism.clinic`; do not edit. Every patient is a",
        "sound implementation with one wrong line. Tests run each of them broken (the regression test fails)",
        f"and repaired (it passes), in sizes of which no two are equal: {sizes}.",
        "",
        "*Silent*: nothing raises. These are the bugs that come back as accuracy that is a little lower.",
        "",
        "| patient | in | tensor | has | should have | wrong line | fix | silent |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for p in PATIENTS:
        cells = [p.name, f"`{p.kind}`", p.tensor, p.has, p.right, f"`{p.broken}`", f"`{p.line}`"]
        lines.append("| " + " | ".join([*cells, "yes" if p.silent else ""]) + " |")
    lines += [
        "",
        "The regression test: `context.shape == (d_h,)` and `weights.shape == (T_enc,)` (in a batch",
        "`(batch, T_dec, d_h)` and `(batch, T_dec, T_enc)`), `weights.sum(-1)` close to 1, the weights equal to",
        "scores worked out one at a time, the context equal to the mixture of encoder states, and for `dot` a",
        "ValueError for a state of size 1.",
        "",
        "| implementation | sound |",
        "|---|---|",
    ]
    for kind, source in SOUND.items():
        lines.append(f"| `{kind}` | " + "<br>".join(f"`{x}`" for x in source.splitlines()) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path("docs/shape-clinic.md").write_text(page(), encoding="utf-8")
