"""Does each student get a page that says where they stand, why, and what to do?"""

from itertools import pairwise

import graded
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from autograder.course import Course, CourseError
from autograder.feedback.command import write_all
from autograder.feedback.gather import Mark, Marks, standing
from autograder.feedback.page import diagnosis
from autograder.feedback.render import LARGEST, feedback_page


def page_of(notebook, entry=None, marks=None) -> BeautifulSoup:
    return BeautifulSoup(html_of(notebook, entry, marks), "html.parser")


def html_of(notebook, entry=None, marks=None) -> str:
    entry = entry if entry is not None else graded.entry(notebook=notebook)
    marks = {graded.NOTEBOOK: marks} if marks else {}
    summary = standing(graded.ASSIGNMENT, graded.STUDENT, graded.NOTEBOOK, entry, notebook, marks)
    return feedback_page(summary, notebook)


def words(element) -> str:
    return " ".join(element.get_text(" ").split())


def test_the_summary_comes_first_with_score_checkpoints_and_next_step():
    page = page_of(graded.lesson())
    assert [h.get_text() for h in page.find_all("h2")] == ["Summary", "Your notebook"]
    assert words(page.select_one(".score")) == "1 of 5 practice marks, provisional"
    assert "1 of 4 checkpoints is correct, 1 waits for a person." in words(page.select_one(".lead"))
    assert "Start with “Every row sums to one”" in words(page.select_one(".next"))
    assert [words(b) for b in page.select(".checks .badge")] == [
        "Not right yet",
        "Correct",
        "Not attempted",
        "A person still marks this",
    ]


def test_each_checkpoint_shows_its_diagnosis_beside_the_work():
    page = page_of(graded.lesson())
    box = page.find(id="check-softmax-rows")
    assert "Each column sums to 1" in words(box)
    assert "0 / 2" in words(box)
    assert "def softmax" in box.find_previous("pre").get_text()


def test_a_diagnosis_has_its_parts_on_lines_of_their_own_and_stays_text():
    text = "Core cell: <b>3</b> rows. Likely cause: axis 0. Try: `axis=-1`. Retry: no label."
    page = BeautifulSoup(str(diagnosis(text)), "html.parser")
    assert [words(p) for p in page.find_all("p")] == [
        "Core cell: <b>3</b> rows.",
        "Likely cause: axis 0.",
        "Try: axis=-1 . Retry: no label.",
    ]
    assert not page.find_all("b")


def test_links_of_the_summary_lead_to_the_boxes():
    page = page_of(graded.lesson())
    targets = [a["href"] for a in page.select(".checks a")]
    assert targets
    assert all(page.find(id=target.removeprefix("#")) for target in targets)


def test_setup_and_grader_outputs_are_not_on_the_page():
    html = html_of(graded.lesson())
    assert "SECRET_TABLE" not in html
    page = BeautifulSoup(html, "html.parser")
    assert not page.find(id="check-mask-future").select("pre.out")


def test_all_correct_says_that_there_is_nothing_to_do():
    notebook = graded.lesson()
    notebook.cells = notebook.cells[5:7]
    page = page_of(notebook)
    assert "nothing to change" in words(page.select_one(".next"))
    assert "All checkpoints are correct." in words(page.select_one(".lead"))


def test_a_person_s_mark_and_comment_replace_the_automatic_ones():
    marks = Marks(
        grades={"heatmap-words": Mark(None, 1, None), "softmax-rows": Mark(0, 1.5, None)},
        comments={"heatmap-words": "Well put. <b>Now</b> say *where*.", "softmax": "Close."},
        penalty=0.5,
    )
    page = page_of(graded.lesson(), marks=marks)
    assert words(page.select_one(".score")) == "3 of 5 practice marks"
    assert "Well put. <b>Now</b> say" in words(page.find(id="check-heatmap-words"))
    assert "the automatic check gave 0" in words(page.find(id="check-softmax-rows"))
    assert "late penalty of 0.5" in words(page.select_one(".summary"))
    assert "Close." in words(page.select_one(".remark"))


def test_a_question_in_words_left_blank_waits_for_nobody():
    notebook = graded.lesson()
    notebook.cells[-1].metadata.autograder["score"] = 0
    page = page_of(notebook)
    assert words(page.select_one(".score")) == "1 of 5 practice marks"
    assert "Not attempted" in words(page.find(id="check-heatmap-words"))


def test_many_blank_checkpoints_are_counted_and_few_are_named():
    blank = graded.judged("not-attempted", 0, 1, "Not written yet.")
    cells = [graded.checkpoint(f"f{i}-x", f"# Property {i}.", blank) for i in range(4)]
    assert "5 checkpoints are still to write" in words(
        page_of(graded.lesson(*cells)).select_one(".next")
    )
    few = words(page_of(graded.lesson(*cells[:1])).select_one(".next"))
    assert "“The context is the weighted sum” and “Property 0”" in few


def test_extra_credit_counts_and_is_named():
    marks = Marks(grades={"mask-future": Mark(1, None, 0.5)})
    page = page_of(graded.lesson(), marks=marks)
    assert "Extra credit of 0.5" in words(page.find(id="check-mask-future"))
    assert words(page.select_one(".score")).startswith("1.5 of 5")


def test_repairs_and_notes_are_said():
    notebook = graded.lesson()
    entry = graded.entry("repaired", notebook, repairs=["The deleted cell `mask-future` is back."])
    page = page_of(
        notebook, {**entry, "notes": ["2-other: not this one", "`softmax` was rebound."]}
    )
    summary = words(page.select_one(".summary"))
    assert "The deleted cell mask-future is back." in summary
    assert "Repairs cost you nothing." in summary
    assert "softmax was rebound." in summary


@pytest.mark.parametrize(
    ("status", "said", "advice"),
    [
        ("missing", "Nothing was handed in", "Hand in the notebook file itself"),
        ("ungradable", "Could not be graded", "Restart and run all"),
    ],
)
def test_without_a_graded_notebook_the_page_says_why_and_what_to_do(status, said, advice):
    entry = graded.entry(status, reason="The file is a PDF <script>.")
    page = page_of(None, entry)
    summary = words(page.select_one(".summary"))
    assert said in summary
    assert advice in summary
    assert "The file is a PDF <script>." in summary
    assert not page.find_all("script")


def test_an_incomplete_hand_in_names_what_is_missing_and_links_the_pages():
    notebook = graded.lesson()
    entry = graded.entry("incomplete", notebook)
    entry["notebooks"] = {
        graded.NOTEBOOK: {"status": "graded", "problem": ""},
        "2-masks": {"status": "missing", "problem": ""},
    }
    page = page_of(notebook, entry)
    assert "Hand in 2-masks.ipynb too" in words(page.select_one(".next"))
    assert [a["href"] for a in page.select(".parts a")] == ["2-masks.html"]


def test_an_ungradable_notebook_is_named_on_the_pages_of_the_others():
    notebook = graded.lesson()
    entry = graded.entry("ungradable", notebook)
    entry["notebooks"] = {
        graded.NOTEBOOK: {"status": "graded", "problem": None},
        "2-masks": {"status": "ungradable", "problem": "The file is cut off."},
    }
    page = page_of(notebook, entry)
    assert "2-masks.ipynb could not be graded" in words(page.select_one(".next"))
    assert "The file is cut off." in words(page.select_one(".next"))
    assert "Together no score yet" in words(page.select_one(".parts"))


def test_no_script_no_event_and_a_strict_policy():
    hostile = [
        new_markdown_cell("<script>alert(1)</script> [x](javascript:alert(1))"),
        new_code_cell(
            "</code></pre><script>alert(1)</script>",
            outputs=[
                new_output("display_data", data={"text/html": "<img src=x onerror=alert(1)>"}),
                new_output("stream", text="</pre><svg onload=alert(1)>"),
            ],
        ),
    ]
    notebook = graded.lesson(*hostile)
    notebook.cells[4].metadata.autograder["message"] = "Seen: `<img src=x onerror=alert(1)>`"
    page = page_of(notebook)
    assert not page.find_all(["script", "iframe", "object", "embed", "form", "link"])
    for element in page.find_all(True):
        assert not [name for name in element.attrs if name.startswith("on") or name == "style"]
    policy = page.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert "unsafe" not in policy


def test_the_policy_s_hash_is_that_of_the_style():
    import base64
    import hashlib

    page = page_of(graded.lesson())
    digest = hashlib.sha256(page.style.string.encode()).digest()
    policy = page.find("meta", {"http-equiv": "Content-Security-Policy"})["content"]
    assert base64.b64encode(digest).decode() in policy


@pytest.mark.parametrize(
    "cells",
    [
        [new_code_cell("x" * 2_000_000)],
        [new_code_cell("a = 1\n" * 2_000) for _ in range(60)],
        [new_markdown_cell("*a* " * 20_000) for _ in range(80)],
        [new_code_cell("x", outputs=[new_output("stream", text="<" * 3_000_000)])],
        [new_code_cell(f"{i}") for i in range(5_000)],
        [
            new_code_cell("x", outputs=[graded.plot(graded.picture(700 + i, 500, noise=True))])
            for i in range(12)
        ],
    ],
    ids=["line", "code", "markdown", "print", "cells", "pictures"],
)
def test_a_page_stays_under_a_megabyte_and_keeps_every_verdict(cells):
    html = html_of(graded.lesson(*cells))
    assert len(html.encode()) < LARGEST
    assert html.count('class="check ') == 4


def test_headings_are_in_order():
    page = page_of(graded.lesson(new_markdown_cell("##### deep\n\n# top")))
    levels = [int(h.name[1]) for h in page.find_all(["h1", "h2", "h3", "h4", "h5", "h6"])]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_picture_has_a_text_alternative():
    page = page_of(graded.lesson())
    assert page.find_all("img")
    assert all(img["alt"] for img in page.find_all("img"))


def test_the_command_writes_every_student_s_pages(tmp_path):
    notebook = graded.lesson()
    course = graded.course(
        tmp_path,
        {
            "amber": graded.entry(notebook=notebook),
            "blue": graded.entry("missing"),
            "Zoë 7": graded.entry("ungradable", reason="No notebook."),
        },
        {"amber": {graded.NOTEBOOK: notebook}},
    )
    stamp = course.autograded / "amber" / graded.ASSIGNMENT / "timestamp.txt"
    stamp.write_text("2026-10-19 12:00:00 UTC")
    pages = write_all(course, graded.ASSIGNMENT)
    assert [p.relative_to(tmp_path).as_posix() for p in pages] == [
        "feedback/Zoë 7/hand-made/1-weights.html",
        "feedback/amber/hand-made/1-weights.html",
        "feedback/blue/hand-made/1-weights.html",
    ]
    assert (pages[1].parent / "timestamp.txt").exists()
    assert write_all(course, graded.ASSIGNMENT, "blue") == [pages[2]]


def test_the_command_refuses_in_one_line(tmp_path):
    with pytest.raises(CourseError, match="run `python -m autograder grade"):
        write_all(Course(tmp_path), "hand-made")
    course = graded.course(tmp_path, {"amber": graded.entry("missing")}, {})
    with pytest.raises(CourseError, match="not among the results"):
        write_all(course, graded.ASSIGNMENT, "nobody")
    (course.autograded / "hand-made.results.json").write_text("{")
    with pytest.raises(CourseError, match="cannot be read"):
        write_all(course, graded.ASSIGNMENT)


def test_a_student_id_never_leads_out_of_the_folder_and_others_are_written(tmp_path):
    students = {"../evil": graded.entry("missing"), "amber": graded.entry("missing")}
    course = graded.course(tmp_path, students, {})
    with pytest.raises(CourseError, match="no student id"):
        write_all(course, graded.ASSIGNMENT)
    assert (course.feedback / "amber").exists()
    assert not (tmp_path / "evil").exists()


def test_a_damaged_graded_notebook_gives_a_page_not_a_crash(tmp_path):
    notebook = graded.lesson()
    course = graded.course(tmp_path, {"amber": graded.entry(notebook=notebook)}, {})
    path = course.autograded / "amber" / graded.ASSIGNMENT / f"{graded.NOTEBOOK}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text("[" * 100_000)
    (page,) = write_all(course, graded.ASSIGNMENT)
    assert "not among what you handed in" in page.read_text()
