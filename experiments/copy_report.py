"""Figures and the page on the copy task, from the results files alone.

python -m experiments.copy_task report
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from experiments.copy_task import LENGTHS, RESULTS, SEEDS, UPDATES

ROOT = Path(__file__).resolve().parents[1]
CHANCE, LESSON = 0.1, 0.89
COLOURS = {"attention": "#1e8798", "plain": "#7f2635"}


def load(name: str):
    """One results file."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def accuracies(kind: str) -> dict[int, list[float]]:
    """Length: the accuracy of each seed."""
    rows = [row for seed in SEEDS for row in load(f"fast-seed-{seed}")["rows"]]
    return {
        length: [r["accuracy"] for r in rows if (r["kind"], r["length"]) == (kind, length)]
        for length in LENGTHS
    }


def bars(attention: dict, plain: dict) -> list[tuple[str, float, bool]]:
    """The project's own bars: what is asked, what was found (medians), whether it holds."""
    with_, without = (
        {n: float(np.median(v)) for n, v in kind.items()} for kind in (attention, plain)
    )
    gap = {n: with_[n] - without[n] for n in LENGTHS}
    found = [
        ("without attention, length 5: at least 0.85", without[5], without[5] >= 0.85),
        ("without attention, length 80: within 0.05 of chance", without[80], without[80] <= 0.15),
    ]
    for length, bar in ((10, 0.95), (20, 0.95), (40, 0.85), (80, 0.8)):
        text = f"with attention, length {length}: at least {bar}"
        found.append((text, with_[length], with_[length] >= bar))
    for length in (20, 40, 80):
        text = f"gap at {length} at least 0.5 above the gap at 5"
        found.append((text, gap[length] - gap[5], gap[length] - gap[5] >= 0.5))
    return found


def draw_curves(attention: dict, plain: dict) -> str:
    """Writes docs/images/copy-task.png; returns its text alternative."""
    from matplotlib.figure import Figure

    figure = Figure((7.2, 4.4), layout="constrained")
    axes, told = figure.subplots(), []
    for label, rows, style in (("attention", attention, "o-"), ("plain", plain, "s--")):
        values = np.sort(list(rows.values()), axis=1)
        middle = np.median(values, axis=1)
        spread = [middle - values[:, 0], values[:, -1] - middle]
        look = {"fmt": style, "color": COLOURS[label], "capsize": 4, "label": label}
        axes.errorbar(list(rows), middle, spread, **look)
        each = ", ".join(f"{m:.2f} at {n}" for n, m in zip(rows, middle, strict=True))
        told.append(f"{label} {each}")
    axes.axhline(CHANCE, color="black", lw=1, ls=":", label="chance 0.10")
    axes.plot([5], [LESSON], "k*", ms=11, label="the lesson's figure: 89% at 5, plain")
    axes.set(xscale="log", xlabel="length of the sequence", ylabel="token accuracy, greedy")
    axes.set(title="Copy task: one model per length, median and range of three seeds")
    axes.set(ylim=(0, 1.05), xticks=LENGTHS, xticklabels=LENGTHS)
    axes.minorticks_off()
    axes.legend()
    (ROOT / "docs" / "images").mkdir(exist_ok=True)
    figure.savefig(ROOT / "docs" / "images" / "copy-task.png", dpi=120)
    return f"Token accuracy against length: {'; '.join(told)}; chance 0.10; the lesson's 0.89 at 5."


def heatmap_svg(weights: list[list[float]], title: str) -> str:
    """A heatmap as SVG, darker = more weight, with numbers from 0.1 on and a text alternative."""
    size, left, top = 34, 46, 40
    peaks = ", ".join(f"step {t}: {int(np.argmax(row))}" for t, row in enumerate(weights))
    alt = f"{title}. Source position with most weight: {peaks}."
    parts = []
    for t, row in enumerate(weights):
        parts.append(f'<text x="{left - 8}" y="{top + size * t + 21}" text-anchor="end">{t}</text>')
        for i, weight in enumerate(row):
            shade = [round(255 + (c - 255) * weight) for c in (8, 64, 104)]
            x, y = left + size * i, top + size * t
            box = f'x="{x}" y="{y}" width="{size}" height="{size}"'
            parts.append(f'<rect {box} fill="rgb({shade[0]},{shade[1]},{shade[2]})"/>')
            if weight >= 0.1:
                ink = "#fff" if weight > 0.5 else "#000"
                text = f'x="{x + size / 2}" y="{y + 21}" text-anchor="middle" fill="{ink}"'
                parts.append(f"<text {text}>{weight:.1f}</text>")
    for i in range(len(weights[0])):
        x, y = left + size * (i + 0.5), top + size * len(weights) + 16
        parts.append(f'<text x="{x}" y="{y}" text-anchor="middle">{i}</text>')
    width, height = left + size * len(weights[0]) + 10, top + size * len(weights) + 44
    parts.append(f'<text x="{left}" y="22" font-weight="bold">{title}</text>')
    parts.append(f'<text x="{left}" y="{height - 8}">source position (rows: decoder steps)</text>')
    frame = f'viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{alt}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {frame} font-family="sans-serif"'
    return f'{head} font-size="12"><title>{alt}</title>{"".join(parts)}</svg>\n'


def table(attention: dict, plain: dict) -> list[str]:
    """The accuracies as a Markdown table."""
    lines = ["| length | without attention | with attention | chance |", "|--:|---|---|--:|"]
    for length in LENGTHS:
        cells = []
        for rows in (plain, attention):
            seen = rows[length]
            each = ", ".join(f"{x:.3f}" for x in seen)
            cells.append(f"**{np.median(seen):.3f}** ({each})")
        lines.append(f"| {length} | {cells[0]} | {cells[1]} | {CHANCE:.2f} |")
    return lines


def cost() -> list[str]:
    """What a seed costs, both ways."""
    bench = load("bench")
    lines = [
        "| length | model | updates, fast | fast, ms | straightforward, ms |",
        "|--:|---|--:|--:|--:|",
    ]
    for row in bench["rows"]:
        ms = [1000 * row[way] for way in ("fast", "straightforward")]
        lines.append(
            f"| {row['length']} | {row['kind']} | {row['fast_updates']} | {ms[0]:.1f} | {ms[1]:.1f} |"
        )
    fast, loop = bench["fast_seconds"], bench["straightforward_seconds"]
    whole = [load(f"fast-seed-{seed}")["cpu_seconds"] for seed in SEEDS]
    slow = load("straightforward-seed-0")["cpu_seconds"]
    return [
        *lines,
        "",
        f"Sums for one seed: fast **{fast:.0f}**, straightforward **{loop:.0f}** CPU seconds; "
        f"that is {fast / loop:.2f} of it.",
        "",
        f"Whole runs, as measured on a machine that was busy with other work: fast "
        f"{', '.join(f'{x:.0f}' for x in whole)} CPU seconds for the seeds 0, 1, 2; straightforward "
        f"{slow:.0f} for seed 0 (that one with d_attn 16 too).",
    ]


def page(alt: str) -> str:
    """docs/copy-task.md."""
    attention, plain = accuracies("attention"), accuracies("plain")
    reference = load("reference-seeds")
    lowest = {
        n: min(r["accuracy"] for r in reference if r["length"] == n)
        for n in sorted({r["length"] for r in reference})
    }
    return "\n".join(
        [
            "# The copy task",
            "",
            "Made by `python -m experiments.copy_task report` from `experiments/results/`; do not edit.",
            "",
            f"![{alt}](images/copy-task.png)",
            "",
            "10 symbols (chance 0.10), GRUs with 64 hidden units, d_emb 16, d_attn 16, **one model per length",
            "and kind**, three seeds. Training: Adam, 32 fresh sequences an update, teacher forcing, at most",
            f"{UPDATES} updates, ended when 99.5% of the tokens are right; the baseline gets as many updates as",
            "attention took at its length, and never fewer than 400. Measured: token accuracy of greedy decoding",
            "on 256 unseen sequences. Median in bold, then the three seeds.",
            "",
            *table(attention, plain),
            "",
            "The lesson's own figure for a GRU without attention is 89% at length 5 and near chance at 80; its",
            "settings are not given (source: the lesson `attention-mechanism`, section The Problem).",
            "",
            "## Bars",
            "",
            "| what is asked (medians) | found | |",
            "|---|--:|---|",
            *(
                f"| {t} | {x:.3f} | {'met' if ok else 'MISSED'} |"
                for t, x, ok in bars(attention, plain)
            ),
            "",
            "## Cost",
            "",
            "CPU time of one update, one thread, both ways in turns (`python -m experiments.copy_task bench`).",
            "Straightforward: GRU cells in a loop for the encoder and for the baseline's decoder, d_attn 64 like",
            f"the hidden size, U_a h worked out at every decoder step, {UPDATES} updates always. Fast: fused GRUs",
            "where nothing depends on attention, d_attn 16 (accuracy does not suffer: above), U_a h once a batch,",
            "no denormal numbers, training ended when solved. The last and d_attn save most; fused GRUs on a CPU",
            "save about a quarter. With d_attn 16 in the loop as well the ratio was 0.54, measured the same",
            "way: what is called straightforward decides whether the bar of one half is met.",
            "",
            *cost(),
            "",
            "## What the notebook does at grading",
            "",
            "The same code at lengths 5 and 15, ended at 98% of the tokens. Ten reference seeds",
            "(`python -m experiments.reference_seeds`) give at least "
            + " and ".join(f"{x:.3f} at {n}" for n, x in lowest.items())
            + "; asked are 0.9 and 0.8.",
            "",
            "![Alignment of a trained model at length 10](../assets/attention-heatmap.svg)",
            "",
        ]
    )


def write() -> None:
    """Write the figures and the page."""
    alt = draw_curves(accuracies("attention"), accuracies("plain"))
    (ROOT / "docs" / "copy-task.md").write_text(page(alt), encoding="utf-8")
    weights = load("fast-seed-0")["heatmaps"]["10"]
    picture = heatmap_svg(weights, "Alignment of a trained model, length 10")
    (ROOT / "assets" / "attention-heatmap.svg").write_text(picture, encoding="utf-8")
    for text, found, holds in bars(accuracies("attention"), accuracies("plain")):
        print(f"{'met   ' if holds else 'MISSED'} {found:.3f} {text}")
