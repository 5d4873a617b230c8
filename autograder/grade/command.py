"""`python -m autograder grade ASSIGNMENT`: the whole class, one bad submission never stopping another."""

from __future__ import annotations

import sys
from collections import Counter

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from autograder.course import Course, CourseError
from autograder.grade import gradebook, results
from autograder.grade import run as runs
from autograder.grade.pool import local_pool
from autograder.grade.run import lock, prepare, save
from autograder.grade.submission import PROVISIONAL, UNTOUCHED, Plan, submission_digest

MANY = 30
STATES = ("graded", "repaired", "incomplete", "ungradable", "missing")


def configure(parser) -> None:
    parser.add_argument("assignment")
    parser.add_argument(
        "--student", action="append", default=[], metavar="ID", help="only this one"
    )
    parser.add_argument("--force", action="store_true", help="grade again what is finished")
    parser.add_argument("--new-nonce", action="store_true", help="draw new probes for everybody")
    parser.add_argument("--cold", action="store_true", help="one fresh interpreter per notebook")
    parser.add_argument(
        "--no-sandbox",
        action="store_true",
        help="run without isolation: student "
        "code can then read and write what you can (only for classes you trust)",
    )
    parser.add_argument("--workers", type=int, default=0, help="kernels at once (default: cores)")
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="grade on the Dask cluster there (docs/cluster.md)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar and no table")


def run_command(course: Course, assignment: str, **options) -> dict:
    """Grade a class and return the results; the options are those of the command line.

    Raises:
        CourseError: for what concerns the whole run; a student's troubles are in the results.
    """
    with lock(course, assignment):  # before the nonce: a second grader must not draw another one
        plan = prepare(course, assignment, options.get("new_nonce", False))
        with gradebook.opened(course) as open_book:
            todo = _todo(plan, options.get("student") or [], options.get("force", False))
            if options.get("no_sandbox"):
                print("warning: no sandbox: student code runs with your rights.", file=sys.stderr)
            try:
                _grade_all(plan, open_book, todo, options)
            finally:
                found = runs.assemble(plan, open_book)
    return found


def _todo(plan: Plan, only: list[str], force: bool) -> list[tuple[str, str]]:
    """(student, digest) of every submission that is not finished."""
    everybody = runs.students(plan.course, plan.name)
    if not everybody:
        raise CourseError(
            f"no submissions of {plan.name}: nothing is at "
            f"{plan.course.submitted}/<student>/{plan.name}. Collect them first (docs/instructors.md)."
        )
    unknown = [student for student in only if student not in everybody]
    if unknown:
        raise CourseError(
            f"no submission of {plan.name} by {', '.join(unknown)} under {plan.course.submitted}."
        )
    todo = []
    for student in only or everybody:
        digest = submission_digest(plan, plan.course.submitted / student / plan.name)
        done = results.finished(plan.course, plan.name, student, digest)
        if force or done is None:
            todo.append((student, digest))
    return todo


def _grade_all(plan: Plan, open_book, todo: list[tuple[str, str]], options: dict) -> None:
    """Grade and record; outcomes come from wherever they are made, the one writer is here."""
    if not todo:
        return
    with _grading(plan, options) as grading, _progress(options.get("quiet", False)) as progress:
        bar = progress.add_task(plan.name, total=len(todo))
        for graded, digest in grading(todo):
            save(plan, open_book, graded, digest)
            progress.advance(bar)


def _grading(plan: Plan, options: dict):
    """Where the class is graded: on this machine, or on a Dask cluster."""
    cold, sandbox = options.get("cold", False), not options.get("no_sandbox", False)
    address, workers = options.get("scheduler"), options.get("workers")
    if not address:
        return local_pool(plan, workers or runs.workers(), cold, sandbox)
    if workers:
        raise CourseError(
            "--workers is for this machine's cores; with --scheduler each worker's --nthreads decides."
        )
    from autograder.grade import cluster  # only here: Dask is an optional extra

    return cluster.cluster(plan, address, cold, sandbox)


class _Rate(ProgressColumn):
    """Submissions a second."""

    def render(self, task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "-/s")


def _progress(quiet: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=quiet,
    )


def table(found: dict) -> Table:
    """Student, score, status and reason, for the terminal; of a large class those that are not just graded."""
    title = f"{found['assignment']} (of {found['max_score']:g})"
    students = found["students"]
    if len(students) > MANY:
        students = {name: entry for name, entry in students.items() if _notable(entry)}
        title += ": whoever is not just graded"
    shown = Table(title=title)
    shown.add_column("student")
    shown.add_column("score", justify="right")
    shown.add_column("status")
    shown.add_column("reason", overflow="fold")
    for student, entry in students.items():
        score = "" if entry["score"] is None else f"{entry['score']:g}"
        shown.add_row(student, score, entry["status"], entry["reason"])
    return shown


def _notable(entry: dict) -> bool:
    return entry["status"] != "graded" or entry["reason"] == UNTOUCHED


def totals(found: dict) -> str:
    """How many are in which state, and where more is said."""
    counts = Counter(entry["status"] for entry in found["students"].values())
    said = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])
    waiting = sum(PROVISIONAL in entry["reason"] for entry in found["students"].values())
    more = f" {waiting} wait for a mark by hand." if waiting else ""
    return f"{said}.{more} Next: `feedback`, `report` (whom to write to), `lms-export`."


def run(args, course: Course) -> int:
    options = {key: value for key, value in vars(args).items() if key != "assignment"}
    found = run_command(course, args.assignment, **options)
    if not args.quiet:
        Console().print(table(found))
        print(totals(found))
        print(f"results: {results.results_path(course, args.assignment)}")
    return 1 if any(e["status"] == "ungradable" for e in found["students"].values()) else 0
