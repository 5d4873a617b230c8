"""The class beside stock nbgrader: CPU, wall time and memory of grading, and of the feedback pages.

Stock nbgrader grades a sample of the same submissions; what it would take for the class is extrapolated.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat

from autograder import classroom
from autograder.bench.scratch import LESSON, PLAIN, Cost, hand_in, nbgrader, ours, student
from autograder.course import Course
from autograder.execute import Executor
from autograder.grade import results

Table = list[tuple[str, str]]
Spent = tuple[tuple[float, float], tuple[float, float]]
"""CPU and wall seconds, each with those of the command's start alone."""


def grading(course: Course, students: int, sample: int, scratch: Path) -> tuple[Table, list[str]]:
    """Grade the class, and a sample of it with stock nbgrader.

    Returns:
        the table, and who was in the sample.
    """
    few = max(2, students // 10)
    hand_in(course, 0, few)
    small = ours(course, "grade", LESSON, "--quiet")
    hand_in(course, few, students)
    large = ours(course, "grade", LESSON, "--quiet")
    chosen = [student(number) for number in range(students)]
    chosen = chosen[:: max(1, students // sample)][:sample]
    plain = _stock(course, chosen, scratch)
    alone = cells_alone(course, chosen)
    notebooks = len(classroom.untouched(course, LESSON))
    marginal = (large.cpu - small.cpu) / (students - 2 * few) / notebooks
    start = small.cpu - few * notebooks * marginal
    cpu, wall = small.cpu + large.cpu - start, small.wall + large.wall
    theirs_cpu, theirs_wall = (extrapolated(part, students / len(chosen)) for part in plain)
    table = [
        ("students, notebooks each", f"{students}, {notebooks}"),
        ("ours, CPU s", f"{cpu:.1f}"),
        ("ours, wall s", f"{wall:.1f}"),
        (f"stock, CPU s (extrapolated from {_students(chosen)})", f"{theirs_cpu:.0f}"),
        ("stock, wall s (extrapolated)", f"{theirs_wall:.0f}"),
        ("times less CPU (bar: 12)", f"{theirs_cpu / cpu:.1f}"),
        ("times less wall time (bar: 18)", f"{theirs_wall / wall:.1f}"),
        ("stock, CPU s a notebook", f"{theirs_cpu / students / notebooks:.2f}"),
        ("ours, marginal CPU s a notebook", f"{marginal:.3f}"),
        ("its cells alone, CPU s", f"{alone:.3f}"),
        ("ratio of the two (bar: 1.6)", f"{marginal / alone:.2f}"),
        (
            f"largest process, MB, for {few} and for {students - few} students",
            f"{small.largest:.0f}, {large.largest:.0f}",
        ),
        ("all processes together, MB", f"{_memory(small)}, {_memory(large)}"),
    ]
    return table, chosen


def _students(chosen: Sequence[str]) -> str:
    return f"{len(chosen)} student{'s' if len(chosen) != 1 else ''}"


def _memory(cost: Cost) -> str:
    return "not readable" if cost.together is None else f"{cost.together:.0f}"


def extrapolated(spent: tuple[float, float], times: float) -> float:
    """What a command would take for a class so many times as large.

    Args:
        spent: what it took, and what its start alone takes.
    """
    whole, start = spent
    return max(whole - start, 0.0) * times + start


def _stock(course: Course, students: Sequence[str], scratch: Path) -> Spent:
    """nbgrader as it is installed, with none of our steps, on some of the same submissions."""
    # Its source is our release: the same cells run, with the helper inside.
    shutil.copytree(course.release / LESSON, scratch / "source" / LESSON)
    for name in students:
        shutil.copytree(course.submitted / name, scratch / "submitted" / name)
    (scratch / "nbgrader_config.py").write_text(PLAIN)
    nbgrader(scratch, "generate_assignment", LESSON)
    return _with_start(scratch, "autograde", LESSON)


def _with_start(scratch: Path, *words: str) -> Spent:
    """CPU and wall time of a command of nbgrader, each with that of the same command with nothing to do."""
    whole, again = nbgrader(scratch, *words), nbgrader(scratch, *words)
    return (whole.cpu, again.cpu), (whole.wall, again.wall)


def cells_alone(course: Course, students: Sequence[str]) -> float:
    """CPU seconds that the cells of one notebook take, in a process in which all is imported."""
    total, count = 0.0, 0
    with Executor() as executor:
        for name in students:
            for path in sorted((course.submitted / name / LESSON).glob("*.ipynb")):
                with executor.kernel() as kernel:
                    kernel.execute(
                        "import time as bench_clock\nbench_start = bench_clock.process_time()"
                    )
                    for cell in nbformat.read(path, as_version=4).cells:
                        if cell.cell_type == "code":
                            kernel.execute(cell.source)
                    kernel.execute("bench_used = bench_clock.process_time() - bench_start")
                    total += float(kernel.values(["bench_used"])["bench_used"])
                    count += 1
    return total / count


def feedback(course: Course, chosen: Sequence[str], scratch: Path) -> Table:
    """The feedback pages of the same graded submissions, by our command and by stock nbgrader."""
    mine, plain = Course(scratch / "ours"), scratch / "stock"
    for root in (mine.root, plain):
        for name in chosen:
            shutil.copytree(course.autograded / name, root / "autograded" / name)
        shutil.copy(course.root / "gradebook.db", root)
    (plain / "nbgrader_config.py").write_text(PLAIN)
    shutil.copy(course.root / "nbgrader_config.py", mine.root)
    found = json.loads(results.results_path(course, LESSON).read_text(encoding="utf-8"))
    found["students"] = {name: found["students"][name] for name in chosen}
    results.write_json(results.results_path(mine, LESSON), found)
    ours_cost = ours(mine, "feedback", LESSON, "--quiet")
    stock_cpu, stock_wall = _with_start(plain, "generate_feedback", LESSON)
    whole = ours(course, "feedback", LESSON, "--quiet")
    pages, theirs = _sizes(mine.feedback), _sizes(plain / "feedback")
    everybody = _sizes(course.feedback)
    if not pages or len(pages) != len(theirs):
        raise SystemExit(f"ours made {len(pages)} pages and stock nbgrader {len(theirs)}")
    times = len(everybody) / len(pages)
    return [
        (f"pages of {_students(chosen)}, by each", f"{len(pages)}"),
        ("ours, CPU s, wall s", f"{ours_cost.cpu:.2f}, {ours_cost.wall:.2f}"),
        ("stock, CPU s, wall s", f"{stock_cpu[0]:.2f}, {stock_wall[0]:.2f}"),
        (
            "times less CPU, wall time (start-up included)",
            f"{stock_cpu[0] / ours_cost.cpu:.1f}, {stock_wall[0] / ours_cost.wall:.1f}",
        ),
        ("ours for the class: pages, CPU s, wall s",
         f"{len(everybody)}, {whole.cpu:.1f}, {whole.wall:.1f}"),
        (
            "times less CPU, wall time for the class (stock extrapolated)",
            f"{extrapolated(stock_cpu, times) / whole.cpu:.1f}, "
            f"{extrapolated(stock_wall, times) / whole.wall:.1f}",
        ),
        ("largest page, KB, ours, stock", f"{max(pages) / 1e3:.0f}, {max(theirs) / 1e3:.0f}"),
    ]  # fmt: skip


def _sizes(folder: Path) -> list[int]:
    return [path.stat().st_size for path in folder.rglob("*.html")]
