"""Kill the grader of a class again and again, go on, and compare with a run that was left in peace.

`make check-durability` (`python -m tests.pipeline.durability`) does it with a large class and writes
`docs/durability.md`; `test_durability.py` does the same with a small one.

Half of the kills come at a random moment. The others are aimed at a write: the grader's files are watched, it is
stopped (SIGSTOP) when the write is seen, looked at again so as to be sure, and killed. What a kill did hit is read
from what lies there after it.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook

from autograder import classroom
from autograder.course import Course
from tests.conftest import ROOT, Scratch
from tests.machine import machine

NAME = "w07-h2-attention"
RANDOM = "a random moment"
CREATING = "the gradebook being made"
TRANSACTION = "a transaction of the gradebook"
FILE = "a file being written"
BETWEEN = "notebooks written, entry not"
RESULTS = "results.json being written"
AIMS = (CREATING, RANDOM, BETWEEN, RANDOM, RESULTS, RANDOM, TRANSACTION, RANDOM, FILE, RANDOM)
NOTHING = "no write: cells were running"
STARTING = "no write: it was starting"
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class Scale:
    """How large the class is, which notebooks it hands in, and how often its grader is killed."""

    students: int
    kills: int
    notebooks: tuple[str, ...]
    aims: tuple[str, ...] = AIMS
    seed: int = 2026


@dataclass
class Kill:
    """One kill: what it was aimed at, when it came, what it hit, and what outlived it."""

    aim: str
    seconds: float
    finished: int
    hit: str
    survivors: list[str] = field(default_factory=list)

    @property
    def wrote(self) -> bool:
        return self.hit not in (NOTHING, STARTING)


@dataclass
class Outcome:
    """What all of it came to; every list is empty when the grader is durable."""

    kills: list[Kill]
    differences: list[str]
    left: list[str]
    graded_twice: list[str]
    kept: int
    edits: int
    seconds: float

    def faults(self) -> list[str]:
        survivors = [text for kill in self.kills for text in kill.survivors]
        return [*self.differences, *self.left, *self.graded_twice, *survivors]


class Run:
    """A course with its class, and its grader as a command that can be killed."""

    def __init__(self, folder: Path, scale: Scale) -> None:
        self.scale = scale
        self.scratch = Scratch(_made(folder / "course"))
        self.root = self.scratch.root
        self.temporary = _made(folder / "temporary")
        # Also the mark by which this run's processes are known: the warm process is told the cache.
        self.cache = _made(folder / "cache")
        self.autograded = self.root / "autograded"
        self.private = self.autograded / ".run" / NAME
        self.journal = self.root / "gradebook.db-journal"
        hand_in(Course(self.root), scale)
        _made(self.private)
        (self.private / "nonce.json").write_text(json.dumps({"nonce": "ab" * 16}))

    def command(self, *words: str) -> list[str]:
        start = [sys.executable, "-m", "autograder", "--root", str(self.root)]
        return [*start, "grade", NAME, "--quiet", *words]

    def start(self, *words: str) -> subprocess.Popen:
        place = {"TMPDIR": str(self.temporary), "XDG_CACHE_HOME": str(self.cache)}
        return subprocess.Popen(
            # Whoever watches comes first, also on a busy machine.
            ["nice", "-n", "3", *self.command(*words)],
            cwd=ROOT,
            env=os.environ | place,
            stderr=subprocess.PIPE,
        )

    def grade(self, *words: str) -> None:
        """Grade to the end.

        Raises:
            AssertionError: if that ends with an error.
        """
        process = self.start(*words)
        _, said = process.communicate()
        # 1: there are submissions that can't be graded, as there should be.
        assert process.returncode in (0, 1), said.decode()

    def finished(self) -> set[str]:
        return {path.stem for path in (self.private / "students").glob("student-*.json")}

    def stamps(self) -> dict[str, dict[Path, int]]:
        """For each finished student, when each of the student's files was written."""
        return {
            student: {
                path: path.stat().st_mtime_ns
                for path in [
                    self.private / "students" / f"{student}.json",
                    *(self.autograded / student / NAME).glob("*"),
                ]
            }
            for student in self.finished()
        }

    # ------------------------------------------------------------------------------ what is seen

    def next_students(self) -> list[str]:
        """Those whom the grader has in hand, or nearly."""
        done = self.finished()
        return [s for s in students(self.scale) if s not in done][:8]

    def half_written(self) -> set:
        places = [self.root, self.autograded, self.private, self.private / "students"]
        places += [self.autograded / student / NAME for student in self.next_students()]
        return {path for place in places for path in place.glob(".*.new")}

    def not_final(self) -> set:
        """Students whose notebooks are all written, and whose entry is not."""
        wanted = {f"{name}.ipynb" for name in self.scale.notebooks}
        return {
            student
            for student in self.next_students()
            if wanted <= {path.name for path in (self.autograded / student / NAME).glob("*.ipynb")}
        }

    def open_transaction(self) -> set:
        try:
            status = self.journal.stat()
        except FileNotFoundError:
            return set()
        return {(status.st_ino, status.st_ctime_ns)}

    def sign(self, aim: str) -> Callable[[], set]:
        """What there is to see while the grader does what a kill is aimed at, and was not there before."""
        made = ".gradebook.db.*.new*"
        results = f".{NAME}.results.json.*.new"
        look = {
            CREATING: lambda: set(self.root.glob(made)),
            TRANSACTION: self.open_transaction,
            FILE: self.half_written,
            BETWEEN: lambda: set() if self.open_transaction() else self.not_final(),
            RESULTS: lambda: set(self.autograded.glob(results)),
        }.get(aim, set)
        before = look()
        return lambda: look() - before

    def what_is_hit(self) -> Callable[[], str]:
        """Called before a kill; what it gives says afterwards what lies there that did not before."""
        looks = (self.half_written, self.open_transaction, self.not_final)
        before = [look() for look in looks]

        def found() -> str:
            halves, journal, not_final = (
                look() - old for look, old in zip(looks, before, strict=True)
            )
            names = " ".join(path.name for path in halves)
            if ".gradebook.db." in names:
                return "the gradebook, half made"
            if journal:
                return "a transaction, open"
            if f".{NAME}.results" in names:
                return "results.json, half written"
            if halves:
                kind = "a graded notebook" if ".ipynb." in names else "a student's entry"
                return f"{kind}, half written"
            return "notebooks written, entry not" if not_final else NOTHING

        return found

    def processes(self) -> list[int]:
        """Processes that are this run's: they carry its folders in their command line or environment."""
        mark, found = str(self.cache.parent).encode(), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            for name in ("cmdline", "environ"):
                try:
                    if mark in Path("/proc", pid, name).read_bytes() and int(pid) != os.getpid():
                        found.append(int(pid))
                        break
                except OSError:
                    continue
        return found

    def gone(self, pids: set[tuple[int, str]], patience: float = 60.0) -> list[str]:
        """Wait for these and all other processes of the run to end; those that do not."""
        end = time.monotonic() + patience
        while True:
            left = [f"process {pid}" for pid, born in pids if _born(pid) == born]
            left += [f"process {pid}" for pid in self.processes()]
            if not left or time.monotonic() > end:
                return sorted(set(left))
            time.sleep(0.05)


# ------------------------------------------------------------------------------------- the class


def students(scale: Scale) -> list[str]:
    return [f"student-{number:03d}" for number in range(scale.students)]


def hand_in(course: Course, scale: Scale) -> None:
    """Right work, untouched work, work that can't be graded, and now and then a file beside it."""
    right, untouched = classroom.diligent(course, NAME), classroom.untouched(course, NAME)
    for number, student in enumerate(students(scale)):
        notebooks = {name: (right if number % 3 else untouched)[name] for name in scale.notebooks}
        if number % 10 == 7:
            notebooks[scale.notebooks[0]] = '{"cells": ['
        folder = classroom.hand_in(course, student, NAME, notebooks)
        if number % 4 == 1:
            (folder / "numbers.csv").write_text("1,2\n" * 1000)


# ------------------------------------------------------------------------------------- the kills


def kill_once(run: Run, aim: str, chance: random.Random, kills_left: int) -> Kill:
    """Start the grader, kill it when `aim` is seen (or at a random moment), and see what that hit.

    Raises:
        AssertionError: if it ended by itself again and again, so that it could not be killed.
    """
    for _ in range(4):
        kill = _try_to_kill(run, aim, chance, kills_left)
        if kill is not None:
            return kill
    raise AssertionError(f"the grader ended before it could be killed; aimed at {aim}")


def _try_to_kill(run: Run, aim: str, chance: random.Random, kills_left: int) -> Kill | None:
    before = len(run.finished())
    # Something must be left for the kills to come.
    ceiling = run.scale.students - kills_left - 1
    share = max(1, 2 * (ceiling - before) // (kills_left + 1))
    goal = min(before + chance.randint(0, share), ceiling)
    extra = chance.random() * (4.0 if goal == before else 1.0)
    following = run.next_students()
    words = ("--student", following[0]) if aim == RESULTS and following else ()
    sign, hit, reached, looked = run.sign(aim), run.what_is_hit(), None, 0
    process, started = run.start(*words), time.monotonic()
    while process.poll() is None:
        looked += 1
        if sign() and _stopped_at(process, sign):
            break
        if looked % 20 == 0 or aim == RANDOM:
            now, done = time.monotonic(), len(run.finished())
            reached = now if reached is None and done >= goal else reached
            late = reached is not None and now > reached + extra
            if done >= ceiling or (aim == RANDOM and late):
                break
            if aim == RANDOM:
                time.sleep(0.002)
    _stop(process)
    family, seconds = _family(process.pid), time.monotonic() - started
    process.kill()
    process.communicate()
    if process.returncode in (0, 1):
        return None
    assert process.returncode == -signal.SIGKILL, f"it ended with {process.returncode}"
    found = hit()
    if found == NOTHING and len(family) == 1:
        found = STARTING
    return Kill(aim, seconds, len(run.finished()) - before, found, run.gone(family))


def _stopped_at(process: subprocess.Popen, sign: Callable[[], object]) -> bool:
    """Stop the grader and look again: if the sign is gone it goes on."""
    if not _stop(process):
        return False
    if sign():
        return True
    process.send_signal(signal.SIGCONT)
    return False


def _stop(process: subprocess.Popen) -> bool:
    process.send_signal(signal.SIGSTOP)
    while process.poll() is None:
        if _stat(process.pid)[0] == "T":
            return True
        time.sleep(0.001)
    return False


def _stat(pid: int) -> list[str]:
    """State, parent, ... of a process; all empty if there is none."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return [""] * 50


def _born(pid: int) -> str:
    """When a process was started; "" if it is gone, or waits for nobody but its parent."""
    fields = _stat(pid)
    return "" if fields[0] in ("Z", "X") else fields[19]


def _family(pid: int) -> set[tuple[int, str]]:
    """A process and all that descend from it, each with the time of its start."""
    parents: dict[str, list[int]] = {}
    for other in filter(str.isdigit, os.listdir("/proc")):
        parents.setdefault(_stat(int(other))[1], []).append(int(other))
    found, todo = set(), [pid]
    while todo:
        one = todo.pop()
        found.add((one, _born(one)))
        todo += parents.get(str(one), [])
    return found


# ------------------------------------------------------------------------------- people's marks


@dataclass(frozen=True)
class Edit:
    """A mark and a comment that a person gives in formgrader."""

    student: str
    score: float
    comment: str


def give(run: Run, edit: Edit) -> None:
    """As formgrader does it, by nbgrader's own interface."""
    with Gradebook(Course(run.root).gradebook, "attention") as book:
        submission = book.find_submission(NAME, edit.student)
        notebook = next(n for n in submission.notebooks if n.grades and n.comments)
        grade = min(notebook.grades, key=lambda g: g.name)
        grade.manual_score, grade.extra_credit = edit.score, 0.25
        grade.needs_manual_grade = False
        min(notebook.comments, key=lambda c: c.name).manual_comment = edit.comment
        book.db.commit()


# ----------------------------------------------------------------------------------- comparing

_QUERIES = {
    "student": "select id, first_name, last_name, email, lms_user_id from student",
    "course": "select id from course",
    "nbgrader's version": "select version_num from alembic_version",
    "assignment": "select name, duedate, course_id from assignment",
    "notebook": "select a.name, n.name, n.kernelspec from notebook n join assignment a on a.id = n.assignment_id",
    "cell": "select n.name, b.name, b.type, g.max_score, g.cell_type from base_cell b "
    "join notebook n on n.id = b.notebook_id left join grade_cells g on g.id = b.id",
    "source": "select n.name, s.name, s.cell_type, s.locked, s.source, s.checksum from source_cell s "
    "join notebook n on n.id = s.notebook_id",
    "submission": "select student_id, timestamp, extension from submitted_assignment",
    "submitted notebook": "select s.student_id, n.name, d.flagged, d.late_submission_penalty "
    "from submitted_notebook d join notebook n on n.id = d.notebook_id "
    "join submitted_assignment s on s.id = d.assignment_id",
    "grade": "select s.student_id, b.name, g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade "
    "from grade g join base_cell b on b.id = g.cell_id join submitted_notebook n on n.id = g.notebook_id "
    "join submitted_assignment s on s.id = n.assignment_id",
    "comment": "select s.student_id, b.name, c.auto_comment, c.manual_comment from comment c "
    "join base_cell b on b.id = c.cell_id join submitted_notebook n on n.id = c.notebook_id "
    "join submitted_assignment s on s.id = n.assignment_id",
}


def gradebook(root: Path) -> dict[str, list[tuple]]:
    """All that the gradebook holds, by names in place of its random keys."""
    with sqlite3.connect(root / "gradebook.db") as book:
        found = {kind: sorted(book.execute(query), key=repr) for kind, query in _QUERIES.items()}
        found["SQLite's own check"] = book.execute("pragma integrity_check").fetchall()
    book.close()
    return found


def compare(calm: Run, killed: Run) -> list[str]:
    """In what the killed course differs from the one that was graded in peace."""
    found = []
    ours, theirs = gradebook(calm.root), gradebook(killed.root)
    for kind in ours:
        lost = [row for row in ours[kind] if row not in theirs[kind]]
        more = [row for row in theirs[kind] if row not in ours[kind]]
        if lost or more or len(ours[kind]) != len(theirs[kind]):
            found.append(f"{kind}: lost {lost[:3]}, unlike {more[:3]}")
    if calm.scratch.results(NAME) != killed.scratch.results(NAME):
        found.append("results.json differs")
    files, others = (_files(run.root) for run in (calm, killed))
    found += [f"{path} is not in both" for path in sorted(files.keys() ^ others.keys())]
    for path in sorted(files.keys() & others.keys()):
        if path.endswith(".ipynb") and files[path] != others[path]:
            found.append(f"{path} differs")
    return found


def _files(root: Path) -> dict[str, str]:
    """Every file of a course with the text of the graded notebooks; addresses of objects are left out."""
    found = {}
    for base, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not Path(base, name).is_symlink()]
        for name in [*names, *folders]:
            path = Path(base, name)
            relative = str(path.relative_to(root))
            graded = relative.startswith("autograded") and name.endswith(".ipynb")
            found[relative] = ADDRESS.sub("0x", path.read_text()) if graded else ""
    return found


# ------------------------------------------------------------------------------------ all of it


def torment(folder: Path, scale: Scale, tell: Callable[[str], None] = lambda text: None) -> Outcome:
    """Grade one class in peace and one under kills, give marks in between, and compare."""
    started = time.monotonic()
    calm, killed = Run(_made(folder / "calm"), scale), Run(_made(folder / "killed"), scale)
    calm.grade()
    tell(f"graded in peace: {time.monotonic() - started:.0f} s")
    chance, kills, edits = random.Random(scale.seed), [], []
    written: dict[str, dict[Path, int]] = {}
    for number in range(scale.kills):
        aim = scale.aims[number % len(scale.aims)]
        if aim == CREATING and number:  # there is a gradebook by now
            aim = TRANSACTION
        kill = kill_once(killed, aim, chance, scale.kills - number - 1)
        kills.append(kill)
        tell(f"kill {number + 1}: {kill}")
        for student, stamps in killed.stamps().items():
            written.setdefault(student, stamps)
        # Where a transaction is open the next grader has to undo it, not the person's programme.
        gradable = [s for s in sorted(killed.finished()) if _gradable(killed, s)]
        if gradable and not killed.journal.exists():
            edits.append(Edit(chance.choice(gradable), 0.5 + number, f"seen, {number}"))
            give(killed, edits[-1])
    killed.grade()
    left = killed.gone(set(), patience=10.0)
    left += [f"{path} is left" for path in killed.temporary.iterdir()]
    for edit in edits:
        give(calm, edit)
    now = killed.stamps()
    twice = [f"{s} was graded twice" for s, stamps in written.items() if now[s] != stamps]
    differences = compare(calm, killed)
    seconds = time.monotonic() - started
    return Outcome(kills, differences, left, twice, len(written), len(edits), seconds)


def _gradable(run: Run, student: str) -> bool:
    entry = json.loads((run.private / "students" / f"{student}.json").read_text())["entry"]
    return entry["status"] not in ("ungradable", "missing")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def page(scale: Scale, outcome: Outcome) -> str:
    """`docs/durability.md`."""
    rows = [
        f"| {number} | {kill.aim} | {kill.seconds:.1f} | {kill.finished} | {kill.hit} | "
        f"{', '.join(kill.survivors) or 'none'} |"
        for number, kill in enumerate(outcome.kills, 1)
    ]
    wrote = sum(kill.wrote for kill in outcome.kills)
    chance = [kill for kill in outcome.kills if kill.aim == RANDOM]
    figures = {
        "students; notebooks each": f"{scale.students}; {len(scale.notebooks)}",
        "kills (SIGKILL)": len(outcome.kills),
        "of these at a random moment": len(chance),
        "kills that hit a write": f"{wrote} ({sum(k.wrote for k in chance)} of the random ones)",
        "differences from the run in peace": len(outcome.differences),
        "processes that outlived a kill": sum(len(kill.survivors) for kill in outcome.kills),
        "processes, folders, half-written files left": len(outcome.left),
        "students finished before the last kill": outcome.kept,
        "of these graded twice": len(outcome.graded_twice),
        "marks and comments of people between the kills": outcome.edits,
        "of these lost": sum("grade:" in d or "comment:" in d for d in outcome.differences),
    }
    lines = [f"| {name} | {value} |" for name, value in figures.items()]
    return TEMPLATE.format(
        command="make check-durability",
        machine=machine(),
        seconds=outcome.seconds,
        figures="\n".join(lines),
        rows="\n".join(rows),
    )


TEMPLATE = """# A grader that is killed

Made by `{command}` on {machine}, in {seconds:.0f} s.

A class hands in all notebooks of the walkthrough: right work, untouched work, work that can't be graded, and
files beside it. It is graded twice, with the same probes: once in peace, once by a grader that is killed with SIGKILL
and started again. Half of the kills come at a random moment, the others are aimed at a write: the grader's files are
watched, and it is stopped, looked at once more and killed in the middle of it. Between the kills people give
marks, extra credit and comments. Compared are every table of the gradebook, the results, the graded notebooks (without
addresses of objects) and the names of all files.

| | |
|---|---|
{figures}

| kill | aimed at | after (s) | students finished by then in this run | what it hit | survivors |
|---|---|---|---|---|---|
{rows}

`tests/pipeline/test_durability.py` does the same with a small class in every run of the tests. The other ways to be
stopped (a full disk, a read-only folder, a gradebook that another process holds, a second grader, a clock that jumps)
are in `tests/pipeline/test_bad_days.py`: one clear line each, and nothing lost.
"""


def notebooks() -> tuple[str, ...]:
    return tuple(sorted(classroom.untouched(Course(ROOT), NAME)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.pipeline.durability")
    parser.add_argument("--students", type=int, default=60)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "durability.md")
    args = parser.parse_args()
    scale = Scale(args.students, args.kills, notebooks(), seed=args.seed)
    with tempfile.TemporaryDirectory(prefix="durability-") as folder:
        outcome = torment(Path(folder), scale, lambda text: print(text, flush=True))
    text = page(scale, outcome)
    print(text)
    for fault in outcome.faults():
        print(f"FAULT: {fault}", file=sys.stderr)
    if not outcome.faults():
        args.output.write_text(text, encoding="utf-8")
    return 1 if outcome.faults() else 0


if __name__ == "__main__":
    sys.exit(main())
