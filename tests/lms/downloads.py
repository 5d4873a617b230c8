"""Downloads as Moodle and Canvas make them, for invented classes."""

from __future__ import annotations

import csv
import io
import json
import warnings
import zipfile
from pathlib import Path

from tests.ingest.samples import other_released, released, solved, write

NAMES = ("1-doubling", "2-halving")
NOTEBOOK = json.dumps(solved()).encode()
OTHER = json.dumps(solved(other_released())).encode()

WORKSHEET = [
    # Two people have the same name, and two the same beginning of their address.
    ("Participant 101", "Ada Lovelace", "ada@uni.example"),
    ("Participant 102", "Li Wei", "wei1@uni.example"),
    ("Participant 103", "Li Wei", "wei2@uni.example"),
    ("Participant 104", "Zoë Ñandú-Øye", "zoe@uni.example"),
    ("Participant 105", "Max Muster", "max@uni.example"),
    ("Participant 106", "Max Other", "max@other.example"),
    ("Participant 107", "Nobody Here", "nobody@uni.example"),
]
MOODLE_HEADER = [
    "Identifier",
    "Full name",
    "Email address",
    "Status",
    "Grade",
    "Maximum Grade",
    "Grade can be changed",
    "Last modified (submission)",
    "Last modified (grade)",
    "Feedback comments",
]
CANVAS_HEADER = [
    "Student",
    "ID",
    "SIS User ID",
    "SIS Login ID",
    "Section",
    "Doubling (9001)",
    "Final Score",
]


def worksheet(path: Path, rows=WORKSHEET, **changes) -> Path:
    """Moodle's grading worksheet; `changes` go into every row."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, MOODLE_HEADER)
    writer.writeheader()
    for identifier, full, email in rows:
        row = {
            "Identifier": identifier,
            "Full name": full,
            "Email address": email,
            "Status": "Submitted for grading - Not graded",
            "Maximum Grade": "100.00",
            "Grade can be changed": "Yes",
            "Last modified (submission)": "Thursday, 12 November 2026, 10:33 PM",
            "Last modified (grade)": "-",
        }
        writer.writerow(row | changes)
    path.write_bytes(b"\xef\xbb\xbf" + stream.getvalue().encode())
    return path


def canvas_list(path: Path) -> Path:
    rows = [
        ["    Points Possible", "", "", "", "", "6", "(read only)"],
        ["Lovelace, Ada", "501", "s1", "ada@uni.example", "A", "", "0"],
        ["Wei, Li", "502", "s2", "wei1@uni.example", "A", "", "0"],
        ["Wei, Li", "503", "s3", "wei2@uni.example", "B", "", "0"],
        ["=HYPERLINK(1), Eve", "504", "s4", "eve@uni.example", "B", "", "0"],
        ["Student, Test", "", "", "abc", "A", "", ""],
    ]
    stream = io.StringIO()
    csv.writer(stream).writerows([CANVAS_HEADER, *rows])
    path.write_text(stream.getvalue(), encoding="utf-8")
    return path


def archive(path: Path, files) -> Path:
    """A zip; `files` maps names (or ZipInfo) to bytes, as a dict or as pairs."""
    pairs = files.items() if isinstance(files, dict) else files
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in pairs:
            target.writestr(name, data)
    return path


def course_folders(root: Path, assignment="hw") -> None:
    (root / "submitted").mkdir(parents=True)
    write(root / "release" / assignment / "1-doubling.ipynb", released())
    write(root / "release" / assignment / "2-halving.ipynb", other_released())
