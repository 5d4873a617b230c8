"""`python -m autograder report ASSIGNMENT`: a page and two tables on the class, for the instructor."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from autograder.course import Course, CourseError
from autograder.feedback.gather import Gradebook, read_marks, read_results, tasks_of
from autograder.feedback.page import environment, python
from autograder.feedback.words import STATES
from autograder.report.analysis import Analysis, Misunderstanding, analyse
from autograder.report.examples import example
from autograder.report.pictures import distribution, pass_rates
from autograder.report.times import PAUSE, Timing, measured

EXAMPLES = 12
COLUMNS = (
    "notebook", "grade_id", "property", "max_score", "students", "waiting", "all_marks",
    "pass_rate", "average_share", "not_attempted", "best_third", "weakest_third", "point_biserial", "suspicion",
)  # fmt: skip
TIME_COLUMNS = (
    "notebook", "planned_minutes", "students", "median_minutes", "first_quarter", "third_quarter",
    "run_in_one_go", "nothing_recorded",
)  # fmt: skip


@dataclass(frozen=True)
class Told:
    """A misconception as the page shows it."""

    about: Misunderstanding
    code: str | None


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("assignment", help="folder name of the assignment under source/")


def manual_marks(marks: Gradebook) -> dict[str, dict[str, float]]:
    """Marks that a person gave, by student and checkpoint."""
    return {
        student: {
            grade_id: mark.manual
            for notebook in notebooks.values()
            for grade_id, mark in notebook.grades.items()
            if mark.manual is not None
        }
        for student, notebooks in marks.items()
    }


def hand_in_times(course: Course, assignment: str, students: Mapping) -> list[str]:
    """The submissions' own times, sorted, where a timestamp.txt came with them."""
    found = []
    for student in students:
        path = course.submitted / student / assignment / "timestamp.txt"
        try:
            found.append(path.read_text(encoding="utf-8").strip()[:25])
        except (OSError, ValueError):
            continue
    return sorted(time for time in found if time[:2] == "20")


def table(analysis: Analysis) -> str:
    """The checkpoints as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(COLUMNS)
    for item in analysis.items:
        average = item.average if item.students else None
        numbers = (item.rate, average, item.strong, item.weak, item.correlation)
        rate, average, strong, weak, r = ("" if v is None else f"{v:.3f}" for v in numbers)
        about = (item.notebook, item.grade_id, item.title, item.max_score)
        about += (item.students, item.waiting, item.full)
        shares = (rate, average, item.not_attempted, strong, weak, r, item.suspicion)
        writer.writerow(about + shares)
    return stream.getvalue()


def time_table(timings: Sequence[Timing]) -> str:
    """The measured times as CSV, in minutes."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(TIME_COLUMNS)
    for timing in timings:
        numbers = (timing.median, *(timing.quarters or (None, None)))
        shown = ["" if v is None else f"{v:.1f}" for v in numbers]
        about = (timing.notebook, timing.planned, timing.students)
        writer.writerow((*about, *shown, timing.at_once, timing.silent))
    return stream.getvalue()


def frequent(analysis: Analysis) -> int:
    """How many misconceptions the page shows unfolded: those of several students, and the first few."""
    several = sum(m.count > 1 for m in analysis.misunderstandings)
    return min(max(several, EXAMPLES), 2 * EXAMPLES)


@dataclass(frozen=True)
class Report:
    """The page, and the tables beside it."""

    html: str
    checkpoints: str
    times: str


def report_page(
    course: Course, assignment: str, students: Mapping[str, Mapping], marks: Gradebook
) -> Report:
    """The report on one assignment."""
    tasks = tasks_of(assignment)
    timings = measured(course, tasks, students) if tasks else []
    analysis = analyse(students, tasks, manual_marks(marks))
    told = []
    for m in analysis.misunderstandings:
        code = None
        if m.function and len(told) < EXAMPLES:
            code = example(course, assignment, m.notebook, m.function, m.students)
        told.append(Told(m, python(code) if code else None))
    quarters = quantiles(analysis.scores, n=4) if len(analysis.scores) > 1 else None
    html = (
        environment()
        .get_template("report.html")
        .render(
            a=analysis,
            title=tasks.title if tasks else assignment,
            assignment=assignment,
            states=STATES,
            told=told,
            frequent=frequent(analysis),
            quarters=quarters,
            times=hand_in_times(course, assignment, students),
            timings=timings,
            pause=PAUSE // 60,
            scores=distribution(analysis.scores, analysis.max_score),
            rates=pass_rates(analysis.items),
        )
    )
    return Report(html, table(analysis), time_table(timings))


def run(args: argparse.Namespace, course: Course) -> int:
    results = read_results(course, args.assignment)
    marks = read_marks(course.gradebook, args.assignment)
    report = report_page(course, args.assignment, results["students"], marks)
    written: list[Path] = []
    for ending, text in (
        ("report.html", report.html),
        ("report.csv", report.checkpoints),
        ("times.csv", report.times),
    ):
        path = course.autograded / f"{args.assignment}.{ending}"
        try:
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise CourseError(f"{path} cannot be written ({error.strerror}).") from None
        written.append(path)
    print("\n".join(f"report: {path}" for path in written))
    return 0
