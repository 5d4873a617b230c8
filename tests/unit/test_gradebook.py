"""Are scores written in one transaction, and does nothing of a person's get lost?"""

from datetime import datetime

import nbformat
import pytest
from nbgrader.api import MissingEntry
from sqlalchemy import text
from sqlalchemy.exc import StatementError

from autograder.course import Course, CourseError
from autograder.grade import gradebook
from autograder.grade.gradebook import NotebookScores
from autograder.lms.late import Policy


def released(points: float = 2, extra: bool = False):
    meta = {"schema_version": 3, "locked": False, "cell_type": "code"}
    answer = meta | {"grade": False, "solution": True, "grade_id": "softmax"}
    check = meta | {
        "grade": True,
        "solution": False,
        "locked": True,
        "grade_id": "softmax-stable",
        "points": points,
    }
    cells = [
        nbformat.v4.new_code_cell("def softmax(z): ...", metadata={"nbgrader": answer}),
        nbformat.v4.new_code_cell("check()", metadata={"nbgrader": check}),
    ]
    if extra:
        more = check | {"grade_id": "softmax-more"}
        cells.append(nbformat.v4.new_code_cell("check()", metadata={"nbgrader": more}))
    return {"nb": nbformat.v4.new_notebook(cells=cells)}


@pytest.fixture
def course(tmp_path):
    made = Course(tmp_path)
    gradebook.register(made, "a", released())
    return made


def write(course, score, student="demo-ada", unanswered=()):
    scores = {"nb": NotebookScores({"softmax-stable": score}, frozenset(unanswered))}
    with gradebook.opened(course) as book:
        gradebook.record(book, "a", student, scores)


def grade(course, student="demo-ada"):
    with gradebook.opened(course) as book:
        found = book.find_grade("softmax-stable", "nb", "a", student)
        return found.auto_score, found.manual_score, found.needs_manual_grade, found.score


def test_a_score_is_read_back_as_nbgrader_reads_it(course):
    write(course, 1.5)
    assert grade(course) == (1.5, None, False, 1.5)
    with gradebook.opened(course) as book:
        assert book.find_submission("a", "demo-ada").score == 1.5


def test_a_manual_score_survives_regrading_and_asks_for_a_look(course):
    write(course, 0.0)
    with gradebook.opened(course) as book:
        book.find_grade("softmax-stable", "nb", "a", "demo-ada").manual_score = 2.0
        book.db.commit()
    write(course, 1.0)
    assert grade(course) == (1.0, 2.0, True, 2.0)


def test_a_failure_in_the_middle_leaves_nothing_of_the_student(course):
    with pytest.raises(StatementError):
        write(course, "no number", "demo-bob")
    with gradebook.opened(course) as book:
        assert [s.id for s in book.students] == []


def test_late_work_loses_what_the_policy_says_and_no_more(course):
    with gradebook.opened(course) as book:
        book.find_assignment("a").duedate = datetime(2026, 11, 1, 12)
        book.db.commit()
        scores = {"nb": NotebookScores({"softmax-stable": 2.0})}
        late_by_a_day = "2026-11-02 11:00:00 UTC"
        policy = Policy(percent_per_day=10)
        gradebook.record(book, "a", "demo-late", scores, late_by_a_day, policy)
        gradebook.record(book, "a", "demo-free", scores, late_by_a_day)
        gradebook.record(book, "a", "demo-early", scores, "2026-11-01 11:00:00 UTC", policy)
        taken = {s.student.id: s.late_submission_penalty for s in book.assignment_submissions("a")}
    assert taken == {"demo-late": 0.2, "demo-free": 0.0, "demo-early": 0.0}


def test_an_untouched_answer_gets_nbgraders_comment(course):
    write(course, 0.0, unanswered=["softmax"])
    with gradebook.opened(course) as book:
        assert book.find_comment("softmax", "nb", "a", "demo-ada").comment == "No response."
    write(course, 0.0)
    with gradebook.opened(course) as book:
        assert book.find_comment("softmax", "nb", "a", "demo-ada").comment is None


def test_changed_points_are_taken_over_and_changed_cells_are_refused(course):
    write(course, 1.0)
    gradebook.register(course, "a", released(points=4))
    with gradebook.opened(course) as book:
        assert book.find_assignment("a").max_score == 4
    with pytest.raises(CourseError, match="other cells"):
        gradebook.register(course, "a", released(extra=True))


def test_a_gradebook_that_is_no_database_is_one_clear_line(tmp_path):
    (tmp_path / "gradebook.db").write_text("not a database, but long enough to be looked at" * 20)
    with pytest.raises(CourseError, match="can't be used"), gradebook.opened(Course(tmp_path)):
        pass


def test_what_can_no_longer_be_graded_loses_its_automatic_scores_only(course):
    write(course, 1.0)
    write(course, 1.0, "demo-bob")
    with gradebook.opened(course) as book:
        book.find_grade("softmax-stable", "nb", "a", "demo-ada").manual_score = 2.0
        book.db.commit()
        gradebook.forget(book, "a", "demo-ada")
        gradebook.forget(book, "a", "demo-nobody")
        assert book.find_grade("softmax-stable", "nb", "a", "demo-bob").auto_score == 1.0
    assert grade(course) == (None, 2.0, True, 2.0)


def test_an_older_gradebook_gets_the_indexes_without_which_a_class_costs_its_square(course):
    with gradebook.opened(course) as book:
        book.db.execute(text("DROP INDEX attention_grade_notebook"))
        book.db.commit()
        plan = text("EXPLAIN QUERY PLAN SELECT * FROM grade WHERE notebook_id = 'x'")
        assert "SCAN" in str(book.db.execute(plan).all())
    gradebook.register(course, "a", released())
    with gradebook.opened(course) as book:
        assert "attention_grade_notebook" in str(book.db.execute(plan).all())


def test_an_assignment_that_the_gradebook_does_not_have_is_said(course):
    with gradebook.opened(course) as book, pytest.raises(MissingEntry, match="other"):
        gradebook.record(book, "other", "demo-ada", {})
