"""`make bench`: what grading a class costs, beside stock nbgrader on the same submissions in the same run.

An invented class is made from the release; its members changed different cells. The table gives CPU seconds
and wall time of `python -m autograder grade` (sandbox on), of stock nbgrader on a sample (extrapolated, and
said so), and of the cells alone; it compares a warm run with a cold one, and says what was normalised.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat

from autograder import classroom
from autograder.__main__ import main as command_line
from autograder.configuration import open_course
from autograder.execute import Executor
from autograder.grade import command as grading

REPOSITORY = Path(__file__).resolve().parent.parent
ASSIGNMENT = "w07-h2-attention"
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
SECONDS = re.compile(r"\b\d+(\.\d+)? ?(ns|us|µs|ms|s|seconds)\b")
NORMALISED = "memory addresses (0x...), times (12.3 ms)"


@dataclass(frozen=True)
class Cost:
    """What a command took, with all processes that it started."""

    cpu: float
    wall: float
    memory: float


def measure(command: Sequence[str], folder: Path, log: Path) -> Cost:
    """Run a command to its end; it must succeed."""
    started = time.perf_counter()
    with log.open("a") as file:
        process = subprocess.Popen(
            command, cwd=folder, stdout=file, stderr=file, env=_environment()
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} gave {process.returncode}: see {log}")
    return Cost(used.ru_utime + used.ru_stime, time.perf_counter() - started, used.ru_maxrss / 1024)


def _environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return os.environ | {"PATH": path}


def make_course(root: Path) -> None:
    """A scratch course with the repository's release and source."""
    for name in ("nbgrader_config.py", "attention_lab.py", ".check-grader.json"):
        if (REPOSITORY / name).exists():
            shutil.copy(REPOSITORY / name, root / name)
    (root / "autograder").symlink_to(REPOSITORY / "autograder")
    for name in ("source", "release"):
        shutil.copytree(REPOSITORY / name, root / name)
    (root / "submitted").mkdir()


def hand_in(root: Path, first: int, last: int) -> None:
    """Students first..last-1: each answered and changed another stretch of each notebook."""
    course = open_course(root, None)
    untouched = classroom.untouched(course, ASSIGNMENT)
    diligent = classroom.diligent(course, ASSIGNMENT)
    for number in range(first, last):
        notebooks = {}
        for name, plain in untouched.items():
            own = nbformat.from_dict(json.loads(json.dumps(plain)))
            places = [
                i for i, c in enumerate(plain.cells) if c.source != diligent[name].cells[i].source
            ]
            # From one cell on they worked; where they began differs from student to student.
            for place in places[number % len(places) :]:
                own.cells[place].source = diligent[name].cells[place].source
            notebooks[name] = own
        classroom.hand_in(course, f"student-{number:05}", ASSIGNMENT, notebooks)


def ours(root: Path, *words: str, share: bool = True) -> Cost:
    """The real command on whoever has not been graded yet."""
    program = "autograder.bench" if share else "autograder"
    start = [sys.executable, "-m", program, "--root", str(root), "grade", ASSIGNMENT, "--quiet"]
    return measure([*start, *words], REPOSITORY, root / "ours.log")


def grade_sharing(words: Sequence[str]) -> int:
    """The command `grade`, with the run of cells that are as released shared by the class."""
    root = Path(words[words.index("--root") + 1])
    notebooks = classroom.untouched(open_course(root, None), ASSIGNMENT).values()
    released = [[c.source for c in nb.cells if c.cell_type == "code"] for nb in notebooks]
    grading.Executor = functools.partial(Executor, released=released)
    return command_line(list(words))


def stock(root: Path, students: Sequence[str], scratch: Path) -> Cost:
    """nbgrader as it is installed, with none of our steps, on some of the same submissions."""
    # Its source is our release: the same cells run, with the helper inside.
    shutil.copytree(root / "release" / ASSIGNMENT, scratch / "source" / ASSIGNMENT)
    for student in students:
        shutil.copytree(root / "submitted" / student, scratch / "submitted" / student)
    (scratch / "nbgrader_config.py").write_text(
        "c = get_config()\nc.CourseDirectory.course_id = 'x'\n"
    )
    nbgrader = str(Path(sys.executable).parent / "nbgrader")
    measure([nbgrader, "generate_assignment", ASSIGNMENT], scratch, scratch / "stock.log")
    return measure([nbgrader, "autograde", ASSIGNMENT], scratch, scratch / "stock.log")


def cells_alone(root: Path, students: Sequence[str]) -> float:
    """CPU seconds that the cells of one notebook take, in a process in which all is imported."""
    total, count = 0.0, 0
    with Executor() as executor:
        for student in students:
            for path in sorted((root / "submitted" / student / ASSIGNMENT).glob("*.ipynb")):
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


def normalised(value):
    """Outputs without what differs from run to run for good reasons."""
    if isinstance(value, str):
        return SECONDS.sub("TIME", ADDRESS.sub("ADDRESS", value))
    if isinstance(value, dict):
        return {key: normalised(item) for key, item in value.items()}
    if isinstance(value, list):
        return [normalised(item) for item in value]
    return value


def snapshot(root: Path, students: Sequence[str]) -> dict:
    """Grades, comments and outputs of some students."""
    results = json.loads((root / "autograded" / f"{ASSIGNMENT}.results.json").read_text())
    found = {student: normalised(results["students"][student]) for student in students}
    for student in students:
        for path in sorted((root / "autograded" / student / ASSIGNMENT).glob("*.ipynb")):
            cells = nbformat.read(path, as_version=4).cells
            outputs = [normalised(json.loads(json.dumps(c.get("outputs", [])))) for c in cells]
            found[f"{student}/{path.stem}"] = outputs
    return found


def differences(one: dict, other: dict) -> list[str]:
    """Keys of two snapshots that differ."""
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))


def bench(students: int, sample: int, share: bool = True) -> list[tuple[str, str]]:
    """Measure; returns the rows of the table."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        root = Path(folder) / "course"
        root.mkdir()
        make_course(root)
        few = max(2, students // 10)
        hand_in(root, 0, few)
        small = ours(root, share=share)
        hand_in(root, few, students)
        large = ours(root, share=share)
        names = [f"student-{number:05}" for number in range(students)]
        chosen = names[:: max(1, students // sample)][:sample]
        plain = stock(root, chosen, _made(Path(folder) / "stock"))
        alone = cells_alone(root, chosen)
        warm = snapshot(root, chosen)
        again = [word for name in chosen for word in ("--student", name)]
        ours(root, "--force", "--cold", *again, share=False)
        different = differences(warm, snapshot(root, chosen))
    notebooks = len(classroom.untouched(open_course(REPOSITORY, None), ASSIGNMENT))
    marginal = (large.cpu - small.cpu) / (students - 2 * few) / notebooks
    fixed = small.cpu - few * notebooks * marginal
    whole = Cost(
        small.cpu + large.cpu - fixed, small.wall + large.wall, max(small.memory, large.memory)
    )
    per_student = Cost(plain.cpu / len(chosen), plain.wall / len(chosen), plain.memory)
    return [
        (
            "cells that are as released",
            "run once for the class" if share else "run for each student",
        ),
        ("students, notebooks each", f"{students}, {notebooks}"),
        ("ours, CPU s", f"{whole.cpu:.1f}"),
        ("ours, wall s", f"{whole.wall:.1f}"),
        (
            f"stock, CPU s (extrapolated from {len(chosen)} students)",
            f"{per_student.cpu * students:.0f}",
        ),
        ("stock, wall s (extrapolated)", f"{per_student.wall * students:.0f}"),
        ("times less CPU (bar: 12)", f"{per_student.cpu * students / whole.cpu:.1f}"),
        ("times less wall time (bar: 18)", f"{per_student.wall * students / whole.wall:.1f}"),
        ("stock, CPU s a notebook", f"{per_student.cpu / notebooks:.2f}"),
        ("ours, marginal CPU s a notebook", f"{marginal:.3f}"),
        ("its cells alone, CPU s", f"{alone:.3f}"),
        ("ratio of the two (bar: 1.6)", f"{marginal / alone:.2f}"),
        (
            f"largest process, MB ({few} students / {students - few})",
            f"{small.memory:.0f} / {large.memory:.0f}",
        ),
        (
            f"warm and cold differ in (of {len(warm)} students and notebooks)",
            ", ".join(different) or "nothing",
        ),
        ("normalised before comparing", NORMALISED),
    ]


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m autograder.bench", description=__doc__)
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--sample", type=int, default=4, help="students that stock nbgrader grades")
    parser.add_argument(
        "--no-sharing", action="store_true", help="run every cell for every student"
    )
    if "grade" in sys.argv:
        return grade_sharing(sys.argv[1:])
    args = parser.parse_args()
    rows = bench(args.students, args.sample, not args.no_sharing)
    print(f"| {ASSIGNMENT}: {os.cpu_count()} cores, Python {sys.version.split()[0]} | |\n|---|---|")
    for name, value in rows:
        print(f"| {name} | {value} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
