"""`python -m autograder check-grader`: grades the grader.

Every misconception, every alternative, the reference and the untouched release are handed in as notebooks
by invented students of a scratch course; the whole pipeline grades them, and their scores are read from the
gradebook. It fails unless right work gets full marks, each misconception loses exactly its own
checkpoints under its own name, and every mutant of a reference that is not equivalent loses a point. A
pass leaves the stamp without which nothing is released, and writes the figures into docs/.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import nbformat
from rich.console import Console
from rich.table import Table

from autograder import classroom, mutants, release, stamp
from autograder.course import Course, CourseError
from autograder.grade import command, gradebook
from autograder.tasks.authoring import answer_source
from autograder.tasks.model import AssignmentTasks, FunctionTask, ManualTask, NotebookTasks
from autograder.tasks.registry import assignment as tasks_of

FIGURES = Path("docs") / "grader-figures.md"
NAMED_AT_LEAST = 0.95
MUTANTS_AT_LEAST = 150
UNTOUCHED_WALKTHROUGH = 1 / 3  # all its cells are complete: running them earns one mark of three


@dataclass(frozen=True)
class Played:
    """One invented submission: what it holds, and what it must lose.

    Args:
        student: the invented student's id.
        kind: `reference`, `untouched`, `misconception` or `alternative`.
        task, name: whose answer cell was replaced, and by which implementation.
        notebook: the notebook that is handed in; "" = all of them.
        fails: grade_ids that must get 0; everything else must get full marks.
    """

    student: str
    kind: str
    task: str = ""
    name: str = ""
    notebook: str = ""
    fails: frozenset[str] = frozenset()


@dataclass
class Counts:
    """The figures of one task."""

    misconceptions: int = 0
    caught: int = 0
    named: int = 0
    alternatives: int = 0
    accepted: int = 0
    mutants: mutants.Result | None = None


@dataclass
class Findings:
    """What was found about one assignment; `problems` is empty if the grader is as it should be."""

    assignment: str
    counts: dict[str, Counts] = field(default_factory=dict)
    reference: float = 0.0
    untouched: float = 0.0
    automatic: float = 0.0
    problems: list[str] = field(default_factory=list)


def submissions(
    tasks: AssignmentTasks, right: Mapping[str, nbformat.NotebookNode]
) -> Iterator[tuple[Played, dict[str, nbformat.NotebookNode]]]:
    """The reference and, task by task, every misconception and alternative, as notebooks."""
    yield Played("reference", "reference"), dict(right)
    for notebook in tasks.notebooks:
        for part in notebook.parts:
            if not isinstance(part, FunctionTask):
                continue
            for wrong in part.misconceptions:
                played = _played(
                    "misconception", notebook, part, wrong.name, frozenset(wrong.fails)
                )
                yield played, _with(right, notebook, part, wrong.implementation)
            for other in part.alternatives:
                played = _played("alternative", notebook, part, other.name, frozenset())
                yield played, _with(right, notebook, part, other.implementation)


def _played(kind: str, notebook: NotebookTasks, part: FunctionTask, name: str, fails) -> Played:
    student = re.sub(r"[^A-Za-z0-9_.]+", "-", f"{kind[:3]}.{part.name}.{name}")
    return Played(student, kind, part.name, name, notebook.name, fails)


def _with(right, notebook: NotebookTasks, part: FunctionTask, implementation) -> dict:
    """The notebook concerned alone, with one answer replaced."""
    cell_name = getattr(part, "cell", "") or part.name
    nb = nbformat.from_dict(right[notebook.name])
    for cell in nb.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == cell_name:
            nb_cell = dict(cell, source=answer_source(implementation, cell_name))
            cells = [nbformat.from_dict(nb_cell) if c is cell else c for c in nb.cells]
            return {notebook.name: nbformat.from_dict({**nb, "cells": cells})}
    raise CourseError(f"{notebook.name} has no answer cell {cell_name}.")


def hand_in(course: Course, name: str, student: str, notebooks: Mapping) -> None:
    folder = course.submitted / student / name
    folder.mkdir(parents=True)
    for stem, nb in notebooks.items():
        nbformat.write(nb, folder / f"{stem}.ipynb")


def scores_of(course: Course, name: str) -> dict[str, dict[str, float]]:
    """Automatic scores by student and grade_id, as the gradebook has them."""
    found: dict[str, dict[str, float]] = {}
    with gradebook.opened(course) as book:
        for submission in book.assignment_submissions(name):
            found[submission.student.id] = {
                grade.name: grade.auto_score
                for notebook in submission.notebooks
                for grade in notebook.grades
                if grade.auto_score is not None
            }
    return found


def judge_played(
    played: Played, tasks: AssignmentTasks, scores: Mapping[str, float], entry: Mapping
) -> tuple[list[str], bool]:
    """(what is wrong with one submission's grading, whether its misconception was named)."""
    notebooks = [n for n in tasks.notebooks if played.notebook in ("", n.name)]
    manual = {
        p.checkpoint.grade_id for n in notebooks for p in n.parts if isinstance(p, ManualTask)
    }
    problems, named = [], True
    for checkpoint in (c for n in notebooks for c in n.checkpoints()):
        grade_id = checkpoint.grade_id
        if grade_id in manual:
            continue
        wanted = 0.0 if grade_id in played.fails else checkpoint.points
        got = scores.get(grade_id)
        told = entry["checkpoints"].get(grade_id, {})
        if got != wanted:
            problems.append(
                f"{played.student}: {grade_id} has {got}, not {wanted:g} ({told.get('message', '')})"
            )
        if grade_id in played.fails and played.name not in told.get("misconceptions", ()):
            named = False
    return problems, named


def check(course: Course, name: str, workers: int = 2) -> Findings:
    """Play everything of one assignment.

    Raises:
        CourseError: if it can't be built or graded at all.
    """
    tasks = tasks_of(name)
    findings = Findings(name)
    parts = [p for n in tasks.notebooks for p in n.parts if isinstance(p, FunctionTask)]
    findings.counts = {part.name: Counts() for part in parts}
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
    ):
        jobs = {part.name: pool.submit(mutate, name, part.name) for part in parts}
        played, found, scores = _grade(course, name, Path(folder), workers)
        for one in played:
            _count(
                findings, one, tasks, scores.get(one.student, {}), found["students"][one.student]
            )
        for task, job in jobs.items():
            findings.counts[task].mutants = job.result()
    _bars(findings, tasks)
    return findings


def mutate(assignment: str, task: str) -> mutants.Result:
    """One task's mutants, in a process of their own beside the grading."""
    os.environ["OMP_NUM_THREADS"] = "1"
    parts = [p for n in tasks_of(assignment).notebooks for p in n.parts]
    return mutants.examine(next(p for p in parts if getattr(p, "name", "") == task))


def _grade(course: Course, name: str, folder: Path, workers: int):
    """Build the release in a scratch course, hand everything in, grade it."""
    scratch = release.scratch_course(course, folder)
    stamp.write(scratch, name)  # of the scratch copy alone: there it is the thing under test
    release.generate(scratch, name)
    played = []
    for one, notebooks in submissions(tasks_of(name), classroom.diligent(scratch, name)):
        played.append(one)
        hand_in(scratch, name, one.student, notebooks)
    untouched = Played("untouched", "untouched")
    hand_in(scratch, name, untouched.student, classroom.untouched(scratch, name))
    found = command.run_command(scratch, name, workers=workers, quiet=True)
    return [*played, untouched], found, scores_of(scratch, name)


def _count(
    findings: Findings, played: Played, tasks: AssignmentTasks, scores: Mapping, entry: Mapping
) -> None:
    total = sum(scores.values())
    if played.kind == "untouched":
        findings.untouched = total
        return
    problems, named = judge_played(played, tasks, scores, entry)
    findings.problems += problems
    if played.kind == "reference":
        findings.reference = total
        return
    counts = findings.counts[played.task]
    if played.kind == "alternative":
        counts.alternatives += 1
        counts.accepted += not problems
    else:
        counts.misconceptions += 1
        counts.caught += not problems
        counts.named += named and not problems


def _bars(findings: Findings, tasks: AssignmentTasks) -> None:
    """Compare the figures with what the course asks of its grader."""
    manual = {p.checkpoint for n in tasks.notebooks for p in n.parts if isinstance(p, ManualTask)}
    points = [c.points for n in tasks.notebooks for c in n.checkpoints() if c not in manual]
    findings.automatic = float(sum(points))
    part = 0.0 if findings.counts else UNTOUCHED_WALKTHROUGH
    if abs(findings.untouched - part * findings.automatic) > 1e-9:
        findings.problems.append(
            f"the untouched release gets {findings.untouched:g} of {findings.automatic:g}, "
            f"not {part * findings.automatic:g}"
        )
    counts = findings.counts.values()
    made, named = sum(c.misconceptions for c in counts), sum(c.named for c in counts)
    if made and named < NAMED_AT_LEAST * made:
        findings.problems.append(f"only {named} of {made} misconceptions are named")
    for task, count in findings.counts.items():
        result = count.mutants
        findings.problems += [f"{task}: a mutant is not caught: {text}" for text in result.missed]
        findings.problems += [
            f"{task}: a mutant survives without a reason: {s.change}"
            for s in result.survivors
            if not s.reason
        ]
    caught = sum(c.mutants.caught for c in counts)
    if findings.counts and caught < MUTANTS_AT_LEAST:
        findings.problems.append(f"only {caught} mutants differ from a reference; 150 are asked")


HEAD = (
    "task",
    "misconceptions",
    "caught",
    "named",
    "alternatives",
    "accepted",
    "mutants",
    "caught",
)


def rows(findings: Findings) -> list[list[str]]:
    """The table of figures, with a last row of sums."""
    lines = []
    for task, c in findings.counts.items():
        differ = c.mutants.made - len(c.mutants.survivors)
        numbers = (c.misconceptions, c.caught, c.named, c.alternatives, c.accepted)
        lines.append([task, *numbers, differ, c.mutants.caught])
    if lines:
        lines.append(["all", *[sum(line[i] for line in lines) for i in range(1, len(HEAD))]])
    return [[str(item) for item in line] for line in lines]


def section(findings: Findings) -> str:
    """The figures of one assignment as Markdown."""
    text = [
        f"## {findings.assignment}",
        "",
        f"Automatic points: {findings.automatic:g}. The reference gets {findings.reference:g}, "
        f"the untouched release {findings.untouched:g}.",
        "",
    ]
    table = rows(findings)
    if table:
        text += ["| " + " | ".join(HEAD) + " |", "|---|" + "--:|" * (len(HEAD) - 1)]
        text += ["| " + " | ".join(line) + " |" for line in table]
        text += ["", "Equivalent mutants, left out above, with the reason for each:", ""]
        for task, count in findings.counts.items():
            for reason in dict.fromkeys(s.reason for s in count.mutants.survivors):
                same = [s.change for s in count.mutants.survivors if s.reason == reason]
                text.append(f"- `{task}`: {reason} ({len(same)}): " + "; ".join(same) + ".")
        text.append("")
    return "\n".join(text)


PREFACE = """# Figures of the grader

Made by `make check-grader`; do not edit. Every misconception, alternative and reference was handed in as a
notebook and graded by the whole pipeline; scores are read from the gradebook. *Caught*: it lost exactly
its own checkpoints. *Named*: under its own name in each of them. *Mutants*: references with one place
changed (line:column), those that are no wrong answer aside.
"""


def write_figures(course: Course, findings: Findings) -> None:
    """Replace the assignment's section in docs/grader-figures.md."""
    path = course.root / FIGURES
    old = path.read_text(encoding="utf-8") if path.exists() else PREFACE
    parts = {p.split("\n", 1)[0].strip(): p for p in re.split(r"^## ", old, flags=re.M)[1:]}
    parts[findings.assignment] = section(findings).removeprefix("## ")
    order = [name for name in release.source_names(course) if name in parts]
    body = "\n".join("## " + parts[name].rstrip() + "\n" for name in order)
    path.parent.mkdir(exist_ok=True)
    path.write_text(PREFACE + "\n" + body, encoding="utf-8")


def report(findings: Findings) -> None:
    """Print the table and the problems."""
    table = Table(title=f"{findings.assignment}: the grader, graded")
    for title in HEAD:
        table.add_column(title, justify="left" if title == "task" else "right")
    for line in rows(findings):
        table.add_row(*line)
    console = Console(width=110)
    if findings.counts:
        console.print(table)
    console.print(
        f"{findings.assignment}: reference {findings.reference:g} and untouched release "
        f"{findings.untouched:g} of {findings.automatic:g} automatic points.",
        highlight=False,
    )
    for problem in findings.problems:
        console.print(f"- {problem}", highlight=False, markup=False)


def configure(parser) -> None:
    parser.add_argument(
        "--assignment", action="append", default=[], help="only this one (default: all)"
    )
    parser.add_argument("--workers", type=int, default=2, help="kernels at once (default: 2)")


def run(args, course: Course) -> int:
    failed = 0
    os.chdir(course.root)
    # A busy machine must not turn a right answer into a cell that took too long.
    os.environ.setdefault("COURSE_CELL_SECONDS", "240")
    for name in args.assignment or release.source_names(course):
        before = stamp.digest(course, name)
        findings = check(course, name, args.workers)
        if stamp.digest(course, name) != before:
            findings.problems.append(
                "tasks, sources or helper were changed meanwhile: run it again"
            )
        report(findings)
        if findings.problems:
            failed += 1
            continue
        write_figures(course, findings)
        stamp.write(course, name)
    return 1 if failed else 0
