"""`general_attention`: s^T W h, after Luong, Pham and Manning (2015), equation 8."""

from __future__ import annotations

import numpy as np

from autograder.tasks.attention_mechanism._given import (
    CONTEXT_ATOL,
    extremes,
    huge,
    normal,
    softmax,
    strided,
    towers,
)
from autograder.tasks.model import Alternative, Case, Checkpoint, FunctionTask, Misconception

VALUES, STABLE = "general_attention-values", "general_attention-stable"


def reference(decoder_state, encoder_states, W):
    weights = softmax(encoder_states @ (W.T @ decoder_state))
    return weights @ encoder_states, weights


def _case(rng, d_s, d_h, T_enc, dtype=np.float64, note="", apart=False):
    sizes = [(d_s,), (T_enc, d_h), (d_s, d_h)]
    args = tuple(normal(rng, *shape, dtype=dtype) for shape in sizes)
    return Case(strided(*args) if apart else args, VALUES, note, atol=CONTEXT_ATOL)


def _stable(rng, sign, dtype, d_s, d_h):
    """W carries the first d_s components over and adds small integers elsewhere: scores stay exact."""
    state, encoder = towers(rng, sign, dtype, d_h)
    W = np.zeros((d_s, d_h))
    W[0, 0], W[1, 1] = 1.0, 1.0
    W[1, 2] = -2.0
    query = np.zeros(d_s)
    query[:2] = state[:2]
    args = (query.astype(dtype), encoder, W.astype(dtype))
    return Case(args, STABLE, extremes(sign), **huge(dtype))


def public():
    rng = np.random.default_rng(1508)
    return [
        _case(rng, 4, 3, 5, note="all sizes differ"),
        _case(rng, 3, 3, 5, note="square W"),
        _case(rng, 4, 4, 4, note="square W, as many encoder states as components"),
        _stable(rng, 1, np.float64, 4, 3),
        _stable(rng, -1, np.float64, 3, 4),
        _stable(rng, 0, np.float64, 4, 4),
    ]


def probes(rng):
    return [
        _case(rng, 2, 5, 3, note="all sizes differ", apart=True),
        _case(rng, 5, 2, 4, np.float32, "float32"),
        _case(rng, 4, 4, 6, np.float32, "square W, float32"),
        _case(rng, 3, 3, 3, note="square W, as many encoder states as components"),
        _case(rng, 3, 4, 1, note="one encoder state"),
        _case(rng, 3, 1, 5, note="d_h = 1"),
        _case(rng, 1, 4, 5, note="d_s = 1"),
        _stable(rng, 1, np.float32, 5, 4),
        _stable(rng, -1, np.float64, 2, 3),
        _stable(rng, 0, np.float32, 3, 5),
    ]


def matrix_transposed(decoder_state, encoder_states, W):
    weights = softmax(encoder_states @ (W @ decoder_state))
    return weights @ encoder_states, weights


def matrix_reshaped(decoder_state, encoder_states, W):
    turned = W.reshape(W.shape[1], W.shape[0])
    weights = softmax(encoder_states @ (turned @ decoder_state))
    return weights @ encoder_states, weights


def matrix_left_out(decoder_state, encoder_states, W):
    weights = softmax(encoder_states @ decoder_state)
    return weights @ encoder_states, weights


def symmetric(decoder_state, encoder_states, W):
    weights = softmax(encoder_states @ ((W + W.T) / 2 @ decoder_state))
    return weights @ encoder_states, weights


def scaled(decoder_state, encoder_states, W):
    weights = softmax(encoder_states @ (W.T @ decoder_state) / np.sqrt(encoder_states.shape[1]))
    return weights @ encoder_states, weights


def with_tanh(decoder_state, encoder_states, W):
    weights = softmax(encoder_states @ np.tanh(W.T @ decoder_state))
    return weights @ encoder_states, weights


def values_projected(decoder_state, encoder_states, W):
    projected = encoder_states @ W.T
    weights = softmax(projected @ decoder_state)
    return weights @ projected, weights


def divided_by_sum(decoder_state, encoder_states, W):
    scores = encoder_states @ (W.T @ decoder_state)
    weights = scores / scores.sum()
    return weights @ encoder_states, weights


def hard_choice(decoder_state, encoder_states, W):
    scores = encoder_states @ (W.T @ decoder_state)
    weights = np.zeros(len(scores))
    weights[np.argmax(scores)] = 1.0
    return weights @ encoder_states, weights


def wrong_axis(decoder_state, encoder_states, W):
    weights = softmax(encoder_states.T @ (W.T @ decoder_state))
    return weights @ encoder_states, weights


def column_scores(decoder_state, encoder_states, W):
    scores = encoder_states @ W.T @ decoder_state.reshape(-1, 1)
    e = np.exp(scores - scores.max(axis=1))
    weights = e / e.sum(axis=0)
    return weights.T @ encoder_states, weights


def averaged_values(decoder_state, encoder_states, W):
    weights = softmax(encoder_states @ (W.T @ decoder_state))
    return encoder_states.mean(axis=0), weights


def elementwise(decoder_state, encoder_states, W):
    scores = (decoder_state[:, None] * W).sum() * encoder_states.sum(axis=1)
    weights = softmax(scores)
    return weights @ encoder_states, weights


def no_shift(decoder_state, encoder_states, W):
    e = np.exp(encoder_states @ (W.T @ decoder_state))
    weights = e / e.sum()
    return weights @ encoder_states, weights


def clamped(decoder_state, encoder_states, W):
    e = np.exp(np.clip(encoder_states @ (W.T @ decoder_state), -500, 500))
    weights = e / e.sum()
    return weights @ encoder_states, weights


def _loops(decoder_state, encoder_states, W):
    scores = []
    for h in encoder_states:
        total = 0.0
        for i in range(W.shape[0]):
            for j in range(W.shape[1]):
                total += decoder_state[i] * W[i, j] * h[j]
        scores.append(total)
    weights = np.exp(np.array(scores) - max(scores))
    weights = weights / weights.sum()
    return np.array([sum(weights * column) for column in encoder_states.T]), weights


def _keys_projected(decoder_state, encoder_states, W):
    keys = encoder_states @ W.T
    weights = softmax(keys @ decoder_state)
    return weights @ encoder_states, weights


def _einsum(decoder_state, encoder_states, W):
    scores = np.einsum("s,sh,th->t", decoder_state, W, encoder_states)
    weights = np.exp(scores - np.logaddexp.reduce(scores))
    return np.einsum("t,th->h", weights, encoder_states), weights


def _torch(decoder_state, encoder_states, W):
    import torch

    s, H, M = (torch.tensor(np.ascontiguousarray(a)) for a in (decoder_state, encoder_states, W))
    weights = torch.softmax(H @ (s @ M), dim=0)
    return (weights @ H).numpy(), weights.numpy()


def _row_vectors(decoder_state, encoder_states, W):
    scores = decoder_state[None, :] @ W @ encoder_states.T
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return (weights @ encoder_states).squeeze(0), weights.squeeze(0)


def _single_precision(decoder_state, encoder_states, W):
    s, H, M = (np.asarray(a, dtype=np.float32) for a in (decoder_state, encoder_states, W))
    weights = softmax(H @ (s @ M))
    return weights @ H, weights


BOTH = (VALUES, STABLE)
TASK = FunctionTask(
    name="general_attention",
    signature="general_attention(decoder_state, encoder_states, W)",
    docstring="""Luong's general attention: a matrix between the two states.

Args:
    decoder_state: (d_s,), float; the state after the step, s_t.
    encoder_states: (T_enc, d_h), float.
    W: (d_s, d_h), float.

Returns:
    (context, weights): (d_h,) and (T_enc,). The weights sum to 1, also for scores of +-10,000.
    The scores are not scaled, there is no mask, and the arguments are left as they were.

Source: Luong, Pham, Manning (2015), section 3.1.""",
    checkpoints=(
        Checkpoint(VALUES, "the weights follow s^T W h, and mix encoder states", 2),
        Checkpoint(STABLE, "very large and very negative scores give finite weights", 1),
    ),
    reference=reference,
    public=public,
    probes=probes,
    misconceptions=(
        Misconception(
            "general-W-transposed",
            matrix_transposed,
            BOTH,
            "It works only where W is square, and gives other weights there: W is the wrong way round. "
            "W is (d_s, d_h): `decoder_state @ W`, or `W.T @ decoder_state`, has d_h numbers.",
        ),
        Misconception(
            "general-W-reshaped",
            matrix_reshaped,
            BOTH,
            "W was reshaped where it should be transposed: `reshape` keeps the order of the numbers, "
            "`.T` exchanges rows and columns. Print both for a 2 x 3 array.",
        ),
        Misconception(
            "general-W-left-out",
            matrix_left_out,
            BOTH,
            "Set W to zeros: the weights should become equal, and yours stay. This is `dot`; `general` "
            "has W between the two states.",
        ),
        Misconception(
            "general-W-made-symmetric",
            symmetric,
            BOTH,
            "W and its transpose are averaged. That works only for square W, and loses half of what W "
            "says. Use W as it is.",
        ),
        Misconception(
            "general-scaled",
            scaled,
            BOTH,
            "The weights are too even: the scores are divided by sqrt(d_h). Luong's general form has "
            "no scale.",
        ),
        Misconception(
            "general-with-tanh",
            with_tanh,
            BOTH,
            "Double the decoder state: all scores should double, and yours do not. There is a tanh, "
            "which belongs to the additive form. Leave it out.",
        ),
        Misconception(
            "general-values-projected",
            values_projected,
            BOTH,
            "The weights are right, the context has d_s numbers instead of d_h: keys and values are "
            "mixed up. W is for scoring; mix the encoder states themselves.",
        ),
        Misconception(
            "general-divided-by-sum",
            divided_by_sum,
            BOTH,
            "Some weights are negative or above 1: the scores are divided by their sum. Take e to the "
            "power of each score first (softmax).",
        ),
        Misconception(
            "general-hard-choice",
            hard_choice,
            BOTH,
            "One weight is 1 and all others are 0: argmax chose one state. Use softmax.",
        ),
        Misconception(
            "general-wrong-axis",
            wrong_axis,
            BOTH,
            "It works only where T_enc equals d_h: the encoder states are transposed. There must be "
            "one score for each row of encoder_states.",
        ),
        Misconception(
            "general-column-scores",
            column_scores,
            BOTH,
            "The weights are a (T_enc, T_enc) array: scores of shape (T_enc, 1) met a (T_enc,) array "
            "and numpy broadcast them silently. Keep the scores one-dimensional.",
        ),
        Misconception(
            "general-averaged-values",
            averaged_values,
            BOTH,
            "The weights are right, but the context is the plain mean of the encoder states. Use the "
            "weights: `weights @ encoder_states`.",
        ),
        Misconception(
            "general-elementwise",
            elementwise,
            BOTH,
            "`*` stands where a matrix product belongs: everything was multiplied and summed. Use `@`, "
            "and say the shape of each step aloud.",
        ),
        Misconception(
            "general-no-shift",
            no_shift,
            (STABLE,),
            "NaN for scores of 3000: e to that power is too large for a float. Subtract the largest "
            "score first; the weights do not change.",
        ),
        Misconception(
            "general-clamped",
            clamped,
            (STABLE,),
            "Scores that differ get equal weights once they pass 500: they were clipped. Subtract the "
            "largest score instead; that keeps all differences.",
        ),
    ),
    alternatives=(
        Alternative("loops", _loops),
        Alternative("keys-projected-first", _keys_projected),
        Alternative("einsum-logsumexp", _einsum),
        Alternative("torch", _torch),
        Alternative("row-vectors", _row_vectors),
        Alternative("single-precision", _single_precision),
    ),
    results=("context", "weights"),
    axes=(("component",), ("encoder state",)),
)
