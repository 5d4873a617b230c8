"""`BahdanauDecoder.step`: one decoder step, asked through the notebook's locked `decoder_step`.

Students complete a class; the grader can ask only plain functions for plain data. The locked cell
`decoder_step` builds their decoder in the sizes of the given weights, copies the weights in, and returns
the three results as arrays. Nothing is trusted because of it: other results are wrong results. Logits
go through log_softmax there, which takes away the constant per row that they may differ by.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from autograder.tasks.attention_mechanism._given import (
    AskedThrough,
    huge,
    normal,
    saturated,
    strided,
)
from autograder.tasks.model import Alternative, Case, Checkpoint, Misconception

STEP, PADDING = "BahdanauDecoder-step", "BahdanauDecoder-padding"
ATOL = 1e-5
"""torch in float32: a GRU cell and two matrix products (contract 3)."""


class Decoder(nn.Module):
    def __init__(self, vocab, d_emb, d_h, d_s, d_attn):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_emb)
        self.W_a = nn.Linear(d_s, d_attn, bias=False)
        self.U_a = nn.Linear(d_h, d_attn, bias=False)
        self.v_a = nn.Linear(d_attn, 1, bias=False)
        self.cell = nn.GRUCell(d_emb + d_h, d_s)
        self.readout = nn.Linear(d_s + d_h, vocab)


@dataclass(frozen=True)
class Adapted:
    """A `step` as the grader asks it: callable with arrays; `answer` is the answer cell's text."""

    step: Callable

    def __call__(self, *arrays):
        *weights, token, state, encoder_states, allowed = map(torch.from_numpy, arrays)
        (vocab, d_emb), (d_attn, d_s) = weights[0].shape, weights[1].shape
        decoder = Decoder(vocab, d_emb, encoder_states.shape[2], d_s, d_attn)
        decoder = decoder.to(state.dtype).eval()
        decoder.load_state_dict(dict(zip(decoder.state_dict(), weights, strict=True)))
        with torch.no_grad():
            self.step(decoder, token, state, -encoder_states, allowed)
            logits, new_state, alpha = self.step(decoder, token, state, encoder_states, allowed)
        return logits.log_softmax(dim=1).numpy(), new_state.numpy(), alpha.numpy()

    @property
    def answer(self) -> str:
        head = inspect.getsource(Decoder).replace("class Decoder(", "class BahdanauDecoder(")
        body = inspect.getsource(self.step).replace(f"def {self.step.__name__}(", "def step(")
        return head + "\n" + textwrap.indent(body, "    ")


def right(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def _weights(rng, vocab, d_emb, d_h, d_s, d_attn, dtype):
    shapes = [(vocab, d_emb), (d_attn, d_s), (d_attn, d_h), (1, d_attn)]
    shapes += [(3 * d_s, d_emb + d_h), (3 * d_s, d_s), (3 * d_s,), (3 * d_s,)]
    shapes += [(vocab, d_s + d_h), (vocab,)]
    return [normal(rng, *shape, dtype=dtype, scale=0.7) for shape in shapes]


def _case(rng, sizes, B, T_enc, where=STEP, dtype=np.float32, note="", apart=False):
    vocab, _, d_h, d_s, _ = sizes
    token = rng.integers(0, vocab, size=B)
    state, states = normal(rng, B, d_s, dtype=dtype), normal(rng, B, T_enc, d_h, dtype=dtype)
    allowed = np.ones((B, T_enc), dtype=bool)
    if where == PADDING:
        lengths = rng.permutation(np.arange(1, T_enc))[:B]
        allowed = np.arange(T_enc) < lengths[:, None]
    args = (*_weights(rng, *sizes, dtype), token, state, states, allowed)
    return Case(
        strided(*args) if apart else args, where, note, atol=ATOL, exact_zero=where == PADDING
    )


def _padded_peak(rng, dtype=np.float32):
    """Padding with scores near 6000, real tokens near -6000: exact in float32."""
    vocab, d_emb, T_enc = 7, 3, 6
    state, states, W_a, U_a, v_a = saturated(rng, -1, dtype, T_enc)
    (d_attn, d_s), d_h = W_a.shape, U_a.shape[1]
    weights = _weights(rng, vocab, d_emb, d_h, d_s, d_attn, dtype)
    weights[1:4] = [W_a, U_a, v_a[None, :]]
    states = np.stack([states, states[::-1]])
    allowed = np.arange(T_enc) < np.array([[4], [2]])
    states[~allowed, 0] = 1.0
    token, state = np.array([5, 1]), np.stack([state, -state])
    note = "padding has the largest scores"
    return Case((*weights, token, state, states, allowed), PADDING, note, **huge(dtype))


def public():
    rng = np.random.default_rng(1412)
    return [
        _case(rng, (7, 3, 4, 5, 6), 2, 8, note="all sizes differ"),
        _case(rng, (9, 4, 4, 4, 4), 3, 5, note="d_emb = d_h = d_s = d_attn"),
        _case(rng, (9, 4, 4, 4, 4), 4, 4, note="as many sequences as positions"),
        _case(rng, (7, 3, 4, 5, 6), 2, 8, PADDING, note="padded"),
        _padded_peak(rng),
    ]


def probes(rng):
    return [
        _case(rng, (8, 2, 6, 3, 5), 4, 7, note="all sizes differ", apart=True),
        _case(rng, (6, 5, 5, 5, 5), 2, 3, note="d_emb = d_h = d_s = d_attn"),
        _case(rng, (6, 3, 2, 4, 5), 7, 1, note="one encoder state"),
        _case(rng, (5, 2, 3, 4, 6), 1, 7, note="one sequence", dtype=np.float64),
        _case(rng, (6, 3, 3, 3, 3), 5, 5, note="as many sequences as positions"),
        _case(rng, (8, 2, 6, 3, 5), 4, 7, PADDING, note="padded"),
        _case(rng, (6, 4, 4, 4, 4), 3, 5, PADDING, np.float64, "padded, d_h = d_s"),
        _padded_peak(rng),
    ]


def state_after_the_step(self, token, state, encoder_states, allowed):
    blank = encoder_states.new_zeros(encoder_states[:, 0].shape)
    new_state = self.cell(torch.cat([self.embedding(token), blank], dim=1), state)
    inner = torch.tanh(self.W_a(new_state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def context_only_in_readout(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    blank = torch.zeros_like(context)
    new_state = self.cell(torch.cat([self.embedding(token), blank], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def scored_twice(self, token, state, encoder_states, allowed):
    for query in (state, None):
        query = new_state if query is None else query  # noqa: F821
        inner = torch.tanh(self.W_a(query).unsqueeze(1) + self.U_a(encoder_states))
        scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
        weights = torch.softmax(scores, dim=1)
        context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
        new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def no_tanh(self, token, state, encoder_states, allowed):
    inner = self.W_a(state).unsqueeze(1) + self.U_a(encoder_states)
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def softmax_over_the_batch(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -1e9)
    weights = torch.softmax(scores, dim=0)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def context_before_embedding(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([context, self.embedding(token)], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def readout_in_other_order(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([context, new_state], dim=1)), new_state, weights


def readout_of_the_old_state(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([state, context], dim=1)), new_state, weights


def old_state_returned(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), state.clone(), weights


def no_history(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1))
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def plain_mean(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = encoder_states.mean(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def scaled(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores / inner.shape[2] ** 0.5, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def mask_ignored(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    weights = torch.softmax(self.v_a(inner).squeeze(2), dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def mask_after_softmax(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    weights = torch.softmax(self.v_a(inner).squeeze(2), dim=1) * allowed
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def mask_after_and_renormalised(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    weights = torch.softmax(self.v_a(inner).squeeze(2), dim=1) * allowed
    weights = weights / weights.sum(dim=1, keepdim=True)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def tiny_fill(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -1e-9)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def mask_inverted(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(allowed, -1e9)
    weights = torch.softmax(scores, dim=1)
    context = (weights.unsqueeze(2) * encoder_states).sum(dim=1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def _batched_products(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state)[:, None] + self.U_a(encoder_states))
    scores = (inner @ self.v_a.weight[0]).masked_fill(allowed.logical_not(), float("-inf"))
    weights = F.softmax(scores, dim=-1)
    context = torch.bmm(weights[:, None], encoder_states)[:, 0]
    new_state = self.cell(torch.hstack([self.embedding(token), context]), state)
    return self.readout(torch.hstack([new_state, context])), new_state, weights


def _einsum(self, token, state, encoder_states, allowed):
    query = torch.einsum("as,bs->ba", self.W_a.weight, state)
    keys = torch.einsum("ah,bth->bta", self.U_a.weight, encoder_states)
    scores = torch.einsum("a,bta->bt", self.v_a.weight.squeeze(0), (query[:, None] + keys).tanh())
    scores = scores + torch.where(allowed, 0.0, -torch.inf)
    weights = (scores - scores.logsumexp(dim=1, keepdim=True)).exp()
    context = torch.einsum("bt,bth->bh", weights, encoder_states)
    new_state = self.cell(torch.cat((F.embedding(token, self.embedding.weight), context), 1), state)
    logits = F.linear(torch.cat((new_state, context), 1), self.readout.weight, self.readout.bias)
    return logits, new_state, weights


def _one_position_at_a_time(self, token, state, encoder_states, allowed):
    B, T_enc, d_h = encoder_states.shape
    flat = self.U_a(encoder_states.reshape(B * T_enc, d_h)).reshape(B, T_enc, -1)
    scores = torch.stack(
        [self.v_a((flat[:, t] + self.W_a(state)).tanh())[:, 0] for t in range(T_enc)], dim=1
    )
    scores[~allowed] = -torch.inf
    weights = torch.nn.functional.softmax(scores, 1)
    context = sum(weights[:, t : t + 1] * encoder_states[:, t] for t in range(T_enc))
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


def _finite_fill(self, token, state, encoder_states, allowed):
    B, T_enc, _ = encoder_states.shape
    repeated = state.unsqueeze(1).expand(B, T_enc, state.shape[1])
    scores = self.v_a((self.W_a(repeated) + self.U_a(encoder_states)).tanh()).view(B, T_enc)
    weights = torch.where(allowed, scores, torch.finfo(scores.dtype).min).softmax(-1)
    context = weights.unsqueeze(1).matmul(encoder_states).squeeze(1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=-1), state)
    return [self.readout(torch.cat([new_state, context], dim=-1)), new_state, weights]


def _log_probabilities(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(-1)
    e = torch.exp(scores - scores.masked_fill(~allowed, -1e9).max(dim=1, keepdim=True).values)
    e = torch.where(allowed, e, torch.zeros_like(e))
    weights = e / e.sum(dim=1, keepdim=True)
    context = (encoder_states * weights[..., None]).sum(1)
    new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
    logits = self.readout(torch.cat([new_state, context], dim=1))
    return F.log_softmax(logits, dim=1), new_state, weights


def _gru_by_hand(self, token, state, encoder_states, allowed):
    inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
    scores = self.v_a(inner).squeeze(2).masked_fill(~allowed, -torch.inf)
    weights = torch.softmax(scores, dim=1)
    context = torch.matmul(weights.unsqueeze(1), encoder_states).squeeze(1)
    x = torch.cat([self.embedding(token), context], dim=1)
    gates = F.linear(x, self.cell.weight_ih, self.cell.bias_ih).chunk(3, dim=1)
    past = F.linear(state, self.cell.weight_hh, self.cell.bias_hh).chunk(3, dim=1)
    reset, update = (torch.sigmoid(a + b) for a, b in zip(gates[:2], past[:2], strict=True))
    new = torch.tanh(gates[2] + reset * past[2])
    new_state = (1 - update) * new + update * state
    return self.readout(torch.cat([new_state, context], dim=1)), new_state, weights


BOTH = (STEP, PADDING)


def _wrong(name, step, fails, message, source=""):
    return Misconception(name, Adapted(step), fails, message, source)


TASK = AskedThrough(
    name="decoder_step",
    cell="BahdanauDecoder",
    signature="step(self, token, state, encoder_states, allowed)",
    docstring="""One step of the decoder.

Args:
    token: (B,), int64; the previous output token.
    state: (B, d_s), float; the state before this step, s_{t-1}. It makes the scores.
    encoder_states: (B, T_enc, d_h), float.
    allowed: (B, T_enc), bool; True = a real token, False = padding. Each row has at least one True.

Returns:
    (logits, new_state, weights): (B, vocab), (B, d_s) and (B, T_enc). Padding has weight exactly 0.
    The GRU cell reads [embedding, context], the readout reads [new_state, context], in this order;
    the context is weights times encoder states. The arguments are left as they were.

Source: Bahdanau, Cho, Bengio (2014), appendix A.1.2, with a plain linear readout.""",
    checkpoints=(
        Checkpoint(STEP, "logits, new state and weights follow from the state before the step", 3),
        Checkpoint(PADDING, "padding has weight exactly 0, whatever its score would be", 1),
    ),
    reference=Adapted(right),
    public=public,
    probes=probes,
    misconceptions=(
        _wrong(
            "decoder-state-after-the-step",
            state_after_the_step,
            BOTH,
            "The weights depend on the new token: they were made from the state after the step "
            "(Luong's convention). Score with the `state` that came in, s_{t-1}, then call the cell.",
        ),
        _wrong(
            "decoder-context-only-in-readout",
            context_only_in_readout,
            BOTH,
            "The weights are right, the new state is not: the cell did not get the context. Its input "
            "is torch.cat([embedding, context], dim=1).",
            "CONTRACTS: context only in the readout, seen in public code",
        ),
        _wrong(
            "decoder-scored-twice",
            scored_twice,
            BOTH,
            "The weights come from the new state: attention ran once more after the cell. One round a "
            "step is enough, before the cell.",
        ),
        _wrong(
            "decoder-no-tanh",
            no_tanh,
            BOTH,
            "Change the state: the weights do not move at all. Without the tanh, W_a s adds the same "
            "number to every score, and softmax takes it away again.",
            "CONTRACTS: no tanh, the decoder state then cancels",
        ),
        _wrong(
            "decoder-softmax-over-batch",
            softmax_over_the_batch,
            BOTH,
            "The weights' columns sum to 1, not the rows: sequences of the batch compete with each "
            "other. Use dim=1.",
        ),
        _wrong(
            "decoder-cell-input-order",
            context_before_embedding,
            BOTH,
            "The weights are right, the new state is not: the cell got [context, embedding]. The "
            "order is [embedding, context].",
        ),
        _wrong(
            "decoder-readout-order",
            readout_in_other_order,
            BOTH,
            "Weights and state are right, the logits are not: the readout got [context, new_state]. "
            "The order is [new_state, context].",
        ),
        _wrong(
            "decoder-readout-of-old-state",
            readout_of_the_old_state,
            BOTH,
            "Weights and state are right, the logits are not: the readout got the state before the "
            "step. It reads [new_state, context].",
        ),
        _wrong(
            "decoder-old-state-returned",
            old_state_returned,
            BOTH,
            "The state comes back unchanged, so that every step starts anew. Return what the cell gave.",
        ),
        _wrong(
            "decoder-no-history",
            no_history,
            BOTH,
            "The new state does not depend on the old one: the cell was called without it. Pass "
            "`state` as its second argument.",
        ),
        _wrong(
            "decoder-plain-mean",
            plain_mean,
            BOTH,
            "The weights are right, but the context is the plain mean of the encoder states. Multiply "
            "by the weights.",
        ),
        _wrong(
            "decoder-scaled",
            scaled,
            BOTH,
            "The weights are too even: the scores are divided by sqrt(d_attn). The additive score has "
            "no scale.",
        ),
        _wrong(
            "decoder-mask-ignored",
            mask_ignored,
            (PADDING,),
            "Padding has weight: `allowed` is not used, or the result of `masked_fill` is dropped (it "
            "returns a new tensor). Write `scores = scores.masked_fill(~allowed, -torch.inf)`.",
            "CONTRACTS: a mask fill whose result is not kept, seen in public code",
        ),
        _wrong(
            "decoder-mask-after-softmax",
            mask_after_softmax,
            (PADDING,),
            "The rows sum to less than 1: padding was set to 0 after softmax had shared out its part. "
            "Mask the scores.",
        ),
        _wrong(
            "decoder-mask-after-renormalised",
            mask_after_and_renormalised,
            (PADDING,),
            "NaN where padding has by far the largest score: after softmax nothing is left of the "
            "real tokens, and 0/0 follows. Mask the scores before softmax.",
        ),
        _wrong(
            "decoder-tiny-fill",
            tiny_fill,
            (PADDING,),
            "Padding has weight: it was filled with -1e-9, which is almost 0. You meant -1e9; "
            "-torch.inf is exact.",
            "CONTRACTS: a fill of -1e-9, seen in public code",
        ),
        _wrong(
            "decoder-mask-inverted",
            mask_inverted,
            BOTH,
            "Padding has all the weight: `allowed` is True for real tokens, and masked_fill fills "
            "where its mask is True. Fill where `~allowed`.",
        ),
    ),
    alternatives=(
        Alternative("batched-products", Adapted(_batched_products)),
        Alternative("einsum", Adapted(_einsum)),
        Alternative("one-position-at-a-time", Adapted(_one_position_at_a_time)),
        Alternative("finite-fill-as-list", Adapted(_finite_fill)),
        Alternative("log-probabilities", Adapted(_log_probabilities)),
        Alternative("gru-by-hand", Adapted(_gru_by_hand)),
    ),
    results=("log-probabilities", "new state", "weights"),
    axes=(("sequence", "token"), ("sequence", "component"), ("sequence", "encoder state")),
)
