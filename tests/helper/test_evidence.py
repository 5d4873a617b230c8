"""Is the evidence strict JSON, written in one step, never read, and clear about what is missing?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import attention_lab as lab

REQUIRED = {"Q": "section 2", "weights": "section 4", "assertions.causal_mask": "section 7"}


@pytest.fixture
def evidence(tmp_path):
    return lab.Evidence(tmp_path / "artifacts" / "w07.json", REQUIRED)


def complete(evidence):
    evidence.record(Q=np.array([[1.0, 0.0]]), weights=np.array([[0.25, 0.75]]), seed=2026)
    evidence.confirm("causal_mask", np.array([True, True]))
    return evidence


def test_values_become_plain_data(evidence):
    evidence.record(
        a=np.float32(0.5), b=np.arange(3), c=np.bool_(True), d=(1, [2.5]), e={"x": np.int64(3)}
    )
    assert evidence.data["a"] == 0.5
    assert evidence.data["b"] == [0, 1, 2]
    assert evidence.data["c"] is True
    assert evidence.data["d"] == [1, [2.5]]
    assert evidence.data["e"] == {"x": 3}
    assert type(evidence.data) is dict


def test_a_tensor_becomes_a_list(evidence):
    evidence.record(context=torch.tensor([[1.0, 2.0]], requires_grad=True))
    assert evidence.data["context"] == [[1.0, 2.0]]


@pytest.mark.parametrize(
    "value", [float("nan"), np.array([[1.0, np.inf]]), [1, [np.nan]], {"x": -np.inf}]
)
def test_nan_and_infinity_are_refused_where_they_are_recorded(evidence, value):
    with pytest.raises(lab.CheckError, match="`weights` holds NaN or infinity") as caught:
        evidence.record(weights=value)
    assert "without an allowed key" in str(caught.value)
    assert "weights" not in evidence.data


def test_other_objects_are_refused_by_name(evidence):
    with pytest.raises(lab.CheckError, match="`Q` is a object, not numbers or text"):
        evidence.record(Q=object())


def test_an_unanswered_prediction_runs(evidence, capsys):
    evidence.predict("scores", None)
    evidence.predict("blank", "   ")
    assert evidence.data["predictions"] == {"scores": None, "blank": None}
    assert "is open: replace None by what you expect" in capsys.readouterr().out


@pytest.mark.parametrize(
    "answer", ["A and C tie", 3, 0.5, [0.2, 0.8], np.array([0.2, 0.8]), False, 0]
)
def test_any_answer_counts(evidence, answer):
    evidence.predict("scores", answer)
    lab.begin([], Q=[[1, 0]])
    evidence.check_yours("scores", my_Q=[[2, 0]])


def test_what_is_still_to_do_is_said_in_one_sentence(evidence):
    lab.begin(["scores-scaled"], Q=[[1, 0]], K=[[1, 0]])
    evidence.predict("scores", None)
    with pytest.raises(NotImplementedError) as caught:
        evidence.check_yours("scores", Q=[[1, 0]], my_Q=[[1, 0]], my_K=[[1, 0]])
    said = 'change my_Q or my_K and answer evidence.predict("scores", ...)'
    assert str(caught.value) == said


def test_saving_with_something_missing_says_what_and_where(evidence):
    evidence.record(Q=[[1.0]])
    with pytest.raises(lab.CheckError) as caught:
        evidence.save()
    text = str(caught.value)
    assert "weights (section 4), assertions.causal_mask (section 7)" in text
    assert "section 2" not in text
    assert not evidence.path.exists()


def test_saving_writes_strict_json(evidence, capsys):
    complete(evidence).save()
    text = evidence.path.read_text(encoding="utf-8")
    saved = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert saved == evidence.data
    assert saved["schema_version"] == 1
    assert saved["environment"]["numpy"] == np.__version__
    assert set(saved["environment"]) >= {"python", "numpy"}
    assert "Evidence written to" in capsys.readouterr().out


def test_a_write_that_fails_leaves_the_old_file(evidence, monkeypatch, capsys):
    complete(evidence).save()
    before = evidence.path.read_text(encoding="utf-8")
    evidence.record(seed=7)

    def half(self, text, encoding=None):
        with open(self, "w") as file:
            file.write(text[: len(text) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", half)
    evidence.save()
    assert evidence.path.read_text(encoding="utf-8") == before
    assert "No file written" in capsys.readouterr().out


def test_the_file_is_replaced_in_one_step(evidence, monkeypatch):
    complete(evidence).save()
    replaced = []
    real = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda self, to: (replaced.append((self, to)), real(self, to))
    )
    evidence.save()
    ((part, whole),) = replaced
    assert whole == evidence.path
    assert part.parent == whole.parent
    assert [path.name for path in evidence.path.parent.iterdir()] == ["w07.json"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, capsys):
    (tmp_path / "artifacts").write_text("a file is in the way")
    complete(lab.Evidence(tmp_path / "artifacts" / "w07.json", REQUIRED)).save()
    assert "the evidence below is in the notebook you hand in" in capsys.readouterr().out


def test_a_stale_file_never_satisfies(evidence):
    complete(evidence).save()
    fresh = lab.Evidence(evidence.path, REQUIRED)
    with pytest.raises(lab.CheckError, match="not in the evidence: Q"):
        fresh.check_complete()
    with pytest.raises(lab.CheckError):
        fresh.save()
    assert "Q" not in fresh.data


def test_an_assertion_that_does_not_hold_is_kept_as_false(evidence, capsys):
    evidence.confirm("causal_mask", np.array([True, False]))
    assert evidence.data["assertions"] == {"causal_mask": False}
    assert "does NOT hold" in capsys.readouterr().out
