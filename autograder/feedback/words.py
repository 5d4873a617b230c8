"""What a page says about verdicts and states, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.feedback.gather import Judged, Standing
from autograder.feedback.text import joined, number


@dataclass(frozen=True)
class Badge:
    """A verdict as it is shown: `look` picks colour and sign, `label` says it in words."""

    look: str
    label: str


BADGES = {
    "right": Badge("ok", "Correct"),
    "carried": Badge("ok", "Correct, given the earlier slip"),
    "partial": Badge("part", "Partly correct"),
    "wrong": Badge("no", "Not right yet"),
    "not-attempted": Badge("none", "Not attempted"),
    "missing": Badge("none", "Did not run"),
    "manual": Badge("hand", "Marked by a person"),
}
UNKNOWN = Badge("none", "Not judged")

STATES = {
    "graded": "Graded",
    "repaired": "Graded after a repair",
    "incomplete": "A notebook is missing",
    "ungradable": "Could not be graded",
    "missing": "Nothing was handed in",
}

NOTHING_HERE = (
    "Hand in the notebook file itself (`.ipynb`), under any name: the name of the file does not matter. "
    "In Colab it is File > Download > Download .ipynb; in JupyterLab, File > Download. "
    "If the date has passed, write to your instructor: what you did may still count."
)
DAMAGED = (
    "Open your notebook once more. If it opens, use Kernel > Restart and run all, save it, and hand that file "
    "in. If it does not open, download the released notebook again and copy your answers into its answer cells."
)
KEEP_CELLS = (
    "Repairs cost you nothing. The name of the file and what your program adds to it do not matter; leave the "
    "locked cells where they are, write in the answer cells, and add cells of your own wherever you like."
)


def badge(judged: Judged) -> Badge:
    """How one checkpoint's verdict is shown."""
    if judged.waiting:
        return Badge("hand", "A person still marks this")
    if judged.changed_from is not None:
        return Badge("hand", "Mark set by your instructor")
    return BADGES.get(judged.verdict, UNKNOWN)


def next_steps(standing: Standing) -> list[str]:
    """What the student should do now, the most useful first."""
    if standing.status == "missing":
        return [NOTHING_HERE]
    if standing.status == "ungradable":
        return [DAMAGED, "If neither works, write to your instructor and attach the file."]
    steps: list[str] = []
    red = [c for c in standing.checkpoints if _open(c, "wrong", "partial")]
    blank = [c for c in standing.checkpoints if _open(c, "not-attempted")]
    unrun = [c for c in standing.checkpoints if _open(c, "missing")]
    if unrun:
        steps.append(
            f"{_count(unrun)} did not run. Use Kernel > Restart and run all (in Colab: Runtime > Restart "
            "session and run all), look at the first cell that stops, and mend it first."
        )
    if red:
        others = "other one" if len(red) == 2 else f"other {len(red) - 1}"
        later = (
            f" Then look at the {others} again: later checkpoints often turn right with it."
            if len(red) > 1
            else ""
        )
        steps.append(
            f"Start with “{red[0].title}”, the first that is not right yet. Its box below says what was seen "
            f"and what to try.{later}"
        )
    if blank:
        steps.append(_still_to_write(blank))
    if any(c.waiting for c in standing.checkpoints):
        steps.append("An answer in words waits for a person to mark it, so the score is not final.")
    for part in standing.parts:
        if part.status == "ungradable":
            why = f": {part.problem}" if part.problem else "."
            steps.append(
                f"`{part.name}.ipynb` could not be graded, so the assignment has no score yet{why}"
            )
    missing = [part.name for part in standing.parts if part.status == "missing"]
    if missing:
        names = joined(f"`{name}.ipynb`" for name in missing)
        steps.append(f"Hand in {names} too: without it, its marks are not in the total.")
    if not steps:
        steps.append(
            "Every checkpoint of this notebook is correct. There is nothing to change here."
        )
    elif red or blank or unrun:
        steps.append(
            "When the checkpoints in your own copy are green, save it and hand it in again."
        )
    return steps


def _still_to_write(blank: list[Judged]) -> str:
    if len(blank) <= 3:
        return f"Still to write: {joined('“' + c.title + '”' for c in blank)}."
    return f"{len(blank)} checkpoints are still to write; the first is “{blank[0].title}”."


def _open(judged: Judged, *verdicts: str) -> bool:
    return judged.verdict in verdicts and (judged.score or 0) < judged.max_score


def _count(checkpoints: list[Judged]) -> str:
    return "One checkpoint" if len(checkpoints) == 1 else f"{len(checkpoints)} checkpoints"


def headline(standing: Standing) -> str:
    """One sentence about the whole notebook."""
    if standing.status == "missing":
        return "This notebook was not among what you handed in."
    if standing.status == "ungradable":
        return "This notebook arrived, but it could not be graded."
    good = sum((c.score or 0) >= c.max_score for c in standing.checkpoints)
    total = len(standing.checkpoints)
    waiting = sum(c.waiting for c in standing.checkpoints)
    rest = total - good - waiting
    if not total:
        return "This notebook has no checkpoints with marks."
    if not rest:
        start = "All checkpoints are correct" if not waiting else "All that is marked is correct"
    else:
        start = f"{good} of {total} checkpoints {'is' if good == 1 else 'are'} correct"
    if waiting:
        start += f", {number(waiting)} {'waits' if waiting == 1 else 'wait'} for a person"
    return start + "."
