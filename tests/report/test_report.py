"""Does the report find what an instructor must know, and keep the students out of it?"""

import csv
import io
import json
import random

import pytest
from bs4 import BeautifulSoup

from autograder.course import Course, CourseError
from autograder.feedback.gather import Mark, Marks, tasks_of
from autograder.grade.submission import UNTOUCHED
from autograder.report.analysis import Item, analyse, point_biserial
from autograder.report.command import report_page, run
from autograder.report.examples import anonymous
from autograder.tasks.model import (
    AssignmentTasks,
    Checkpoint,
    FunctionTask,
    ManualTask,
    Misconception,
    NotebookTasks,
)
from autograder.tasks.registry import MODULES

NAME = "hand-made"
MESSAGE = "Each column sums to 1: `sum` went along axis 0. Try `axis=-1`."
POINTS = {"softmax-rows": 2, "mask-future": 1, "context-sum": 1, "odd-check": 1}


def tasks() -> AssignmentTasks:
    def function(name, *grade_ids, misconceptions=()):
        return FunctionTask(
            name=name,
            signature=f"{name}(x)",
            docstring="",
            checkpoints=tuple(Checkpoint(g, f"About {g}.", POINTS[g]) for g in grade_ids),
            reference=len,
            public=list,
            probes=list,
            misconceptions=misconceptions,
        )

    axis = Misconception("softmax-wrong-axis", len, ("softmax-rows",), MESSAGE)
    parts = (
        function("softmax", "softmax-rows", misconceptions=(axis,)),
        function("mask", "mask-future"),
        function("context", "context-sum", "odd-check"),
        ManualTask(Checkpoint("heatmap-words", "What the heatmap supports.", 1), ""),
    )
    return AssignmentTasks(NAME, "Weights", (NotebookTasks("1-weights", parts, minutes=25),))


def student(skill: float, draw: random.Random) -> dict:
    """A student who gets a checkpoint with probability `skill`, and `odd-check` the other way round."""
    checkpoints = {}
    for grade_id, points in POINTS.items():
        chance = 1 - skill if grade_id == "odd-check" else skill
        good = draw.random() < chance
        wrong_axis = grade_id == "softmax-rows" and not good
        checkpoints[grade_id] = {
            "notebook": "1-weights",
            "score": points if good else 0,
            "max_score": points,
            "verdict": "right" if good else "wrong",
            "misconceptions": ["softmax-wrong-axis"] if wrong_axis else [],
            "message": "",
            "notes": [],
        }
    manual = {"verdict": "manual", "score": None, "max_score": 1, "misconceptions": []}
    checkpoints["heatmap-words"] = {**manual, "notebook": "1-weights", "message": "", "notes": []}
    return entry("graded", checkpoints=checkpoints)


def entry(status: str, **more) -> dict:
    return {
        "status": status,
        "score": None,
        "max_score": 6,
        "reason": "",
        "repairs": [],
        "notes": [],
        "notebooks": {},
        "checkpoints": {},
        **more,
    }


def class_of(size: int) -> dict:
    draw = random.Random(7)
    students = {f"stu{i:03}": student((i + 1) / (size + 1), draw) for i in range(size)}
    students["zz-pdf"] = entry("ungradable", reason="The file is a PDF. Hand in the `.ipynb`.")
    students["zz-none"] = entry("missing", reason="Nothing was handed in.")
    students["stu001"]["repairs"] = ["A deleted checkpoint is back."]
    students["stu002"]["repairs"] = ["A deleted checkpoint is back."]
    return students


@pytest.fixture
def course(tmp_path, monkeypatch):
    monkeypatch.setattr("autograder.report.command.tasks_of", lambda name: tasks())
    made = Course(tmp_path)
    made.autograded.mkdir()
    return made


def test_point_biserial_is_pearson_s_correlation():
    import numpy as np

    passed = [True, False, True, True, False, False, True]
    others = [5.0, 1.0, 4.0, 2.0, 3.0, 0.0, 5.0]
    assert point_biserial(passed, others) == pytest.approx(np.corrcoef(passed, others)[0, 1])


@pytest.mark.parametrize("passed", [[True] * 3, [False] * 3])
def test_point_biserial_of_what_does_not_vary_is_none(passed):
    assert point_biserial(passed, [1.0, 2.0, 3.0]) is None
    assert point_biserial([True, False], [2.0, 2.0]) is None


def test_the_check_that_strong_students_fail_is_found_and_only_it():
    found = analyse(class_of(60), tasks())
    assert [item.grade_id for item in found.suspects] == ["odd-check"]
    assert found.suspects[0].correlation < 0


def test_an_easy_check_that_few_fail_is_not_accused():
    students = class_of(60)
    for i, entry in enumerate(students.values()):
        if "odd-check" in entry["checkpoints"]:
            entry["checkpoints"]["odd-check"]["score"] = 0 if i in (3, 30, 56) else 1
    assert analyse(students, tasks()).suspects == ()


def test_a_small_class_accuses_no_check():
    assert analyse(class_of(6), tasks()).suspects == ()


def test_a_mark_that_a_person_still_gives_is_no_zero():
    students = {"a": student(1.0, random.Random(0))}
    before = analyse(students, tasks())
    (words,) = [item for item in before.items if item.grade_id == "heatmap-words"]
    assert (words.students, before.waiting) == (0, 1)
    after = analyse(students, tasks(), {"a": {"heatmap-words": 1.0}})
    (words,) = [item for item in after.items if item.grade_id == "heatmap-words"]
    assert (words.full, after.waiting, after.scores) == (1, 0, (before.scores[0] + 1,))


def waiting_class(size: int = 20) -> dict:
    """Everybody has written; three left the question as released, which is an automatic 0."""
    students = {f"stu{i:02}": student(0.9, random.Random(i)) for i in range(size)}
    for who in list(students)[:3]:
        students[who]["checkpoints"]["heatmap-words"]["score"] = 0.0
    return students


def test_a_question_that_nobody_has_marked_waits_and_is_not_0_percent(course):
    students = waiting_class()
    (words,) = [i for i in analyse(students, tasks()).items if i.grade_id == "heatmap-words"]
    assert (words.waiting, words.students, words.rate, words.not_attempted) == (17, 0, None, 3)
    report = report_page(course, NAME, students, {})
    page = BeautifulSoup(report.html, "html.parser")
    (row,) = [tr for tr in page.select("tbody tr") if "heatmap-words" in tr.get_text()]
    assert "17 wait for a mark" in row.get_text()
    assert "0\u00a0%" not in row.get_text()
    assert "heatmap-words 17 wait for a mark" in page.find_all("img")[1]["alt"]
    saved = {r["grade_id"]: r for r in csv.DictReader(io.StringIO(report.checkpoints))}
    assert (saved["heatmap-words"]["waiting"], saved["heatmap-words"]["pass_rate"]) == ("17", "")


def test_with_some_marks_given_it_tells_the_rate_so_far_and_how_many_wait(course):
    students = waiting_class()
    given = {f"stu{i:02}": {"heatmap-words": 1.0} for i in range(3, 9)}
    (words,) = [i for i in analyse(students, tasks(), given).items if i.grade_id == "heatmap-words"]
    assert (words.waiting, words.students, words.full) == (11, 9, 6)
    marks = {
        who: {"1-weights": Marks(grades={"heatmap-words": Mark(None, 1.0, None)})} for who in given
    }
    page = BeautifulSoup(report_page(course, NAME, students, marks).html, "html.parser")
    (row,) = [tr for tr in page.select("tbody tr") if "heatmap-words" in tr.get_text()]
    assert "67\u00a0%" in row.get_text()
    assert "11 wait for a mark" in row.get_text()


def test_a_question_that_all_left_as_released_is_0_percent_and_waits_for_nobody():
    students = waiting_class(3)
    (words,) = [i for i in analyse(students, tasks()).items if i.grade_id == "heatmap-words"]
    assert (words.waiting, words.students, words.rate) == (0, 3, 0.0)


def test_misconceptions_are_counted_once_a_student_and_told_in_words():
    (found,) = analyse(class_of(30), tasks()).misunderstandings
    assert found.message == MESSAGE
    assert found.count == len(set(found.students)) > 5


def test_misconceptions_of_one_name_in_two_functions_are_told_apart():
    """The practice has `transposed` in four functions, each with words of its own."""
    practice = tasks_of("w07-h2-practice")
    shown = {"scaled_scores-products": "transposed", "mha_mask-polarity": "transposed"}
    found = {}
    for grade_id, name in shown.items():
        checkpoint = {"score": 0, "max_score": 1, "verdict": "wrong", "misconceptions": [name]}
        found[grade_id] = {**checkpoint, "notebook": "", "message": "", "notes": []}
    told = analyse({"a": entry("graded", checkpoints=found)}, practice).misunderstandings
    assert [(m.function, m.name, m.count) for m in told] == [
        ("mha_mask", "transposed", 1),
        ("scaled_scores", "transposed", 1),
    ]
    assert "queries" in told[1].message
    assert told[0].message != told[1].message


def lost(grade_id: str, message: str, **more) -> dict:
    about = {"notebook": "1", "score": 1, "max_score": 3, "verdict": "partial", "notes": []}
    return entry(
        "graded",
        checkpoints={grade_id: {**about, "misconceptions": [], "message": message, **more}},
    )


def test_the_likely_cause_of_wrong_values_counts_as_a_misconception():
    """The walkthrough records values and has no functions with misconceptions."""
    told = "Core cell: `scores`[0, 0] is 1. Likely cause: these are raw dot products, not scaled. Try: x."
    students = {"a": lost("scores-scaled", told), "b": lost("scores-scaled", told)}
    students["c"] = lost("scores-scaled", "Likely cause: my name is Amber. Try: x.")
    (found,) = analyse(students, tasks_of("w07-h2-attention")).misunderstandings
    assert (found.function, found.count) == ("scores-scaled", 2)
    assert found.name == "These are raw dot products, not scaled"
    assert found.message == "Try: divide by np.sqrt(K.shape[-1])."


def test_a_notebook_that_was_not_handed_in_says_nothing_about_its_checkpoints():
    students = class_of(30)
    for who in ("stu007", "stu008"):
        students[who]["checkpoints"]["mask-future"].update(verdict="missing", score=0)
    items = {item.grade_id: item for item in analyse(students, tasks()).items}
    assert items["mask-future"].students == 28
    assert items["mask-future"].not_attempted == 0
    assert items["softmax-rows"].students == 30


def test_a_check_that_goes_with_the_others_is_not_accused_by_thirds_of_four():
    about = {"grade_id": "g", "title": "T", "notebook": "n", "max_score": 1, "waiting": 0}
    about |= {"students": 14, "full": 11, "not_attempted": 0, "average": 0.79}
    thirds = {"strong": 0.75, "weak": 0.75}
    assert Item(**about, **thirds, correlation=0.32).suspicion == ""
    assert "weakest third" in Item(**about, **thirds, correlation=0.1).suspicion


def test_a_message_that_no_task_defines_is_told_without_what_the_student_wrote():
    students = {"a": student(0.0, random.Random(0))}
    checkpoint = students["a"]["checkpoints"]["mask-future"]
    checkpoint["misconceptions"] = ["undefined-name"]
    checkpoint["message"] = "A name is not defined. (name 'zoe' is not defined)"
    found = {m.name: m.message for m in analyse(students, tasks()).misunderstandings}
    assert found["undefined-name"] == "A name is not defined."


def test_an_empty_class_has_a_report(course):
    report = report_page(course, NAME, {}, {})
    assert "Nobody has a score yet." in report.html
    assert len(list(csv.reader(io.StringIO(report.checkpoints)))) == 6


def test_the_page_names_only_students_to_write_to(course):
    students = class_of(40)
    report = report_page(course, NAME, students, {})
    assert "zz-pdf" in report.html
    assert "zz-none" in report.html
    written = report.html + report.checkpoints + report.times
    assert not [who for who in students if who.startswith("stu") and who in written]


def test_an_example_answer_is_shown_without_its_comments(course):
    students = class_of(40)
    who = analyse(students, tasks()).misunderstandings[0].students[0]
    path = course.autograded / who / NAME / "1-weights.ipynb"
    path.parent.mkdir(parents=True)
    source = "# by Amber Lee\ndef softmax(x):\n    '''Amber'''\n    return x / x.sum(axis=0)"
    cell = {
        "cell_type": "code",
        "source": source,
        "metadata": {"nbgrader": {"grade_id": "softmax", "solution": True}},
    }
    path.write_text(json.dumps({"cells": [cell]}))
    html = report_page(course, NAME, students, {}).html
    page = BeautifulSoup(html, "html.parser")
    assert "return x / x.sum(axis=0)" in page.select_one("pre.code").get_text()
    assert "Amber" not in html


def test_anonymous_keeps_the_mistake_and_drops_the_person():
    code = anonymous("x = np.einsum('ij,kj->ik', Q, K)  # Zoe\nname = 'Zoe Miller'")
    assert code == "x = np.einsum('ij,kj->ik', Q, K)\nname = '...'"
    assert anonymous("def broken(:") is None
    assert anonymous("x = 1\n" * 5_000) is None


def test_pictures_have_words_and_the_page_loads_nothing(course):
    html = report_page(course, NAME, class_of(40), {}).html
    page = BeautifulSoup(html, "html.parser")
    assert len(page.find_all("img")) == 2
    assert "softmax-rows" in page.find_all("img")[1]["alt"]
    for image in page.find_all("img"):
        assert image["src"].startswith("data:image/svg+xml;base64,")
        assert len(image["alt"]) > 40
    assert not page.find_all(["script", "link", "iframe"])
    assert "default-src 'none'" in page.find("meta", {"http-equiv": True})["content"]


def nodes(html: str) -> int:
    return len(BeautifulSoup(html, "html.parser").find_all(True))


def everybody_at_work(assignment: str, size: int) -> dict:
    """Invented results of a real assignment in which everything that fills a page happens."""
    draw = random.Random(11)
    students = {}
    for number in range(size):
        found = {}
        for notebook in tasks_of(assignment).notebooks:
            wrong = {}
            for part in notebook.parts:
                for m in getattr(part, "misconceptions", ()):
                    wrong.update(dict.fromkeys(m.fails, m.name) if draw.random() < 0.1 else {})
            for c in notebook.checkpoints():
                name = wrong.get(c.grade_id)
                found[c.grade_id] = {
                    "notebook": notebook.name, "score": 0.0 if name else c.points,
                    "max_score": c.points, "verdict": "wrong" if name else "right",
                    "misconceptions": [name] if name else [], "message": "", "notes": [],
                }  # fmt: skip
        repairs = [f"The file was handed in as `Copy of {number}.ipynb`; it was taken for `1`."]
        students[f"student-{number:03}"] = entry("repaired", checkpoints=found, repairs=repairs)
    for number in range(size // 10):
        reason = "The file is cut off in the middle. Open your own copy, save it, hand it in again."
        students[f"cut-off-{number:03}"] = entry("ungradable", reason=reason)
    return students


@pytest.mark.parametrize("name", list(MODULES))
def test_a_class_of_300_is_a_page_that_opens_at_once(tmp_path, name):
    """Not timed: a page of this size and so few elements, loading nothing, opens well within a second."""
    small, large = (
        report_page(Course(tmp_path), name, everybody_at_work(name, size), {}).html
        for size in (60, 300)
    )
    assert len(large.encode()) < 600_000
    assert nodes(large) < 2_500
    # Only the list of those to write to grows with the class, by a row of a few elements each.
    assert nodes(large) - nodes(small) < 8 * (300 - 60) // 10 + 60


def test_the_command_writes_page_and_csv(course, capsys):
    class Args:
        assignment = NAME

    with pytest.raises(CourseError, match="grade hand-made"):
        run(Args, course)
    results = {"schema_version": 1, "assignment": NAME, "students": class_of(20)}
    (course.autograded / f"{NAME}.results.json").write_text(json.dumps(results))
    assert run(Args, course) == 0
    said = capsys.readouterr().out
    assert "autograded/hand-made.report.html" in said
    assert "autograded/hand-made.times.csv" in said
    rows = list(csv.DictReader((course.autograded / f"{NAME}.report.csv").open()))
    assert [row["grade_id"] for row in rows] == [*POINTS, "heatmap-words"]
    assert rows[0]["property"] == "About softmax-rows"
    assert float(rows[0]["pass_rate"]) == int(rows[0]["all_marks"]) / int(rows[0]["students"])


@pytest.mark.parametrize("status", ["graded", "repaired"])
def test_notebooks_as_they_were_released_are_told_also_after_a_repair(status):
    students = class_of(12)
    assert "stu003" not in [who for who, _, _ in analyse(students, tasks()).to_act_on]
    for checkpoint in students["stu003"]["checkpoints"].values():
        checkpoint |= {"score": 0.0}
        if checkpoint["verdict"] != "manual":
            checkpoint["verdict"] = "not-attempted"
    students["stu003"]["status"] = status
    told = {who: why for who, _, why in analyse(students, tasks()).to_act_on}
    assert told["stu003"] == UNTOUCHED
    students["stu003"]["checkpoints"]["heatmap-words"]["score"] = None  # an answer that waits
    assert "stu003" not in [who for who, _, _ in analyse(students, tasks()).to_act_on]


def test_rare_misconceptions_are_folded(course):
    students = class_of(12)
    rare = [f"rare-{number:02}" for number in range(40)]
    students["stu000"]["checkpoints"]["odd-check"] |= {"misconceptions": rare, "verdict": "wrong"}
    html = report_page(course, NAME, students, {}).html
    seen = html.partition("<details><summary>")
    assert "rare-00" in seen[0]
    assert "rare-39" not in seen[0]
    assert "rare-39" in seen[2]
    assert html.count("<details") == html.count("</details>")


def test_without_a_check_to_look_at_the_report_says_so(course):
    students = {name: one for name, one in class_of(3).items() if name != "zz-pdf"}
    assert "None: no check behaves as if" in report_page(course, NAME, students, {}).html
    assert "None: no check behaves as if" not in report_page(course, NAME, class_of(60), {}).html
