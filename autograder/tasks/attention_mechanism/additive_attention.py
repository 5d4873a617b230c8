"""`additive_attention`: v^T tanh(W s + U h), after Bahdanau, Cho and Bengio (2014), appendix A.1.2."""

from __future__ import annotations

import numpy as np

from autograder.tasks.attention_mechanism._given import (
    CONTEXT_ATOL,
    extremes,
    huge,
    normal,
    saturated,
    softmax,
    strided,
)
from autograder.tasks.model import Alternative, Case, Checkpoint, FunctionTask, Misconception

VALUES, STABLE = "additive_attention-values", "additive_attention-stable"


def reference(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = np.tanh(encoder_states @ U_a.T + W_a @ decoder_state) @ v_a
    weights = softmax(scores)
    return weights @ encoder_states, weights


def _case(rng, d_s, d_h, d_attn, T_enc, dtype=np.float64, note="", apart=False):
    sizes = [(d_s,), (T_enc, d_h), (d_attn, d_s), (d_attn, d_h), (d_attn,)]
    args = tuple(normal(rng, *shape, dtype=dtype) for shape in sizes)
    return Case(strided(*args) if apart else args, VALUES, note, atol=CONTEXT_ATOL)


def _stable(rng, sign, dtype):
    return Case(saturated(rng, sign, dtype), STABLE, extremes(sign), **huge(dtype))


def public():
    rng = np.random.default_rng(1409)
    return [
        _case(rng, 4, 3, 5, 6, note="all sizes differ"),
        _case(rng, 3, 3, 3, 5, note="square W_a and U_a"),
        _stable(rng, 1, np.float64),
        _stable(rng, -1, np.float64),
        _stable(rng, 0, np.float64),
    ]


def probes(rng):
    return [
        _case(rng, 2, 5, 3, 7, note="all sizes differ", apart=True),
        _case(rng, 5, 2, 4, 3, np.float32, "float32"),
        _case(rng, 4, 4, 4, 6, np.float32, "square W_a and U_a, float32"),
        _case(rng, 3, 4, 2, 1, note="one encoder state"),
        _case(rng, 3, 1, 2, 5, note="d_h = 1"),
        _stable(rng, 1, np.float32),
        _stable(rng, -1, np.float64),
        _stable(rng, 0, np.float32),
    ]


def no_tanh(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = (encoder_states @ U_a.T + W_a @ decoder_state) @ v_a
    weights = softmax(scores)
    return weights @ encoder_states, weights


def tanh_before_the_sum(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = (np.tanh(encoder_states @ U_a.T) + W_a @ decoder_state) @ v_a
    weights = softmax(scores)
    return weights @ encoder_states, weights


def tanh_after_v(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = np.tanh((encoder_states @ U_a.T + W_a @ decoder_state) @ v_a)
    weights = softmax(scores)
    return weights @ encoder_states, weights


def v_averaged(decoder_state, encoder_states, W_a, U_a, v_a):
    combined = np.tanh(encoder_states @ U_a.T + W_a @ decoder_state)
    weights = softmax(combined.sum(axis=1) * v_a.mean())
    return weights @ encoder_states, weights


def v_left_out(decoder_state, encoder_states, W_a, U_a, v_a):
    combined = np.tanh(encoder_states @ U_a.T + W_a @ decoder_state)
    weights = softmax(combined.mean(axis=1))
    return weights @ encoder_states, weights


def matrices_swapped(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = np.tanh(encoder_states @ W_a.T + U_a @ decoder_state) @ v_a
    weights = softmax(scores)
    return weights @ encoder_states, weights


def matrices_transposed(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = np.tanh(encoder_states @ U_a + W_a.T @ decoder_state) @ v_a
    weights = softmax(scores)
    return weights @ encoder_states, weights


def softmax_before_v(decoder_state, encoder_states, W_a, U_a, v_a):
    combined = np.tanh(encoder_states @ U_a.T + W_a @ decoder_state)
    e = np.exp(combined - combined.max(axis=1, keepdims=True))
    weights = (e / e.sum(axis=1, keepdims=True)) @ v_a
    return weights @ encoder_states, weights


def values_projected(decoder_state, encoder_states, W_a, U_a, v_a):
    projected = encoder_states @ U_a.T
    weights = softmax(np.tanh(projected + W_a @ decoder_state) @ v_a)
    return weights @ projected, weights


def scaled(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = np.tanh(encoder_states @ U_a.T + W_a @ decoder_state) @ v_a
    weights = softmax(scores / np.sqrt(len(v_a)))
    return weights @ encoder_states, weights


def multiplied(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = np.tanh((encoder_states @ U_a.T) * (W_a @ decoder_state)) @ v_a
    weights = softmax(scores)
    return weights @ encoder_states, weights


def divided_by_sum(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = np.tanh(encoder_states @ U_a.T + W_a @ decoder_state) @ v_a
    weights = scores / scores.sum()
    return weights @ encoder_states, weights


def column_scores(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = np.tanh(encoder_states @ U_a.T + W_a @ decoder_state) @ v_a.reshape(-1, 1)
    e = np.exp(scores - scores.max(axis=1))
    weights = e / e.sum(axis=0)
    return weights.T @ encoder_states, weights


def no_shift(decoder_state, encoder_states, W_a, U_a, v_a):
    e = np.exp(np.tanh(encoder_states @ U_a.T + W_a @ decoder_state) @ v_a)
    weights = e / e.sum()
    return weights @ encoder_states, weights


def clamped(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = np.tanh(encoder_states @ U_a.T + W_a @ decoder_state) @ v_a
    e = np.exp(np.clip(scores, -500, 500))
    weights = e / e.sum()
    return weights @ encoder_states, weights


def averaged_values(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = np.tanh(encoder_states @ U_a.T + W_a @ decoder_state) @ v_a
    return encoder_states.mean(axis=0), softmax(scores)


def _loops(decoder_state, encoder_states, W_a, U_a, v_a):
    scores = []
    for h in encoder_states:
        total = 0.0
        for j in range(len(v_a)):
            inner = sum(W_a[j, k] * decoder_state[k] for k in range(len(decoder_state)))
            inner += sum(U_a[j, k] * h[k] for k in range(len(h)))
            total += v_a[j] * np.tanh(inner)
        scores.append(total)
    weights = np.exp(np.array(scores) - max(scores))
    weights = weights / weights.sum()
    context = np.zeros(encoder_states.shape[1])
    for weight, h in zip(weights, encoder_states, strict=True):
        context = context + weight * h
    return context, weights


def _einsum(decoder_state, encoder_states, W_a, U_a, v_a):
    inner = np.einsum("as,s->a", W_a, decoder_state) + np.einsum("ah,th->ta", U_a, encoder_states)
    scores = np.einsum("a,ta->t", v_a, np.tanh(inner))
    weights = np.exp(scores - np.logaddexp.reduce(scores))
    return np.einsum("t,th->h", weights, encoder_states), weights


def _torch(decoder_state, encoder_states, W_a, U_a, v_a):
    import torch

    s, H, W, U, v = (
        torch.tensor(np.ascontiguousarray(a))
        for a in (decoder_state, encoder_states, W_a, U_a, v_a)
    )
    weights = torch.softmax(torch.tanh(H @ U.T + W @ s) @ v, dim=0)
    return (weights @ H).numpy(), weights.numpy()


def _one_matrix(decoder_state, encoder_states, W_a, U_a, v_a):
    T_enc = encoder_states.shape[0]
    joined = np.hstack([np.tile(decoder_state, (T_enc, 1)), encoder_states])
    weights = softmax(np.tanh(joined @ np.hstack([W_a, U_a]).T) @ v_a)
    return (weights[:, None] * encoder_states).sum(axis=0), weights


def _single_precision(decoder_state, encoder_states, W_a, U_a, v_a):
    s, H, W, U, v = (
        np.asarray(a, dtype=np.float32) for a in (decoder_state, encoder_states, W_a, U_a, v_a)
    )
    weights = softmax(np.tanh(H @ U.T + W @ s) @ v)
    return weights @ H, weights


def _column_vectors(decoder_state, encoder_states, W_a, U_a, v_a):
    combined = np.tanh(U_a @ encoder_states.T + (W_a @ decoder_state)[:, None])
    scores = v_a[None, :] @ combined
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return [(weights @ encoder_states)[0], weights[0]]


BOTH = (VALUES, STABLE)
TASK = FunctionTask(
    name="additive_attention",
    signature="additive_attention(decoder_state, encoder_states, W_a, U_a, v_a)",
    docstring="""One decoder step of additive attention.

Args:
    decoder_state: (d_s,), float; the state before the step, s_{t-1}.
    encoder_states: (T_enc, d_h), float; h_1 to h_T, the keys and the values.
    W_a: (d_attn, d_s). U_a: (d_attn, d_h). v_a: (d_attn,). All float.

Returns:
    (context, weights): (d_h,) and (T_enc,). The weights sum to 1, also for scores of +-10,000.
    The scores are not scaled, there is no mask, and the arguments are left as they were.

Source: Bahdanau, Cho, Bengio (2014), section 3.1 and appendix A.1.2.""",
    checkpoints=(
        Checkpoint(VALUES, "the weights follow v^T tanh(W s + U h), and mix encoder states", 2),
        Checkpoint(STABLE, "very large and very negative scores give finite weights", 1),
    ),
    reference=reference,
    public=public,
    probes=probes,
    misconceptions=(
        Misconception(
            "additive-no-tanh",
            no_tanh,
            BOTH,
            "Change the decoder state: the weights do not move at all. Without the tanh, W s adds the "
            "same number to every score, and softmax takes it away again. Put np.tanh around the sum.",
            "CONTRACTS: seen in public code; the decoder state cancels",
        ),
        Misconception(
            "additive-tanh-before-the-sum",
            tanh_before_the_sum,
            (VALUES,),
            "Change the decoder state: the weights do not move. tanh is applied to U h alone, so that "
            "W s is a constant for softmax. Add first, then tanh.",
        ),
        Misconception(
            "additive-tanh-after-v",
            tanh_after_v,
            BOTH,
            "All scores lie between -1 and 1 and the weights are nearly equal: tanh comes after the "
            "product with v_a. Apply it to the (T_enc, d_attn) array.",
        ),
        Misconception(
            "additive-v-averaged",
            v_averaged,
            BOTH,
            "Exchange two entries of v_a: the weights stay. v_a was averaged to one number. Use "
            "`combined @ v_a`, one product for each component.",
        ),
        Misconception(
            "additive-v-left-out",
            v_left_out,
            BOTH,
            "Set v_a to zeros: the weights should become equal, and yours stay. v_a is not used; the "
            "mean over d_attn stands in its place. Use `combined @ v_a`.",
        ),
        Misconception(
            "additive-matrices-swapped",
            matrices_swapped,
            BOTH,
            "It works only where d_s equals d_h: W_a meets the encoder states and U_a the decoder state. "
            "Read their last sizes: W_a is (d_attn, d_s), U_a is (d_attn, d_h).",
        ),
        Misconception(
            "additive-matrices-transposed",
            matrices_transposed,
            BOTH,
            "It works only where the matrices are square: both are used the other way round. Check "
            "with sizes that all differ: `W_a @ decoder_state`, `encoder_states @ U_a.T`.",
        ),
        Misconception(
            "additive-softmax-before-v",
            softmax_before_v,
            BOTH,
            "The weights do not sum to 1: softmax ran over d_attn, before v_a made one score of each "
            "row. Score first, (T_enc,), then softmax over the encoder states.",
        ),
        Misconception(
            "additive-values-projected",
            values_projected,
            BOTH,
            "The weights are right, the context has d_attn numbers instead of d_h: keys and values "
            "are mixed up. U h is for scoring; mix the encoder states themselves.",
        ),
        Misconception(
            "additive-scaled",
            scaled,
            BOTH,
            "The weights are too even: the scores are divided by a square root. That belongs to "
            "scaled dot-product attention (2017); the additive score has no scale.",
        ),
        Misconception(
            "additive-multiplied",
            multiplied,
            BOTH,
            "W s and U h are multiplied. Set the decoder state to zeros: all weights become equal, "
            "which a sum would not do. Add them.",
        ),
        Misconception(
            "additive-divided-by-sum",
            divided_by_sum,
            BOTH,
            "Some weights are negative or above 1: the scores are divided by their sum. Softmax takes "
            "e to the power of each score first.",
        ),
        Misconception(
            "additive-column-scores",
            column_scores,
            BOTH,
            "The weights are a (T_enc, T_enc) array: scores of shape (T_enc, 1) met a (T_enc,) array "
            "and numpy broadcast them silently. Keep v_a one-dimensional, and print the shapes.",
        ),
        Misconception(
            "additive-averaged-values",
            averaged_values,
            BOTH,
            "The weights are right, but the context is the plain mean of the encoder states. Use the "
            "weights: `weights @ encoder_states`.",
        ),
        Misconception(
            "additive-no-shift",
            no_shift,
            (STABLE,),
            "NaN for scores of 6000: e to that power is too large for a float. Subtract the largest "
            "score first; the weights do not change.",
        ),
        Misconception(
            "additive-clamped",
            clamped,
            (STABLE,),
            "Scores that differ get equal weights once they pass 500: they were clipped. Subtract the "
            "largest score instead; that keeps all differences.",
            "CONTRACTS: exponents or scores clamped, seen in public code",
        ),
    ),
    alternatives=(
        Alternative("loops", _loops),
        Alternative("einsum-logsumexp", _einsum),
        Alternative("torch", _torch),
        Alternative("one-joined-matrix", _one_matrix),
        Alternative("single-precision", _single_precision),
        Alternative("column-vectors-as-list", _column_vectors),
    ),
    results=("context", "weights"),
    axes=(("component",), ("encoder state",)),
)
