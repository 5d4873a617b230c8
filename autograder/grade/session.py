"""Grading one student at a time inside nbgrader's own autograde: formgrader's button, `nbgrader autograde`.

The hooks and preprocessors of `autograder.nbgrader_steps` call this; it grades a submission once, hands
out the notebooks, and writes the results after nbgrader has saved the scores. The warm process is kept
for the life of this process.
"""

from __future__ import annotations

import atexit
import shutil
from dataclasses import dataclass
from pathlib import Path

from autograder.course import Course, CourseError
from autograder.execute import Executor
from autograder.grade import gradebook, results, run
from autograder.grade.submission import (
    Graded,
    Plan,
    grade_submission,
    submission_digest,
    write_evidence,
)


@dataclass
class _Current:
    """The submission that nbgrader is at."""

    plan: Plan
    graded: Graded
    digest: str
    staged: list[Path]


_executor: Executor | None = None
problem: str | None = None
"""Why the submission that nbgrader is at can't be graded; what it logs in place of a traceback."""
_current: dict[tuple[str, str, str], _Current] = {}


def executor() -> Executor:
    """This process's executor, started when it is first needed."""
    global _executor
    if _executor is None:
        _executor = Executor(workers=1, sandbox=True)
        _executor.__enter__()
        atexit.register(_executor.__exit__, None, None, None)
    return _executor


def before_autograde(notebooks: list[str], course: Course) -> None:
    """Grade the submission that `notebooks` (paths of submitted files) belong to.

    The list is changed in place: files under other names are staged under the released name. Of a
    submission that can't be graded only what is wrong is left, so that nbgrader stops at it, records no
    part of it, and goes on with the next student.
    """
    global problem
    problem = None
    if not notebooks:
        return
    folder = Path(notebooks[0]).resolve().parent
    current = _grade(course, folder.name, folder.parent.name)
    if not current.graded.gradable:
        problem = f"{current.graded.student}: {current.graded.entry['reason']}"
        notebooks[:] = [n for n in notebooks if Path(n).stem not in current.graded.ingested]
        _keep(course, current)
        return
    wanted = []
    for name, path in current.graded.paths.items():
        target = folder / f"{name}.ipynb"
        if path.resolve() != target.resolve():
            if target.exists():
                shutil.copy(target, target.with_suffix(".ipynb.other"))
            shutil.copy(path, target)
            current.staged.append(target)
        wanted.append(str(Path(notebooks[0]).parent / f"{name}.ipynb"))
    notebooks[:] = wanted


def _grade(course: Course, assignment: str, student: str) -> _Current:
    plan = run.prepare(course, assignment)
    digest = submission_digest(plan, course.submitted / student / assignment)
    current = _Current(plan, grade_submission(plan, student, executor()), digest, [])
    _current[str(course.root), assignment, student] = current
    return current


def _find(course: Course, assignment: str, student: str) -> _Current:
    key = str(course.root), assignment, student
    return _current.get(key) or _grade(course, assignment, student)


def ingested(course: Course, assignment: str, student: str, notebook: str):
    """The repaired form of one submitted notebook.

    Raises:
        CourseError: if it can't be graded; the line says why.
    """
    return _one(course, assignment, student, notebook, "ingested")


def graded(course: Course, assignment: str, student: str, notebook: str):
    """The executed form of one submitted notebook, verdicts in its grade cells."""
    return _one(course, assignment, student, notebook, "notebooks")


def _one(course: Course, assignment: str, student: str, notebook: str, kind: str):
    found = _find(course, assignment, student).graded
    forms = getattr(found, kind)
    if notebook not in forms:
        raise CourseError(f"{student}: {found.entry['reason']}")
    return forms[notebook]


def after_autograde(notebooks: list[str], course: Course) -> None:
    """Write the results of the submission that nbgrader has just saved."""
    if not notebooks:
        return
    folder = Path(notebooks[0]).resolve().parent
    current = _current.pop((str(course.root), folder.name, folder.parent.name), None)
    if current is None:
        return
    for path in current.staged:
        path.unlink(missing_ok=True)
        other = path.with_suffix(".ipynb.other")
        if other.exists():
            other.replace(path)
    write_evidence(current.plan, current.graded)
    _keep(course, current)


def _keep(course: Course, current: _Current) -> None:
    name, student = current.plan.name, current.graded.student
    results.keep(course, name, student, current.digest, current.graded.entry)
    with gradebook.opened(course) as open_book:
        run.assemble(current.plan, open_book)
