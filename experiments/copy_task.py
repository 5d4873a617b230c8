"""The copy task: what a fixed-size state costs, and what attention gives back.

    python -m experiments.copy_task run --seed 0       # all lengths, both models, the fast way
    python -m experiments.copy_task straightforward    # the same work done the straightforward way
    python -m experiments.copy_task bench              # both ways side by side, half a minute
    python -m experiments.copy_task report             # figures and docs/copy-task.md from the results

One model per length and kind. A sequence of `length` random symbols goes in; the same sequence must come
out, decoded greedily. The functions and classes between the two marker lines below are, word for word,
the cells of the notebook `3-copy-task` (a test compares them): this file times and repeats them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

RESULTS = Path(__file__).parent / "results"
LENGTHS = (5, 10, 20, 40, 80)
SEEDS = (0, 1, 2)
UPDATES = 800  # at most
BASELINE = 400  # at least; the baseline never gets fewer updates than attention took at that length

# --- cells of the notebook: begin ---
SYMBOLS = 10  # the tokens 0 .. 9
START = 10  # the token that starts every answer


class BahdanauDecoder(nn.Module):
    def __init__(self, vocab, d_emb, d_h, d_s, d_attn):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_emb)
        self.W_a = nn.Linear(d_s, d_attn, bias=False)
        self.U_a = nn.Linear(d_h, d_attn, bias=False)
        self.v_a = nn.Linear(d_attn, 1, bias=False)
        self.cell = nn.GRUCell(d_emb + d_h, d_s)
        self.readout = nn.Linear(d_s + d_h, vocab)

    def step(self, token, state, encoder_states, allowed):
        inner = torch.tanh(self.W_a(state).unsqueeze(1) + self.U_a(encoder_states))
        scores = self.v_a(inner).squeeze(2)
        weights = scores.masked_fill(~allowed, -torch.inf).softmax(dim=1)
        context = torch.bmm(weights.unsqueeze(1), encoder_states).squeeze(1)
        new_state = self.cell(torch.cat([self.embedding(token), context], dim=1), state)
        logits = self.readout(torch.cat([new_state, context], dim=1))
        return logits, new_state, weights


@contextlib.contextmanager
def remembered(layer):
    """Inside the block, `layer` answers a repeated input from memory: U_a h is worked out once a batch."""
    compute, memory = layer.forward, {}

    def forward(x):
        if memory.get("input") is not x:
            memory.update(input=x, output=compute(x))
        return memory["output"]

    layer.forward = forward
    try:
        yield
    finally:
        del layer.forward


class AttentionCopier(nn.Module):
    """A fused GRU reads the source; your decoder writes the copy, one `step` a token."""

    def __init__(self, d_emb=16, d_h=64, d_attn=16):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS + 1, d_emb)
        self.encoder = nn.GRU(d_emb, d_h, batch_first=True)
        self.decoder = BahdanauDecoder(SYMBOLS + 1, d_emb, d_h, d_h, d_attn)

    def forward(self, source, target=None):
        encoder_states, last = self.encoder(self.embedding(source))
        return decode(self.decoder, encoder_states, last[0], source.shape[1], target)


def decode(decoder, encoder_states, state, T_dec, target=None):
    """Logits (B, T_dec, vocab), weights (B, T_dec, T_enc); without a target the decoder hears itself."""
    B, T_enc, _ = encoder_states.shape
    allowed = torch.ones(B, T_enc, dtype=torch.bool)
    token, logits, weights = torch.full((B,), START), [], []
    with remembered(decoder.U_a):
        for t in range(T_dec):
            scores, state, alpha = decoder.step(token, state, encoder_states, allowed)
            logits.append(scores)
            weights.append(alpha)
            token = scores.argmax(dim=1) if target is None else target[:, t]
    return torch.stack(logits, dim=1), torch.stack(weights, dim=1)


class PlainCopier(nn.Module):
    """The baseline: the decoder gets the last encoder state and nothing else."""

    def __init__(self, d_emb=16, d_h=64):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS + 1, d_emb)
        self.encoder = nn.GRU(d_emb, d_h, batch_first=True)
        self.answer = nn.Embedding(SYMBOLS + 1, d_emb)
        self.decoder = nn.GRU(d_emb, d_h, batch_first=True)
        self.readout = nn.Linear(d_h, SYMBOLS + 1)

    def forward(self, source, target=None):
        _, state = self.encoder(self.embedding(source))
        start = torch.full((len(source), 1), START)
        if target is None:
            return plain_greedy(self, state, start, source.shape[1]), None
        said = torch.cat([start, target[:, :-1]], dim=1)
        return self.readout(self.decoder(self.answer(said), state)[0]), None


def plain_greedy(model, state, token, T_dec):
    """The baseline's own answer, token by token: logits (B, T_dec, vocab)."""
    logits = []
    for _ in range(T_dec):
        out, state = model.decoder(model.answer(token), state)
        logits.append(model.readout(out))
        token = logits[-1].argmax(dim=2)
    return torch.cat(logits, dim=1)


def train(model, length, updates, seed, solved=0.995, batch=32, rate=0.005, progress=None):
    """Adam on fresh random sequences until nearly every token is right. Returns the curve."""
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    curve, recent = [], 0.0
    while len(curve) < updates and recent <= solved:
        source = torch.randint(SYMBOLS, (batch, length), generator=random)
        logits, _ = model(source, source)
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), source.flatten()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        curve.append((logits.argmax(dim=2) == source).float().mean().item())
        recent = 0.9 * recent + 0.1 * curve[-1]
        if progress is not None:
            progress(len(curve), updates, recent)
    return curve


@torch.no_grad()
def accuracy(model, length, seed, sequences=256):
    """Token accuracy of greedy decoding on sequences that were not trained on."""
    random = torch.Generator().manual_seed(10_000 + seed)
    source = torch.randint(SYMBOLS, (sequences, length), generator=random)
    logits, _ = model.eval()(source)
    return (logits.argmax(dim=2) == source).float().mean().item()


class Bar:
    """A progress bar on one line, with the time that is left at most."""

    def __init__(self, label):
        self.label, self.began = label, time.monotonic()

    def __call__(self, done, total, value):
        if done % 10 == 0 or done == total:
            left = (time.monotonic() - self.began) / done * (total - done)
            filled = "#" * (20 * done // total)
            text = f"{self.label} [{filled:<20}] {done}/{total} accuracy {value:.2f}"
            print(f"\r{text}, at most {left:3.0f} s left", end="")


# --- cells of the notebook: end ---


class LoopEncoder(nn.Module):
    """What one writes first: a GRUCell, called once a token."""

    def __init__(self, d_emb, d_h):
        super().__init__()
        self.cell = nn.GRUCell(d_emb, d_h)

    def forward(self, embedded, state=None):
        states = []
        if state is not None:
            state = state[0]
        for t in range(embedded.shape[1]):
            state = self.cell(embedded[:, t], state)
            states.append(state)
        return torch.stack(states, dim=1), state.unsqueeze(0)


class LoopAttentionCopier(AttentionCopier):
    """The straightforward model: cells in a loop, d_attn like every other size, U_a h at every step."""

    def __init__(self, d_emb=16, d_h=64, d_attn=64):
        super().__init__(d_emb, d_h, d_attn)
        self.encoder = LoopEncoder(d_emb, d_h)

    def forward(self, source, target=None):
        encoder_states, last = self.encoder(self.embedding(source))
        state, token = last[0], torch.full((len(source),), START)
        allowed = torch.ones(source.shape, dtype=torch.bool)
        logits, weights = [], []
        for t in range(source.shape[1]):
            scores, state, alpha = self.decoder.step(token, state, encoder_states, allowed)
            logits.append(scores)
            weights.append(alpha)
            token = scores.argmax(dim=1) if target is None else target[:, t]
        return torch.stack(logits, dim=1), torch.stack(weights, dim=1)


class LoopPlainCopier(PlainCopier):
    """The straightforward baseline: cells in a loop for the encoder and for the decoder."""

    def __init__(self, d_emb=16, d_h=64):
        super().__init__(d_emb, d_h)
        self.encoder = LoopEncoder(d_emb, d_h)
        self.decoder = LoopEncoder(d_emb, d_h)


KINDS = {
    "fast": {"attention": AttentionCopier, "plain": PlainCopier},
    "straightforward": {"attention": LoopAttentionCopier, "plain": LoopPlainCopier},
}


def one(way, kind, length, seed, updates=UPDATES, solved=0.995, show=True):
    """Train and measure one model; the straightforward way never stops early."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # vanishing gradients are slow numbers
    torch.manual_seed(seed)
    began = time.process_time()
    model = KINDS[way][kind]()
    solved = solved if way == "fast" else 2.0
    bar = Bar(f"{kind} {length}") if show else None
    curve = train(model, length, updates, seed, solved, progress=bar)
    trained = time.process_time() - began
    row = {
        "way": way,
        "kind": kind,
        "length": length,
        "seed": seed,
        "updates": len(curve),
        "accuracy": round(accuracy(model, length, seed), 4),
        "training_seconds": round(trained, 2),
        "cpu_seconds": round(time.process_time() - began, 2),
    }
    return model, row


@torch.no_grad()
def alignment(model, length: int, seed: int) -> list:
    """The weights (T_dec, T_enc) of one unseen sequence, rounded."""
    random = torch.Generator().manual_seed(20_000 + seed)
    _, weights = model.eval()(torch.randint(SYMBOLS, (1, length), generator=random))
    return np.round(weights[0].numpy(), 3).tolist()


def run(seed: int) -> Path:
    """Both models at every length for one seed; writes results/fast-seed-<seed>.json."""
    began, rows, heatmaps = time.process_time(), [], {}
    for length in LENGTHS:
        model, row = one("fast", "attention", length, seed)
        if length in (10, 20):
            heatmaps[str(length)] = alignment(model, length, seed)
        _, plain = one("fast", "plain", length, seed, max(BASELINE, row["updates"]))
        rows += [plain, row]
        print(f"\n{plain}\n{row}", flush=True)
    return save(f"fast-seed-{seed}", rows, began, heatmaps=heatmaps)


def straightforward(seed: int = 0) -> Path:
    """Everything the straightforward way, for one seed: the same lengths, batches and rate."""
    began, rows = time.process_time(), []
    for length in LENGTHS:
        for kind in ("plain", "attention"):
            rows.append(one("straightforward", kind, length, seed)[1])
            print(f"\n{rows[-1]}", flush=True)
    return save(f"straightforward-seed-{seed}", rows, began)


def seconds(way: str, kind: str, length: int, updates: int) -> float:
    """CPU seconds of one update."""
    torch.manual_seed(0)
    model = KINDS[way][kind]()
    began = time.process_time()
    train(model, length, updates, 0, solved=2.0)
    return (time.process_time() - began) / updates


def bench(updates: int = 12, rounds: int = 3) -> Path:
    """Both ways side by side, in turns, so that a busy machine is fair to both."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    rows = []
    kept = json.loads((RESULTS / "fast-seed-0.json").read_text("utf-8"))["rows"]
    for length in LENGTHS:
        for kind in ("plain", "attention"):
            found: dict[str, list[float]] = {way: [] for way in KINDS}
            for _ in range(rounds):
                for way, times in found.items():
                    times.append(seconds(way, kind, length, updates))
            used = next(r["updates"] for r in kept if (r["kind"], r["length"]) == (kind, length))
            each = {way: round(float(np.median(times)), 5) for way, times in found.items()}
            rows.append({"kind": kind, "length": length, "fast_updates": used, **each})
            print(rows[-1], flush=True)
    fast = sum(row["fast"] * row["fast_updates"] for row in rows)
    loop = sum(row["straightforward"] * UPDATES for row in rows)
    print(f"one seed: fast {fast:.0f}, straightforward {loop:.0f} CPU seconds, {fast / loop:.2f}")
    data = {"rows": rows, "fast_seconds": round(fast, 1), "straightforward_seconds": round(loop, 1)}
    path = RESULTS / "bench.json"
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return path


def save(name: str, rows: list, began: float, **more) -> Path:
    """Write one results file."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    total = round(time.process_time() - began, 1)
    data = {"cpu_seconds": total, "threads": 1, "torch": torch.__version__, "rows": rows, **more}
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(f"{path.name}: {total} CPU seconds", flush=True)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "straightforward", "bench", "report"])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.what == "report":
        from experiments import copy_report

        copy_report.write()
    else:
        bench() if args.what == "bench" else globals()[args.what](args.seed)


if __name__ == "__main__":
    main()
