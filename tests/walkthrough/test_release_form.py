"""The released notebooks: each runs alone in an empty folder, and hands in what is needed."""

from __future__ import annotations

import json

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.course import Course
from autograder.grade.submission import shown_evidence
from autograder.notebook_check import meta
from autograder.release import setup_source
from autograder.tasks.w07_h2_attention import ASSIGNMENT
from tests.walkthrough.play import NOTEBOOKS, ROOT, source


def released(name: str) -> nbformat.NotebookNode:
    """The notebook with the setup cell that the release step gives it."""
    nb = source(name)
    for cell in nb.cells:
        if meta(cell).get("grade_id") == "setup":
            cell.source = setup_source(Course(ROOT), ASSIGNMENT.name, nb, name)
    return nb


def run(nb: nbformat.NotebookNode, folder) -> nbformat.NotebookNode:
    client = NotebookClient(
        nb, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return nb


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> dict[str, tuple]:
    found = {}
    for name in NOTEBOOKS:
        folder = tmp_path_factory.mktemp("empty")
        found[name] = (run(released(name), folder), folder)
    return found


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_it_runs_alone_and_writes_nothing_but_its_evidence(ran, name):
    nb, folder = ran[name]
    assert [path.name for path in folder.iterdir()] == ["artifacts"]
    assert len(list((folder / "artifacts").iterdir())) == 1
    outputs = [out for cell in nb.cells for out in cell.get("outputs", [])]
    assert not [out for out in outputs if out.output_type == "error"]
    assert not [out for out in outputs if out.get("name") == "stderr"]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_the_evidence_travels_inside_the_notebook(ran, name):
    nb, folder = ran[name]
    (path,) = (folder / "artifacts").iterdir()
    again = nbformat.reads(nbformat.writes(nb), as_version=4)
    assert shown_evidence(again) == json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_picture_has_its_words_beside_it(ran, name):
    nb, _ = ran[name]
    pictures = 0
    for cell in nb.cells:
        for out in cell.get("outputs", []):
            if "image/png" in out.get("data", {}):
                pictures += 1
                assert len(out.metadata["image/png"]["alt"]) > 40
                printed = "".join(o.text for o in cell.outputs if o.output_type == "stream")
                assert f"In words: {out.metadata['image/png']['alt']}" in printed
    assert pictures >= 3


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_each_checkpoint_prints_one_line(ran, name):
    nb, _ = ran[name]
    for cell in nb.cells:
        if meta(cell).get("grade") and cell.cell_type == "code":
            # A busy kernel sends one line in several parts.
            assert {out.get("name") for out in cell.outputs} == {"stdout"}
            printed = "".join(out.text for out in cell.outputs)
            assert printed.count("\n") == 1
            assert printed.startswith("○ ")
