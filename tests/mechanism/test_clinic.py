"""Does the clinic's regression test fail on every patient, and pass on the repaired one?"""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.tasks.attention_mechanism import clinic, diagnose_shapes

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("patient", clinic.PATIENTS, ids=lambda p: p.name)
def test_fails_on_the_broken_one(patient):
    with pytest.raises((AssertionError, ValueError, RuntimeError)):
        clinic.regression_test(patient.kind, clinic.load(patient.source))


@pytest.mark.parametrize("patient", clinic.PATIENTS, ids=lambda p: p.name)
def test_passes_on_the_repaired_one(patient):
    repaired = patient.source.replace(patient.broken, patient.line)
    clinic.regression_test(patient.kind, clinic.load(repaired))
    assert "\n" not in patient.line


@pytest.mark.parametrize("patient", clinic.PATIENTS, ids=lambda p: p.name)
def test_silent_ones_run(patient):
    attend = clinic.load(patient.source)
    if patient.silent:
        attend(*clinic.inputs(patient.kind))
    else:
        with pytest.raises((ValueError, RuntimeError)):
            attend(*clinic.inputs(patient.kind))


def test_there_are_twelve_and_silent_broadcasting_is_among_them():
    assert len(clinic.PATIENTS) >= 12
    assert sum("stretched" in p.has for p in clinic.PATIENTS) >= 2


def test_the_page_is_made_from_the_list():
    assert (ROOT / "docs" / "shape-clinic.md").read_text("utf-8") == clinic.page()


def test_the_doctor_names_a_transposed_matrix_and_not_a_sound_one():
    kind, shapes = diagnose_shapes.additive(10, 8, 5, 6, W_a=(10, 5))
    assert diagnose_shapes.reference(kind, shapes) == ("W_a", (5, 10))
    assert diagnose_shapes.reference(*diagnose_shapes.additive(10, 8, 5, 6)) is None
