"""Does each rule accept a notebook that keeps to the conventions, and reject the slip it is for?"""

from __future__ import annotations

import copy
import textwrap

import nbformat
import pytest

from autograder import notebook_check, sync
from autograder.tasks import registry
from autograder.tasks.model import Checkpoint, FunctionTask, NotebookTasks, ValueTask, Verdict
from tests.conftest import ROOT

DOCSTRING = "Twice z.\n\nArgs:\n    z: (n,) float array."


def tasks() -> NotebookTasks:
    double = FunctionTask(
        name="double",
        signature="double(z)",
        docstring=DOCSTRING,
        checkpoints=(Checkpoint("double-values", "twice the argument", 2),),
        reference=lambda z: 2 * z,
        public=list,
        probes=lambda rng: [],
    )
    total = ValueTask(
        Checkpoint("total-sum", "total is the sum", 1),
        ("z", "total"),
        lambda v: Verdict(0, 1, "", ""),
    )
    return NotebookTasks("1-double", (double, total))


def cell(kind, source, own_id, grade_id=None, **flags):
    made = (nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell)(source)
    made["id"] = own_id
    if grade_id:
        made.metadata["nbgrader"] = {
            "schema_version": 3,
            "cell_type": kind,
            "grade": False,
            "solution": False,
            "locked": True,
            "grade_id": grade_id,
            **flags,
        }
        if not flags.get("solution"):
            made.metadata.update(editable=False, deletable=False)
    return made


def notebook():
    answer = {"solution": True, "locked": False}
    body = textwrap.indent(f'"""{DOCSTRING}\n"""\nreturn 2 * z', "    ")
    stub = f"def double(z):\n{body}"
    return nbformat.v4.new_notebook(
        cells=[
            cell("markdown", "# Double\n\n![two arrows](x.png)", "title"),
            cell("code", "import attention_lab", "setup", "setup"),
            cell("code", stub, "double", "double", **answer),
            cell("markdown", "Checkpoint: twice the argument (2 marks)", "double-text"),
            cell(
                "code", "# twice\ncheck()", "double-values", "double-values", grade=True, points=2
            ),
            cell("code", "z = [1, 2]\ntotal = sum(z)", "total-core"),
            cell("markdown", "Checkpoint: the sum (1 mark)", "total-text"),
            cell("code", "# the sum\ncheck()", "total-sum", "total-sum", grade=True, points=1),
        ],
        metadata={
            "kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}
        },
    )


def found(nb, rule) -> list[str]:
    return list(rule(nb, tasks()))


def test_a_notebook_that_keeps_to_the_conventions_has_no_problem():
    for rule in (*notebook_check.RULES, notebook_check.no_solutions):
        assert found(notebook(), rule) == [], rule.__name__


def damage(rule_name):
    def register(change):
        SLIPS.append(pytest.param(rule_name, change, id=f"{rule_name}: {change.__name__}"))
        return change

    return register


SLIPS: list = []


@damage("ids")
def a_generated_id(nb):
    nb.cells[0]["id"] = "3f2a9c01"


@damage("ids")
def the_same_id_twice(nb):
    nb.cells[3]["id"] = "title"


@damage("ids")
def an_id_that_is_not_the_grade_id(nb):
    nb.cells[4]["id"] = "other"


@damage("outputs")
def an_output(nb):
    nb.cells[5].outputs = [nbformat.v4.new_output("stream", text="3")]


@damage("outputs")
def an_attachment(nb):
    nb.cells[0]["attachments"] = {"x.png": {"image/png": "AAAA"}}


@damage("metadata")
def no_language(nb):
    del nb.metadata.kernelspec["language"]


@damage("metadata")
def a_graded_cell_without_points(nb):
    del nb.cells[4].metadata.nbgrader["points"]


@damage("metadata")
def an_open_lock(nb):
    del nb.cells[4].metadata["editable"]


@damage("metadata")
def an_old_format(nb):
    nb.nbformat_minor = 4


@damage("setup")
def no_setup_first(nb):
    del nb.cells[1]


@damage("lengths")
def a_long_cell(nb):
    nb.cells[5].source = "z = 1\n" * 21


@damage("lengths")
def a_long_checkpoint(nb):
    nb.cells[4].source = "# twice\n" + "check()\n" * 10


@damage("lengths")
def a_wall_of_text(nb):
    nb.cells[0].source = "word " * 321


@damage("checkpoints")
def a_checkpoint_is_gone(nb):
    del nb.cells[4]


@damage("checkpoints")
def other_points(nb):
    nb.cells[4].metadata.nbgrader["points"] = 3


@damage("checkpoints")
def an_unknown_checkpoint(nb):
    nb.cells[4].metadata.nbgrader["grade_id"] = "double-else"


@damage("checkpoints")
def no_property_in_the_first_line(nb):
    nb.cells[4].source = "check()"


@damage("marks_in_text")
def the_text_says_other_marks(nb):
    nb.cells[3].source = "Checkpoint: twice the argument (3 marks)"


@damage("order")
def a_checkpoint_before_its_answer(nb):
    nb.cells.insert(2, nb.cells.pop(4))


@damage("order")
def a_checkpoint_before_its_values(nb):
    nb.cells.insert(5, nb.cells.pop(7))


@damage("pictures")
def a_picture_without_words(nb):
    nb.cells[0].source = "![](x.png)"


@damage("pictures")
def a_plot_without_words(nb):
    nb.cells[5].source = "plt.plot(z)\nplt.show()"


@damage("stubs")
def another_docstring(nb):
    nb.cells[2].source = nb.cells[2].source.replace("Twice z", "Thrice z")


@damage("helper_names")
def a_name_that_the_helper_lacks(nb):
    nb.cells[4].source = "# twice\nraise lab.Unfinished()"


@damage("helper_names")
def a_method_that_the_evidence_lacks(nb):
    nb.cells[5].source = "evidence.remember(z)"


@damage("no_solutions")
def a_solution_left_in(nb):
    nb.cells[2].source += "\n### BEGIN SOLUTION"


@pytest.mark.parametrize(("rule", "change"), SLIPS)
def test_a_slip_is_found_by_its_rule(rule, change):
    nb = notebook()
    change(nb)
    assert found(nb, getattr(notebook_check, rule))


def test_every_rule_has_a_slip_that_it_finds():
    rules = {rule.__name__ for rule in (*notebook_check.RULES, notebook_check.no_solutions)}
    assert rules == {param.values[0] for param in SLIPS}


def test_sync_mends_points_marks_and_docstrings_and_then_has_nothing_to_do():
    nb = notebook()
    for change in (other_points, the_text_says_other_marks, another_docstring):
        change(nb)
    broken = copy.deepcopy(nb)
    assert len(sync.sync_notebook(nb, tasks())) == 3
    assert nb == notebook()
    assert nb != broken
    assert sync.sync_notebook(nb, tasks()) == []


@pytest.mark.parametrize("path", sorted((ROOT / "source").glob("*/*.ipynb")), ids=lambda p: p.stem)
def test_the_sources_say_what_their_tasks_say(path):
    known = {n.name: n for n in registry.assignment(path.parent.name).notebooks}
    nb = nbformat.read(path, as_version=4)
    assert sync.sync_notebook(nb, known[path.stem]) == []
    graded = next(c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade"))
    graded.metadata.nbgrader["points"] += 1
    assert sync.sync_notebook(nb, known[path.stem])
