"""Are the practice notebooks what the task definitions say, for a student who opens one alone?"""

import inspect
import re
from pathlib import Path

import nbformat
import pytest

import attention_lab
from autograder.tasks.model import FunctionTask, ManualTask
from autograder.tasks.registry import assignment
from autograder.tasks.w07_h2_practice import candidates, remove_key

ROOT = Path(__file__).resolve().parents[2]
PRACTICE = assignment("w07-h2-practice")
SOURCES = {
    n.name: nbformat.read(ROOT / "source" / PRACTICE.name / f"{n.name}.ipynb", as_version=4)
    for n in PRACTICE.notebooks
}


def cell(notebook, cell_id):
    return next(c for c in SOURCES[notebook].cells if c.id == cell_id)


def position(notebook, cell_id):
    return [c.id for c in SOURCES[notebook].cells].index(cell_id.replace("_", "-"))


def test_the_local_candidates_are_those_of_the_tables():
    assert cell("1-attention", "candidates").source.strip() == (
        inspect.getsource(candidates.local_candidates).strip()
    )


def test_the_recap_is_the_softmax_that_remove_key_is_judged_with():
    assert inspect.getsource(remove_key.softmax).strip() in cell("3-experiments", "recap").source


@pytest.mark.parametrize("notebook", PRACTICE.notebooks, ids=lambda n: n.name)
def test_every_function_has_its_reference_as_solution(notebook):
    for part in notebook.parts:
        if isinstance(part, FunctionTask):
            source = cell(notebook.name, part.name.replace("_", "-")).source
            body = source.split("### BEGIN SOLUTION\n")[1].split("    ### END SOLUTION")[0]
            reference = inspect.getsource(part.reference).split("\n", 1)[1]
            assert body.strip() == reference.strip()


def test_callers_and_callees_share_a_notebook_and_accepts_comes_last():
    names = ["scaled_scores", "softmax", "attention", "accepts"]
    places = [position("1-attention", name) for name in names]
    assert places == sorted(places)
    parts = [p.name for p in PRACTICE.notebook("1-attention").parts]
    assert parts == names


@pytest.mark.parametrize("notebook", PRACTICE.notebooks, ids=lambda n: n.name)
def test_a_prediction_comes_before_the_run_and_the_explanation_after(notebook):
    ids = [c.id for c in SOURCES[notebook.name].cells]
    for found in [i for i in ids if i.endswith("-run") and not i.endswith("try-run")]:
        topic = found.removesuffix("-run")
        assert ids.index(f"{topic}-predict") < ids.index(found) < ids.index(f"{topic}-explain")


@pytest.mark.parametrize("notebook", PRACTICE.notebooks, ids=lambda n: n.name)
def test_hints_are_folded_and_titled_by_symptom(notebook):
    text = "\n".join(c.source for c in SOURCES[notebook.name].cells if c.cell_type == "markdown")
    titles = re.findall(r"<summary>(.*?)</summary>", text)
    assert len(titles) >= 5
    assert text.count("<details>") == text.count("</details>") == len(titles)
    assert not any(title.lower().startswith("hint") for title in titles)


@pytest.mark.parametrize("notebook", PRACTICE.notebooks, ids=lambda n: n.name)
def test_no_checkpoint_holds_an_answer_of_a_function(notebook):
    for c in SOURCES[notebook.name].cells:
        told = c.metadata.get("nbgrader", {})
        if told.get("grade") and c.cell_type == "code" and "check_task" in c.source:
            assert len(c.source.splitlines()) <= 3
            assert "np." not in c.source


def test_the_mark_scheme_is_the_definitions():
    words = next(p for p in PRACTICE.notebook("3-experiments").parts if isinstance(p, ManualTask))
    assert words.scheme.strip() in cell("3-experiments", "words-heatmap").source


def test_transfer_answers_stand_only_in_the_solution():
    source = SOURCES["3-experiments"]
    for c in source.cells:
        outside = re.sub(r"### BEGIN SOLUTION.*?### END SOLUTION", "", c.source, flags=re.DOTALL)
        assert "(12, 49)" not in outside
        assert "(80, 80)" not in outside


@pytest.mark.parametrize("notebook", PRACTICE.notebooks, ids=lambda n: n.name)
def test_the_helper_has_everything_that_the_notebook_asks_of_it(notebook):
    source = "\n".join(c.source for c in SOURCES[notebook.name].cells if c.cell_type == "code")
    asked = set(re.findall(r"\blab\.(\w+)", source))
    assert asked
    assert not {name for name in asked if not hasattr(attention_lab, name)}
