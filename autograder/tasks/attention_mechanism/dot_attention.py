"""`dot_attention`: s^T h, after Luong, Pham and Manning (2015), equation 8."""

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

VALUES, SIZES, STABLE = "dot_attention-values", "dot_attention-sizes", "dot_attention-stable"


def reference(decoder_state, encoder_states):
    if len(decoder_state) != encoder_states.shape[1]:
        raise ValueError("dot needs d_s == d_h")
    weights = softmax((encoder_states * decoder_state).sum(axis=1))
    return weights @ encoder_states, weights


def _case(rng, d_h, T_enc, dtype=np.float64, note="", apart=False):
    args = (normal(rng, d_h, dtype=dtype), normal(rng, T_enc, d_h, dtype=dtype))
    return Case(strided(*args) if apart else args, VALUES, note, atol=CONTEXT_ATOL)


def _unequal(rng, d_s, d_h, T_enc, dtype=np.float64):
    state, encoder = normal(rng, d_s, dtype=dtype), normal(rng, T_enc, d_h, dtype=dtype)
    near = (normal(rng, d_h, dtype=dtype), encoder)
    return Case((state, encoder), SIZES, f"d_s = {d_s}, d_h = {d_h}", neighbour=near)


def _stable(rng, sign, dtype, d_h):
    return Case(towers(rng, sign, dtype, d_h), STABLE, extremes(sign), **huge(dtype))


def public():
    rng = np.random.default_rng(1508)
    return [
        _case(rng, 3, 5, note="five encoder states"),
        _case(rng, 4, 4, note="as many encoder states as components"),
        _unequal(rng, 4, 3, 5),
        _unequal(rng, 1, 3, 5),
        _unequal(rng, 3, 1, 5),
        _stable(rng, 1, np.float64, 4),
        _stable(rng, -1, np.float64, 3),
        _stable(rng, 0, np.float64, 4),
    ]


def probes(rng):
    return [
        _case(rng, 5, 3, note="three encoder states", apart=True),
        _case(rng, 2, 6, np.float32, "float32"),
        _case(rng, 3, 3, np.float32, "as many encoder states as components, float32"),
        _case(rng, 4, 1, note="one encoder state"),
        _case(rng, 1, 5, note="d_h = 1"),
        _unequal(rng, 2, 5, 4, np.float32),
        _unequal(rng, 1, 4, 6),
        _unequal(rng, 6, 1, 3),
        _unequal(rng, 1, 5, 1),
        _stable(rng, 1, np.float32, 5),
        _stable(rng, -1, np.float64, 4),
        _stable(rng, 0, np.float32, 3),
    ]


def broadcast(decoder_state, encoder_states):
    weights = softmax((encoder_states * decoder_state).sum(axis=1))
    return weights @ encoder_states, weights


def cut_to_fit(decoder_state, encoder_states):
    d = min(decoder_state.shape[0], encoder_states.shape[1])
    weights = softmax(encoder_states[:, :d] @ decoder_state[:d])
    return weights @ encoder_states, weights


def assertion(decoder_state, encoder_states):
    assert decoder_state.shape[0] == encoder_states.shape[1]
    weights = softmax(encoder_states @ decoder_state)
    return weights @ encoder_states, weights


def none_for_an_error(decoder_state, encoder_states):
    if decoder_state.shape[0] != encoder_states.shape[1]:
        return None
    weights = softmax(encoder_states @ decoder_state)
    return weights @ encoder_states, weights


def scaled(decoder_state, encoder_states):
    weights = softmax(encoder_states @ decoder_state / np.sqrt(len(decoder_state)))
    return weights @ encoder_states, weights


def cosine(decoder_state, encoder_states):
    lengths = np.linalg.norm(encoder_states, axis=1) * np.linalg.norm(decoder_state)
    weights = softmax(encoder_states @ decoder_state / lengths)
    return weights @ encoder_states, weights


def divided_by_sum(decoder_state, encoder_states):
    scores = encoder_states @ decoder_state
    weights = scores / scores.sum()
    return weights @ encoder_states, weights


def hard_choice(decoder_state, encoder_states):
    scores = encoder_states @ decoder_state
    weights = np.zeros(len(scores))
    weights[np.argmax(scores)] = 1.0
    return weights @ encoder_states, weights


def wrong_axis(decoder_state, encoder_states):
    weights = softmax(encoder_states.T @ decoder_state)
    return weights @ encoder_states, weights


def averaged_values(decoder_state, encoder_states):
    weights = softmax(encoder_states @ decoder_state)
    return encoder_states.mean(axis=0), weights


def column_scores(decoder_state, encoder_states):
    scores = encoder_states @ decoder_state.reshape(-1, 1)
    e = np.exp(scores - scores.max(axis=1))
    weights = e / e.sum(axis=0)
    return weights.T @ encoder_states, weights


def state_as_value(decoder_state, encoder_states):
    weights = softmax(encoder_states @ decoder_state)
    return weights.sum() * decoder_state, weights


def no_shift(decoder_state, encoder_states):
    e = np.exp(encoder_states @ decoder_state)
    weights = e / e.sum()
    return weights @ encoder_states, weights


def small_number_added(decoder_state, encoder_states):
    scores = encoder_states @ decoder_state
    e = np.exp(np.clip(scores, -700, 700))
    weights = e / (e.sum() + 1e-12)
    return weights @ encoder_states, weights


def _loops(decoder_state, encoder_states):
    if len(decoder_state) != len(encoder_states[0]):
        raise ValueError("sizes differ")
    scores = [sum(a * b for a, b in zip(decoder_state, h, strict=True)) for h in encoder_states]
    top = max(scores)
    weights = np.array([np.exp(x - top) for x in scores])
    weights = weights / weights.sum()
    context = sum(w * h for w, h in zip(weights, encoder_states, strict=True))
    return np.asarray(context), weights


def _matmul_alone(decoder_state, encoder_states):
    weights = softmax(np.matmul(encoder_states, decoder_state))
    return np.matmul(weights, encoder_states), weights


def _einsum(decoder_state, encoder_states):
    (d_s,), (_, d_h) = decoder_state.shape, encoder_states.shape
    if d_s != d_h:
        raise ValueError(f"d_s is {d_s}, d_h is {d_h}")
    scores = np.einsum("h,th->t", decoder_state, encoder_states)
    weights = np.exp(scores - np.logaddexp.reduce(scores))
    return np.einsum("t,th->h", weights, encoder_states), weights


def _subclass(decoder_state, encoder_states):
    class SizeError(ValueError):
        pass

    if decoder_state.size != encoder_states.shape[-1]:
        raise SizeError
    weights = softmax((encoder_states * decoder_state).sum(axis=1))
    return (weights[:, None] * encoder_states).sum(axis=0), weights


def _torch(decoder_state, encoder_states):
    import torch

    if decoder_state.shape[0] != encoder_states.shape[1]:
        raise ValueError("dot needs equal sizes")
    s, H = (torch.tensor(np.ascontiguousarray(a)) for a in (decoder_state, encoder_states))
    weights = torch.softmax(torch.mv(H, s), dim=0)
    return torch.mv(H.T, weights).numpy(), weights.numpy()


def _row_vectors(decoder_state, encoder_states):
    scores = decoder_state[None, :] @ encoder_states.T
    e = np.exp(scores - scores.max())
    weights = e / np.sum(e, axis=1, keepdims=True)
    return np.squeeze(weights @ encoder_states, axis=0), weights.ravel()


def _single_precision(decoder_state, encoder_states):
    weights = softmax(encoder_states.astype(np.float32) @ decoder_state.astype(np.float32))
    return weights @ encoder_states.astype(np.float32), weights


VALUED = (VALUES, STABLE)
TASK = FunctionTask(
    name="dot_attention",
    signature="dot_attention(decoder_state, encoder_states)",
    docstring="""Luong's dot attention: the score of an encoder state is its dot product with the state.

Args:
    decoder_state: (d_s,), float; the state after the step, s_t.
    encoder_states: (T_enc, d_h), float.

Returns:
    (context, weights): (d_h,) and (T_enc,). The weights sum to 1, also for scores of +-10,000.
    The scores are not scaled, there is no mask, and the arguments are left as they were.

Raises:
    ValueError: whenever d_s and d_h differ, also where one of them is 1.

Source: Luong, Pham, Manning (2015), section 3.1.""",
    checkpoints=(
        Checkpoint(VALUES, "the weights follow s^T h, and mix encoder states", 2),
        Checkpoint(SIZES, "unequal sizes raise ValueError, a size of 1 too", 1),
        Checkpoint(STABLE, "very large and very negative scores give finite weights", 1),
    ),
    reference=reference,
    public=public,
    probes=probes,
    misconceptions=(
        Misconception(
            "dot-broadcast",
            broadcast,
            (SIZES,),
            "A state of size 1 was accepted: `*` stretches it over all components without a word. "
            "Compare the two sizes first, and raise ValueError where they differ.",
            "CONTRACTS: a product that broadcasts is the trap",
        ),
        Misconception(
            "dot-cut-to-fit",
            cut_to_fit,
            (SIZES,),
            "States of unequal size were cut to the shorter one. That hides the mistake: raise "
            "ValueError, and let the caller use `general`, which has a matrix between them.",
        ),
        Misconception(
            "dot-assertion",
            assertion,
            (SIZES,),
            "The check is there, but it ends in an AssertionError, which is switched off by "
            "`python -O`. Write `raise ValueError(...)`.",
        ),
        Misconception(
            "dot-none-for-an-error",
            none_for_an_error,
            (SIZES,),
            "The function returns None where it should stop. A caller goes on with it; raise ValueError.",
        ),
        Misconception(
            "dot-scaled",
            scaled,
            VALUED,
            "The weights are too even: the scores are divided by sqrt(d). Luong's dot has no scale; "
            "it came with the transformer.",
        ),
        Misconception(
            "dot-cosine",
            cosine,
            VALUED,
            "Double one encoder state: its weight should change, and yours does not. Lengths were "
            "divided away (cosine similarity). Use the plain dot product.",
        ),
        Misconception(
            "dot-divided-by-sum",
            divided_by_sum,
            VALUED,
            "Some weights are negative or above 1: the scores are divided by their sum. Take e to the "
            "power of each score first (softmax).",
        ),
        Misconception(
            "dot-hard-choice",
            hard_choice,
            VALUED,
            "One weight is 1 and all others are 0: argmax chose one state. Soft attention mixes them; "
            "use softmax.",
        ),
        Misconception(
            "dot-wrong-axis",
            wrong_axis,
            (VALUES, SIZES, STABLE),
            "It works only where T_enc equals d_h: the encoder states are transposed. There must be "
            "one score for each row: `encoder_states @ decoder_state`.",
        ),
        Misconception(
            "dot-averaged-values",
            averaged_values,
            VALUED,
            "The weights are right, but the context is the plain mean of the encoder states. Use the "
            "weights: `weights @ encoder_states`.",
        ),
        Misconception(
            "dot-column-scores",
            column_scores,
            VALUED,
            "The weights are a (T_enc, T_enc) array: scores of shape (T_enc, 1) met a (T_enc,) array "
            "and numpy broadcast them silently. Keep the scores one-dimensional.",
        ),
        Misconception(
            "dot-state-as-value",
            state_as_value,
            VALUED,
            "The context equals the decoder state: query and value are mixed up. What is mixed are "
            "the encoder states.",
        ),
        Misconception(
            "dot-no-shift",
            no_shift,
            (STABLE,),
            "NaN for scores of 3000: e to that power is too large for a float. Subtract the largest "
            "score first; the weights do not change.",
        ),
        Misconception(
            "dot-clipped",
            small_number_added,
            (STABLE,),
            "Scores that differ get equal weights once they pass 700: they were clipped. Subtract the "
            "largest score instead; that keeps all differences.",
        ),
    ),
    alternatives=(
        Alternative("loops", _loops),
        Alternative("matmul-raises-by-itself", _matmul_alone),
        Alternative("einsum-logsumexp", _einsum),
        Alternative("torch", _torch),
        Alternative("row-vectors", _row_vectors),
        Alternative("single-precision", _single_precision),
        Alternative("subclass-of-valueerror", _subclass),
    ),
    results=("context", "weights"),
    axes=(("component",), ("encoder state",)),
)
