"""`python -m autograder grade ASSIGNMENT`: the whole class, one bad submission never stopping another."""

from __future__ import annotations

import sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

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
from autograder.execute import Executor
from autograder.grade import gradebook, results
from autograder.grade import run as runs
from autograder.grade.run import lock, prepare, save
from autograder.grade.submission import Graded, Plan, grade_submission, submission_digest


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
    if not todo:
        return
    workers = options.get("workers") or runs.workers()
    executor = Executor(
        workers=workers,
        cold=options.get("cold", False),
        sandbox=not options.get("no_sandbox", False),
        released=_released_code(plan),
    )
    executor.start()  # where isolation can't be had, this says so before the bar
    with (
        executor,
        _progress(options.get("quiet", False)) as progress,
        ThreadPoolExecutor(workers) as pool,
    ):
        bar = progress.add_task(plan.name, total=len(todo))
        waiting = list(reversed(todo))
        running: dict = {}
        try:
            while waiting or running:
                while waiting and len(running) < 2 * workers:
                    student, digest = waiting.pop()
                    job = pool.submit(_guarded, plan, student, executor)
                    running[job] = (student, digest)
                for job in wait(running, return_when=FIRST_COMPLETED).done:
                    _, digest = running.pop(job)
                    save(plan, open_book, job.result(), digest)
                    progress.advance(bar)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _released_code(plan: Plan) -> list[list[str]]:
    """The code cells of each released notebook: what is still as released runs once for the class."""
    return [
        [cell.source for cell in nb.cells if cell.cell_type == "code"]
        for nb in plan.released.values()
    ]


def _guarded(plan: Plan, student: str, executor) -> Graded:
    """A fault of ours with one submission is that student's `ungradable`, not the class's end."""
    try:
        return grade_submission(plan, student, executor)
    except CourseError:
        raise
    except Exception as error:
        entry = results.missing_entry(plan.max_score)
        entry["status"] = "ungradable"
        entry["reason"] = (
            f"The grader failed on this submission ({type(error).__name__}: {error}). "
            f"Report it to the course's maintainers; it is not the student's fault."
        )
        return Graded(student, entry)


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
    """Student, score, status and reason, for the terminal."""
    shown = Table(title=f"{found['assignment']} (of {found['max_score']:g})")
    shown.add_column("student")
    shown.add_column("score", justify="right")
    shown.add_column("status")
    shown.add_column("reason", overflow="fold")
    for student, entry in found["students"].items():
        score = "" if entry["score"] is None else f"{entry['score']:g}"
        shown.add_row(student, score, entry["status"], entry["reason"])
    return shown


def run(args, course: Course) -> int:
    options = {key: value for key, value in vars(args).items() if key != "assignment"}
    found = run_command(course, args.assignment, **options)
    if not args.quiet:
        Console().print(table(found))
        print(f"results: {results.results_path(course, args.assignment)}")
    return 1 if any(e["status"] == "ungradable" for e in found["students"].values()) else 0
