"""The report's pictures: drawn by matplotlib as SVG, shown as pictures (an SVG in `img` runs nothing)."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib
from matplotlib.figure import Figure

from autograder.feedback.text import number, percent
from autograder.report.analysis import Item

INK, SOFT, LINE = "#1c2833", "#4d5a66", "#d5dce3"
BAR, PALE, ALERT = "#2a7f8e", "#bcd9de", "#b23a3a"
STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": SOFT,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "report",
}


@dataclass(frozen=True)
class Picture:
    """A picture as a data URI, with what it shows in words."""

    uri: str
    alt: str


def _picture(figure: Figure, alt: str) -> Picture:
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None})
    encoded = base64.b64encode(stream.getvalue()).decode("ascii")
    return Picture(f"data:image/svg+xml;base64,{encoded}", alt)


def distribution(scores: Sequence[float], highest: float) -> Picture:
    """How many students have which score, in at most twelve bars."""
    bins = min(12, max(4, round(highest) or 4))
    width = highest / bins if highest else 1.0
    counts = Counter(min(int(score / width), bins - 1) for score in scores)
    heights = [counts.get(i, 0) for i in range(bins)]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9, 2.9))
        axes = figure.subplots()
        axes.bar([(i + 0.5) * width for i in range(bins)], heights, width * 0.92, color=BAR)
        for i, height in enumerate(heights):
            if height:
                axes.text((i + 0.5) * width, height, str(height), ha="center", va="bottom")
        axes.set_xlabel(f"practice marks, of {number(highest)}")
        axes.set_ylabel("students")
        axes.set_yticks([])
        axes.set_xlim(0, highest or 1)
        most = max(heights, default=0)
        axes.set_ylim(0, most * 1.15 or 1)
    ranges = ", ".join(
        f"{height} from {number(i * width)} to {number((i + 1) * width)}"
        for i, height in enumerate(heights)
        if height
    )
    return _picture(figure, f"Bar chart of scores. Students by marks: {ranges or 'none yet'}.")


def pass_rates(items: Sequence[Item]) -> Picture:
    """Per checkpoint, the share of students with all marks, and the mean share of the marks.

    Where marks of a person are still to come it says so; without any there is no bar, which would read as 0 %.
    """
    shown = [item for item in items if item.students or item.waiting]
    averages = [item.average if item.students else 0.0 for item in shown]
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9, 0.8 + 0.32 * len(shown)))
        axes = figure.subplots()
        places = range(len(shown))
        axes.barh(places, averages, 0.72, color=PALE, label="average share of marks")
        colours = [ALERT if item.suspicion else BAR for item in shown]
        axes.barh(places, [i.rate or 0.0 for i in shown], 0.36, color=colours, label="all marks")
        for place, item in enumerate(shown):
            mark = "  ← look at this check" if item.suspicion else ""
            end = max(averages[place], item.rate or 0.0)
            axes.text(end + 0.01, place, f"{_said(item)}{mark}", va="center", fontsize=9)
        axes.set_yticks(list(places), [item.grade_id for item in shown])
        axes.set_ylim(len(shown) - 0.4, -0.6)
        axes.set_xlim(0, 1.3)
        axes.spines["bottom"].set_bounds(0, 1)
        axes.set_xticks([0, 0.5, 1], ["0 %", "50 %", "100 %"])
        axes.set_xlabel("thin bar: students with all marks; wide bar: average share of the marks")
    said = "; ".join(f"{item.grade_id} {_said(item)}" for item in shown)
    return _picture(figure, f"Bar chart of students with all marks, by checkpoint: {said}.")


def _said(item: Item) -> str:
    waits = f"{item.waiting} wait{'s' if item.waiting == 1 else ''} for a mark"
    if item.rate is None:
        return waits
    return percent(item.rate) + (f" so far, {waits}" if item.waiting else "")
