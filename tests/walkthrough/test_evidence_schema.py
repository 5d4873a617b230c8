"""Does the documented schema accept what the notebooks write, and refuse what they must not?"""

from __future__ import annotations

import copy
import json

import jsonschema
import pytest

from tests.walkthrough.play import CHANGES, NOTEBOOKS, ROOT, play, predictions

SCHEMA = json.loads((ROOT / "docs" / "evidence.schema.json").read_text(encoding="utf-8"))
PART = {**SCHEMA["$defs"]["part"], "$defs": SCHEMA["$defs"]}
ONE, TWO, THREE = NOTEBOOKS


def refuse_constants(text):
    raise AssertionError(f"{text} is not JSON")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict[str, dict]:
    """The files that an untouched run and a fully worked run of each notebook write."""
    found = {}
    for name in NOTEBOOKS:
        for kind, edits in (("untouched", []), ("worked", CHANGES[name] + predictions(name))):
            folder = tmp_path_factory.mktemp(kind)
            play(name, edits, folder)
            (path,) = (folder / "artifacts").iterdir()
            text = path.read_text(encoding="utf-8")
            found[f"{name} {kind}"] = json.loads(text, parse_constant=refuse_constants)
    return found


def test_the_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("kind", ["untouched", "worked"])
def test_notebook_3_alone_writes_complete_evidence(written, kind):
    jsonschema.validate(written[f"{THREE} {kind}"], SCHEMA)


@pytest.mark.parametrize("kind", ["untouched", "worked"])
def test_every_notebook_writes_a_part(written, kind):
    for name in NOTEBOOKS:
        jsonschema.validate(written[f"{name} {kind}"], PART)


def test_a_part_is_not_complete_evidence(written):
    for name in (ONE, TWO):
        with pytest.raises(jsonschema.ValidationError, match="is a required property"):
            jsonschema.validate(written[f"{name} worked"], SCHEMA)


def test_the_merged_evidence_of_the_grader_is_complete(written):
    from autograder.grade.submission import _merge, strict

    merged: dict = {}
    for name in NOTEBOOKS:
        _merge(merged, written[f"{name} worked"])
    jsonschema.validate(strict(merged), SCHEMA)
    assert len(merged["predictions"]) == 14


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema_version", 2),
        ("schema_version", "1"),
        ("Q", [1.0, 0.0]),
        ("weights", [[1.5, -0.5]]),
        ("weights", []),
        ("context", [["8.02", "5.99"]]),
        ("seed", 2026.5),
        ("interpretation", ""),
        ("assertions", {"causal_mask": "yes"}),
        ("assertions", {"other": True}),
        ("predictions", ["A"]),
        ("environment", {"python": "3.13.1"}),
        ("surprise", 1),
    ],
)
def test_what_does_not_fit_is_refused(written, key, value):
    evidence = copy.deepcopy(written[f"{THREE} worked"])
    evidence[key] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(evidence, SCHEMA)


@pytest.mark.parametrize("key", SCHEMA["required"])
def test_every_required_key_is_required(written, key):
    evidence = copy.deepcopy(written[f"{THREE} worked"])
    del evidence[key]
    with pytest.raises(jsonschema.ValidationError, match=key):
        jsonschema.validate(evidence, SCHEMA)
