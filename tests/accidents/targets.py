"""The assignments and cells to which the accidents happen, and the class that has them."""

from __future__ import annotations

from dataclasses import dataclass

from autograder import classroom
from autograder.course import Course

from .bank import ACCIDENTS, Accident, Files, Target, files_of

WALKTHROUGH = "w07-h2-attention"
PRACTICE = "w07-h2-practice"

WALKTHROUGH_ROLES = {
    "1-scores-and-context": {
        "answer": "your-change-3",
        "second": "softmax",
        "check": "scores-scaled",
        "before": "memory-paired",
        "text": "idea-3",
    },
    "2-queries-and-masks": {
        "answer": "your-change-7",
        "second": "run-6",
        "check": "causal-future-zero",
        "before": "temperature-positive",
        "text": "idea-7",
    },
    "3-parity-and-evidence": {
        "answer": "your-change-10",
        "second": "run-9",
        "check": "values-leave-weights",
        "before": "sdpa-parity",
        "text": "idea-10",
    },
}


@dataclass(frozen=True)
class Case:
    """One accident, the student who has it and the notebook that it happens to."""

    accident: Accident
    student: str
    notebook: str


def targets(course: Course, assignment: str) -> dict[str, Target]:
    """Roles of cells in each of the assignment's notebooks."""
    solved = classroom.diligent(course, assignment)
    released = classroom.untouched(course, assignment)
    found = {}
    for name in sorted(released):
        roles = WALKTHROUGH_ROLES.get(name) or _roles(released[name])
        others = tuple(other for other in sorted(released) if other != name)
        found[name] = Target(
            notebook=name, others=others, solved=solved, released=released, **roles
        )
    return found


def _roles(nb) -> dict[str, str]:
    """The second answer cell, so that a locked cell of the first one stands before it."""
    part = {c.id: c.metadata.get("nbgrader", {}) for c in nb.cells}
    ids = [c.id for c in nb.cells]
    answers = [
        c.id
        for c in nb.cells
        if c.cell_type == "code" and part[c.id].get("solution") and "def " in c.source
    ]
    checks = [i for i in ids if part[i].get("grade") and part[i].get("locked")]
    answer = answers[1]
    at = ids.index(answer)
    return {
        "answer": answer,
        "second": answers[0],
        "check": next(i for i in checks if ids.index(i) > at),
        "before": [i for i in checks if ids.index(i) < at][-1],
        "text": [c.id for c in nb.cells[:at] if c.cell_type == "markdown"][-1],
    }


def cases(found: dict[str, Target]) -> list[Case]:
    """Each student has as many accidents as there are notebooks, one in each."""
    names = list(found)
    return [
        Case(one, f"student-{number // len(names):02}", names[number % len(names)])
        for number, one in enumerate(ACCIDENTS)
    ]


def class_files(found: dict[str, Target]) -> dict[str, Files]:
    """What each student of the class hands in."""
    pristine = files_of(next(iter(found.values())).solved)
    students: dict[str, dict[str, Files]] = {}
    for case in cases(found):
        damaged = case.accident.damage(found[case.notebook])
        students.setdefault(case.student, {})[case.notebook] = {
            name: data
            for name, data in damaged.items()
            if name == f"{case.notebook}.ipynb" or name not in pristine
        }
    result: dict[str, Files] = {}
    for student, parts in students.items():
        files = {n: d for n, d in pristine.items() if n.removesuffix(".ipynb") not in parts}
        for part in parts.values():
            files |= part
        result[student] = files
    return result
