"""`multi_head_general`: Luong's general form in several heads (the medium exercise)."""

from __future__ import annotations

import numpy as np

from autograder.tasks.attention_mechanism._given import (
    CONTEXT_ATOL,
    huge,
    normal,
    softmax,
    strided,
)
from autograder.tasks.model import Alternative, Case, Checkpoint, FunctionTask, Misconception

VALUES = "multi_head_general-values"
ONE_HEAD = "multi_head_general-one-head"
SIZES = "multi_head_general-sizes"
STABLE = "multi_head_general-stable"


def reference(decoder_state, encoder_states, W):
    n, a, b = W.shape
    if len(decoder_state) % n or encoder_states.shape[1] % n:
        raise ValueError("n_heads must divide d_s and d_h")
    contexts, rows = [], []
    for i in range(n):
        states = encoder_states[:, i * b : (i + 1) * b]
        weights = softmax(states @ (decoder_state[i * a : (i + 1) * a] @ W[i]))
        rows.append(weights)
        contexts.append(weights @ states)
    return np.concatenate(contexts), np.stack(rows)


def _args(rng, n_heads, d_s, d_h, T_enc, dtype=np.float64):
    shapes = [(d_s,), (T_enc, d_h), (n_heads, d_s // n_heads, d_h // n_heads)]
    return tuple(normal(rng, *shape, dtype=dtype) for shape in shapes)


def _case(rng, n_heads, d_s, d_h, T_enc, dtype=np.float64, note="", apart=False):
    args = _args(rng, n_heads, d_s, d_h, T_enc, dtype)
    where = ONE_HEAD if n_heads == 1 else VALUES
    return Case(strided(*args) if apart else args, where, note, atol=CONTEXT_ATOL)


def _indivisible(rng, n_heads, d_s, d_h, T_enc, dtype=np.float64):
    note = f"n_heads = {n_heads}, d_s = {d_s}, d_h = {d_h}"
    whole = (n_heads, d_s - d_s % n_heads, d_h - d_h % n_heads)
    near = _args(rng, *whole, T_enc, dtype)
    return Case(_args(rng, n_heads, d_s, d_h, T_enc, dtype), SIZES, note, neighbour=near)


def _stable(rng, sign, dtype=np.float64):
    """Two heads; the first has scores near sign * 3000, the second everyday integers."""
    T_enc, d_h = 5, 6
    encoder = rng.integers(-2, 3, size=(T_enc, d_h)).astype(float)
    encoder[:, 0] = sign * 48.0
    encoder[-1, 0] = -48.0  # far below the others where they are large: scores differ by 6000
    W = np.zeros((2, 2, 3))
    W[0] = [[1, 0, 0], [0, 1, -2]]
    W[1] = [[0.5, 0, 1], [0, -1, 0.25]]
    state = np.array([64.0, 0.5, 1.0, -2.0])
    note = "very large scores" if sign > 0 else "very negative scores"
    args = tuple(a.astype(dtype) for a in (state, encoder, W))
    return Case(args, STABLE, f"{note} in one head", **huge(dtype))


def public():
    rng = np.random.default_rng(1706)
    return [
        _case(rng, 2, 4, 6, 5, note="two heads"),
        _case(rng, 3, 6, 6, 4, note="three heads, square W"),
        _case(rng, 1, 4, 3, 5, note="one head"),
        _case(rng, 1, 3, 3, 4, note="one head, square W"),
        _indivisible(rng, 2, 5, 6, 4),
        _indivisible(rng, 3, 6, 7, 5),
        _stable(rng, 1),
        _stable(rng, -1),
    ]


def probes(rng):
    return [
        _case(rng, 3, 6, 12, 5, note="three heads", apart=True),
        _case(rng, 2, 8, 6, 3, np.float32, "two heads, float32"),
        _case(rng, 4, 8, 8, 6, note="four heads, square W"),
        _case(rng, 2, 6, 6, 2, note="two heads, two encoder states"),
        _case(rng, 3, 3, 6, 7, note="one component of the state a head"),
        _case(rng, 1, 5, 4, 6, note="one head", apart=True),
        _case(rng, 1, 4, 4, 3, np.float32, "one head, square W, float32"),
        _indivisible(rng, 2, 6, 5, 3),
        _indivisible(rng, 4, 9, 8, 5, np.float32),
        _indivisible(rng, 3, 7, 8, 4),
        _stable(rng, 1, np.float32),
        _stable(rng, -1),
    ]


def no_size_check(decoder_state, encoder_states, W):
    contexts, weights = [], []
    n, a, b = W.shape
    for i in range(n):
        s, H = decoder_state[i * a : (i + 1) * a], encoder_states[:, i * b : (i + 1) * b]
        scores = H @ (W[i].T @ s)
        e = np.exp(scores - scores.max())
        weights.append(e / e.sum())
        contexts.append(weights[-1] @ H)
    return np.concatenate(contexts), np.stack(weights)


def checks_one_side(decoder_state, encoder_states, W):
    n, a, b = W.shape
    if encoder_states.shape[1] % n:
        raise ValueError
    contexts, weights = [], []
    for i in range(n):
        s, H = decoder_state[i * a : (i + 1) * a], encoder_states[:, i * b : (i + 1) * b]
        scores = H @ (W[i].T @ s)
        e = np.exp(scores - scores.max())
        weights.append(e / e.sum())
        contexts.append(weights[-1] @ H)
    return np.concatenate(contexts), np.stack(weights)


def interleaved(decoder_state, encoder_states, W):
    n = W.shape[0]
    if len(decoder_state) % n or encoder_states.shape[1] % n:
        raise ValueError
    contexts, weights = [], []
    for i in range(n):
        s, H = decoder_state[i::n], encoder_states[:, i::n]
        scores = H @ (W[i].T @ s)
        e = np.exp(scores - scores.max())
        weights.append(e / e.sum())
        contexts.append(weights[-1] @ H)
    return np.concatenate(contexts), np.stack(weights)


def reshaped_without_transpose(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries = decoder_state.reshape(n, -1)
    states = encoder_states.reshape(n, T_enc, d_h // n)
    scores = np.einsum("ns,nsh,nth->nt", queries, W, states)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,nth->nh", weights, states).reshape(d_h), weights


def merged_without_transpose(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,nsh,tnh->nt", queries, W, states)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,tnh->hn", weights, states).reshape(d_h), weights


def one_matrix_for_all(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,sh,tnh->nt", queries, W[0], states)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,tnh->nh", weights, states).reshape(d_h), weights


def heads_in_reverse(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,nsh,tnh->nt", queries, W[::-1], states)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,tnh->nh", weights, states).reshape(d_h), weights


def matrices_transposed(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    keys = np.stack([states[:, i] @ W[i] for i in range(n)])
    scores = np.einsum("ns,nts->nt", queries, keys)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,tnh->nh", weights, states).reshape(d_h), weights


def softmax_over_heads(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,nsh,tnh->nt", queries, W, states)
    e = np.exp(scores - scores.max(axis=0, keepdims=True))
    weights = e / e.sum(axis=0, keepdims=True)
    return np.einsum("nt,tnh->nh", weights, states).reshape(d_h), weights


def one_softmax_for_all(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,nsh,tnh->nt", queries, W, states)
    e = np.exp(scores - scores.max())
    weights = e / e.sum()
    return np.einsum("nt,tnh->nh", weights, states).reshape(d_h), weights


def weights_averaged(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,nsh,tnh->nt", queries, W, states)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return weights.mean(axis=0) @ encoder_states, weights


def heads_averaged(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,nsh,tnh->nt", queries, W, states)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,tnh->nh", weights, states).mean(axis=0), weights


def scaled(decoder_state, encoder_states, W):
    n, _, b = W.shape
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,nsh,tnh->nt", queries, W, states) / np.sqrt(b)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,tnh->nh", weights, states).reshape(d_h), weights


def weights_in_columns(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,nsh,tnh->nt", queries, W, states)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,tnh->nh", weights, states).reshape(d_h), weights.T.copy()


def not_concatenated(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,nsh,tnh->nt", queries, W, states)
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,tnh->nh", weights, states), weights


def one_maximum_for_all(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    scores = np.einsum("ns,nsh,tnh->nt", queries, W, states)
    e = np.exp(scores - scores.max())
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,tnh->nh", weights, states).reshape(d_h), weights


def no_shift(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if len(decoder_state) % n or d_h % n:
        raise ValueError
    queries, states = decoder_state.reshape(n, -1), encoder_states.reshape(T_enc, n, -1)
    e = np.exp(np.einsum("ns,nsh,tnh->nt", queries, W, states))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("nt,tnh->nh", weights, states).reshape(d_h), weights


def _slices(decoder_state, encoder_states, W):
    n_heads, a, b = W.shape
    if decoder_state.size != n_heads * a or encoder_states.shape[1] != n_heads * b:
        raise ValueError("sizes are not a multiple of n_heads")
    contexts, rows = [], []
    for i in range(n_heads):
        s = decoder_state[i * a : (i + 1) * a]
        H = encoder_states[:, i * b : (i + 1) * b]
        scores = H @ W[i].T @ s
        e = np.exp(scores - scores.max())
        rows.append(e / e.sum())
        contexts.append(rows[-1] @ H)
    return np.concatenate(contexts), np.array(rows)


def _split(decoder_state, encoder_states, W):
    parts = zip(
        np.split(decoder_state, len(W)), np.split(encoder_states, len(W), axis=1), W, strict=True
    )
    contexts, rows = [], []
    for s, H, M in parts:
        scores = s @ M @ H.T
        weights = np.exp(scores - np.logaddexp.reduce(scores))
        rows.append(weights)
        contexts.append(weights @ H)
    return np.hstack(contexts), np.vstack(rows)


def _block_matrix(decoder_state, encoder_states, W):
    n, a, b = W.shape
    if len(decoder_state) % n != 0 or encoder_states.shape[1] % n != 0:
        raise ValueError("n_heads must divide both sizes")
    context, rows = np.zeros(encoder_states.shape[1]), []
    for i in range(n):
        block = np.zeros((n * a, n * b))
        block[i * a : (i + 1) * a, i * b : (i + 1) * b] = W[i]
        scores = encoder_states @ (decoder_state @ block)
        e = np.exp(scores - max(scores))
        rows.append(e / e.sum())
        context[i * b : (i + 1) * b] = (rows[i] @ encoder_states)[i * b : (i + 1) * b]
    return context, np.stack(rows)


def _transposed(decoder_state, encoder_states, W):
    n = W.shape[0]
    T_enc, d_h = encoder_states.shape
    if decoder_state.shape[0] % n or d_h % n:
        raise ValueError("n_heads must divide d_s and d_h")
    states = encoder_states.reshape(T_enc, n, d_h // n).transpose(1, 0, 2)
    queries = decoder_state.reshape(n, 1, -1) @ W
    scores = (queries @ states.transpose(0, 2, 1))[:, 0, :]
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return (weights[:, None, :] @ states).reshape(-1), weights


def _torch(decoder_state, encoder_states, W):
    import torch

    n = W.shape[0]
    if len(decoder_state) % n or encoder_states.shape[1] % n:
        raise ValueError("n_heads must divide both sizes")
    s, H, M = (torch.tensor(np.ascontiguousarray(a)) for a in (decoder_state, encoder_states, W))
    states = H.unflatten(1, (n, -1)).transpose(0, 1)
    scores = states @ (s.view(n, 1, -1) @ M).transpose(1, 2)
    weights = torch.softmax(scores.squeeze(2), dim=1)
    return torch.bmm(weights.unsqueeze(1), states).flatten().numpy(), weights.numpy()


def _single_precision(decoder_state, encoder_states, W):
    n = len(W)
    if len(decoder_state) % n or encoder_states.shape[1] % n:
        raise ValueError("n_heads must divide both sizes")
    s, H, M = (np.asarray(a, dtype=np.float32) for a in (decoder_state, encoder_states, W))
    contexts, rows = [], []
    for i, (q, K) in enumerate(zip(np.split(s, n), np.split(H, n, axis=1), strict=True)):
        scores = K @ (q @ M[i])
        e = np.exp(scores - scores.max())
        rows.append(e / e.sum())
        contexts.append(rows[-1] @ K)
    return np.concatenate(contexts), np.array(rows)


ALL_BUT_SIZES = (VALUES, ONE_HEAD, STABLE)
MANY = (VALUES, STABLE)
TASK = FunctionTask(
    name="multi_head_general",
    signature="multi_head_general(decoder_state, encoder_states, W)",
    docstring="""Luong's general attention in n_heads heads, each with its own part of both states.

Head i takes the components i*d/n_heads to (i+1)*d/n_heads - 1 of the decoder state and of every
encoder state, scores with W[i], and mixes its part of the encoder states; the parts are then
concatenated in the order of the heads.

Args:
    decoder_state: (d_s,), float; the state after the step, s_t.
    encoder_states: (T_enc, d_h), float.
    W: (n_heads, d_s/n_heads, d_h/n_heads), float.

Returns:
    (context, weights): (d_h,) and (n_heads, T_enc). Each row of weights sums to 1, also for scores
    of +-10,000. The scores are not scaled, there is no mask, and the arguments are left as they were.

Raises:
    ValueError: if n_heads does not divide d_s or d_h; checked before anything is sliced.""",
    checkpoints=(
        Checkpoint(VALUES, "each head attends with its own part and its own W", 2),
        Checkpoint(ONE_HEAD, "one head gives what general_attention gives", 1),
        Checkpoint(SIZES, "sizes that n_heads does not divide raise ValueError", 1),
        Checkpoint(STABLE, "huge scores in one head leave all heads finite", 1),
    ),
    reference=reference,
    public=public,
    probes=probes,
    misconceptions=(
        Misconception(
            "heads-no-size-check",
            no_size_check,
            (SIZES,),
            "With d_s = 5 and two heads the last component was dropped without a word: slices never "
            "complain. Check `d % n_heads` for both sizes first, and raise ValueError.",
        ),
        Misconception(
            "heads-only-encoder-checked",
            checks_one_side,
            (SIZES,),
            "d_h is checked, d_s is not: components of the decoder state were dropped. Check both.",
        ),
        Misconception(
            "heads-interleaved",
            interleaved,
            MANY,
            "One head is right, two are not: head i takes every n-th component (`[i::n_heads]`). A "
            "head's part is contiguous: components i*d/n to (i+1)*d/n - 1.",
        ),
        Misconception(
            "heads-reshaped-without-transpose",
            reshaped_without_transpose,
            MANY,
            "One head is right, two are not: `reshape(n_heads, T_enc, ...)` cuts the rows of the "
            "encoder states into pieces and mixes positions. Reshape to (T_enc, n_heads, ...), then "
            "transpose.",
        ),
        Misconception(
            "heads-merged-without-transpose",
            merged_without_transpose,
            MANY,
            "The weights are right, the context's numbers are right but in another order: heads were "
            "merged component by component. Put whole heads one after the other.",
            "CONTRACTS: heads merged without the permute, seen in public code",
        ),
        Misconception(
            "heads-share-one-W",
            one_matrix_for_all,
            MANY,
            "Only the first head is right: all heads use W[0]. Head i has its own matrix, W[i].",
        ),
        Misconception(
            "heads-in-reverse",
            heads_in_reverse,
            MANY,
            "The matrices go to the heads in reverse order. Head 0 has W[0] and the first components.",
        ),
        Misconception(
            "heads-W-transposed",
            matrices_transposed,
            (VALUES, ONE_HEAD, SIZES, STABLE),
            "It works only where each W[i] is square, and gives other weights there: W[i] is the wrong "
            "way round. Its shape is (d_s/n_heads, d_h/n_heads).",
        ),
        Misconception(
            "heads-softmax-over-heads",
            softmax_over_heads,
            ALL_BUT_SIZES,
            "For each encoder state the heads' weights sum to 1: the softmax ran over the heads. Each "
            "head shares out 1 over the encoder states: axis=1.",
        ),
        Misconception(
            "heads-one-softmax-for-all",
            one_softmax_for_all,
            MANY,
            "All weights together sum to 1: one softmax ran over all heads. Each head has its own.",
        ),
        Misconception(
            "heads-weights-averaged",
            weights_averaged,
            MANY,
            "The context mixes with the mean of all heads' weights. Each head mixes its own part with "
            "its own weights.",
        ),
        Misconception(
            "heads-averaged",
            heads_averaged,
            MANY,
            "The context has d_h/n_heads numbers: the heads' contexts were averaged. Concatenate them.",
        ),
        Misconception(
            "heads-scaled",
            scaled,
            ALL_BUT_SIZES,
            "The weights are too even: the scores are divided by the root of the head's size. The "
            "general form has no scale, in one head or in many.",
        ),
        Misconception(
            "heads-weights-in-columns",
            weights_in_columns,
            ALL_BUT_SIZES,
            "The weights have shape (T_enc, n_heads): heads stand in columns. The docstring asks for one "
            "row a head; put the heads on axis 0.",
        ),
        Misconception(
            "heads-not-concatenated",
            not_concatenated,
            ALL_BUT_SIZES,
            "The context has shape (n_heads, d_h/n_heads): the heads are stacked. Put them one after "
            "the other, (d_h,).",
        ),
        Misconception(
            "heads-one-maximum-for-all",
            one_maximum_for_all,
            (STABLE,),
            "NaN in a head whose scores lie far below another's: one maximum was subtracted from all. "
            "Use the maximum of each head.",
        ),
        Misconception(
            "heads-no-shift",
            no_shift,
            (STABLE,),
            "NaN for scores of 3000: e to that power is too large for a float. Subtract each head's "
            "largest score first.",
        ),
    ),
    alternatives=(
        Alternative("slices", _slices),
        Alternative("split-raises-by-itself", _split),
        Alternative("block-matrix", _block_matrix),
        Alternative("reshape-and-transpose", _transposed),
        Alternative("torch", _torch),
        Alternative("single-precision", _single_precision),
    ),
    results=("context", "weights"),
    axes=(("component",), ("head", "encoder state")),
)
