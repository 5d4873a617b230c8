"""Each released notebook is run once as it is and once answered; all tests look at the same two runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import nbformat
import pytest

from autograder import classroom
from autograder.course import Course
from autograder.tasks.registry import MODULES
from tests.editors.machine import ROOT, TORCH, Machine, environment

COURSE = Course(ROOT)
NOTEBOOKS = [
    (assignment, path.stem)
    for assignment in MODULES
    for path in sorted((COURSE.release / assignment).glob("*.ipynb"))
]


@dataclass(frozen=True)
class Played:
    """A notebook after its run, and what lay in its folder then."""

    notebook: nbformat.NotebookNode
    files: tuple[str, ...]


@pytest.fixture(scope="session")
def numpy_machine(tmp_path_factory) -> Machine:
    """Python 3.13, as Colab has it."""
    folder = tmp_path_factory.mktemp("colab")
    return Machine(environment(folder / "env", "3.13"), folder)


@pytest.fixture(scope="session")
def torch_machine(tmp_path_factory) -> Machine:
    """Colab's packages and PyTorch, on Python 3.11, for which the course has tested that build."""
    folder = tmp_path_factory.mktemp("colab-torch")
    return Machine(environment(folder / "env", "3.11", TORCH), folder)


def imports_torch(nb: nbformat.NotebookNode) -> bool:
    own = (c.source for c in nb.cells if c.cell_type == "code" and c.id != "setup")
    return any(re.search(r"^\s*(import|from) torch\b", source, re.MULTILINE) for source in own)


@pytest.fixture(scope="session")
def machine_for(request):
    """The machine on which a notebook is run; neither is made before it is needed."""

    def choose(nb: nbformat.NotebookNode) -> Machine:
        name = "torch_machine" if imports_torch(nb) else "numpy_machine"
        return request.getfixturevalue(name)

    return choose


def played(nb: nbformat.NotebookNode, machine: Machine, **options) -> Played:
    folder: Path = machine.run(nb, **options)
    return Played(nb, tuple(sorted(path.name for path in folder.iterdir())))


@pytest.fixture(scope="session")
def as_released(machine_for):
    """`as_released(assignment, name)`: run from top to bottom without a word written."""

    @cache
    def run(assignment: str, name: str) -> Played:
        nb = classroom.untouched(COURSE, assignment)[name]
        return played(nb, machine_for(nb), allow_errors=True)

    return run


@pytest.fixture(scope="session")
def answered(machine_for):
    """`answered(assignment, name)`: every answer written, every prediction made; no cell may fail."""

    @cache
    def run(assignment: str, name: str) -> Played:
        nb = classroom.diligent(COURSE, assignment)[name]
        return played(nb, machine_for(nb))

    return run
