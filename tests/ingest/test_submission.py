"""Files: which of them is which notebook, which copy counts, what is refused."""

import json
import os

import pytest

from autograder.course import CourseError
from autograder.ingest import REFUSED, open_submission

from .samples import SOLUTIONS, cell, other_released, released, solved, write

NAMES = ("1-doubling", "2-halving")


@pytest.fixture
def release(tmp_path):
    folder = tmp_path / "release" / "hw"
    write(folder / "1-doubling.ipynb", released())
    write(folder / "2-halving.ipynb", other_released())
    return folder


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "submitted" / "ada" / "hw"
    path.mkdir(parents=True)
    return path


def ids(ingested):
    return [c.id for c in ingested.notebook.cells]


def test_two_clean_notebooks(release, folder):
    write(folder / "1-doubling.ipynb", solved())
    write(folder / "2-halving.ipynb", solved(other_released()))
    found = open_submission(folder, release, NAMES)
    assert (found.student, found.assignment, found.notes) == ("ada", "hw", [])
    assert list(found.notebooks) == list(NAMES)
    for one in found.notebooks.values():
        assert (one.repairs, one.problem, one.missing) == ([], None, False)
    assert ids(found.notebooks["2-halving"])[2] == "half"


@pytest.mark.parametrize(
    "name",
    [
        "Copy of 1-doubling.ipynb",
        "1-doubling (3).ipynb",
        "Kopie von Copy of 1-doubling (1).ipynb",
        "2-halving.ipynb",
        "final FINAL ü.ipynb",
        "deep/er/1-doubling.ipynb",
        "1-doubling.ipynb.txt",
        "1-doubling.ipynb.json",
        "1-doubling",
        "1-DOUBLING.IPYNB",
        "1-doubling-checkpoint.ipynb",
    ],
)
@pytest.mark.parametrize("stripped", [False, True])
def test_a_file_is_known_by_what_is_inside(release, folder, name, stripped):
    nb = solved()
    if stripped:
        for number, one in enumerate(nb.cells):
            one.metadata, one.id = {}, f"n{number}"
    write(folder / name, nb)
    found = open_submission(folder, release, NAMES)
    one = found.notebooks["1-doubling"]
    assert one.problem is None
    assert cell(one.notebook, "double").source == SOLUTIONS["double"]
    assert any(name.split("/")[-1].split(".")[0] in s for s in one.repairs)
    assert found.notebooks["2-halving"].missing
    assert "missing" in found.notebooks["2-halving"].problem


def test_swapped_names(release, folder):
    write(folder / "2-halving.ipynb", solved())
    write(folder / "1-doubling.ipynb", solved(other_released()))
    found = open_submission(folder, release, NAMES)
    assert "double" in ids(found.notebooks["1-doubling"])
    assert "half" in ids(found.notebooks["2-halving"])


def test_the_worked_copy_counts_though_the_untouched_one_is_newer(release, folder):
    write(folder / "1-doubling (1).ipynb", solved())
    new = write(folder / "1-doubling.ipynb", released())
    os.utime(new, (2e9, 2e9))
    one = open_submission(folder, release, NAMES).notebooks["1-doubling"]
    assert cell(one.notebook, "double").source == SOLUTIONS["double"]
    assert any("`1-doubling (1).ipynb` counted" in s for s in one.repairs)


def test_of_two_worked_copies_the_newer_counts(release, folder):
    old = solved()
    cell(old, "double").source = "def double(x):\n    return 3 * x"
    for name, nb, when in (("a.ipynb", solved(), 1.6e9), ("b.ipynb", old, 1.5e9)):
        os.utime(write(folder / name, nb), (when, when))
    one = open_submission(folder, release, NAMES).notebooks["1-doubling"]
    assert one.path.name == "a.ipynb"
    assert any("newest" in s for s in one.repairs)


def test_colabs_own_clock_beats_the_files(release, folder):
    for name, stamp, when in (("a.ipynb", 1_700_000_600, 1.5e9), ("b.ipynb", 1_700_000_000, 1.9e9)):
        nb = solved()
        cell(nb, "double").metadata["executionInfo"] = {"timestamp": stamp * 1_000}
        os.utime(write(folder / name, nb), (when, when))
    one = open_submission(folder, release, NAMES).notebooks["1-doubling"]
    assert one.path.name == "a.ipynb"


def test_a_readable_copy_counts_before_a_broken_one(release, folder):
    write(folder / "copy.ipynb", solved())
    (folder / "1-doubling.ipynb").write_text(json.dumps(solved())[:2000])
    one = open_submission(folder, release, NAMES).notebooks["1-doubling"]
    assert one.problem is None
    assert any("can't be read" in s for s in one.repairs)


def test_saved_checkpoints_are_the_last_resort(release, folder):
    write(folder / ".ipynb_checkpoints/1-doubling-checkpoint.ipynb", solved())
    one = open_submission(folder, release, NAMES).notebooks["1-doubling"]
    assert one.problem is None
    write(folder / "1-doubling.ipynb", solved())
    one = open_submission(folder, release, NAMES).notebooks["1-doubling"]
    assert one.repairs == []


@pytest.mark.parametrize("name", ["1-doubling.ipynb", "homework.ipynb"])
def test_a_truncated_file_is_ungradable_and_not_missing(release, folder, name):
    (folder / name).write_text(json.dumps(solved())[:2500])
    one = open_submission(folder, release, NAMES).notebooks["1-doubling"]
    assert one.notebook is None
    assert not one.missing
    assert "cut off" in one.problem


def test_a_notebook_of_something_else_is_ungradable(release, folder):
    nb = solved()
    for one in nb.cells:
        one.source, one.metadata = "print(1)", {}
    nb.cells = nb.cells[:1]
    write(folder / "1-doubling.ipynb", nb)
    found = open_submission(folder, release, NAMES)
    one = found.notebooks["1-doubling"]
    assert not one.missing
    assert "Hand in the notebook of this assignment" in one.problem


def test_only_the_functions_in_a_fresh_notebook_still_count(release, folder):
    nb = solved()
    nb.cells = [cell(nb, "double"), cell(nb, "square")]
    for number, one in enumerate(nb.cells):
        one.metadata, one.id = {}, f"own{number}"
    write(folder / "work.ipynb", nb)
    one = open_submission(folder, release, NAMES).notebooks["1-doubling"]
    assert cell(one.notebook, "square").source == SOLUTIONS["square"]


def test_all_notebooks_in_one_file(release, folder):
    nb = solved()
    nb.cells += solved(other_released()).cells[1:]
    write(folder / "all.ipynb", nb)
    found = open_submission(folder, release, NAMES)
    assert all(one.problem is None for one in found.notebooks.values())


def test_nothing_at_all(release, folder, tmp_path):
    for place in (folder, tmp_path / "submitted" / "nobody" / "hw"):
        found = open_submission(place, release, NAMES)
        assert all(one.missing and one.problem for one in found.notebooks.values())


def test_an_unknown_release_is_the_courses_mistake(release, folder):
    with pytest.raises(CourseError, match="3-none"):
        open_submission(folder, release, ["3-none"])


def test_links_pipes_and_devices_are_refused(release, folder, tmp_path):
    secret = write(tmp_path / "secret.ipynb", solved())
    (folder / "1-doubling.ipynb").symlink_to(secret)
    (folder / "more").symlink_to(tmp_path)
    os.mkfifo(folder / "2-halving.ipynb")
    found = open_submission(folder, release, NAMES)
    assert all(one.notebook is None for one in found.notebooks.values())
    assert len([n for n in found.notes if "symbolic link" in n]) == 2
    assert any("no ordinary file" in n for n in found.notes)


def test_a_linked_folder_is_refused(release, folder, tmp_path):
    write(folder / "1-doubling.ipynb", solved())
    link = tmp_path / "submitted" / "eve" / "hw"
    link.parent.mkdir()
    link.symlink_to(folder)
    assert open_submission(link, release, NAMES).notebooks["1-doubling"].missing


def test_a_huge_file_is_refused(release, folder):
    with open(folder / "1-doubling.ipynb", "wb") as stream:
        stream.truncate(60 * 2**20)
    one = open_submission(folder, release, NAMES).notebooks["1-doubling"]
    assert "50 MB" in one.problem


def test_shadowing_files_and_archives_are_told_and_kept_back(release, folder):
    write(folder / "1-doubling.ipynb", solved())
    for name in ("numpy.py", "json.py", "x.so", "work.zip", "utils.py", "data.csv"):
        (folder / name).write_bytes(b"1")
    (folder / "torch").mkdir()
    (folder / "torch" / "__init__.py").write_text("")
    found = open_submission(folder, release, NAMES)
    assert {p.name for p in found.files} == {"utils.py", "data.csv"}
    for name in ("numpy.py", "json.py", "x.so", "work.zip", "__init__.py"):
        assert any(f"`{name}`" in n for n in found.notes)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2026-11-12 21:33:00 UTC", False),
        ("2026-11-12 21:33:00.12 Europe/Berlin", False),
        ("soon", True),
    ],
)
def test_a_bad_timestamp_is_told(release, folder, text, told):
    (folder / "timestamp.txt").write_text(text)
    found = open_submission(folder, release, NAMES)
    assert any("timestamp" in n for n in found.notes) == told
    assert found.files == []


def test_too_many_and_too_deep(release, folder):
    write(folder / "1-doubling.ipynb", solved())
    for number in range(250):
        (folder / f"z{number}.dat").write_text("")
    deep = folder
    for _ in range(12):
        deep = deep / "d"
        deep.mkdir()
    found = open_submission(folder, release, NAMES)
    assert found.notebooks["1-doubling"].problem is None
    assert any("More than 200" in n for n in found.notes)


def test_names_of_files_cannot_break_a_sentence(release, folder):
    write(folder / "a`\n<b>x\x1b[2J.ipynb", solved())
    one = open_submission(folder, release, NAMES).notebooks["1-doubling"]
    assert all("\n" not in s and "<" not in s and "\x1b" not in s for s in one.repairs)


def test_what_is_no_notebook_is_named(release, folder):
    (folder / "essay.docx").write_bytes(b"PK")
    (folder / "timestamp.txt").write_text("2026-11-12 21:33:00 UTC\n")
    (folder / "link.ipynb").symlink_to(folder / "essay.docx")
    (folder / REFUSED).write_text("all.zip\tit is an archive\n<b>\tno\n")
    found = open_submission(folder, release, NAMES)
    assert sorted(found.others) == ["?b?", "all.zip", "essay.docx", "link.ipynb"]
    assert "`all.zip` was refused when it was collected: it is an archive." in found.notes
    assert REFUSED not in [path.name for path in found.files]


def test_a_folder_with_a_time_alone_holds_nothing(release, folder):
    (folder / "timestamp.txt").write_text("2026-11-12 21:33:00 UTC\n")
    assert open_submission(folder, release, NAMES).others == []
