"""Downloads: every file reaches the right student, or nobody."""

import os
import stat
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autograder.course import CourseError
from autograder.ingest import REFUSED
from autograder.lms import archive, people, record
from autograder.lms.collect import CANVAS, _component, _moodle_number, collect

from . import downloads
from .downloads import NOTEBOOK, OTHER, canvas_list, worksheet

HW = "hw"


def moodle(tmp_path, files):
    return downloads.archive(tmp_path / "moodle.zip", files)


def tree(course):
    """student -> file names, of what was collected."""
    return {
        path.parent.name: sorted(p.relative_to(path).as_posix() for p in path.rglob("*.ip*"))
        for path in course.submitted.glob(f"[!.]*/{HW}")
    }


FULL = {
    "Ada Lovelace_101_assignsubmission_file_/1-doubling.ipynb": NOTEBOOK,
    "Ada Lovelace_101_assignsubmission_file_/2-halving.ipynb": OTHER,
    "Li Wei_102_assignsubmission_file/1-doubling.ipynb": NOTEBOOK,
    "Li Wei_103_assignsubmission_file_/sub folder/Copy of 1-doubling (1).ipynb": NOTEBOOK,
    "Zoë Ñandú-Øye_104_assignsubmission_file_/Übung ✓.ipynb": NOTEBOOK,
    "Max Muster_105_assignsubmission_file_1-doubling.ipynb": NOTEBOOK,
    "Max Other_106_assignsubmission_file_/essay.docx": b"words",
    "__MACOSX/Ada Lovelace_101_assignsubmission_file_/._1-doubling.ipynb": b"x",
    "Ada Lovelace_101_assignsubmission_file_/.DS_Store": b"x",
}


def test_a_moodle_download(course, tmp_path):
    zone = "Europe/Berlin"
    summary = collect(
        course, HW, moodle(tmp_path, FULL), listed=worksheet(tmp_path / "w.csv"), zone=zone
    )
    assert summary.kind == "moodle"
    assert tree(course) == {
        "ada": ["1-doubling.ipynb", "2-halving.ipynb"],
        "wei1": ["1-doubling.ipynb"],
        "wei2": ["sub folder/Copy of 1-doubling (1).ipynb"],
        "zoe": ["Übung ✓.ipynb"],
        "max@uni.example": ["1-doubling.ipynb"],
        "max@other.example": [],
    }
    assert summary.missing == ["nobody (Nobody Here)"]
    assert list(summary.no_notebook) == ["max@other.example"]
    assert "2-halving" in summary.incomplete["wei1"]
    assert "ada" not in summary.incomplete
    stamp = (course.submitted / "ada" / HW / "timestamp.txt").read_text()
    assert stamp == "2026-11-12 21:33:00 UTC\n"
    known = {p.student: p for p in people.known_students(course)}
    assert known["wei2"].email == "wei2@uni.example"
    assert "nobody" in known
    kept = record.load(course, HW)
    assert kept.places["wei1"] == ["Li Wei_102_assignsubmission_file"]


def test_collecting_again_changes_only_what_changed(course, tmp_path):
    listed = worksheet(tmp_path / "w.csv")
    collect(course, HW, moodle(tmp_path, FULL), listed=listed)
    again = dict(FULL)
    again["Li Wei_102_assignsubmission_file/1-doubling.ipynb"] = OTHER
    summary = collect(course, HW, moodle(tmp_path, again), listed=listed)
    assert {s for s, how in summary.written.items() if how == "changed"} == {"wei1"}
    assert set(summary.written.values()) == {"same", "changed"}
    assert (course.submitted / "wei1" / HW / "1-doubling.ipynb").read_bytes() == OTHER


def test_moodle_needs_the_worksheet(course, tmp_path):
    with pytest.raises(CourseError, match="worksheet"):
        collect(course, HW, moodle(tmp_path, FULL))
    assert tree(course) == {}


def test_a_number_that_is_not_on_the_list_is_nobodys(course, tmp_path):
    files = {"Ada Lovelace_999_assignsubmission_file_/1-doubling.ipynb": NOTEBOOK}
    summary = collect(course, HW, moodle(tmp_path, files), listed=worksheet(tmp_path / "w.csv"))
    assert tree(course) == {}
    assert "999" in summary.strangers[0].reason


@pytest.mark.parametrize(
    "name",
    [
        # A profile name that looks like somebody else's folder.
        "Eve_101_assignsubmission_file__105_assignsubmission_file_/1-doubling.ipynb",
        "Ada Lovelace_101_assignsubmission_file_Max Muster_105_assignsubmission_file_/x.ipynb",
    ],
)
def test_two_numbers_in_one_name(course, tmp_path, name):
    summary = collect(
        course, HW, moodle(tmp_path, {name: NOTEBOOK}), listed=worksheet(tmp_path / "w.csv")
    )
    assert "max@uni.example" not in tree(course)
    if name.startswith("Eve"):
        assert tree(course) == {}
        assert "several participant numbers" in summary.strangers[0].reason
    else:
        assert list(tree(course)) == ["ada"]


def test_a_folder_inside_that_names_another_student_stays_with_its_owner(course, tmp_path):
    inner = "Ada Lovelace_101_assignsubmission_file_/x.ipynb"
    files = {f"Max Muster_105_assignsubmission_file_/{inner}": NOTEBOOK}
    collect(course, HW, moodle(tmp_path, files), listed=worksheet(tmp_path / "w.csv"))
    assert list(tree(course)) == ["max@uni.example"]


def test_a_file_name_with_a_foreign_number_is_told_by_the_full_name():
    ada = people.Person(key="101", full="Ada Lovelace")
    max_ = people.Person(key="105", full="Max Muster")
    listed = {"101": ada, "105": max_}
    name = "Max Muster_105_assignsubmission_file_Ada_101_assignsubmission_file_x.ipynb"
    assert _moodle_number(name, listed)[0] == "105"


def test_a_canvas_download(course, tmp_path):
    files = {
        "lovelaceada_501_7001_1-doubling.ipynb": NOTEBOOK,
        "lovelaceada_501_7002_2-halving-1.ipynb": OTHER,
        "weili_LATE_502_7003_1-doubling.ipynb": NOTEBOOK,
        "weili_503_7004_x_601_7005_y.ipynb": OTHER,
        "someone_999_7006_1-doubling.ipynb": NOTEBOOK,
        "notes.txt": b"",
    }
    source = downloads.archive(tmp_path / "canvas.zip", files)
    summary = collect(course, HW, source, listed=canvas_list(tmp_path / "c.csv"))
    assert summary.kind == "canvas"
    assert tree(course) == {
        "ada": ["1-doubling.ipynb", "2-halving-1.ipynb"],
        "wei1": ["1-doubling.ipynb"],
        "wei2": ["x_601_7005_y.ipynb"],
    }
    assert summary.late == ["wei1"]
    assert len(summary.strangers) == 2
    assert [m.split()[0] for m in summary.missing] == ["eve"]


def test_several_attempts_with_one_name_are_all_kept(course, tmp_path):
    files = {
        "lovelaceada_501_7001_1-doubling.ipynb": OTHER,
        "lovelaceada_501_7002_1-doubling.ipynb": NOTEBOOK,
    }
    source = downloads.archive(tmp_path / "canvas.zip", files)
    summary = collect(course, HW, source, listed=canvas_list(tmp_path / "c.csv"))
    assert tree(course)["ada"] == ["1-doubling (2).ipynb", "1-doubling.ipynb"]
    assert summary.written == {"ada": "new"}


def test_canvas_without_a_list_uses_numbers(course, tmp_path):
    source = downloads.archive(tmp_path / "c.zip", {"a_501_7001_x.ipynb": NOTEBOOK})
    assert list(collect(course, HW, source).written) == ["canvas-501"]


def roster(course, *ids):
    people.enrol(course, [people.Person(key=i, student=i) for i in ids], "plain")


def test_a_plain_folder(course, tmp_path):
    roster(course, "ada", "ada_b", "max", "zoe", "Żółć", "a b")
    top = tmp_path / "in"
    for name in (
        "ada/1-doubling.ipynb",
        "ada_b_1-doubling.ipynb",
        "max.ipynb",
        "maximilian_x.ipynb",
        "unknown/1-doubling.ipynb",
        "Żółć/1-doubling.ipynb",
        "a b/1-doubling.ipynb",
        "homework.ipynb",
    ):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(NOTEBOOK)
    summary = collect(course, HW, top)
    assert tree(course) == {
        "ada": ["1-doubling.ipynb"],
        "ada_b": ["ada_b_1-doubling.ipynb"],
        "max": ["max.ipynb"],
        "Żółć": ["1-doubling.ipynb"],
    }
    assert {r.name.split("/")[0] for r in summary.strangers} == {
        "maximilian_x.ipynb",
        "unknown",
        "homework.ipynb",
        "a b",
    }
    assert summary.missing == ["a b", "zoe"]
    assert "unknown" in collect(course, HW, top, accept_new=True).written


def member(name, *, mode=None, flags=0):
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    if mode is not None:
        info.create_system = 3
        info.external_attr = mode << 16
    info.flag_bits |= flags
    return info


ADA = "Ada Lovelace_101_assignsubmission_file_"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        (f"{ADA}/../../../evil.ipynb", NOTEBOOK, "leads out"),
        ("/etc/evil.ipynb", NOTEBOOK, "leads out"),
        ("C:/evil.ipynb", NOTEBOOK, "leads out"),
        (f"{ADA}\\..\\evil.ipynb", NOTEBOOK, "leads out"),
        (f"{ADA}/work.zip", b"PK", "archive inside"),
        (f"{ADA}/{'d/' * 12}x.ipynb", NOTEBOOK, "deep"),
        (f"{ADA}/{'n' * 500}.ipynb", NOTEBOOK, "too long"),
        (f"{ADA}/a\x1bb.ipynb", NOTEBOOK, "characters"),
        (f"{ADA}/bomb.ipynb", b"0" * 30_000_000, "zip bomb"),
        (f"{ADA}/big.ipynb", os.urandom(1000) * 60_000, "limit"),
        (member(f"{ADA}/link.ipynb", mode=stat.S_IFLNK | 0o777), b"/etc/passwd", "symbolic"),
        (member(f"{ADA}/dev.ipynb", mode=stat.S_IFCHR | 0o666), b"", "special"),
    ],
)
def test_refused_members(course, tmp_path, name, data, reason):
    source = moodle(tmp_path, [(name, data), (f"{ADA}/1-doubling.ipynb", NOTEBOOK)])
    summary = collect(course, HW, source, listed=worksheet(tmp_path / "w.csv"))
    assert [reason in r.reason for r in summary.refused] == [True], summary.refused
    assert tree(course) == {"ada": ["1-doubling.ipynb"]}
    assert not list(tmp_path.rglob("evil*"))
    assert summary.attention


def test_a_member_that_lies_about_its_size(course, tmp_path):
    source = moodle(tmp_path, {f"{ADA}/x.ipynb": NOTEBOOK, f"{ADA}/y.ipynb": OTHER})
    data = source.read_bytes()
    size = len(NOTEBOOK).to_bytes(4, "little")
    assert data.count(size) == 2
    source.write_bytes(data.replace(size, (5).to_bytes(4, "little")))
    summary = collect(course, HW, source, listed=worksheet(tmp_path / "w.csv"))
    assert tree(course)["ada"] == ["y.ipynb"]
    assert "damaged" in summary.refused[0].reason


def test_a_member_whose_content_is_damaged(course, tmp_path):
    source = moodle(tmp_path, {f"{ADA}/x.ipynb": NOTEBOOK, f"{ADA}/y.ipynb": OTHER})
    data = bytearray(source.read_bytes())
    start = data.find(b"x.ipynb") + 60
    data[start : start + 20] = b"\xff" * 20
    source.write_bytes(bytes(data))
    summary = collect(course, HW, source, listed=worksheet(tmp_path / "w.csv"))
    assert tree(course)["ada"] == ["y.ipynb"]
    assert "damaged" in summary.refused[0].reason


def test_an_encrypted_member(course, tmp_path):
    source = moodle(tmp_path, {f"{ADA}/x.ipynb": NOTEBOOK})
    data = bytearray(source.read_bytes())
    data[6] |= 1
    data[data.find(b"PK\x01\x02") + 8] |= 1
    source.write_bytes(bytes(data))
    summary = collect(course, HW, source, listed=worksheet(tmp_path / "w.csv"))
    assert "encrypted" in summary.refused[0].reason


@pytest.mark.parametrize(
    "limits", [archive.Limits(entries=3), archive.Limits(total_bytes=100)], ids=["count", "size"]
)
def test_a_download_beyond_the_limits_is_refused_as_a_whole(course, tmp_path, limits):
    with pytest.raises(CourseError, match="limit"):
        collect(
            course,
            HW,
            moodle(tmp_path, FULL),
            listed=worksheet(tmp_path / "w.csv"),
            limits=limits,
        )
    assert tree(course) == {}


def test_links_in_a_plain_folder(course, tmp_path):
    roster(course, "ada")
    top = tmp_path / "in"
    (top / "ada").mkdir(parents=True)
    (top / "ada" / "link.ipynb").symlink_to("/etc/passwd")
    (top / "ada" / "folder").symlink_to("/etc")
    (top / "ada" / "1-doubling.ipynb").write_bytes(NOTEBOOK)
    summary = collect(course, HW, top)
    assert len(summary.refused) == 2
    assert tree(course) == {"ada": ["1-doubling.ipynb"]}


@pytest.mark.parametrize("text", ["", "not a zip", "PK\x03\x04"])
def test_no_zip_at_all(course, tmp_path, text):
    path = tmp_path / "x.zip"
    path.write_text(text)
    with pytest.raises(CourseError, match="no zip"):
        collect(course, HW, path)
    with pytest.raises(CourseError, match="does not exist"):
        collect(course, HW, tmp_path / "none.zip")


def test_other_mistakes_are_one_line(course, tmp_path):
    source = moodle(tmp_path, FULL)
    listed = worksheet(tmp_path / "w.csv")
    with pytest.raises(CourseError, match="no assignment"):
        collect(course, "hw9", source, listed=listed)
    with pytest.raises(CourseError, match="time zone"):
        collect(course, HW, source, listed=listed, zone="Berlin")
    with pytest.raises(CourseError, match="Canvas"):
        collect(course, HW, source, listed=canvas_list(tmp_path / "c.csv"))
    twice = worksheet(tmp_path / "t.csv", rows=[downloads.WORKSHEET[0]] * 2)
    with pytest.raises(CourseError, match="twice"):
        collect(course, HW, source, listed=twice)


def test_a_dry_run_writes_nothing(course, tmp_path):
    listed = worksheet(tmp_path / "w.csv")
    summary = collect(course, HW, moodle(tmp_path, FULL), listed=listed, dry=True)
    assert len(summary.written) == 6
    assert tree(course) == {}
    assert "would be collected" in summary.lines()[0]


def test_a_stopped_move_is_put_right(course, tmp_path):
    listed = worksheet(tmp_path / "w.csv")
    collect(course, HW, moodle(tmp_path, FULL), listed=listed)
    aside = course.submitted / ".lms" / "replaced" / "ada" / HW
    aside.parent.mkdir(parents=True)
    (course.submitted / "ada" / HW).rename(aside)
    only = {"Li Wei_102_assignsubmission_file/1-doubling.ipynb": NOTEBOOK}
    collect(course, HW, moodle(tmp_path, only), listed=listed)
    assert len(tree(course)["ada"]) == 2
    assert not list((course.submitted / ".lms").glob("*/"))


def test_ids_stay_when_the_gradebook_knows_somebody(course, tmp_path):
    people.enrol(
        course, [people.Person(key="", student="lovelace-7", email="ADA@uni.example")], "plain"
    )
    listed = worksheet(tmp_path / "w.csv")
    collect(course, HW, moodle(tmp_path, FULL), listed=listed)
    assert "lovelace-7" in tree(course)
    assert "ada" not in tree(course)


def test_an_id_of_somebody_else_is_not_taken(course, tmp_path):
    people.enrol(course, [people.Person(key="", student="ada", email="ada@else.example")], "plain")
    collect(course, HW, moodle(tmp_path, FULL), listed=worksheet(tmp_path / "w.csv"))
    assert "ada@uni.example" in tree(course)
    assert "ada" not in tree(course)


def test_the_people_of_a_list_get_different_safe_ids():
    rows = tuple(
        people.Person(key=str(n), email=email)
        for n, email in enumerate(["a@x", "A@y", "../z@x", "", "", "con@x", "a@x"])
    )
    found = people.with_students(people.ClassList("moodle", (), rows), [])
    ids = [p.student.casefold() for p in found.people]
    assert len(set(ids)) == len(ids)
    assert all(people.SAFE_ID.match(i) for i in ids)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.text(max_size=30), st.sampled_from([101, 102, 103, 999]), st.text(max_size=30)
        ),
        max_size=5,
    )
)
def test_no_name_ever_writes_outside_of_its_student(tmp_path_factory, make_course, members):
    root = tmp_path_factory.mktemp("c")
    course = make_course(root / "course")
    files = [
        (f"{full}_{number}_assignsubmission_file_/{name}", str(number).encode())
        for full, number, name in members
    ]
    try:
        source = downloads.archive(root / "m.zip", files)
    except (ValueError, UnicodeError, IndexError):  # zipfile can not write every name
        return
    collect(course, HW, source, kind="moodle", listed=worksheet(root / "w.csv"))
    owner = {"ada": "101", "wei1": "102", "wei2": "103"}
    for path in course.submitted.rglob("*"):
        parts = path.relative_to(course.submitted).parts
        if path.is_file() and parts[0] != ".lms" and path.name not in ("timestamp.txt", REFUSED):
            assert parts[1] == HW
            assert path.read_text() == owner[parts[0]]


@given(st.text(max_size=300))
def test_a_component_is_one_plain_name(text):
    part = _component(text.replace("/", "").replace("..", ""))
    assert part
    assert "/" not in part
    assert len(part.encode()) <= 255


def test_canvas_names():
    match = CANVAS.match("weili_LATE_502_7003_my_work_12_13_x.ipynb")
    assert (match["user"], match["attempt"], match["file"]) == (
        "502",
        "7003",
        "my_work_12_13_x.ipynb",
    )
    assert CANVAS.match("weili_502.ipynb") is None


def test_who_sent_only_an_archive_has_handed_something_in(course, tmp_path):
    files = {"Max Muster_105_assignsubmission_file_/all.zip": b"PK"}
    summary = collect(
        course, HW, moodle(tmp_path, FULL | files), listed=worksheet(tmp_path / "w.csv")
    )
    alone = {"Max Muster_105_assignsubmission_file_/all.zip": b"PK"}
    other = collect(course, HW, moodle(tmp_path, alone), listed=worksheet(tmp_path / "w.csv"))
    assert (course.submitted / "max@uni.example" / HW / REFUSED).read_text().startswith("all.zip\t")
    assert summary.missing == ["nobody (Nobody Here)"]
    assert other.no_notebook == {"max@uni.example": "all.zip"}
    assert "max@uni.example (Max Muster)" not in other.missing
    assert "ada (Ada Lovelace)" in other.missing
    places = record.load(course, HW).places["max@uni.example"]
    assert places == ["Max Muster_105_assignsubmission_file_"]


def test_what_is_refused_of_nobody_on_the_list_makes_no_student(course, tmp_path):
    files = FULL | {"Eve Nobody_999_assignsubmission_file_/all.zip": b"PK", "../evil/x.zip": b"PK"}
    collect(course, HW, moodle(tmp_path, files), listed=worksheet(tmp_path / "w.csv"))
    assert sorted(tree(course)) == sorted(
        ["ada", "wei1", "wei2", "zoe", "max@uni.example", "max@other.example"]
    )
    assert not list(course.submitted.rglob(REFUSED))


def test_a_students_file_of_that_name_is_not_taken_for_ours(course, tmp_path):
    files = {f"Ada Lovelace_101_assignsubmission_file_/{REFUSED}": b"grade\tall points"}
    collect(course, HW, moodle(tmp_path, FULL | files), listed=worksheet(tmp_path / "w.csv"))
    assert not (course.submitted / "ada" / HW / REFUSED).exists()
