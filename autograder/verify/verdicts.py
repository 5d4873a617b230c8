"""From one notebook's answers to a verdict for each of its checkpoints. Trusted side: no student code here."""

from __future__ import annotations

from dataclasses import replace

from autograder.tasks import judge
from autograder.tasks.model import (
    FunctionTask,
    ManualTask,
    NotebookTasks,
    ValueTask,
    Verdict,
)
from autograder.verify.interview import Answers, Probes

LATER_COUNTED = "A name was bound again later; the later values counted, since they earned more."
EARLIER_COUNTED = (
    "A name was bound again later; the earlier values counted, since they earned more."
)


def verdicts(tasks: NotebookTasks, probes: Probes, answers: Answers) -> dict[str, Verdict]:
    """The verdicts of one notebook by grade_id, in the notebook's order."""
    found: dict[str, Verdict] = {}
    diagnosed: dict[str, tuple[str, ...]] = {}
    for part in tasks.parts:
        if isinstance(part, FunctionTask):
            judged = judge.judge(
                part,
                probes[part.name],
                answers.calls_own.get(part.name),
                answers.calls_last.get(part.name),
                diagnosed,
            )
            diagnosed[part.name] = judge.diagnosed(judged)
            found.update(judged)
        elif isinstance(part, ValueTask):
            found[part.checkpoint.grade_id] = _values(part, answers)
        elif isinstance(part, ManualTask):
            text = "A person reads this answer and gives the point."
            found[part.checkpoint.grade_id] = Verdict(0.0, part.checkpoint.points, "manual", text)
    return found


def _values(task: ValueTask, answers: Answers) -> Verdict:
    grade_id = task.checkpoint.grade_id
    own = task.judge(answers.values_own.get(grade_id, {}))
    last = task.judge(answers.values_last.get(grade_id, {}))
    if last.score > own.score:
        return replace(last, notes=(*last.notes, LATER_COUNTED))
    if own.score > last.score:
        return replace(own, notes=(*own.notes, EARLIER_COUNTED))
    return own
