"""`python -m autograder.bench`: prints the tables; `--write` puts them into docs/bench.md."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from autograder.bench import equality, scale, speed
from autograder.bench.scratch import REPOSITORY, make_course
from autograder.course import CourseError

PAGE = Path("docs") / "bench.md"
Table = list[tuple[str, str]]

HEAD = """# What grading costs

This page is written by `make bench`, which measures everything anew. All classes are invented; each comparison is
of one run on one machine, so that the ratios hold elsewhere and the seconds do not.
"""
ABOUT = {
    "grading": """## A class of the walkthrough, beside stock nbgrader

The members of the class began to work at different cells. Ours is `python -m autograder grade` with the sandbox
on; cells that are as released run once for the class. Stock is nbgrader 0.9.6 as it is installed, on a sample of
the same submissions; for the class its time is extrapolated, its start counted once. *Its cells alone* are the code
cells of a notebook in a process that has imported everything. Memory *together* counts shared pages once.
""",
    "feedback": """## Feedback pages

`python -m autograder feedback` and stock nbgrader's `generate_feedback`, on the same graded submissions.
""",
    "scale": """## Classes up to 10,000

A handful of submissions is really graded; the class is that handful again and again under other names. Each size runs
in a process of its own. The handful is also recorded through nbgrader's own API and preprocessors into a second
gradebook, and all rows of all tables are compared, under the names of what they stand for, since each database draws
ids of its own.
""",
    "equality": """## Warm and cold

Every bank is graded twice with the same probes: warm, and with `--cold` (a fresh interpreter for each notebook).
Grades are those of the gradebook and of the results; comments are those of the gradebook and everything said in the
results; outputs are those of each cell, and the evidence.
""",
}


def tables(args: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Table]]:
    """Each part that was asked for, as soon as it is measured."""
    wanted = args.part or list(ABOUT)
    if {"grading", "feedback"} & set(wanted):
        course = make_course(folder / "course")
        for name in ("stock", "pages"):
            (folder / name).mkdir()
        table, chosen = speed.grading(course, args.students, args.sample, folder / "stock")
        if "grading" in wanted:
            yield "grading", table
        if "feedback" in wanted:
            yield "feedback", speed.feedback(course, chosen, folder / "pages")
    if "scale" in wanted:
        counts = [count for count in (100, 1000) if count < args.scale] + [args.scale]
        yield "scale", scale.scaled(folder / "scale", counts)
    if "equality" in wanted:
        yield "equality", equality.warm_and_cold(folder / "equality", args.bank)


def markdown(table: Table) -> str:
    rows = [[text.replace("|", "\\|") for text in row] for row in table]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)])


def machine(words: Sequence[str]) -> str:
    """What was run, on what and when."""
    command = shlex.join(["python", "-m", "autograder.bench", *words])
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    return (
        f"`{command}` on {date.today():%Y-%m-%d}: {os.cpu_count()} cores ({_processor()}), "
        f"{platform.system()} {platform.release().split('-')[0]}, Python {platform.python_version()}{load}."
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m autograder.bench", description=__doc__)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--sample", type=int, default=4, help="students that stock nbgrader grades")
    parser.add_argument("--scale", type=int, default=10_000, help="the largest simulated class")
    parser.add_argument(
        "--part", action="append", choices=list(ABOUT), help="only this one (may be repeated)"
    )
    parser.add_argument("--bank", default="", help="only banks whose name holds this")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE}")
    args = parser.parse_args(words)
    if args.students < 8 or not 1 <= args.sample <= args.students:
        parser.error("at least 8 students, of whom a sample of at least 1")
    if args.scale < 10:
        parser.error("a scale of at least 10")
    if args.write and (args.part or args.bank):
        parser.error("--write needs all parts: the page would lose the others")
    return args


def main(words: Sequence[str] | None = None) -> int:
    args = parse(words)
    about = machine(sys.argv[1:] if words is None else words)
    page = [HEAD, about + "\n"]
    print(about)
    try:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            for name, table in tables(args, Path(folder)):
                title = ABOUT[name].splitlines()[0].removeprefix("## ")
                print(f"\n{title}\n\n{markdown(table)}", flush=True)
                page += [ABOUT[name], markdown(table) + "\n"]
    except CourseError as error:
        print(error, file=sys.stderr)
        return 2
    if args.write:
        (REPOSITORY / PAGE).write_text("\n".join(page), encoding="utf-8")
        print(f"\nwritten: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
