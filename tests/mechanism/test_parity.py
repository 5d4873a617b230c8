"""Do the references agree with implementations that we did not write?

Keras (numpy in, any backend) has Bahdanau's score as AdditiveAttention and Luong's dot as Attention; torch
has dot attention with a scale of our choice. The small cases with printed numbers are the ones that Keras
publishes with its own tests (keras/src/layers/attention/attention_test.py, additive_attention_test.py).
"""

from __future__ import annotations

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras
import numpy as np
import pytest
import torch
from torch.nn import functional as F

from autograder.tasks.attention_mechanism import (
    additive_attention,
    bahdanau_decoder,
    dot_attention,
    general_attention,
    masked_softmax,
    multi_head_general,
)

QUERY = np.array([[1.0, 0.0], [0.0, 1.0]])
KEY = np.array([[0.0, 1.0], [1.0, 0.0]])
VALUE = np.array([[1.0, 2.0], [3.0, 4.0]])


def test_published_dot_case():
    weights = np.stack([dot_attention.reference(query, KEY)[1] for query in QUERY])
    assert np.allclose(weights, [[0.269, 0.731], [0.731, 0.269]], atol=1e-3)
    assert np.allclose(weights @ VALUE, [[2.462, 3.462], [1.538, 2.538]], atol=1e-3)


def test_published_additive_case():
    eye, ones = np.eye(2), np.ones(2)
    weights = np.stack(
        [additive_attention.reference(query, KEY, eye, eye, ones)[1] for query in QUERY]
    )
    assert np.allclose(weights, [[0.636, 0.363], [0.363, 0.636]], atol=1e-3)
    assert np.allclose(weights @ VALUE, [[1.727, 2.727], [2.272, 3.272]], atol=1e-3)


def _keras(layer, query, key, value):
    out, weights = layer([query[None, None], value[None], key[None]], return_attention_scores=True)
    return tuple(keras.ops.convert_to_numpy(x)[0, 0] for x in (out, weights))


@pytest.mark.parametrize("seed", range(5))
def test_additive_equals_keras(seed):
    rng = np.random.default_rng(seed)
    s, H = rng.normal(size=4), rng.normal(size=(6, 3))
    W_a, U_a, v_a = rng.normal(size=(5, 4)), rng.normal(size=(5, 3)), rng.normal(size=5)
    layer = keras.layers.AdditiveAttention(use_scale=True, dtype="float64")
    layer.build([(1, 1, 5), (1, 6, 3), (1, 6, 5)])
    layer.scale.assign(v_a)
    context, weights = _keras(layer, W_a @ s, H @ U_a.T, H)
    ours = additive_attention.reference(s, H, W_a, U_a, v_a)
    assert np.allclose(ours[0], context)
    assert np.allclose(ours[1], weights)


@pytest.mark.parametrize("seed", range(5))
def test_dot_equals_keras_and_torch(seed):
    rng = np.random.default_rng(seed)
    s, H = rng.normal(size=3), rng.normal(size=(6, 3))
    context, weights = dot_attention.reference(s, H)
    theirs = _keras(keras.layers.Attention(score_mode="dot", dtype="float64"), s, H, H)
    assert np.allclose(context, theirs[0])
    assert np.allclose(weights, theirs[1])
    q, k = torch.from_numpy(s)[None, None], torch.from_numpy(H)[None]
    sdpa = F.scaled_dot_product_attention(q, k, k, scale=1.0)
    assert np.allclose(context, sdpa[0, 0].numpy())


@pytest.mark.parametrize("seed", range(5))
def test_general_and_heads_equal_torch(seed):
    rng = np.random.default_rng(seed)
    s, H, W = rng.normal(size=4), rng.normal(size=(5, 6)), rng.normal(size=(2, 2, 3))
    q, k = torch.from_numpy(s).view(2, 1, 2), torch.from_numpy(H).view(5, 2, 3).transpose(0, 1)
    heads = F.scaled_dot_product_attention(q @ torch.from_numpy(W), k, k, scale=1.0)
    assert np.allclose(multi_head_general.reference(s, H, W)[0], heads.flatten().numpy())
    whole = rng.normal(size=(4, 6))
    one = general_attention.reference(s, H, whole)
    scores = F.bilinear(
        torch.from_numpy(np.tile(s, (5, 1))), torch.from_numpy(H), torch.from_numpy(whole)[None]
    )
    assert np.allclose(one[1], scores[:, 0].softmax(dim=0).numpy())
    assert np.allclose(one[1], multi_head_general.reference(s, H, whole[None])[1][0])


def test_masked_softmax_equals_torch():
    rng = np.random.default_rng(0)
    scores, lengths = rng.normal(size=(4, 6)), np.array([1, 6, 3, 2])
    padding = torch.arange(6) >= torch.from_numpy(lengths)[:, None]
    theirs = torch.from_numpy(scores).masked_fill(padding, -torch.inf).softmax(dim=1)
    assert np.allclose(masked_softmax.reference(scores, lengths), theirs.numpy())


def test_the_decoder_step_scores_like_additive_attention():
    case = bahdanau_decoder.TASK.public()[0]
    *weights, _, state, states, _ = case.args
    _, _, alpha = bahdanau_decoder.TASK.reference(*case.args)
    for b in range(len(state)):
        want = additive_attention.reference(
            state[b], states[b], weights[1], weights[2], weights[3][0]
        )
        assert np.allclose(alpha[b], want[1], atol=1e-6)
    # ... and one that is not the same is told apart
    other = additive_attention.no_tanh(state[0], states[0], weights[1], weights[2], weights[3][0])
    assert not np.allclose(alpha[0], other[1], atol=1e-3)
