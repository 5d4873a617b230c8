"""Does results.json keep to its documented schema, and is it never half written?"""

import json

import jsonschema
import pytest

from autograder.course import Course, CourseError
from autograder.grade import results
from tests.conftest import ROOT

SCHEMA = json.loads((ROOT / "docs/results.schema.json").read_text(encoding="utf-8"))


def valid(score=1.0, status="graded") -> dict:
    entry = results.missing_entry(2.0) | {"status": status, "score": score}
    return {
        "schema_version": 1,
        "assignment": "a",
        "nonce": "0" * 32,
        "max_score": 2.0,
        "students": {"demo-ada": entry},
    }


def test_a_result_of_each_status_is_accepted():
    for status, score in [
        ("graded", 1.0),
        ("repaired", 0.0),
        ("missing", None),
        ("ungradable", None),
    ]:
        jsonschema.validate(valid(score, status), SCHEMA)


@pytest.mark.parametrize(
    ("score", "status"),
    [(0.0, "ungradable"), (0.0, "missing"), (None, "graded"), (-1.0, "graded"), (1.0, "lost")],
)
def test_a_zero_for_no_score_and_other_slips_are_rejected(score, status):
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(valid(score, status), SCHEMA)


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.json"
    results.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        results.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]


def test_an_unwritable_folder_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match="can't write"):
        results.write_json(tmp_path / "file" / "x.json", {})


def test_an_entry_counts_as_finished_only_for_its_own_digest(tmp_path):
    course = Course(tmp_path)
    results.keep(course, "a", "demo-ada", "digest-1", {"status": "graded"})
    assert results.finished(course, "a", "demo-ada", "digest-1") == {"status": "graded"}
    assert results.finished(course, "a", "demo-ada", "digest-2") is None
