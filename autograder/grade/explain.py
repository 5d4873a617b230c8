"""`python -m autograder explain STUDENT TASK`: replays one verdict, for an appeal.

The submission is graded again with the nonce of its run, and every question of the task is printed with
what the student's function gave and what the reference gives. For the instructor's eyes: it shows probes.
"""

from __future__ import annotations

import numpy as np

from autograder.course import Course, CourseError
from autograder.execute import Executor
from autograder.execute.wire import Outcome, Strided
from autograder.grade import run as runs
from autograder.grade.submission import Plan
from autograder.ingest import open_submission
from autograder.tasks import judge
from autograder.tasks.compare import difference
from autograder.tasks.model import CandidateTask, FunctionTask, NotebookTasks
from autograder.tasks.registry import MODULES
from autograder.tasks.registry import assignment as tasks_of
from autograder.verify.interview import interview
from autograder.verify.verdicts import verdicts


def configure(parser) -> None:
    parser.add_argument("student")
    parser.add_argument("task", help="the function's name, or a checkpoint's grade_id")
    parser.add_argument("--assignment", help="needed only if two assignments have such a task")
    parser.add_argument("--no-sandbox", action="store_true", help="run without isolation")


def _find(name: str, only: str | None) -> tuple[str, NotebookTasks, object]:
    """(assignment, notebook, part) of the task or checkpoint called `name`."""
    found = []
    for assignment in [only] if only else MODULES:
        for notebook in tasks_of(assignment).notebooks:
            for part in notebook.parts:
                function = isinstance(part, FunctionTask)
                ids = [c.grade_id for c in part.checkpoints] if function else []
                ids += [part.name] if function else [part.checkpoint.grade_id]
                if name in ids:
                    found.append((assignment, notebook, part))
    if not found:
        raise CourseError(f"no task and no checkpoint is called {name!r}.")
    if len({assignment for assignment, _, _ in found}) > 1:
        raise CourseError(f"several assignments have {name!r}: say which with --assignment.")
    return found[0]


def _text(value) -> str:
    if isinstance(value, Strided):
        value = value.array
    return (
        np.array2string(value, precision=5, threshold=60)
        if isinstance(value, np.ndarray)
        else repr(value)
    )


def _gave(outcome: Outcome) -> str:
    if outcome.raised is not None:
        return f"raised {outcome.raised.type}: {outcome.raised.message}"
    values = outcome.value if isinstance(outcome.value, tuple) else (outcome.value,)
    return "\n    ".join(_text(value) for value in values)


def _print_cases(part: FunctionTask, cases, got) -> None:
    want = judge.outcomes(part, part.reference, cases)
    for number, (case, right, mine) in enumerate(zip(cases, want, got, strict=False), start=1):
        bad = difference(case, right, mine, part.results, part.axes)
        changed = f" changed arguments {mine.changed}" if mine.changed else ""
        verdict = "equal" if bad is None else f"{bad.kind}: {bad.sentence}"
        print(
            f"\ncase {number} of {len(cases)} [{case.checkpoint}] {case.note}\n  {verdict}{changed}"
        )
        if bad is not None and not isinstance(part, CandidateTask):
            for place, argument in enumerate(case.args):
                print(f"  argument {place}: {_text(argument)}")
            print(f"  the student's: {_gave(mine)}\n  the reference's: {_gave(right)}")
        elif bad is not None:
            print(f"  the candidate was {case.args[0].name}; the student's: {_gave(mine)}")


def _replay(plan: Plan, student: str, notebook: NotebookTasks, part, sandbox: bool) -> None:
    folder = plan.course.submitted / student / plan.name
    if not folder.is_dir():
        raise CourseError(
            f"{student} has no submission of {plan.name} under {plan.course.submitted}."
        )
    names = [n.name for n in plan.tasks.notebooks]
    submission = open_submission(folder, plan.release, names)
    item = submission.notebooks[notebook.name]
    if item.notebook is None:
        raise CourseError(f"{student}/{notebook.name}: {item.problem or 'not handed in'}")
    probes = plan.probes[notebook.name]
    with Executor(workers=1, sandbox=sandbox) as executor:
        answers = interview(executor, item.notebook, notebook, probes, files=submission.files)
    judged = verdicts(notebook, probes, answers)
    ids = [c.grade_id for c in getattr(part, "checkpoints", ())] or [part.checkpoint.grade_id]
    print(f"{student}, {plan.name}/{notebook.name}, nonce {plan.nonce}")
    for text in [*item.repairs, *answers.notes]:
        print(f"  {text}")
    for grade_id in ids:
        verdict = judged[grade_id]
        print(f"{grade_id}: {verdict.score:g} of {verdict.max_score:g}, {verdict.verdict}")
        print(f"  {verdict.message}")
    if isinstance(part, FunctionTask):
        got = answers.calls_own.get(part.name) or answers.calls_last.get(part.name) or []
        _print_cases(part, probes[part.name], got)


def run(args, course: Course) -> int:
    assignment, notebook, part = _find(args.task, args.assignment)
    plan = runs.prepare(course, assignment)
    _replay(plan, args.student, notebook, part, not args.no_sandbox)
    return 0
