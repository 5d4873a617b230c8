"""Are the lessons readable without Jupyter, and does a student's repository hold no answers?"""

import shutil
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, writes

from autograder import publish, site
from autograder.course import Course, CourseError
from autograder.tasks.model import AssignmentTasks, Checkpoint, FunctionTask, NotebookTasks

ROOT = Path(__file__).resolve().parents[2]
NAME = "w07-h2-practice"


def softmax_reference(scores):
    """Rows that sum to one."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    exponentials = __import__("numpy").exp(shifted)
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


ANSWER = """def softmax(scores):
    ### BEGIN SOLUTION
    moved = scores - np.max(scores, axis=-1, keepdims=True)
    return np.exp(moved) / np.exp(moved).sum(-1, keepdims=True)
    ### END SOLUTION"""
STUB = "def softmax(scores):\n    raise NotImplementedError"


def lesson(answer: str, *more):
    def about(grade_id, **flags):
        return {"nbgrader": {"grade_id": grade_id, "schema_version": 3, **flags}}

    return new_notebook(
        cells=[
            new_markdown_cell(
                "# Softmax\n\n[Open in Colab](https://colab.research.google.com/x)\n\n"
                "Go on with [the next](2-next.ipynb), read [a paper](https://arxiv.org/abs/1706.03762), "
                "not [this](../secret.txt). $\\sqrt{d_k}$\n\n### Aims\n\n- rows"
            ),
            new_code_cell("SETUP = 'helper'", metadata=about("setup", grade=False)),
            new_code_cell("print('seen in the run')"),
            new_code_cell(answer, metadata=about("softmax", grade=False, solution=True)),
            new_code_cell(
                "# Rows sum to one.\nprint('checked')", metadata=about("softmax-rows", grade=True)
            ),
            *more,
        ]
    )


def tasks(name):
    part = FunctionTask(
        name="softmax",
        signature="softmax(scores)",
        docstring="",
        checkpoints=(Checkpoint("softmax-rows", "Rows sum to one.", 1),),
        reference=softmax_reference,
        public=list,
        probes=list,
    )
    return AssignmentTasks(name, "Practice", (NotebookTasks("1-softmax", (part,)),))


@pytest.fixture
def course(tmp_path, monkeypatch):
    monkeypatch.setattr(site, "find_tasks", tasks)
    monkeypatch.setattr(publish, "find_tasks", tasks)
    made = Course(tmp_path / "course")
    for folder, answer in ((made.source, ANSWER), (made.release, STUB)):
        (folder / NAME).mkdir(parents=True)
        (folder / NAME / "1-softmax.ipynb").write_text(writes(lesson(answer)))
        (folder / NAME / "2-next.ipynb").write_text(writes(new_notebook(cells=[])))
    shutil.copy(ROOT / "nbgrader_config.py", made.root)
    (made.root / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "students.md", made.root / "docs")
    return made


def page(folder, name=f"{NAME}/1-softmax.html"):
    return BeautifulSoup((folder / name).read_text(), "html.parser")


def test_the_site_has_an_index_and_a_page_for_each_notebook(course, tmp_path):
    written = site.write_site(course, tmp_path / "site", run=False)
    assert [p.relative_to(tmp_path / "site").as_posix() for p in written] == [
        "index.html",
        f"{NAME}/1-softmax.html",
        f"{NAME}/2-next.html",
    ]
    links = [a["href"] for a in page(tmp_path / "site", "index.html").select("main a")]
    assert f"{NAME}/1-softmax.html" in links
    assert "https://colab.research.google.com/x" in links


def test_every_link_of_the_site_leads_somewhere(course, tmp_path):
    for written in site.write_site(course, tmp_path / "site", run=False):
        for link in BeautifulSoup(written.read_text(), "html.parser").find_all("a"):
            target = link["href"]
            if not target.startswith(("https://", "#")):
                assert (written.parent / target).exists(), target
            if target.startswith("#"):
                assert f'id="{target[1:]}"' in written.read_text()


def test_a_lesson_has_its_title_once_math_and_links_and_no_setup(course, tmp_path):
    site.write_site(course, tmp_path / "site", run=False)
    lesson_page = page(tmp_path / "site")
    assert [h.get_text() for h in lesson_page.find_all(["h1", "h2"])] == ["Softmax", "Aims"]
    assert lesson_page.find("msqrt")
    assert "SETUP" not in lesson_page.get_text()
    hrefs = [a["href"] for a in lesson_page.select("main a")]
    assert hrefs == ["2-next.html", "https://arxiv.org/abs/1706.03762"]


def test_the_site_runs_the_lessons_and_hides_what_checks_print(course, tmp_path):
    site.write_site(course, tmp_path / "site", run=True)
    outputs = [o.get_text() for o in page(tmp_path / "site").select("pre.out")]
    assert outputs == ["seen in the run"]


def test_a_site_without_a_release_says_what_to_run(tmp_path):
    with pytest.raises(CourseError, match="make release"):
        site.write_site(Course(tmp_path), tmp_path / "site", run=False)


def test_published_is_only_what_students_need(course, tmp_path):
    target = tmp_path / "students"
    publish.publish(course, target, run=False)
    assert sorted(p.name for p in target.iterdir()) == [
        ".gitignore",
        "README.md",
        "release",
        "site",
        "students.md",
    ]
    readme = (target / "README.md").read_text()
    assert "[Open in Colab](https://colab.research.google.com/x)" in readme
    assert publish.leaks(course, target) == []


def test_publishing_again_replaces_and_keeps_the_git_folder(course, tmp_path):
    target = tmp_path / "students"
    publish.publish(course, target, run=False)
    (target / ".git").mkdir()
    (target / "release" / NAME / "old.ipynb").write_text("{}")
    publish.publish(course, target, run=False)
    assert (target / ".git").exists()
    assert not (target / "release" / NAME / "old.ipynb").exists()


@pytest.mark.parametrize(
    "leak",
    [
        ANSWER,
        "moved = scores - np.max( scores, axis = -1, keepdims=True )",
        "exponentials / exponentials.sum(axis=-1, keepdims=True)\n"
        "return exponentials / exponentials.sum(axis=-1, keepdims=True)",
        "from autograder.tasks import model",
    ],
    ids=["solution", "one line", "reference", "import"],
)
def test_an_answer_in_the_release_stops_publishing_and_nothing_is_written(course, tmp_path, leak):
    path = course.release / NAME / "1-softmax.ipynb"
    path.write_text(writes(lesson(STUB, new_code_cell(leak))))
    with pytest.raises(CourseError, match=r"nothing is published: answers in release/"):
        publish.publish(course, tmp_path / "students", run=False)
    assert not (tmp_path / "students").exists()


def test_an_answer_on_a_page_is_found_through_its_colours(course, tmp_path):
    from autograder.feedback.page import python

    (tmp_path / "page.html").write_text(f"<pre>{python(ANSWER.replace('### ', '# '))}</pre>")
    assert any("page.html" in problem for problem in publish.leaks(course, tmp_path))


def test_what_the_lesson_prints_itself_is_no_answer(course, tmp_path):
    shown = new_markdown_cell(
        "Write `moved = scores - np.max(scores, axis=-1, keepdims=True)` first."
    )
    for folder, answer in ((course.source, ANSWER), (course.release, STUB)):
        (folder / NAME / "1-softmax.ipynb").write_text(writes(lesson(answer, shown)))
    publish.publish(course, tmp_path / "students", run=False)


def test_folders_that_hold_something_else_are_refused(course, tmp_path):
    with pytest.raises(CourseError, match="holds the answers"):
        publish.publish(course, course.root / "students", run=False)
    with pytest.raises(CourseError, match="holds the answers"):
        publish.publish(course, course.root.parent, run=False)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.tex").write_text("")
    with pytest.raises(CourseError, match=r"thesis\.tex"):
        publish.publish(course, tmp_path / "taken", run=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="is a file"):
        publish.publish(course, tmp_path / "file", run=False)


def test_this_course_s_release_holds_no_answers():
    course = Course(ROOT)
    assert publish.leaks(course, course.release) == []
