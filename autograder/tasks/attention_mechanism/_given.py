"""What the notebooks give to students, and the arrays that the cases are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from autograder.execute.wire import Strided
from autograder.tasks.model import FunctionTask

CONTEXT_ATOL = 1e-5
"""Contexts are sums of products; float32 loses a few units in the last place of each (contract 3)."""


@dataclass(frozen=True)
class AskedThrough(FunctionTask):
    """A task whose answer is asked through a locked function of the notebook, named like the task.

    `cell` is the grade_id of the answer cell. The misconceptions' and alternatives' implementations
    are asked in the same way; their `answer` is the text of an answer cell.
    """

    cell: str = ""


def huge(dtype) -> dict:
    """Tolerance where scores are in the thousands.

    The scores are exact, but a log-sum-exp of 9000 is rounded to 1e-3 in float32 (contract 3).
    """
    return {"rtol": 1e-3, "atol": 1e-3} if dtype == np.float32 else {"atol": CONTEXT_ATOL}


def softmax(x):
    """One row of scores to weights that sum to 1; given, complete, in the first notebook."""
    e = np.exp(x - np.max(x))
    return e / e.sum()


def extremes(sign: int) -> str:
    """The note of a case with `saturated` or `towers`."""
    words = {1: "very large scores", -1: "very negative scores"}
    return words.get(sign, "very large scores beside a very negative one")


def normal(rng: np.random.Generator, *shape: int, dtype=np.float64, scale: float = 1.0):
    """Numbers of everyday size."""
    return (scale * rng.standard_normal(shape)).astype(dtype)


def strided(*arrays):
    """The same arrays, to be handed over as non-contiguous views."""
    return tuple(Strided(a) if isinstance(a, np.ndarray) and a.ndim else a for a in arrays)


def saturated(rng: np.random.Generator, sign: int, dtype, T_enc: int = 6) -> tuple:
    """Arguments of additive attention with scores near sign * 6000, exact in float32.

    Every tanh is saturated (its argument is beyond +-20), so that scores are sums of +-v_a.

    Args:
        sign: 1, -1, or 0 for a first encoder state at -6000 and all others at 6000.
    """
    d_s, d_h, d_attn = 2, 5, 4
    state = np.array([1.0, -1.0])
    encoder = rng.choice([-1.0, 1.0], size=(T_enc, d_h))
    encoder[:, 0] = sign or np.where(np.arange(T_enc) == 0, -1.0, 1.0)
    U_a = np.zeros((d_attn, d_h))
    U_a[range(d_attn), range(d_attn)] = 64.0
    W_a = rng.integers(-4, 5, size=(d_attn, d_s)).astype(float)
    v_a = np.array([6000.0, 0.5, -0.25, 1.0])
    return tuple(a.astype(dtype) for a in (state, encoder, W_a, U_a, v_a))


def towers(rng: np.random.Generator, sign: int, dtype, d_h: int, T_enc: int = 5) -> tuple:
    """A state and encoder states whose dot products lie near sign * 3000, exact in float32.

    Args:
        sign: 1, -1, or 0 for a first encoder state at -3000 and all others at 3000.
    """
    state = np.zeros(d_h)
    state[0], state[1] = 64.0, 0.5
    encoder = rng.integers(-3, 4, size=(T_enc, d_h)).astype(float)
    encoder[:, 0] = 48.0 * (sign or np.where(np.arange(T_enc) == 0, -1.0, 1.0))
    return state.astype(dtype), encoder.astype(dtype)
