"""How long students worked, from the times that their tools wrote into the notebooks that they handed in.

Colab writes `executionInfo` (milliseconds: when a cell's last run ended, and how long it took) and JupyterLab,
if its setting "Record timing" is on, `execution` (ISO dates). The files are the students': a time that cannot
be one is passed over, and nothing here touches a score.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

from autograder.course import Course, CourseError
from autograder.ingest import open_submission
from autograder.ingest.decode import CELL_LIMIT, SIZE_LIMIT
from autograder.tasks.model import AssignmentTasks

PAUSE = 15 * 60
"""Seconds: a longer pause, or a single longer run, is no work on the notebook."""
AT_ONCE = 5
"""Seconds: where no pause is longer, everything was run in one go, and the cells' own times are lost."""
FEWEST = 3
EARLIEST = datetime(2015, 1, 1, tzinfo=timezone.utc).timestamp()

Run = tuple[float, float]


@dataclass(frozen=True)
class Timing:
    """The measured time of one notebook over the class, in minutes.

    Args:
        planned: minutes that the notebook is meant to take.
        minutes: one value for each student whose notebook tells, sorted.
        at_once: students whose saved notebook was last run from top to bottom in one go.
        silent: students whose notebook holds no times.
    """

    notebook: str
    planned: int
    minutes: tuple[float, ...]
    at_once: int
    silent: int

    @property
    def students(self) -> int:
        return len(self.minutes)

    @property
    def median(self) -> float | None:
        """None for fewer than three students, where it would be one person's time."""
        return median(self.minutes) if len(self.minutes) >= FEWEST else None

    @property
    def quarters(self) -> tuple[float, float] | None:
        """The middle half; None for fewer than four students, where it would say nothing."""
        if len(self.minutes) < 4:
            return None
        first, _, third = quantiles(self.minutes, n=4, method="inclusive")
        return first, third


def measured(course: Course, tasks: AssignmentTasks, students: Iterable[str]) -> list[Timing]:
    """The times of each notebook, from the very file of each student that was graded."""
    names = [notebook.name for notebook in tasks.notebooks]
    found: dict[str, list[float | None]] = {name: [] for name in names}
    silent = dict.fromkeys(names, 0)
    for student in students:
        folder = course.submitted / student / tasks.name
        try:
            submission = open_submission(folder, course.release / tasks.name, names)
        except CourseError:  # a release that is not there; grading has said so
            break
        for name, one in submission.notebooks.items():
            if one.notebook is None or one.path is None:
                continue
            runs = recorded(one.path)
            if runs:
                found[name].append(None if in_one_go(runs) else worked(runs) / 60)
            else:
                silent[name] += 1
    return [
        Timing(
            notebook=notebook.name,
            planned=notebook.minutes,
            minutes=tuple(sorted(m for m in found[notebook.name] if m is not None)),
            at_once=found[notebook.name].count(None),
            silent=silent[notebook.name],
        )
        for notebook in tasks.notebooks
    ]


def recorded(path: Path) -> list[Run]:
    """Beginning and end (seconds since 1970) of each cell's last run, sorted; [] if the file holds none."""
    try:
        with path.open("rb") as stream:
            notebook = json.loads(stream.read(SIZE_LIMIT + 1))
    except (OSError, ValueError, RecursionError):
        return []
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        return []
    latest = time.time() + 86_400
    found = []
    for cell in cells[:CELL_LIMIT]:
        about = cell.get("metadata") if isinstance(cell, dict) else None
        if not isinstance(about, dict):
            continue
        run = _colab(about.get("executionInfo")) or _jupyter(about.get("execution"))
        if run and EARLIEST < run[0] <= run[1] < latest:
            found.append(run)
    return sorted(found)


def _colab(info: object) -> Run | None:
    if not isinstance(info, dict):
        return None
    ended, took = _number(info.get("timestamp")), _number(info.get("elapsed"))
    if ended is None:
        return None
    return (ended - max(took or 0.0, 0.0)) / 1000, ended / 1000


def _jupyter(info: object) -> Run | None:
    if not isinstance(info, dict):
        return None
    started = _date(info.get("iopub.execute_input")) or _date(info.get("iopub.status.busy"))
    ended = _date(info.get("shell.execute_reply")) or _date(info.get("iopub.status.idle"))
    if started is None:
        return None
    return started, max(ended or started, started)


def _number(value: object) -> float | None:
    """A finite number of a size that a time can have."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e15:
        return None
    return float(value)


def _date(value: object) -> float | None:
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        # Python 3.10 knows neither "Z" nor milliseconds of other than three or six digits.
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        seconds = moment.timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) else None


def _stretches(runs: list[Run]) -> list[Run]:
    """The runs with those that overlap made one: Colab counts a cell's waiting for its turn as running.

    Of a run longer than `PAUSE` only its end is known to be a time at which somebody looked.
    """
    merged: list[Run] = []
    for start, end in sorted((end if end - start > PAUSE else start, end) for start, end in runs):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def worked(runs: list[Run]) -> float:
    """Seconds from the first run to the last, without the pauses and single runs longer than `PAUSE`."""
    merged = _stretches(runs)
    edges = [edge for stretch in merged for edge in stretch]
    steps = (later - earlier for earlier, later in pairwise(edges))
    return sum(step for step in steps if step <= PAUSE)


def in_one_go(runs: list[Run]) -> bool:
    """Whether everything was run from top to bottom at once, or only one cell was run."""
    merged = _stretches(runs)
    pauses = (later[0] - earlier[1] for earlier, later in pairwise(merged))
    return max(pauses, default=0.0) <= AT_ONCE
