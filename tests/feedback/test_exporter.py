"""Do nbgrader's own command and formgrader's button write the same pages?"""

import subprocess
import sys
from pathlib import Path

import graded
import pytest
from nbgrader.api import Gradebook

from autograder.course import CourseError
from autograder.feedback.command import write_all
from autograder.feedback.exporter import FeedbackExporter

ROOT = Path(__file__).resolve().parents[2]
CONFIG = """
c = get_config()
c.CourseDirectory.root = {root!r}
c.GenerateFeedback.exporter_class = "autograder.feedback.exporter.FeedbackExporter"
"""


@pytest.fixture
def course(tmp_path):
    """A course with one graded student in results, notebooks and gradebook."""
    notebook = graded.lesson()
    made = graded.course(
        tmp_path,
        {graded.STUDENT: graded.entry("repaired", notebook, repairs=["A deleted cell is back."])},
        {graded.STUDENT: {graded.NOTEBOOK: notebook}},
    )
    (tmp_path / "nbgrader_config.py").write_text(CONFIG.format(root=str(tmp_path)))
    where = (graded.NOTEBOOK, graded.ASSIGNMENT)
    with Gradebook(made.gradebook) as book:
        book.add_assignment(graded.ASSIGNMENT)
        book.add_notebook(*where)
        book.add_student(graded.STUDENT)
        for cell in notebook.cells:
            about = cell.metadata.get("nbgrader", {})
            kind = "code" if cell.cell_type == "code" else "markdown"
            if about.get("grade"):
                name, points = about["grade_id"], about["points"]
                book.add_grade_cell(name, *where, max_score=points, cell_type=kind)
            if about.get("solution"):
                book.add_solution_cell(about["grade_id"], *where)
        book.add_submission(graded.ASSIGNMENT, graded.STUDENT)
        for cell in notebook.cells:
            about = cell.metadata.get("nbgrader", {})
            if about.get("grade") and not about.get("solution"):
                grade = book.find_grade(about["grade_id"], *where, graded.STUDENT)
                grade.auto_score = cell.metadata.autograder["score"]
        book.find_grade("heatmap-words", *where, graded.STUDENT).manual_score = 1
        comment = book.find_comment("heatmap-words", *where, graded.STUDENT)
        comment.manual_comment = "Exactly what it supports."
        book.db.commit()
    return made


def nbgrader(course, *words):
    return subprocess.run(
        [sys.executable, "-m", "nbgrader", *words],
        cwd=course.root,
        env={"PYTHONPATH": str(ROOT), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_generate_feedback_writes_the_command_s_page(course):
    (page,) = write_all(course, graded.ASSIGNMENT)
    ours = page.read_text()
    assert "Exactly what it supports." in ours
    assert "2</b> <span>of 5 practice marks" in ours
    page.unlink()
    page.parent.rmdir()
    done = nbgrader(course, "generate_feedback", graded.ASSIGNMENT)
    assert done.returncode == 0, done.stderr
    assert page.read_text() == ours


def test_a_config_without_the_exporter_writes_another_page(course):
    """The comparison above would notice: nbgrader's own exporter lets the class see hidden outputs."""
    page = course.feedback / graded.STUDENT / graded.ASSIGNMENT / f"{graded.NOTEBOOK}.html"
    config = f"c = get_config()\nc.CourseDirectory.root = {str(course.root)!r}\n"
    (course.root / "nbgrader_config.py").write_text(config)
    done = nbgrader(course, "generate_feedback", graded.ASSIGNMENT)
    assert done.returncode == 0, done.stderr
    assert "SECRET_TABLE" in page.read_text()


def test_the_exporter_outside_nbgrader_says_so():
    with pytest.raises(CourseError, match="nbgrader generate_feedback"):
        FeedbackExporter().from_notebook_node(graded.lesson(), {})
