"""On Colab's machine: each released notebook runs alone, as it is and answered, and says what it should."""

from __future__ import annotations

import ast
import re
import socket
import subprocess
from collections.abc import Iterable

import nbformat
import pytest
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_notebook

from autograder import classroom
from tests.editors.conftest import COURSE, NOTEBOOKS
from tests.editors.machine import Machine

pytestmark = pytest.mark.system
WALKTHROUGH, FIRST = NOTEBOOKS[0]


def outputs(nb: nbformat.NotebookNode, kind: str) -> list[tuple[str, dict]]:
    """Cell id and output, for the outputs of one kind."""
    code = (cell for cell in nb.cells if cell.cell_type == "code")
    return [(c.id, out) for c in code for out in c.outputs if out.output_type == kind]


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(out.text for out in cell.outputs if out.get("name") == "stdout")


def warnings(nb: nbformat.NotebookNode) -> list[str]:
    return [out.text for _, out in outputs(nb, "stream") if out.name == "stderr"]


def assert_described(nb: nbformat.NotebookNode, least: int) -> None:
    """Each picture came out, with its words in the file and beside it."""
    pictures = [
        (cell, out)
        for cell in nb.cells
        for out in cell.get("outputs", [])
        if "image/png" in out.get("data", {})
    ]
    assert len(pictures) >= least
    for cell, picture in pictures:
        words = picture.metadata["image/png"]["alt"]
        assert len(words) > 40
        assert f"In words: {words}" in printed(cell)


@pytest.mark.parametrize(("assignment", "name"), NOTEBOOKS)
def test_as_released_it_runs_to_its_end_and_only_says_what_is_not_written(
    as_released, assignment, name
):
    run = as_released(assignment, name)
    assert outputs(run.notebook, "error") == []
    assert warnings(run.notebook) == []
    assert set(run.files) <= {"artifacts", "outputs"}
    last = printed(run.notebook.cells[-1])
    assert re.search(r"^0 of \d+ checkpoints pass\.$", last, re.MULTILINE)
    assert "Setup is done" in printed(next(c for c in run.notebook.cells if c.id == "setup"))


@pytest.mark.parametrize(("assignment", "name"), NOTEBOOKS)
def test_answered_every_checkpoint_passes_and_the_pictures_are_described(
    answered, assignment, name
):
    run = answered(assignment, name)
    assert outputs(run.notebook, "error") == []
    assert warnings(run.notebook) == []
    passed, of = re.search(
        r"^(\d+) of (\d+) checkpoints pass", printed(run.notebook.cells[-1]), re.MULTILINE
    ).groups()
    assert passed == of
    drawn = sum("lab.heatmap(" in c.source or "lab.bars(" in c.source for c in run.notebook.cells)
    assert_described(run.notebook, drawn)


def test_a_notebook_that_needs_a_file_beside_it_would_fail_here(numpy_machine):
    """The instructor's copy imports the helper from the repository; the release carries it."""
    nb = nbformat.read(COURSE.source / WALKTHROUGH / f"{FIRST}.ipynb", as_version=4)
    with pytest.raises(CellExecutionError, match="attention_lab"):
        numpy_machine.run(nb)


PROBE = """\
import importlib.util, pathlib, socket, subprocess, sys
said = {"numpy at start": NUMPY, "files": [p.name for p in pathlib.Path().iterdir()]}
said["nbgrader"] = importlib.util.find_spec("nbgrader") is not None
try:
    socket.create_connection(ADDRESS, timeout=5)
    said["network"] = True
except OSError:
    said["network"] = False
import numpy, matplotlib, IPython, ipykernel
said["versions"] = [m.__version__ for m in (numpy, matplotlib, IPython, ipykernel)]
said["python"] = list(sys.version_info[:2])
print(repr(said))"""


@pytest.mark.parametrize(("kind", "python"), [("numpy", [3, 13]), ("torch", [3, 11])])
def test_the_machine_is_colab_s(request, kind, python):
    machine: Machine = request.getfixturevalue(f"{kind}_machine")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        reach = f"import socket; socket.create_connection({address!r}, timeout=5)"
        subprocess.run([machine.python, "-c", reach], check=True)  # with a network it is reached
        start = "import sys\nNUMPY = 'numpy' in sys.modules"
        nb = new_notebook(
            cells=[new_code_cell(start), new_code_cell(f"ADDRESS = {address!r}\n{PROBE}")]
        )
        machine.run(nb)
    said = ast.literal_eval(printed(nb.cells[1]))
    assert said == {
        "numpy at start": True,
        "files": [],
        "nbgrader": False,
        "network": False,
        "versions": ["2.1.3", "3.10.0", "7.34.0", "6.17.1"],
        "python": python,
    }


def failed(nb: nbformat.NotebookNode, ids: Iterable[str]) -> str:
    (error,) = [out for cell_id, out in outputs(nb, "error") if cell_id in ids]
    return "\n".join(error.traceback)


def test_a_failed_check_shows_no_frames_under_colab_s_ipython(numpy_machine):
    nb = classroom.untouched(COURSE, WALKTHROUGH)[FIRST]
    nb = classroom.replaced({FIRST: nb}, "run-3", " / np.sqrt(K.shape[-1])", "")[FIRST]
    numpy_machine.run(nb, allow_errors=True)
    shown = failed(nb, ["scores-scaled"])
    assert shown.startswith(
        "✗ scores-scaled\n  Seen: `scores`[0, 0] is 1, the property gives 0.707107"
    )
    assert "Traceback" not in shown
    assert "attention_lab" not in shown


def test_a_wrong_answer_of_the_mechanism_is_named_under_colab_s_ipython(numpy_machine):
    name = "1-additive-and-luong"
    nb = classroom.diligent(COURSE, "attention-mechanism")[name]
    nb = classroom.replaced({name: nb}, "additive_attention", "np.tanh(projected)", "projected")[
        name
    ]
    numpy_machine.run(nb, allow_errors=True)
    shown = failed(nb, ["additive_attention-values"])
    assert "tanh" in shown
    assert "Traceback" not in shown
