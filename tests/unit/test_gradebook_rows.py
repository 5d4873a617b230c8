"""Are our rows those that nbgrader's own API and preprocessors write? Each history is played on both sides."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import nbformat
import pytest
from nbgrader.api import Comment, Grade, Gradebook, SubmittedAssignment, SubmittedNotebook
from nbgrader.preprocessors import ComputeChecksums
from sqlalchemy import delete, insert, update
from traitlets.config import Config

from autograder.bench.rows import differences, nbgrader_writes, rows
from autograder.course import Course
from autograder.grade import gradebook
from autograder.grade.gradebook import NotebookScores
from autograder.lms.late import configured

# nbgrader's own way of adding a submission makes SQLAlchemy say this.
pytestmark = pytest.mark.filterwarnings("ignore:Object of type <Submitted.*> not in session")

NAME, STUDENT = "a", "demo-ada"
DUE = datetime(2026, 11, 1, 12)
EARLY, LATE, LATER = "2026-11-01 11:00 UTC", "2026-11-02 11:00 UTC", "2026-11-03 11:00 +02:00"

CONFIG = Config()
CONFIG.AssignLatePenalties.plugin_class = "autograder.lms.late.CoursePenalty"
CONFIG.CoursePenalty.percent_per_day = 10


def cell(kind: str, grade_id: str, source: str, points: float | None = None, **roles):
    meta = {"grade": False, "solution": False, "locked": False, "task": False} | roles
    meta |= {"schema_version": 3, "grade_id": grade_id, "cell_type": kind}
    if points is not None:
        meta["points"] = points
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    return make(source, metadata={"nbgrader": meta})


def released() -> dict[str, nbformat.NotebookNode]:
    """Two notebooks with every kind of cell: answers, checkpoints, a question in words, a task."""
    first = [
        cell("code", "setup", "import numpy", locked=True),
        cell("code", "softmax", "def softmax(z): ...", solution=True),
        cell("code", "softmax-sums", "check()", 2, grade=True, locked=True),
        cell("code", "softmax-stable", "check(1e3)", 1.5, grade=True, locked=True),
        cell("markdown", "why", "Why?", 3, grade=True, solution=True),
    ]
    second = [
        cell("code", "mask", "def mask(n): ...", solution=True),
        cell("code", "mask-causal", "check()", 1, grade=True, locked=True),
        cell("markdown", "project", "Do something.", 4, task=True, locked=True),
    ]
    made = {"one": nbformat.v4.new_notebook(cells=first)}
    made["two"] = nbformat.v4.new_notebook(cells=second)
    return {name: ComputeChecksums().preprocess(nb, {})[0] for name, nb in made.items()}


@dataclass(frozen=True)
class HandIn:
    """What is handed in: scores of checkpoints, ids of changed answers, names of absent notebooks."""

    scores: dict[str, float] = field(default_factory=dict)
    answered: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    when: str | None = None


def executed(work: HandIn) -> dict[str, nbformat.NotebookNode]:
    """The notebooks as they are after grading: answers in them, scores as the checkpoints' results."""
    found = {name: nb for name, nb in released().items() if name not in work.absent}
    for notebook in found.values():
        for one in notebook.cells:
            grade_id = one.metadata.nbgrader.grade_id
            if grade_id in work.answered:
                one.source += " changed"
            if one.cell_type == "code" and one.metadata.nbgrader.grade:
                shown = {"text/plain": repr(work.scores.get(grade_id, 0.0))}
                one.outputs = [nbformat.v4.new_output("execute_result", shown)]
    return found


def scores_of(work: HandIn) -> dict[str, NotebookScores | None]:
    found: dict[str, NotebookScores | None] = dict.fromkeys(work.absent)
    if "one" not in work.absent:
        marks = {name: work.scores.get(name, 0.0) for name in ("softmax-sums", "softmax-stable")}
        marks["why"] = None if "why" in work.answered else 0.0
        untouched = {"softmax", "why"} - set(work.answered)
        found["one"] = NotebookScores(marks, frozenset(untouched))
    if "two" not in work.absent:
        marks = {"mask-causal": work.scores.get("mask-causal", 0.0)}
        found["two"] = NotebookScores(marks, frozenset({"mask"} - set(work.answered)))
    return found


class Side:
    """A gradebook of its own, a copy of one with the assignment in it."""

    def __init__(self, folder, template):
        folder.mkdir()
        shutil.copy(template / "gradebook.db", folder)
        self.course = Course(folder)

    def change(self, action: Callable[[Gradebook], object]) -> None:
        with Gradebook(self.course.gradebook, "attention") as book:
            action(book)
            book.db.commit()

    def rows(self):
        return rows(self.course.gradebook)


class Ours(Side):
    def grade(self, work: HandIn, student: str = STUDENT) -> None:
        with gradebook.opened(self.course) as book:
            policy = configured(CONFIG)
            gradebook.record(book, NAME, student, scores_of(work), work.when, policy)


class Theirs(Side):
    def grade(self, work: HandIn, student: str = STUDENT) -> None:
        url = self.course.gradebook
        nbgrader_writes(url, NAME, student, executed(work), work.when, CONFIG)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    """A course whose gradebook knows the assignment; making one takes nbgrader seconds."""
    folder = tmp_path_factory.mktemp("template")
    gradebook.register(Course(folder), NAME, released())
    with gradebook.opened(Course(folder)) as book:
        book.find_assignment(NAME).duedate = DUE
        book.db.commit()
    return folder


@pytest.fixture
def sides(tmp_path, template):
    return Ours(tmp_path / "ours", template), Theirs(tmp_path / "theirs", template)


def marked(score: float, name: str = "why", notebook: str = "one"):
    """A person gives a score, as formgrader does."""

    def action(book):
        grade = book.find_grade(name, notebook, NAME, STUDENT)
        grade.manual_score, grade.needs_manual_grade = score, False

    return action


def commented(book):
    book.find_comment("softmax", "one", NAME, STUDENT).manual_comment = "Nearly."


def extended(book):
    book.find_submission(NAME, STUDENT).extension = timedelta(days=1)


def extra(book):
    book.find_grade("mask-causal", "two", NAME, STUDENT).extra_credit = 0.5


def flagged(book):
    book.find_submission_notebook("two", NAME, STUDENT).flagged = True


def on_the_roster(book):
    book.add_student(STUDENT, first_name="Demo", last_name="Ada", lms_user_id="7")


PERFECT = {"softmax-sums": 2.0, "softmax-stable": 1.5, "mask-causal": 1.0}
ALL = HandIn(PERFECT, ("softmax", "why", "mask"))
SOME = HandIn({"softmax-sums": 0.7}, ("softmax",))
HISTORIES = {
    "first grading": [ALL],
    "first grading of one who is on the roster": [on_the_roster, ALL],
    "nothing changed": [HandIn()],
    "graded again, better": [SOME, ALL],
    "graded again, worse": [ALL, SOME],
    "graded again, the same": [ALL, ALL],
    "a notebook is missing": [HandIn(PERFECT, ("mask",), ("one",))],
    "a missing notebook comes": [HandIn(PERFECT, ("mask",), ("one",)), ALL],
    "a notebook goes": [SOME, HandIn(PERFECT, ("mask",), ("one",))],
    "a manual score stays": [ALL, marked(2.5), ALL],
    "a manual score over an automatic one": [ALL, marked(0.5, "mask-causal", "two"), SOME],
    "a task's manual score stays": [ALL, marked(3.5, "project", "two"), ALL],
    "a manual score, then the notebook goes": [
        ALL, marked(2.5), HandIn(PERFECT, ("mask",), ("one",))
    ],
    "a comment stays": [ALL, commented, SOME],
    "extra credit and a flag stay": [SOME, extra, flagged, ALL],
    "in time": [HandIn(PERFECT, when=EARLY)],
    "late": [HandIn(PERFECT, when=LATE)],
    "late with nothing right": [HandIn(when=LATE)],
    "late, then later": [HandIn(PERFECT, when=LATE), HandIn(PERFECT, when=LATER)],
    "late, then in time": [HandIn(PERFECT, when=LATE), HandIn(PERFECT, when=EARLY)],
    "late, then an extension": [HandIn(PERFECT, when=LATE), extended, HandIn(PERFECT, when=LATE)],
    "late, then graded without a time": [HandIn(PERFECT, when=LATE), SOME],
    "late with a manual score and extra credit": [
        HandIn(PERFECT, ("why",), when=LATE), marked(2.5), extra, HandIn(PERFECT, when=LATER)
    ],
    "late with a notebook missing": [HandIn(PERFECT, (), ("one",), LATE)],
}  # fmt: skip


def play(side, history) -> None:
    for step in history:
        if isinstance(step, HandIn):
            side.grade(step)
        else:
            side.change(step)


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES.keys())
def test_the_rows_are_those_of_nbgrader(sides, history):
    ours, theirs = sides
    for side in sides:
        play(side, history)
    assert differences(ours.rows(), theirs.rows()) == []


def test_other_students_in_the_same_gradebook_are_left_alone(sides):
    ours, theirs = sides
    for side in sides:
        side.grade(SOME, "demo-bob")
        side.grade(ALL)
        side.grade(SOME)
    assert differences(ours.rows(), theirs.rows()) == []


def test_a_penalty_goes_with_its_notebook_where_nbgrader_would_leave_it(sides):
    ours, theirs = sides
    for side in sides:
        play(side, [HandIn(PERFECT, when=LATE), HandIn(PERFECT, (), ("one",), LATE)])
    (one, other) = differences(ours.rows(), theirs.rows())
    assert "'late_submission_penalty': None" in one
    assert "'late_submission_penalty': 0.35" in other


CHANGES = {
    "a score": update(Grade).where(Grade.auto_score == 1.5).values(auto_score=1.25),
    "a look that is due": update(Grade).values(needs_manual_grade=True),
    "a comment": update(Comment).values(auto_comment="No answer."),
    "a time": update(SubmittedAssignment).values(timestamp=DUE),
    "a penalty": update(SubmittedNotebook).values(late_submission_penalty=0.1),
    "a flag": update(SubmittedNotebook).values(flagged=None),
    "a missing row": delete(Grade).where(Grade.auto_score == 1.5),
    "a row too many": insert(Grade).values(cell_id=None, notebook_id=None),
    "a row of another notebook": update(Comment).values(notebook_id="f" * 32),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_changed_row_is_found(sides, change):
    ours, theirs = sides
    for side in sides:
        side.grade(ALL)
    ours.change(lambda book: book.db.execute(change.execution_options(synchronize_session=False)))
    assert differences(ours.rows(), theirs.rows())
