"""What the results say about a class and about the checkpoints themselves. Plain data in, plain data out."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

from attention_lab import MISTAKES
from autograder.feedback.text import percent, sentence
from autograder.grade.submission import UNTOUCHED
from autograder.tasks.model import AssignmentTasks, FunctionTask

SCORED = ("graded", "repaired", "incomplete")
# What a message quotes of a student's own error stands at its end, in brackets.
_QUOTE = re.compile(r"\s*\([^()]*\)\s*$")
TELLING = 0.2  # a point-biserial from which a check goes with the others
ENOUGH = 9  # fewer students than this say nothing about a checkpoint


@dataclass(frozen=True)
class Item:
    """One checkpoint over the class.

    Args:
        students: how many were judged on it (a mark that a person still has to give does not count, nor does
            a notebook that was not handed in).
        waiting: how many wait for a person's mark. While nobody has one yet, nobody counts as judged: those
            who wrote nothing have their automatic 0, and they alone would look like the class.
        full: how many got all its marks.
        not_attempted: how many left it as released.
        average: mean share of its marks, 0 to 1.
        strong, weak: share of full marks among the best and the weakest third; None if too few.
        correlation: point-biserial, all marks or not against the score on the other checkpoints; None where
            everybody or nobody got it, or there are too few students.
    """

    grade_id: str
    title: str
    notebook: str
    max_score: float
    students: int
    waiting: int
    full: int
    not_attempted: int
    average: float
    strong: float | None
    weak: float | None
    correlation: float | None

    @property
    def rate(self) -> float | None:
        return self.full / self.students if self.students else None

    @property
    def suspicion(self) -> str:
        """Why the check rather than the class may be at fault, "" if nothing points to it."""
        if self.students < ENOUGH or self.full == self.students:
            return ""
        if self.full == 0:
            return "nobody got all its marks"
        # With n students, chance alone gives coefficients of about 1/sqrt(n).
        chance = 1.5 / math.sqrt(self.students)
        if self.correlation is not None and self.correlation < -chance:
            return "students who get it do worse elsewhere than those who do not"
        telling = self.correlation is not None and self.correlation >= TELLING
        no_better = self.strong is not None and self.strong <= (self.weak or 0.0)
        if self.rate < 0.8 and no_better and not telling:
            return "the best third gets it no more often than the weakest third"
        if self.strong is not None and self.strong < 0.6:
            return f"only {percent(self.strong)} of the best third got all its marks"
        return ""


@dataclass(frozen=True)
class Misunderstanding:
    """One misconception over the class: how many students, what it is in words, who shows it.

    `function` is the function that is wrong, or the checkpoint of recorded values, or "" if it is neither's own.
    """

    name: str
    function: str
    message: str
    students: tuple[str, ...]
    notebook: str

    @property
    def count(self) -> int:
        return len(self.students)


@dataclass(frozen=True)
class Analysis:
    """Everything on the report."""

    states: Mapping[str, int]
    scores: tuple[float, ...]
    max_score: float
    items: tuple[Item, ...]
    misunderstandings: tuple[Misunderstanding, ...]
    repairs: tuple[tuple[str, int], ...]
    to_act_on: tuple[tuple[str, str, str], ...]
    waiting: int

    @property
    def mean(self) -> float | None:
        return mean(self.scores) if self.scores else None

    @property
    def median(self) -> float | None:
        return median(self.scores) if self.scores else None

    @property
    def suspects(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.suspicion)


def point_biserial(passed: Sequence[bool], others: Sequence[float]) -> float | None:
    """Correlation of a yes/no item with the score on all other items.

    Args:
        passed: per student, all marks on the item or not.
        others: per student, the score without the item.

    Returns:
        the coefficient; None if either does not vary.
    """
    n = len(passed)
    yes = [score for ok, score in zip(passed, others, strict=True) if ok]
    no = [score for ok, score in zip(passed, others, strict=True) if not ok]
    if not yes or not no:
        return None
    centre = mean(others)
    spread = math.sqrt(sum((score - centre) ** 2 for score in others) / n)
    if spread < 1e-12:
        return None
    return (mean(yes) - mean(no)) / spread * math.sqrt(len(yes) * len(no)) / n


def analyse(
    students: Mapping[str, Mapping],
    tasks: AssignmentTasks | None,
    manual: Mapping[str, Mapping[str, float]] | None = None,
) -> Analysis:
    """Everything that the report says.

    Args:
        students: the entries of the results, by student.
        tasks: the task definition, for titles and messages; None for an assignment without one.
        manual: marks that a person gave: student -> grade_id -> score. They replace the automatic ones.
    """
    manual = manual or {}
    scored = {who: entry for who, entry in students.items() if entry.get("status") in SCORED}
    table = {who: _marks(entry, manual.get(who, {})) for who, entry in scored.items()}
    return Analysis(
        states=Counter(str(entry.get("status")) for entry in students.values()),
        scores=tuple(
            sorted(sum(m for m in row.values() if m is not None) for row in table.values())
        ),
        max_score=max((float(e.get("max_score") or 0) for e in students.values()), default=0.0),
        items=tuple(_items(scored, table, tasks, manual)),
        misunderstandings=tuple(_misunderstandings(scored, tasks)),
        repairs=tuple(_kinds(students)),
        to_act_on=tuple(
            (who, str(entry.get("status")), why)
            for who, entry in sorted(students.items())
            if (why := _to_tell(entry))
        ),
        waiting=sum(any(m is None for m in row.values()) for row in table.values()),
    )


def _marks(entry: Mapping, manual: Mapping[str, float]) -> dict[str, float | None]:
    """Marks by checkpoint; None where a person still has to give one."""
    marks: dict[str, float | None] = {}
    for grade_id, checkpoint in entry.get("checkpoints", {}).items():
        marks[grade_id] = manual.get(grade_id, checkpoint.get("score"))
    return marks


def _items(
    scored: Mapping, table: Mapping, tasks: AssignmentTasks | None, manual: Mapping
) -> list[Item]:
    known: dict[str, tuple[str, str, float]] = {}
    for notebook in tasks.notebooks if tasks else ():
        for c in notebook.checkpoints():
            known[c.grade_id] = (sentence(c.property), notebook.name, c.points)
    for entry in scored.values():
        for grade_id, c in entry.get("checkpoints", {}).items():
            title = sentence(grade_id.replace("-", " "))
            known.setdefault(grade_id, (title, c.get("notebook", ""), c.get("max_score", 0.0)))
    return [_item(grade_id, *about, scored, table, manual) for grade_id, about in known.items()]


def _item(
    grade_id: str,
    title: str,
    notebook: str,
    points: float,
    scored: Mapping,
    table: Mapping,
    manual: Mapping,
) -> Item:
    rows = [
        (who, row[grade_id])
        for who, row in table.items()
        if row.get(grade_id) is not None
        and (not _absent(scored[who], grade_id) or grade_id in manual.get(who, {}))
    ]
    blank = sum(_blank(scored[who]["checkpoints"][grade_id]) for who, _ in rows)
    waiting = sum(grade_id in row and row[grade_id] is None for row in table.values())
    if waiting and not any(grade_id in manual.get(who, {}) for who, _ in rows):
        rows = []
    passed = [mark >= points for _, mark in rows]
    totals = [sum(m or 0.0 for m in table[who].values()) - mark for who, mark in rows]
    strong, weak = _thirds(passed, totals)
    return Item(
        grade_id=grade_id,
        title=title,
        notebook=notebook,
        max_score=points,
        students=len(rows),
        waiting=waiting,
        full=sum(passed),
        not_attempted=blank,
        average=mean(mark / points for _, mark in rows) if rows and points else 0.0,
        strong=strong,
        weak=weak,
        correlation=point_biserial(passed, totals) if len(rows) >= ENOUGH else None,
    )


def _blank(checkpoint: Mapping) -> bool:
    """Nothing was written; a question in words that has an automatic mark is as released."""
    verdict = checkpoint.get("verdict")
    return verdict == "not-attempted" or (
        verdict == "manual" and checkpoint.get("score") is not None
    )


def _to_tell(entry: Mapping) -> str:
    """Why the instructor should write to a student, "" if there is no reason to."""
    if entry.get("status") in ("ungradable", "incomplete", "missing"):
        return str(entry.get("reason") or entry["status"])
    checkpoints = entry.get("checkpoints", {}).values()
    # Also where something was repaired, such as the name of the file.
    return UNTOUCHED if checkpoints and all(map(_blank, checkpoints)) else ""


def _absent(entry: Mapping, grade_id: str) -> bool:
    """Its notebook was not handed in, which says nothing about the checkpoint."""
    return entry["checkpoints"][grade_id].get("verdict") == "missing"


def _thirds(passed: Sequence[bool], totals: Sequence[float]) -> tuple[float | None, float | None]:
    """Share that passed in the best and in the weakest third by the other checkpoints."""
    if len(passed) < ENOUGH:
        return None, None
    size = len(passed) // 3
    order = sorted(range(len(passed)), key=lambda i: totals[i])
    weakest = [passed[i] for i in order[:size]]
    best = [passed[i] for i in order[-size:]]
    return sum(best) / size, sum(weakest) / size


def _misunderstandings(scored: Mapping, tasks: AssignmentTasks | None) -> list[Misunderstanding]:
    """The most frequent first, each with its message from the task definition.

    Two functions may have misconceptions of one name; a checkpoint tells which one is meant. Where recorded
    values are checked, the likely cause that the student was told takes the misconception's place.
    """
    functions: dict[str, str] = {}
    words: dict[tuple[str, str], tuple[str, str]] = {}
    for notebook in tasks.notebooks if tasks else ():
        for part in notebook.parts:
            if isinstance(part, FunctionTask):
                functions |= {checkpoint.grade_id: part.name for checkpoint in part.checkpoints}
                words |= {
                    (part.name, m.name): (m.message, notebook.name) for m in part.misconceptions
                }
    who_has: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for who, entry in scored.items():
        for grade_id, checkpoint in entry.get("checkpoints", {}).items():
            for cause, advice in _likely_causes(checkpoint):
                words[grade_id, cause] = (advice, checkpoint.get("notebook", ""))
                who_has[grade_id, cause][who] = None
            for name in checkpoint.get("misconceptions", ()):
                key = (functions.get(grade_id, ""), name)
                if key not in words:
                    key = ("", name)
                    general = _QUOTE.sub("", checkpoint["message"])
                    words.setdefault(key, (general, checkpoint.get("notebook", "")))
                who_has[key][who] = None
    found = []
    for key, names in who_has.items():
        function, name = key
        message, notebook = words[key]
        found.append(Misunderstanding(name, function, message, tuple(names), notebook))
    return sorted(found, key=lambda m: (-m.count, m.function, m.name))


def _likely_causes(checkpoint: Mapping) -> list[tuple[str, str]]:
    """Known causes and advice in a message that names no misconception; never a student's own words."""
    if checkpoint.get("misconceptions"):
        return []
    message = str(checkpoint.get("message", ""))
    known = (text.partition(" | ") for text in MISTAKES.values())
    return [
        (sentence(cause), f"Try: {advice}.")
        for cause, _, advice in known
        if f"Likely cause: {cause}." in message
    ]


def _kinds(students: Mapping[str, Mapping]) -> list[tuple[str, int]]:
    """Repairs by their words, the most frequent first; names of notebooks before a colon do not count."""
    counts = Counter(
        str(line) for entry in students.values() for line in set(entry.get("repairs", ()))
    )
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
