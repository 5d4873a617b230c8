"""Does a submission that was sent read as it did before, and is what can't be sent refused?"""

from __future__ import annotations

import os
import stat

import pytest

from autograder import classroom
from autograder.course import Course
from autograder.grade import parcel
from autograder.grade.parcel import Unsendable, pack, unpack
from autograder.ingest import open_submission
from tests.conftest import ROOT

NAME = "w07-h2-attention"
NOTEBOOK = "1-scores-and-context"


@pytest.fixture
def folder(tmp_path):
    """A submission with about everything that ingest has something to say about."""
    course = Course(ROOT)
    good = classroom.diligent(course, NAME)[NOTEBOOK]
    place = classroom.hand_in(Course(tmp_path), "demo-ada", NAME, {NOTEBOOK: good})
    (place / f"Copy of {NOTEBOOK}.ipynb").write_bytes((place / f"{NOTEBOOK}.ipynb").read_bytes())
    os.utime(place / f"Copy of {NOTEBOOK}.ipynb", (2_000_000_000, 2_000_000_000))
    (place / "data.csv").write_bytes(b"1,2\n")
    (place / "empty").mkdir()
    (place / "sub").mkdir()
    (place / "sub" / "numpy.py").write_text("shadow = True")
    (place / "elsewhere.ipynb").symlink_to("/etc/passwd")
    (place / "outside").symlink_to("/etc")
    os.mkfifo(place / "pipe")
    (place / "huge.ipynb").touch()
    os.truncate(place / "huge.ipynb", 2**33)
    (place / "timestamp.txt").write_text("2026-11-12 23:59:00 UTC\n")
    return place


def listing(folder) -> list[tuple]:
    """Names and kinds of everything, sizes and times of files."""
    found = []
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        plain = stat.S_ISREG(status.st_mode)
        more = (status.st_size, status.st_mtime_ns) if plain else ()
        found.append((str(path.relative_to(folder)), stat.S_IFMT(status.st_mode), *more))
    return found


def read(folder) -> tuple:
    """What ingest makes of a folder, without the folder's own place."""
    names = [path.stem for path in sorted((ROOT / "release" / NAME).glob("*.ipynb"))]
    found = open_submission(folder, ROOT / "release" / NAME, names)
    notebooks = {
        name: (item.notebook, item.repairs, item.problem, item.missing)
        for name, item in found.notebooks.items()
    }
    files = [(path.name, path.read_bytes()) for path in found.files]
    return found.student, found.assignment, found.notes, notebooks, files


def test_what_arrives_reads_as_what_was_sent(folder, tmp_path):
    there = tmp_path / "elsewhere" / "demo-ada" / NAME
    packed = pack(folder)
    unpack(packed, there)
    assert listing(there) == listing(folder)
    assert read(there) == read(folder)
    assert len(read(folder)[2]) >= 4
    # The content of what nobody reads is not sent, nor where links lead.
    assert sum(len(entry.data) for entry in packed) < 2**22
    assert b"root:" not in b"".join(entry.data for entry in packed)
    assert (there / "elsewhere.ipynb").is_symlink()
    assert not (there / "elsewhere.ipynb").exists()


def test_a_lost_time_would_be_seen(folder, tmp_path):
    there = tmp_path / "elsewhere" / "demo-ada" / NAME
    unpack(pack(folder), there)
    for path in there.glob("*.ipynb"):
        if path.is_file():
            os.utime(path, (1, 1))
    assert listing(there) != listing(folder)


def test_a_folder_that_is_a_link_is_not_followed(folder, tmp_path):
    link = tmp_path / "submitted" / "demo-bob" / NAME
    link.parent.mkdir()
    link.symlink_to(folder)
    there = tmp_path / "elsewhere" / "demo-bob" / NAME
    unpack(pack(link), there)
    assert read(there) == read(link)
    assert "symbolic link" in read(there)[2][0]


def test_more_than_the_bounds_is_refused(folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(parcel, "MAX_BYTES", 1000)
        with pytest.raises(Unsendable, match="more than"):
            pack(folder)
    monkeypatch.setattr(parcel, "MAX_ENTRIES", 5)
    with pytest.raises(Unsendable, match="more than 5 files"):
        pack(folder)


def test_what_is_gone_is_refused(tmp_path):
    with pytest.raises(Unsendable, match="can't be read"):
        pack(tmp_path / "nobody")
