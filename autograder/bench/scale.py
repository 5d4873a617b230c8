"""What recording and what a run does for everybody costs, for classes of more and more students.

A handful of submissions is really graded; the class is that handful again and again under other names. Each
size runs in a process of its own, so that its memory can be told: `python -m autograder.bench.scale FOLDER N`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from autograder.bench.rows import differences, nbgrader_writes, rows
from autograder.bench.scratch import LESSON, REPOSITORY, hand_in, make_course
from autograder.configuration import load_config
from autograder.course import Course
from autograder.execute import Executor
from autograder.feedback import gather
from autograder.grade import command, gradebook
from autograder.grade import run as runs
from autograder.grade.submission import Graded, Plan, grade_submission
from autograder.lms import marks
from autograder.report.command import report_page

HANDFUL = 4
KEPT = 50  # whose notebooks stay, since the report shows examples from them
RECORDING = "gradebook: a student's rows, first grading (bar: 10)"
AGAIN = "gradebook: the rows of a student who is graded again"
SAVING = "all that is saved of a student: notebooks, gradebook, results"

Table = list[tuple[str, str]]


def graded_handful(course: Course) -> tuple[Plan, list[Graded]]:
    """Some students really graded; one of them lacks a notebook, one sent something that is none."""
    names = hand_in(course, 0, HANDFUL)
    incomplete, ungradable = (course.submitted / name / LESSON for name in names[-2:])
    sorted(incomplete.glob("*.ipynb"))[0].unlink()
    sorted(ungradable.glob("*.ipynb"))[0].write_text('{"cells": [')
    plan = runs.prepare(course, LESSON)
    with Executor() as executor:
        return plan, [grade_submission(plan, name, executor) for name in names]


class Stages:
    """CPU seconds of each stage of this process."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def time(self, name: str, action: Callable, *arguments):
        started = time.process_time()
        try:
            return action(*arguments)
        finally:
            self.spent[name] = self.spent.get(name, 0.0) + time.process_time() - started

    def timed(self, name: str, action: Callable) -> Callable:
        return lambda *arguments: self.time(name, action, *arguments)


def simulate(folder: Path, count: int) -> dict:
    """Record a class of `count`, then do what a run, the report and the export do for everybody."""
    course = make_course(folder)
    plan, handful = graded_handful(course)
    shutil.move(course.submitted, folder / "handful")
    members = [f"demo-{number:05}" for number in range(count)]
    for number, name in enumerate(members):
        source = folder / "handful" / handful[number % HANDFUL].student / LESSON
        shutil.copytree(source, course.submitted / name / LESSON, copy_function=os.link)
    stages = Stages()
    record = gradebook.record
    gradebook.record = stages.timed(
        RECORDING, record
    )  # `save` finds it there; this process ends soon
    with gradebook.opened(course) as book:
        todo = stages.time("digests of what was handed in", command._todo, plan, [], False)
        for number, (name, digest) in enumerate(todo):
            graded = dataclasses.replace(handful[number % HANDFUL], student=name)
            stages.time(SAVING, runs.save, plan, book, graded, digest)
            if number >= KEPT:
                shutil.rmtree(course.autograded / name)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        for number, name in enumerate(members):
            # Somebody else's scores, so that rows change.
            scores = handful[(number + 1) % (HANDFUL - 1)].scores
            stages.time(AGAIN, record, book, plan.name, name, scores)
        left = stages.time("a run with nothing left to do", command._todo, plan, [], False)
        assert left == [], "everybody was finished"
        found = stages.time("results.json", runs.assemble, plan, book)
        stages.time("marks for the export", marks.read_marks, course, book, plan.name)
    seen = stages.time("marks for feedback", gather.read_marks, course.gradebook, plan.name)
    stages.time("the report", report_page, course, plan.name, found["students"], seen)
    return {"spent": stages.spent, "memory": memory, "students": len(found["students"])}


def scaled(folder: Path, counts: Sequence[int]) -> Table:
    """The table for several sizes, and whether the rows are nbgrader's."""
    outcomes = [_in_a_process(folder / str(count), count) for count in counts]
    table = [("CPU ms a student, for classes of", ", ".join(f"{count:,}" for count in counts))]
    for name in outcomes[0]["spent"]:
        each = [o["spent"][name] * 1000 / n for o, n in zip(outcomes, counts, strict=True)]
        ratio = f" (last / one before: {each[-1] / each[-2]:.2f})" if len(each) > 1 else ""
        table.append((name, ", ".join(f"{one:.2f}" for one in each) + ratio))
    table.append(("memory while recording, MB", ", ".join(f"{o['memory']:.0f}" for o in outcomes)))
    table.append(("rows that differ from those of nbgrader's own classes", same_rows(folder)))
    return table


def _in_a_process(folder: Path, count: int) -> dict:
    words = [sys.executable, "-m", "autograder.bench.scale", str(folder), str(count)]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stderr[-2000:]}")
    shutil.rmtree(folder)
    print(f"{count:,} students: {done.stdout.splitlines()[-1]}", file=sys.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def same_rows(folder: Path) -> str:
    """Record the handful with our writer and through nbgrader's classes; what differs."""
    course, other = make_course(folder / "rows"), Course(folder / "theirs")
    _, handful = graded_handful(course)
    other.root.mkdir()
    shutil.copy(course.root / "gradebook.db", other.root)
    gradable = [graded for graded in handful if graded.gradable]
    with gradebook.opened(course) as book:
        for graded in gradable:
            gradebook.record(book, LESSON, graded.student, graded.scores)
    for graded in gradable:
        notebooks = graded.notebooks
        nbgrader_writes(
            other.gradebook, LESSON, graded.student, notebooks, None, load_config(course)
        )
    mine, theirs = rows(course.gradebook), rows(other.gradebook)
    different = differences(mine, theirs)
    total = sum(len(content) for content in mine.values())
    return f"{len(different)} of {total}" + "".join(f"; {line}" for line in different[:5])


if __name__ == "__main__":
    print(json.dumps(simulate(Path(sys.argv[1]), int(sys.argv[2]))))
