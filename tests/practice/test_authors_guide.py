"""Does docs/authors.md lead to a task that works, if it is followed literally?"""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest

import attention_lab as lab
from autograder import mutants, notebook_check, sync, tables
from autograder.tasks import judge
from autograder.tasks.authoring import answer_source
from autograder.tasks.registry import assignment

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "authors.md").read_text(encoding="utf-8")
MODULE, PARTS, ANSWER, CHECKPOINT = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture
def task(tmp_path, monkeypatch):
    """Step 1: the module, saved and imported."""
    (tmp_path / "combine_masks.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "combine_masks", raising=False)
    import combine_masks

    return combine_masks.TASK


@pytest.fixture
def tasks(task):
    """Step 2: the notebook's parts, as the guide writes them."""
    practice = assignment("w07-h2-practice")
    masks = practice.notebook("2-masks")
    named = {f"{part.name}.TASK": part for part in (*masks.parts, task)}
    order = re.findall(r"\w+\.TASK", PARTS)
    return replace(masks, parts=tuple(named[name] for name in order))


@pytest.fixture
def notebook(tasks):
    """Step 3: the cells, put before those of mha_mask, and `make sync`."""
    nb = nbformat.read(ROOT / "source" / "w07-h2-practice" / "2-masks.ipynb", as_version=4)
    names = [c.metadata.get("nbgrader", {}).get("grade_id") for c in nb.cells]
    place = names.index("mha_mask")
    answer, check = (
        nbformat.from_dict(nb.cells[names.index(n)]) for n in ("causal_mask", "causal_mask-past")
    )
    answer.update(id="combine-masks", source=ANSWER.strip())
    check.update(id="combine-masks-both", source=CHECKPOINT.strip())
    answer.metadata.nbgrader["grade_id"] = "combine_masks"
    check.metadata.nbgrader["grade_id"] = "combine_masks-both"
    nb.cells[place:place] = [answer, check]
    sync.sync_notebook(nb, tasks)
    return nb


def test_right_work_is_right_and_each_mistake_is_named(task):
    for seed in range(3):
        cases = judge.questions(task, np.random.default_rng(seed))
        for function in (task.reference, *[a.implementation for a in task.alternatives]):
            found = judge.judge(task, cases, judge.outcomes(task, function, cases), None)
            assert found["combine_masks-both"].verdict == "right"
        for wrong in task.misconceptions:
            found = judge.judge(
                task, cases, judge.outcomes(task, wrong.implementation, cases), None
            )
            assert found["combine_masks-both"].misconceptions == (wrong.name,)


def test_its_mutants_are_caught(task):
    result = mutants.examine(task)
    assert result.caught >= 4
    assert not result.missed
    assert not result.survivors


def test_the_notebook_keeps_the_conventions(notebook, tasks):
    problems = [text for rule in notebook_check.RULES for text in rule(notebook, tasks)]
    assert problems == []
    cell = next(c for c in notebook.cells if c.id == "combine-masks")
    assert "Join a causal mask and the padding mask" in cell.source


def test_the_conventions_are_broken_without_the_task(notebook):
    masks = assignment("w07-h2-practice").notebook("2-masks")
    problems = [text for rule in notebook_check.RULES for text in rule(notebook, masks)]
    assert any("combine_masks-both" in text for text in problems)


def test_the_student_reads_the_mistakes_name(task, tasks, monkeypatch):
    monkeypatch.setattr(lab, "_TABLES", json.loads(json.dumps(tables.public_tables(tasks))))
    names = {}
    exec(answer_source(task.misconceptions[0].implementation, task.name), names)
    with pytest.raises(lab.CheckError, match="either-is-enough"):
        lab.check_task("combine_masks-both", names["combine_masks"])
    names = {}
    exec(ANSWER, names)
    lab.check_task("combine_masks-both", names["combine_masks"])
