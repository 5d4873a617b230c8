"""Measured working time: from the submitted files, by a stated rule, whatever stands in them."""

import csv
import io
import json
from datetime import datetime, timedelta, timezone

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, writes

from autograder.course import Course
from autograder.report.command import report_page
from autograder.report.times import in_one_go, measured, recorded, worked
from autograder.tasks.model import AssignmentTasks, NotebookTasks

NAME = "hand-made"
NOTEBOOK = "1-weights"
BEGIN = datetime(2026, 3, 2, 10, 0, tzinfo=timezone.utc)
TASKS = AssignmentTasks(NAME, "Weights", (NotebookTasks(NOTEBOOK, (), minutes=25),))


def lesson():
    about = {"grade_id": "setup", "grade": False, "solution": False, "locked": True}
    setup = {"nbgrader": {**about, "schema_version": 3, "cell_type": "code"}}
    cells = [new_markdown_cell("# Weights that sum to one", id="title")]
    cells.append(new_code_cell("import numpy as np", id="setup", metadata=setup))
    cells += [new_code_cell(f"numbers_{n} = np.arange({n})", id=f"run-{n}") for n in range(1, 6)]
    return new_notebook(cells=cells)


def colab(seconds: float, took: float = 0.2) -> dict:
    """What Colab writes: when the run ended and how long it took, in milliseconds; and who ran it."""
    ended = round((BEGIN.timestamp() + seconds) * 1000)
    user = {"displayName": "Amber Lee", "userId": "7"}
    about = {"status": "ok", "timestamp": ended, "elapsed": round(took * 1000), "user_tz": -60}
    return {"executionInfo": {**about, "user": user}}


def jupyterlab(seconds: float, took: float = 0.2) -> dict:
    """What JupyterLab writes while "Record timing" is on."""
    start, end = (BEGIN + timedelta(seconds=s) for s in (seconds, seconds + took))
    started, ended = (f"{d:%Y-%m-%dT%H:%M:%S.%f}Z" for d in (start, end))
    dates = {"iopub.status.busy": started, "iopub.execute_input": started}
    dates |= {"iopub.status.idle": ended, "shell.execute_reply.started": started}
    return {"execution": dates | {"shell.execute_reply": ended}}


def notebook(*notes: dict):
    """The lesson with such metadata on its code cells, in their order."""
    nb = lesson()
    for cell, note in zip((c for c in nb.cells if c.cell_type == "code"), notes, strict=False):
        cell.metadata.update(note)
    return nb


@pytest.fixture
def course(tmp_path, monkeypatch):
    monkeypatch.setattr("autograder.report.command.tasks_of", lambda name: TASKS)
    made = Course(tmp_path)
    (made.release / NAME).mkdir(parents=True)
    (made.release / NAME / f"{NOTEBOOK}.ipynb").write_text(writes(lesson()))
    return made


def hand_in(course: Course, student: str, content) -> None:
    folder = course.submitted / student / NAME
    folder.mkdir(parents=True)
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / f"Copy of {NOTEBOOK}.ipynb").write_text(text)


def timing(course: Course, *students: str):
    (found,) = measured(course, TASKS, students)
    return found


@pytest.mark.parametrize("tool", [colab, jupyterlab])
def test_the_span_counts_without_pauses_of_more_than_a_quarter_of_an_hour(course, tool):
    # 4, 10 and 14 minutes of work, and a lunch of an hour.
    hand_in(course, "a", notebook(*(tool(60 * m) for m in (0, 4, 14, 28, 88, 90))))
    assert timing(course, "a").minutes == (pytest.approx(30, abs=0.1),)


@pytest.mark.parametrize("tool", [colab, jupyterlab])
def test_a_notebook_run_in_one_go_tells_nothing_and_is_counted_as_such(course, tool):
    hand_in(course, "a", notebook(*(tool(2 * n, took=1.9) for n in range(6))))
    assert (timing(course, "a").minutes, timing(course, "a").at_once) == ((), 1)


def test_a_colab_run_of_all_cells_counts_their_waiting_as_running_and_is_one_go(course):
    # As Colab writes it: every cell's time is from its being queued to its end.
    hand_in(course, "a", notebook(*(colab(10 * n, took=10 * n) for n in range(1, 7))))
    assert timing(course, "a").at_once == 1


def test_no_times_are_silence_and_not_zero_minutes(course):
    hand_in(course, "a", notebook())
    hand_in(course, "b", "{")
    found = timing(course, "a", "b", "nobody")
    assert (found.students, found.at_once, found.silent, found.median) == (0, 0, 1, None)


def test_a_cell_that_ran_for_hours_is_no_work():
    start = BEGIN.timestamp()
    assert (
        worked([(start, start + 60), (start + 60, start + 9_000), (start + 9_060, start + 9_120)])
        == 180
    )


BAD = [
    *(-1, 0, 5, 1e300, -1e300, 10**18, True, None, "1790000000000", [1790000000000], {}),
    float("nan"),
    float("inf"),
    4_102_444_800_000,
    946_684_800_000,
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_what_cannot_be_a_time_is_passed_over(course, bad):
    notes = [colab(0), colab(300), {"executionInfo": {"timestamp": bad, "elapsed": 1}}]
    hand_in(course, "a", notebook(*notes))
    assert timing(course, "a").minutes == (pytest.approx(5, abs=0.1),)


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_what_cannot_be_a_duration_does_not_stretch_the_time(course, bad):
    nb = notebook(colab(600), colab(900))
    nb.cells[2].metadata["executionInfo"]["elapsed"] = bad
    hand_in(course, "a", nb)
    assert timing(course, "a").minutes in ((), (pytest.approx(5, abs=0.1),))


@pytest.mark.parametrize(
    "bad",
    [
        *("", "now", "2026-13-45T99:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"),
        *("2" * 10**6, 7, None, ["2026-03-02T10:00:00Z"], {"a": 1}),
    ],
    ids=lambda bad: repr(bad)[:24],
)
def test_what_cannot_be_a_date_is_passed_over(course, bad):
    notes = [jupyterlab(0), jupyterlab(300), {"execution": {"iopub.execute_input": bad}}]
    hand_in(course, "a", notebook(*notes))
    assert timing(course, "a").minutes == (pytest.approx(5, abs=0.1),)


@pytest.mark.parametrize(
    "content",
    [
        '{"cells": 7}',
        '{"cells": [7, null, {"metadata": 7}, {"metadata": {"executionInfo": 7, "execution": []}}]}',
        "[" * 200_000,
        '{"cells": [{"metadata": {"executionInfo": {"timestamp": ' + "9" * 6_000 + "}}}]}",
        "\ufeff\x00",
        "[]",
    ],
    ids=["cells", "shapes", "deep", "digits", "bytes", "list"],
)
def test_a_hostile_file_holds_no_times(tmp_path, content):
    path = tmp_path / "hostile.ipynb"
    path.write_text(content)
    assert recorded(path) == []
    assert recorded(tmp_path / "absent.ipynb") == []


def test_one_run_alone_is_no_span():
    assert in_one_go([(BEGIN.timestamp(), BEGIN.timestamp() + 3)])


def entries(*students: str) -> dict:
    about = {"status": "graded", "score": 0, "max_score": 0, "reason": "", "checkpoints": {}}
    return dict.fromkeys(students, about)


def section(html: str) -> str:
    page = BeautifulSoup(html, "html.parser")
    return page.find(id="time").parent.get_text(" ")


def test_the_report_shows_measured_beside_planned_and_says_the_rule(course):
    minutes = {"a": 10, "b": 20, "c": 40, "d": 50}
    for who, last in minutes.items():
        notes = [
            jupyterlab(60 * m) if who == "a" else colab(60 * m) for m in range(0, last + 1, 10)
        ]
        hand_in(course, who, notebook(*notes))
    hand_in(course, "e", notebook(*(colab(n) for n in range(6))))
    hand_in(course, "f", notebook())
    report = report_page(course, NAME, entries(*"abcdef"), {})
    said = section(report.html)
    for words in (
        "25 min",
        "30 min",
        "18 to 43 min",
        "more than 15 minutes",
        "last run",
        "lower bounds",
    ):
        assert words in said
    (row,) = csv.DictReader(io.StringIO(report.times))
    assert row["students"] == "4"
    assert (row["run_in_one_go"], row["nothing_recorded"]) == ("1", "1")
    assert (row["median_minutes"], row["planned_minutes"]) == ("30.0", "25")
    assert "Amber" not in report.html + report.times + report.checkpoints


def test_of_one_or_two_students_no_time_is_shown(course):
    for who in "ab":
        hand_in(course, who, notebook(colab(0), colab(600), colab(1_020)))
    report = report_page(course, NAME, entries("a", "b"), {})
    assert timing(course, "a", "b").students == 2
    assert "17" not in section(report.html)
    assert "17" not in report.times
    hand_in(course, "c", notebook(colab(0), colab(600), colab(1_020)))
    assert "17 min" in section(report_page(course, NAME, entries("a", "b", "c"), {}).html)


def test_without_times_the_report_says_so(course):
    hand_in(course, "a", notebook())
    said = section(report_page(course, NAME, entries("a"), {}).html)
    assert "nothing is recorded" in said
    assert "1-weights 25 minutes" in said
    assert "Median" not in said
