"""Instructor and student by clicks alone: from Generate to the feedback page in the student's folder.

Every click is asserted on disk or in the gradebook.
"""

import json
import shutil
from pathlib import Path

import lab_server
import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.utils import get_username

from autograder import classroom, stamp
from autograder.course import Course

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
LESSON = "w07-h2-attention"
THIRD = "3-parity-and-evidence"
STUDENT = get_username()  # the exchange knows students by their account
QUESTION = "heatmap-supports"
COMMENT = "Exactly: it routes. <b>Why</b> needs an intervention."
HOSTILE = "<img src=x onerror='window.pwned = 1'><script>window.pwned = 1</script>"


class Desk:
    """A course with its exchange, and a student with a folder, each with a Jupyter server."""

    def __init__(self, root: Path):
        self.course = Course(root / "course")
        self.exchange = root / "exchange"
        self.instructor_home = root / "instructor"
        self.student_home = root / "student"
        self.work = self.student_home / "work"
        for folder in (self.course.root, self.exchange, self.instructor_home, self.work):
            folder.mkdir(parents=True)
        self.exchange.chmod(0o777)
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "autograder", self.course.root / "autograder", ignore=ignore)
        shutil.copy(ROOT / "attention_lab.py", self.course.root)
        shutil.copytree(ROOT / "source" / LESSON, self.course.source / LESSON)
        exchange = f"\nc.Exchange.root = {str(self.exchange)!r}\n"
        config = (ROOT / "nbgrader_config.py").read_text(encoding="utf-8") + exchange
        (self.course.root / "nbgrader_config.py").write_text(config, encoding="utf-8")
        own = f"c = get_config()\nc.CourseDirectory.course_id = 'attention'{exchange}"
        (self.student_home / ".jupyter").mkdir()
        (self.student_home / ".jupyter" / "nbgrader_config.py").write_text(own)

    def grade(self, grade_id: str, notebook: str = THIRD):
        """What the gradebook holds: automatic score, manual score, whether a person is asked for."""
        with Gradebook(self.course.gradebook, "attention") as book:
            grade = book.find_grade(grade_id, notebook, LESSON, STUDENT)
            return grade.auto_score, grade.manual_score, grade.needs_manual_grade

    def enrol(self) -> None:
        """The account gets a name, as a roster gives it."""
        with Gradebook(self.course.gradebook, "attention") as book:
            book.update_or_create_student(STUDENT, first_name="Demo", last_name="Ada")

    def comment(self) -> str | None:
        with Gradebook(self.course.gradebook, "attention") as book:
            return book.find_comment(QUESTION, THIRD, LESSON, STUDENT).manual_comment


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    return Desk(tmp_path_factory.mktemp("formgrader"))


class Formgrader:
    """The instructor's clicks."""

    def __init__(self, page, address: str):
        self.page, self.address = page, address
        page.set_default_timeout(120_000)

    def show(self, path: str) -> None:
        self.page.goto(f"{self.address}/formgrader/{path}")
        self.page.wait_for_load_state("networkidle")

    def press(self, column: str) -> str:
        """Press a button of the first row and read the dialog that answers."""
        row = self.page.locator(
            "tbody tr", has_text=LESSON if "assign" in self.page.url else STUDENT
        )
        row.locator(f"td.{column} a").first.click()
        dialog = self.page.locator(".modal.in, .modal.show").last
        dialog.wait_for()
        text = dialog.inner_text()
        dialog.get_by_role("button", name="OK").click()
        dialog.wait_for(state="hidden")
        return text


def test_from_generate_to_feedback_by_clicks_alone(desk, chromium, tmp_path):
    with (
        lab_server.server(desk.course.root, desk.instructor_home) as instructor,
        lab_server.server(desk.work, desk.student_home) as student,
    ):
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        form = Formgrader(page, instructor)

        form.show("manage_assignments")
        page.get_by_text(LESSON).first.wait_for()
        assert "has not been checked" in form.press("assign")
        assert not desk.course.release.exists()
        # Whether the grader is right is tested elsewhere; here buttons are pressed.
        stamp.write(desk.course, LESSON)
        assert "Success" in form.press("assign")
        assert len(list((desk.course.release / LESSON).glob("*.ipynb"))) == 3
        assert "Success" in form.press("release")
        assert (desk.exchange / "attention" / "outbound" / LESSON / f"{THIRD}.ipynb").exists()
        picture(page, "instructor-assignments", tmp_path)

        hand_in(desk, chromium, student, tmp_path)

        form.show("manage_assignments")
        page.get_by_text(LESSON).first.wait_for()
        assert "Success" in form.press("collect")
        assert (desk.course.submitted / STUDENT / LESSON / f"{THIRD}.ipynb").exists()

        desk.enrol()
        form.show(f"manage_submissions/{LESSON}")
        page.get_by_text("needs autograding").first.wait_for()
        assert "Success" in form.press("autograde")
        page.get_by_text("needs manual grading").first.wait_for()
        assert desk.grade("sdpa-parity") == (3.0, None, False)
        assert desk.grade(QUESTION)[1:] == (None, True)
        results = json.loads((desk.course.autograded / f"{LESSON}.results.json").read_text())
        assert results["students"][STUDENT]["status"] in ("graded", "repaired")
        assert page.get_by_text("Ada, Demo").count() == 1
        picture(page, "instructor-submissions", tmp_path)

        mark_by_hand(desk, form, tmp_path)

        form.show(f"manage_submissions/{LESSON}")
        page.get_by_text("graded").first.wait_for()
        assert "Success" in form.press("autograde")  # again: a person's mark survives
        assert desk.grade(QUESTION)[1] == 1.0
        assert desk.comment() == COMMENT

        assert "Success" in form.press("generate-feedback")
        written = desk.course.feedback / STUDENT / LESSON / f"{THIRD}.html"
        html = written.read_text(encoding="utf-8")
        assert "default-src &#39;none&#39;" in html or "default-src 'none'" in html
        assert "Exactly: it routes. &lt;b&gt;Why&lt;/b&gt;" in html
        assert "Success" in form.press("release-feedback")
        assert list((desk.exchange / "attention" / "feedback").glob("*.html"))

        fetch_feedback(desk, chromium, student)
        page.close()


def hand_in(desk, chromium, address: str, folder: Path) -> None:
    """The student fetches, works (an invented student's answers) and submits in the Assignment list."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    open_assignment_list(page, address)
    page.get_by_role("button", name="Fetch", exact=True).first.click()
    page.get_by_role("button", name="Submit", exact=True).first.wait_for()
    fetched = desk.work / LESSON
    assert len(list(fetched.glob("*.ipynb"))) == 3
    for name, notebook in classroom.diligent(desk.course, LESSON).items():
        if name == THIRD:
            notebook.cells.append(nbformat.v4.new_markdown_cell(HOSTILE))
            code = f"from IPython.display import HTML\nHTML({HOSTILE!r})"
            notebook.cells.append(nbformat.v4.new_code_cell(code))
        nbformat.write(notebook, fetched / f"{name}.ipynb")
    page.get_by_role("button", name="Submit", exact=True).first.click()
    page.wait_for_timeout(1_000)
    for button in page.locator(".jp-Dialog button.jp-mod-accept").all():
        button.click()
    inbound = desk.exchange / "attention" / "inbound"
    wait_for(page, lambda: list(inbound.glob(f"{STUDENT}+{LESSON}+*/{THIRD}.ipynb")))
    page.wait_for_timeout(1_000)
    picture(page, "student-assignment-list", folder)
    page.close()


def wait_for(page, found) -> None:
    """Wait until `found()` is true, while the page goes on."""
    for _ in range(600):
        if found():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it did not come in a minute")


def mark_by_hand(desk, form: Formgrader, folder: Path) -> None:
    """The instructor reads the answer, gives a point and a comment; nothing of the student's runs here."""
    page = form.page
    form.show(f"gradebook/{LESSON}/{THIRD}")
    page.get_by_text("Submission #1").first.click()
    page.locator(f"input.score#{QUESTION}").wait_for()
    page.wait_for_timeout(1_000)
    assert not page.evaluate("'pwned' in window")
    page.locator(f"input.score#{QUESTION}").fill("1")
    page.locator(f"input.score#{QUESTION}").press("Tab")
    page.locator(f"textarea#{QUESTION}-comment").fill(COMMENT)
    page.locator(f"textarea#{QUESTION}-comment").press("Tab")
    wait_for(page, lambda: desk.grade(QUESTION)[1] is not None and desk.comment())
    assert desk.grade(QUESTION)[1:] == (1.0, False)
    assert desk.comment() == COMMENT
    page.locator(f"input.score#{QUESTION}").scroll_into_view_if_needed()
    picture(page, "instructor-manual-mark", folder)


def fetch_feedback(desk, chromium, address: str) -> None:
    """The student gets the page beside the notebooks."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    open_assignment_list(page, address)
    page.get_by_role("button", name="Fetch Feedback").first.click()
    wait_for(page, lambda: len(list((desk.work / LESSON / "feedback").rglob("*.html"))) == 3)
    page.close()


def open_assignment_list(page, address: str) -> None:
    page.set_default_timeout(120_000)
    page.goto(f"{address}/lab?reset")
    page.locator(".lm-MenuBar-item", has_text="Nbgrader").first.click()
    page.locator(".lm-Menu-item", has_text="Assignment List").first.click()
    page.get_by_text(LESSON).first.wait_for()


def picture(page, name: str, folder: Path) -> None:
    from test_pages_in_chromium import keep

    page.locator(".modal-backdrop").first.wait_for(state="detached")
    path = folder / f"{name}.png"
    page.screenshot(path=path)
    keep(path)
