"""Are our steps in nbgrader's own commands? Taking any of them out of the config must be noticed."""

from __future__ import annotations

import copy
import json

import pytest
from traitlets.utils.importstring import import_item

from autograder import classroom, stamp
from autograder.configuration import load_config
from autograder.course import Course
from tests.conftest import ROOT

NAME = "w07-h2-attention"
NOTEBOOK = "1-scores-and-context"
CONFIG = (ROOT / "nbgrader_config.py").read_text(encoding="utf-8")


def without(step: str) -> str:
    """The config without the line that names `step`."""
    lines = [line for line in CONFIG.splitlines() if step not in line]
    assert len(lines) == len(CONFIG.splitlines()) - 1
    return "\n".join(lines) + "\n"


def released_right(scratch) -> str:
    """What is wrong with a release made by `nbgrader generate_assignment`, "" if nothing is."""
    source = scratch.root / "source" / NAME / f"{NOTEBOOK}.ipynb"
    nb = json.loads(source.read_text(encoding="utf-8"))
    nb["metadata"]["toc"] = {"opened": "by one author's editor"}
    source.write_text(json.dumps(nb), encoding="utf-8")
    stamp.write(Course(scratch.root), NAME)
    done = scratch.nbgrader("generate_assignment", NAME, "--force", "--notebook", NOTEBOOK)
    path = scratch.root / "release" / NAME / f"{NOTEBOOK}.ipynb"
    kept = ROOT / "release" / NAME / f"{NOTEBOOK}.ipynb"
    if not path.exists():
        return f"no release: {done.stderr[-300:]}"
    return "" if path.read_bytes() == kept.read_bytes() else "differs from the committed release"


def graded_right(scratch) -> str:
    """What is wrong after `nbgrader autograde` of one student, "" if nothing is."""
    course = Course(scratch.root)
    good = {NOTEBOOK: classroom.diligent(course, NAME)[NOTEBOOK]}
    wrong = classroom.replaced(good, "run-3", "/ np.sqrt(K.shape[-1])", "")
    wrong = classroom.replaced(
        wrong, "run-1", "import platform", "lab.check_close = print; import platform"
    )
    cells = wrong[NOTEBOOK].cells
    cells.append(copy.deepcopy(next(c for c in cells if c.id == "seed-repeats")))
    classroom.hand_in(course, "demo-ada", NAME, wrong, "Copy of {}.ipynb")
    scratch.nbgrader("autograde", NAME, "--force")
    path = scratch.root / "autograded" / "demo-ada" / NAME / f"{NOTEBOOK}.ipynb"
    if not path.exists():
        return "nothing was autograded"
    nb = json.loads(path.read_text(encoding="utf-8"))
    cell = next(c for c in nb["cells"] if c["id"] == "scores-scaled")
    if cell["metadata"].get("autograder", {}).get("score") != 2.0:
        return "the verdict is not the grader's"
    results = scratch.root / "autograded" / f"{NAME}.results.json"
    if not results.exists():
        return "no results were written"
    return ""


def test_with_all_steps_release_and_grading_are_right(scratch):
    assert released_right(scratch) == ""
    assert graded_right(scratch) == ""


@pytest.mark.parametrize("step", ['EmbedHelper"', "StableNotebook"])
def test_a_release_step_taken_out_is_noticed(scratch, step):
    (scratch.root / "nbgrader_config.py").write_text(without(step), encoding="utf-8")
    assert released_right(scratch) != ""


@pytest.mark.parametrize(
    "step", ["before_autograde", "after_autograde", "IngestSubmission", "GradeByEvidence"]
)
def test_a_grading_step_taken_out_is_noticed(scratch, step):
    (scratch.root / "nbgrader_config.py").write_text(without(step), encoding="utf-8")
    assert graded_right(scratch) != ""


def test_a_release_is_refused_where_the_grader_was_not_checked(scratch):
    helper = scratch.root / "attention_lab.py"
    helper.write_text(helper.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    done = scratch.nbgrader("generate_assignment", NAME, "--force")
    assert done.returncode != 0
    assert "make check-grader" in done.stderr
    assert "Traceback" not in done.stderr
    ours = scratch.run("release", NAME, check=False)
    assert ours.returncode == 2
    assert "make check-grader" in ours.stderr
    # Without the step nbgrader would release it.
    (scratch.root / "nbgrader_config.py").write_text(
        without("RequireCheckedGrader"), encoding="utf-8"
    )
    assert scratch.nbgrader("generate_assignment", NAME, "--force").returncode == 0


OURS = {
    "HTMLExporter.preprocessors": ["autograder.feedback.inert.InertNotebook"],
    "GenerateFeedback.exporter_class": "autograder.feedback.exporter.FeedbackExporter",
    "ExportApp.plugin_class": "autograder.lms.export.CourseExport",
}


def ours_missing(course) -> list[str]:
    """Settings of ours that the loaded configuration lacks or that can't be imported."""
    config = load_config(course)
    missing = []
    for setting, wanted in OURS.items():
        section, name = setting.split(".")
        if config[section].get(name) != wanted:
            missing.append(setting)
        else:
            import_item(wanted if isinstance(wanted, str) else wanted[0])
    return missing


def test_pages_feedback_and_export_are_ours(scratch):
    assert ours_missing(Course(scratch.root)) == []


@pytest.mark.parametrize("step", ["HTMLExporter", "GenerateFeedback", "ExportApp"])
def test_a_page_or_export_setting_taken_out_is_noticed(scratch, step):
    (scratch.root / "nbgrader_config.py").write_text(without(f"c.{step}"), encoding="utf-8")
    assert len(ours_missing(Course(scratch.root))) == 1


def test_pages_that_students_hand_in_are_not_copied_into_feedback():
    assert {"*.htm*", "*.svg"} <= set(load_config(Course(ROOT)).CourseDirectory.ignore)
