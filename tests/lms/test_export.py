"""What goes back to the LMS, read again as the LMS reads it."""

import csv
import io
import logging
import zipfile
from types import SimpleNamespace

import pytest

from autograder.course import Course, CourseError
from autograder.grade import gradebook
from autograder.grade.results import results_path, write_json
from autograder.lms import command, people, record
from autograder.lms.collect import collect
from autograder.lms.export import CourseExport
from autograder.lms.tables import neutral, number, read_table

from . import downloads
from .downloads import NOTEBOOK, canvas_list, worksheet

HW = "hw"
SCORES = {"ada": (4.0, "repaired"), "wei1": (0.0, "graded"), "wei2": (6.0, "graded")}
MAX = 6.0


def grade(course, *, open_question="wei2", penalty=None):
    """Fills the gradebook and results.json as the grade command does, with invented scores."""
    entries = {}
    with gradebook.opened(course) as book:
        book.add_assignment(HW)
        book.add_notebook("1-doubling", HW)
        for name, points in (("double-value", 2), ("square-value", 3), ("words", 1)):
            book.add_grade_cell(name, "1-doubling", HW, max_score=points, cell_type="code")
        for student, (score, status) in SCORES.items():
            if student not in {s.id for s in book.students}:
                continue
            scores = {"double-value": score / 3, "square-value": score / 2, "words": score / 6}
            scores["words"] = None if student == open_question else scores["words"]
            given = {"1-doubling": gradebook.NotebookScores(scores)}
            gradebook.record(book, HW, student, given, "2026-11-12 21:33:00 UTC")
            entries[student] = {"status": status, "score": score, "reason": "", "notebooks": {}}
            if penalty:
                submission = book.find_submission(HW, student)
                submission.notebooks[0].late_submission_penalty = penalty
                book.db.commit()
        for student in book.students:
            entries.setdefault(student.id, {"status": "missing", "reason": "Nothing."})
    if "zoe" in entries:
        entries["zoe"] = {"status": "ungradable", "reason": "The file is <cut> off."}
    write_json(results_path(course, HW), {"students": entries})


@pytest.fixture
def moodle(course, tmp_path):
    files = {
        "Ada Lovelace_101_assignsubmission_file_/1-doubling.ipynb": NOTEBOOK,
        "Li Wei_102_assignsubmission_file/1-doubling.ipynb": NOTEBOOK,
        "Li Wei_103_assignsubmission_file_1-doubling.ipynb": NOTEBOOK,
        "Zoë Ñandú-Øye_104_assignsubmission_file_/x.ipynb": b"{",
    }
    source = downloads.archive(tmp_path / "m.zip", files)
    collect(course, HW, source, listed=worksheet(tmp_path / "w.csv"))
    grade(course)
    return course


@pytest.fixture
def canvas(course, tmp_path):
    files = {
        "lovelaceada_501_7001_1-doubling.ipynb": NOTEBOOK,
        "weili_LATE_502_7003_1-doubling.ipynb": NOTEBOOK,
        "weili_503_7004_1-doubling.ipynb": NOTEBOOK,
    }
    source = downloads.archive(tmp_path / "c.zip", files)
    collect(course, HW, source, listed=canvas_list(tmp_path / "c.csv"))
    grade(course)
    return course


def moodle_reads(path):
    """As Moodle's importer: UTF-8, its byte-order mark taken off, commas, columns by name, the number at the
    end of Identifier."""
    assert path.read_bytes().startswith(b"\xef\xbb\xbf"), "as Moodle writes it, and Excel needs it"
    rows = list(csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
    header = rows[0]
    at = {name: header.index(name) for name in ("Grade", "Identifier", "Last modified (grade)")}
    comments = header.index("Feedback comments")
    prefix = len("Participant ")
    return {
        int(row[at["Identifier"]][prefix:]): (row[at["Grade"]], row[comments]) for row in rows[1:]
    }


def test_moodles_worksheet_goes_back(moodle, tmp_path):
    written, said = command.export(moodle, HW, tmp_path / "out")
    assert [p.name for p in written] == ["hw-moodle.csv", "hw-questions.csv"]
    header, _ = read_table(written[0])
    assert header == downloads.MOODLE_HEADER
    grades = moodle_reads(written[0])
    assert set(grades) == {101, 102, 103, 104, 105, 106, 107}
    # 4 of 6 on Moodle's scale of 100, a zero that is one, and blanks that are none.
    assert grades[101][0] == "66.67"
    assert grades[102][0] == "0"
    assert grades[104] == ("", "Could not be graded: The file is &lt;cut&gt; off.")
    assert grades[107] == ("", "Nothing was handed in.")
    assert "Provisional" in grades[103][1]
    assert "1 ungradable: left blank, which is not a zero." in said
    assert any("provisional" in line for line in said)


def test_practice_marks_stay_out_of_the_total_unless_switched_on(moodle, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "_practice", lambda assignment: True)
    written, said = command.export(moodle, HW, tmp_path / "a")
    grades = moodle_reads(written[0])
    assert {grade for grade, _ in grades.values()} == {""}
    assert grades[101][1].startswith("Practice: 4 of 6 marks")
    assert any("--count-practice" in line for line in said)
    written, _ = command.export(moodle, HW, tmp_path / "b", count_practice=True)
    assert moodle_reads(written[0])[101][0] == "66.67"


def canvas_reads(path):
    """As Canvas's importer: the five columns, then assignments `Name (id)`; `Points Possible` apart."""
    rows = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))
    assert list(rows[0])[:5] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
    assert rows[0]["Student"].strip() == "Points Possible"
    return rows[0], {row["ID"]: row for row in rows[1:]}


def test_canvas_gradebook_goes_back(canvas, tmp_path):
    written, _ = command.export(canvas, HW, tmp_path / "out", column="Doubling")
    points, rows = canvas_reads(written[0])
    column = "Doubling (9001)"
    assert list(points) == [*downloads.CANVAS_HEADER[:5], column]
    assert points[column] == "6"
    assert {key: row[column] for key, row in rows.items()} == {
        "501": "4",
        "502": "0",
        "503": "5",
        "504": "",
    }
    assert rows["503"]["Section"] == "B"
    # The student whose name is a formula.
    assert rows["504"]["Student"] == "'=HYPERLINK(1), Eve"


def test_a_column_that_canvas_does_not_have(canvas, tmp_path):
    with pytest.raises(CourseError, match="0 columns"):
        command.export(canvas, HW, tmp_path / "out", column="Tripling")
    written, _ = command.export(canvas, HW, tmp_path / "out")
    assert canvas_reads(written[0])[0]["hw"] == "6"


def test_one_column_for_each_question(canvas, tmp_path):
    written, _ = command.export(canvas, HW, tmp_path / "out")
    points, rows = canvas_reads(written[1])
    assert points["hw square-value"] == "3"
    assert rows["501"]["hw square-value"] == "2"
    assert rows["502"]["hw square-value"] == "0"
    assert rows["503"]["hw words"] == ""
    assert rows["504"]["hw double-value"] == ""


def test_questions_for_moodle_name_status_and_address(moodle, tmp_path):
    written, _ = command.export(moodle, HW, tmp_path / "out")
    _, rows = read_table(written[1])
    by_mail = {row["Email address"]: row for row in rows}
    assert by_mail["ada@uni.example"]["hw double-value"] == "1.33"
    assert by_mail["zoe@uni.example"]["hw double-value"] == ""
    assert by_mail["zoe@uni.example"]["status"] == "ungradable"
    assert by_mail["nobody@uni.example"]["status"] == "missing"


def test_without_a_list_the_gradebook_is_the_list(course, tmp_path):
    people.enrol(course, [people.Person(key=i, student=i) for i in SCORES], "plain")
    grade(course)
    written, _ = command.export(course, HW, tmp_path / "out")
    _, rows = read_table(written[0])
    assert [row["student_id"] for row in rows] == ["ada", "wei1", "wei2"]


def test_an_assignment_that_was_not_graded(course, tmp_path):
    with pytest.raises(CourseError, match="grade it first"):
        command.export(course, HW, tmp_path / "out")


def pages(course, *students):
    for student in students:
        folder = course.feedback / student / HW
        folder.mkdir(parents=True)
        (folder / "1-doubling.html").write_text(student, encoding="utf-8")


def moodle_finds(name):
    """As Moodle's importer: the first part of the path that splits into name_number_type_plugin."""
    for part in name.split("/"):
        info = part.split("_", 4)
        if len(info) >= 4 and info[1].isdigit():
            return int(info[1]), info[2], info[3]
    return None


def test_feedback_for_moodle(moodle, tmp_path):
    pages(moodle, "ada", "wei1", "wei2", "zoe", "nobody")
    written, _ = command.export(moodle, HW, tmp_path / "out")
    with zipfile.ZipFile(written[-1]) as found:
        names = {moodle_finds(n): found.read(n).decode() for n in found.namelist()}
        raw = found.namelist()
    kind = ("assignsubmission", "file")
    assert names == {
        (101, *kind): "ada",
        (102, *kind): "wei1",
        (103, *kind): "wei2",
        (104, *kind): "zoe",
        (107, *kind): "nobody",
    }
    assert "Ada Lovelace_101_assignsubmission_file_/1-doubling.html" in raw
    again, _ = command.export(moodle, HW, tmp_path / "again")
    assert again[-1].read_bytes() == written[-1].read_bytes()


def test_feedback_for_canvas(canvas, tmp_path):
    pages(canvas, "ada", "wei1", "eve")
    written, _ = command.export(canvas, HW, tmp_path / "out")
    with zipfile.ZipFile(written[-1]) as found:
        assert sorted(found.namelist()) == [
            "lovelaceada_501_7001_1-doubling.html",
            "weili_LATE_502_7003_1-doubling.html",
        ]


def test_a_damaged_record_is_one_line(moodle, tmp_path):
    record._path(moodle, HW).write_text("[]")
    with pytest.raises(CourseError, match="collect"):
        command.export(moodle, HW, tmp_path / "out")


# --- nbgrader's export ---------------------------------------------------------------------------


def exported(course, **options):
    path = course.root / "grades.csv"
    plugin = CourseExport(parent=None, to=str(path), **options)
    plugin.config.CourseDirectory.root = str(course.root)
    plugin.log = logging.getLogger("test")
    with gradebook.opened(course) as book:
        plugin.export(book)
    _, rows = read_table(path)
    return {row["student_id"]: row for row in rows}


def test_grades_csv_tells_missing_from_zero(moodle):
    rows = exported(moodle)
    assert rows["wei1"]["score"] == "0"
    assert rows["wei1"]["status"] == "graded"
    for student, status in (("zoe", "ungradable"), ("nobody", "missing")):
        assert rows[student]["score"] == ""
        assert rows[student]["raw_score"] == ""
        assert rows[student]["status"] == status
    assert rows["wei2"]["provisional"] == "yes"
    assert rows["ada"]["provisional"] == ""
    assert rows["ada"]["score"] == "4"


def test_grades_csv_takes_the_late_penalty_off_but_never_below_zero(course, tmp_path):
    people.enrol(course, [people.Person(key=i, student=i) for i in SCORES], "plain")
    grade(course, penalty=5.0)
    rows = exported(course)
    assert (rows["ada"]["raw_score"], rows["ada"]["score"]) == ("4", "0")
    assert (rows["wei2"]["raw_score"], rows["wei2"]["score"]) == ("5", "0")


def test_grades_csv_of_some(moodle):
    assert set(exported(moodle, student=["ada"])) == {"ada"}
    assert set(exported(moodle, assignment=[HW])) > {"ada"}
    with pytest.raises(CourseError, match="hw9"):
        exported(moodle, assignment=["hw9"])


def test_a_manual_score_ends_provisional(moodle):
    with gradebook.opened(moodle) as book:
        book.find_grade("words", "1-doubling", HW, "wei2").manual_score = 0.5
        book.db.commit()
    rows = exported(moodle)
    assert rows["wei2"]["provisional"] == ""
    assert rows["wei2"]["score"] == "5.5"


# --- cells ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+cmd",
        "-cmd|x",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        " =1",
        "\u00a0=1",
        "＝1+1",
        "-1+2",
        "=",
        "\n=1",
    ],
)
def test_formulas_are_neutralised(text):
    assert neutral(text) == f"'{text}"


@pytest.mark.parametrize("text", ["Ada", "-", "-1.5", "+4", "0", "", "a=b", "    Points Possible"])
def test_other_cells_stay(text):
    assert neutral(text) == text


def test_numbers_are_short():
    assert [number(v) for v in (None, 0.0, 2.0, 1.333333, 100.0)] == ["", "0", "2", "1.33", "100"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_lists_in_any_usual_form(tmp_path, encoding, delimiter):
    text = delimiter.join(["id", "first_name", "last_name"]) + "\n"
    text += delimiter.join(["zoe", "Zoë", '"O""Neil, Jr"']) + "\n"
    path = tmp_path / "r.csv"
    path.write_bytes(text.encode(encoding))
    found = people.read_list(path)
    assert (found.people[0].first, found.people[0].last) == ("Zoë", 'O"Neil, Jr')


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no CSV"),
        ("one", "no CSV"),
        ("a,b\n1,2", "no grading worksheet"),
        ("id,email\n", "names nobody"),
        ("id,email\n../x,1", "can't be a folder"),
        ("id,email\nx,1\nx,2", "twice"),
    ],
)
def test_a_list_that_is_none(tmp_path, text, word):
    path = tmp_path / "r.csv"
    path.write_text(text)
    with pytest.raises(CourseError, match=word):
        people.read_list(path)
    with pytest.raises(CourseError, match="can't be read"):
        people.read_list(tmp_path / "none.csv")


def test_the_roster_command(course, tmp_path, capsys):
    from autograder.lms import roster

    path = tmp_path / "r.csv"
    path.write_text("id,first_name,last_name,email,lms_user_id\nada,Ada,Lovelace,a@x,77\n")
    assert roster.run(SimpleNamespace(list=path), course) == 0
    assert roster.run(SimpleNamespace(list=path), course) == 0
    assert "1 students added" in capsys.readouterr().out
    (ada,) = people.known_students(course)
    assert (ada.key, ada.email, ada.last) == ("77", "a@x", "Lovelace")
    assert isinstance(course, Course)
