"""The commands as they are typed, from a Moodle download of sixty to the files that go back."""

import argparse
import csv

from autograder.lms import collect, command, roster

from . import downloads
from .downloads import NOTEBOOK, OTHER, worksheet

CLASS = 60


def typed(module, course, *words):
    parser = argparse.ArgumentParser()
    module.configure(parser)
    return module.run(parser.parse_args([str(word) for word in words]), course)


def download(tmp_path):
    """Sixty participants, four of them with the same name, and three who sent nothing."""
    rows, files = [], {}
    for number in range(CLASS):
        full = "Kim Lee" if number % 15 == 0 else f"Student Nº {number}"
        rows.append((f"Participant {9000 + number}", full, f"s{number}@uni.example"))
        if number >= 57:
            continue
        folder = f"{full}_{9000 + number}_assignsubmission_file_"
        files[f"{folder}/1-doubling.ipynb"] = NOTEBOOK
        if number != 10:
            files[f"{folder}/Copy of 2-halving.ipynb"] = OTHER
    files["Student Nº 20_9020_assignsubmission_file_/more.zip"] = b"PK"
    return downloads.archive(tmp_path / "m.zip", files), worksheet(tmp_path / "w.csv", rows)


def test_a_moodle_download_of_sixty(course, tmp_path, capsys):
    source, listed = download(tmp_path)
    assert typed(collect, course, "hw", source, "--list", listed) == 1
    said = capsys.readouterr().out
    assert "57 submissions collected (57 new)." in said
    assert "Handed in nothing (3):" in said
    assert "s10: 2-halving: `2-halving.ipynb` is missing." in said
    assert "more.zip: it is an archive inside the archive" in said
    assert len(list(course.submitted.glob("*/hw"))) == 57
    assert typed(collect, course, "hw", source, "--list", listed) == 1
    assert "(57 same)" in capsys.readouterr().out


def test_without_anything_to_look_at_the_exit_code_is_zero(course, tmp_path, capsys):
    name = "Ada Lovelace_101_assignsubmission_file_/1-doubling.ipynb"
    source = downloads.archive(tmp_path / "m.zip", {name: NOTEBOOK})
    listed = worksheet(tmp_path / "w.csv")
    assert typed(collect, course, "hw", source, "--list", listed, "--dry-run") == 0
    assert "would be collected" in capsys.readouterr().out


def test_the_way_back(course, tmp_path, capsys):
    from autograder.grade import gradebook

    source, listed = download(tmp_path)
    typed(collect, course, "hw", source, "--list", listed)
    with gradebook.opened(course) as book:
        book.add_assignment("hw")
        book.add_notebook("1-doubling", "hw")
        book.add_grade_cell("double-value", "1-doubling", "hw", max_score=2, cell_type="code")
        for number in range(57):
            scores = gradebook.NotebookScores({"double-value": float(number % 3)})
            gradebook.record(book, "hw", f"s{number}", {"1-doubling": scores})
    assert typed(command, course, "hw", "--to", tmp_path / "out", "--no-feedback") == 0
    said = capsys.readouterr().out
    assert "3 missing: left blank, which is not a zero." in said
    with (tmp_path / "out" / "hw-moodle.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == CLASS
    for number, row in enumerate(rows):
        assert row["Identifier"] == f"Participant {9000 + number}"
        assert row["Grade"] == ("" if number >= 57 else ["0", "50", "100"][number % 3])


def test_the_roster(course, tmp_path, capsys):
    _, listed = download(tmp_path)
    assert typed(roster, course, listed) == 0
    assert "60 students added" in capsys.readouterr().out
