"""Does a warm run give what a cold one gives (`--cold`: a fresh interpreter for each notebook), for every bank?

Both grade the same submissions of a course of its own, with the same probes. Compared are the grades in the
gradebook and the results, the comments that go with them, and the outputs of every cell.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

from autograder import classroom
from autograder.bench.rows import rows
from autograder.bench.scratch import LESSON, hand_in, make_course, ours
from autograder.check_grader import submissions
from autograder.course import Course
from autograder.grade import results
from autograder.tasks.registry import assignment as tasks_of

PRACTICE, MECHANISM = "w07-h2-practice", "attention-mechanism"
NORMALISED: dict[str, tuple[re.Pattern[str], str]] = {
    "memory addresses (0x...)": (re.compile(r"0x[0-9a-f]{6,}"), "ADDRESS"),
    # With the spaces before it: a progress bar pads its times.
    "times (12.3 ms)": (re.compile(r" *\b\d+(\.\d+)? ?(ns|us|µs|ms|s|seconds)\b"), " TIME"),
}
GRADES = ("status", "score", "max_score", "verdict")
CELL_SECONDS = "15"  # the banks have endless loops
STEADY = ("forging", "patching", "reading")
INWARD = ("garbage-collector", "read-the-environment")
WHY_A_SAMPLE = (
    "of the attacks those that forge, patch and read; what the others show depends on where a limit of time, "
    f"memory or processes met them. The outputs of {' and '.join(INWARD)}, which list the interpreter's own "
    "objects and command lines, are not compared; their grades and comments are"
)


@dataclass(frozen=True)
class Bank:
    """Submissions of one assignment.

    Args:
        hand_in: puts them into a course's `submitted/`.
    """

    name: str
    assignment: str
    hand_in: Callable[[Course], object]


def banks() -> list[Bank]:
    """Every bank of submissions that the tests have."""
    return [
        Bank("walkthrough: members who changed different cells", LESSON, _members),
        Bank("practice: right and wrong answers", PRACTICE, _answers(PRACTICE)),
        Bank("attention-mechanism: right and wrong answers", MECHANISM, _answers(MECHANISM)),
        Bank("practice: accidents", PRACTICE, _accidents),
        Bank("walkthrough: attacks (a sample)", LESSON, _attacks),
    ]


def _members(course: Course) -> None:
    hand_in(course, 0, 6)
    classroom.hand_in(course, "untouched", LESSON, classroom.untouched(course, LESSON))


def _answers(assignment: str) -> Callable[[Course], None]:
    def everybody(course: Course) -> None:
        right = classroom.diligent(course, assignment)
        for played, notebooks in submissions(tasks_of(assignment), right):
            classroom.hand_in(course, played.student, assignment, notebooks)
        untouched = classroom.untouched(course, assignment)
        classroom.hand_in(course, "untouched", assignment, untouched)

    return everybody


# The banks of the tests are no part of the package: they are read where they are, from the repository.


def _accidents(course: Course) -> None:
    from tests.accidents.bank import ACCIDENTS, write
    from tests.accidents.targets import targets

    found = list(targets(course, PRACTICE).values())
    for number, one in enumerate(ACCIDENTS):
        target = found[number % len(found)]
        others = {f"{other}.ipynb" for other in target.others}
        files = {name: data for name, data in one.damage(target).items() if name not in others}
        write(course.submitted / one.name.replace("_", "-") / PRACTICE, files)


def _attacks(course: Course) -> None:
    from tests.attacks.bank import attacks
    from tests.attacks.judge import Class

    chosen = [attack for attack in attacks() if attack.kind in STEADY]
    (course.root / "attacked").mkdir()
    attacked = Class(course.root / "attacked", chosen)
    try:
        attacked.let_the_attackers_in()
    finally:
        attacked.listener.close()
    for folder in (attacked.scratch.root / "submitted").iterdir():
        shutil.move(folder, course.submitted / folder.name)


@dataclass
class Snapshot:
    """What a run left, by kind (grades, comments, outputs) and name, and how often a rule changed a text."""

    kinds: dict[str, dict[str, object]] = field(default_factory=dict)
    changed: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, name: object, value: object) -> None:
        self.kinds.setdefault(kind, {})[str(name)] = self._normalised(value)

    def _normalised(self, value):
        if isinstance(value, str):
            for rule, (pattern, word) in NORMALISED.items():
                value, times = pattern.subn(word, value)
                self.changed[rule] += times
            return value
        if isinstance(value, dict):
            return {key: self._normalised(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._normalised(item) for item in value]
        return value


def snapshot(course: Course, assignment: str) -> Snapshot:
    """Everything that the last run left in the gradebook, the results and the graded notebooks."""
    found = Snapshot()
    book = rows(course.gradebook)
    for table, kind in (("grade", "grades"), ("comment", "comments")):
        for row in book[table]:
            found.add(kind, dict(row)["id"], row)
    kept = results.read_json(results.results_path(course, assignment)) or {}
    for student, entry in kept["students"].items():
        checkpoints = {(student, name): one for name, one in entry["checkpoints"].items()}
        for name, one in {student: entry, **checkpoints}.items():
            found.add("grades", name, {key: one.get(key) for key in GRADES})
            said = one.keys() - {*GRADES, "checkpoints"}
            found.add("comments", name, {key: one[key] for key in sorted(said)})
    for path in sorted(course.autograded.glob(f"*/{assignment}/**/*")):
        if path.relative_to(course.autograded).parts[0] in INWARD:
            continue
        if path.suffix == ".ipynb":
            for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
                if cell.get("outputs"):
                    outputs = json.loads(json.dumps(cell.outputs))
                    found.add(
                        "outputs", f"{path.relative_to(course.autograded)} cell {number}", outputs
                    )
        elif path.is_file():
            found.add("outputs", path.relative_to(course.autograded), path.read_text())
    return found


def differences(one: Snapshot, other: Snapshot) -> dict[str, list[str]]:
    """Names of what differs, by kind."""
    found = {}
    for kind in sorted(one.kinds.keys() | other.kinds.keys()):
        left, right = one.kinds.get(kind, {}), other.kinds.get(kind, {})
        names = left.keys() | right.keys()
        found[kind] = sorted(name for name in names if left.get(name) != right.get(name))
    return found


def compare(bank: Bank, folder: Path) -> tuple[Snapshot, Snapshot]:
    """Grade a bank warm, then cold."""
    course = make_course(folder)
    bank.hand_in(course)
    ours(course, "grade", bank.assignment, "--quiet", COURSE_CELL_SECONDS=CELL_SECONDS)
    warm = snapshot(course, bank.assignment)
    again = ("grade", bank.assignment, "--quiet", "--force", "--cold")
    ours(course, *again, COURSE_CELL_SECONDS=CELL_SECONDS)
    return warm, snapshot(course, bank.assignment)


def warm_and_cold(folder: Path, chosen: str = "") -> list[tuple[str, str]]:
    """The table of all banks, or of those whose name holds `chosen`."""
    table, changed = [], Counter()
    for number, bank in enumerate(banks()):
        if chosen not in bank.name:
            continue
        warm, cold = compare(bank, folder / str(number))
        changed += warm.changed
        told = []
        for kind, names in differences(warm, cold).items():
            told.append(f"{len(names)} of {len(warm.kinds[kind])} {kind}")
            told += [f"({', '.join(names[:5])})"] if names else []
        table.append((f"{bank.name}: differ", ", ".join(told)))
    listed = [f"{rule}: {changed[rule]} in the warm runs" for rule in NORMALISED]
    table.append(("normalised before comparing", "; ".join(listed)))
    table.append(("why a sample", WHY_A_SAMPLE))
    return table
