"""Is release/ what students may have: complete in one file, reproducible, and without answers?"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap

import nbformat
import pytest

from autograder import classroom, release
from autograder.configuration import open_course
from autograder.tasks.model import FunctionTask
from autograder.tasks.registry import assignment
from tests.conftest import ROOT

COURSE = open_course(ROOT)
NAMES = release.source_names(COURSE)
LESSON = "w07-h2-attention"
SHORTEST = 18
"""Lines shorter than this (returns, closing brackets) are no answer by themselves."""


def lines(source: str) -> set[str]:
    """The code lines of a text that are long enough to give something away, without spaces."""
    found = set()
    for line in source.splitlines():
        text = re.sub(r"\s+", "", line.split("#")[0])
        if len(text) >= SHORTEST and not text.startswith(("def", '"""', "import", "from", "class")):
            found.add(text)
    return found


def code(nb) -> str:
    return "\n".join(cell.source for cell in nb.cells if cell.cell_type == "code")


def printed_by_lesson() -> set[str]:
    """Lines of the walkthrough, which prints them for everybody."""
    notebooks = classroom.read(COURSE.release / LESSON).values()
    return set().union(*(lines(code(nb)) for nb in notebooks))


def body(function) -> str:
    """A function's lines below its signature and docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    node = next(n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.ClassDef)))
    statements = node.body[1:] if ast.get_docstring(node) else node.body
    return "\n".join(ast.unparse(statement) for statement in statements)


def solutions(name: str) -> set[str]:
    """Lines between BEGIN SOLUTION and END SOLUTION in the sources of an assignment."""
    found = set()
    for nb in classroom.read(COURSE.source / name).values():
        for text in re.findall(r"BEGIN SOLUTION\n(.*?)\n[^\n]*END SOLUTION", code(nb), re.DOTALL):
            found |= lines(text)
    return found


def references(name: str) -> set[str]:
    found = set()
    for notebook in assignment(name).notebooks:
        for part in notebook.parts:
            if isinstance(part, FunctionTask):
                functions = [part.reference, *(a.implementation for a in part.alternatives)]
                for function in functions:
                    if inspect.isfunction(function):
                        found |= lines(body(function))
    return found


def released_text() -> str:
    texts = [
        re.sub(r"\s+", "", code(nb))
        for name in NAMES
        for nb in classroom.read(COURSE.release / name).values()
    ]
    return "\n".join(texts)


def leaks(secret: set[str], text: str) -> list[str]:
    return sorted(line for line in secret - printed_by_lesson() if line in text)


@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_solution_is_in_the_release(name):
    assert leaks(solutions(name), released_text()) == []


@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_reference_is_in_the_release(name):
    assert leaks(references(name), released_text()) == []


def test_the_search_finds_a_solution_that_is_left_in():
    secret = (
        set().union(*(solutions(name) | references(name) for name in NAMES)) - printed_by_lesson()
    )
    line = sorted(secret)[0]
    assert leaks(secret, released_text() + line) == [line]


def test_the_release_imports_nothing_of_the_grader():
    text = released_text()
    assert "importautograder" not in text
    assert "fromautograder" not in text
    assert "BEGINSOLUTION" not in text


@pytest.mark.parametrize("name", NAMES)
def test_only_notebooks_are_released(name):
    assert {path.suffix for path in (COURSE.release / name).iterdir()} == {".ipynb"}


def test_two_builds_are_equal_to_the_byte_and_a_change_is_noticed(scratch):
    (scratch.root / "autograder").unlink()
    course = open_course(scratch.root)
    assert release.stale(course, [LESSON]) == []
    path = scratch.root / "release" / LESSON / "1-scores-and-context.ipynb"
    path.write_text(path.read_text(encoding="utf-8").replace("Shift+Enter", "Shift+Return"))
    assert release.stale(course, [LESSON]) == [f"{LESSON}/1-scores-and-context.ipynb"]


def test_each_released_notebook_carries_its_stamp_and_links_to_itself():
    for name in NAMES:
        for stem, nb in classroom.read(COURSE.release / name).items():
            setup = next(
                c for c in nb.cells if c.metadata.get("nbgrader", {}).get("grade_id") == "setup"
            )
            assert nb.metadata["attention_course"] == release.stamp_of(setup.source)
            assert nb.metadata["attention_course"]["notebook"] == stem
            link = release.colab_link("example-university/attention-students", name, stem)
            assert any(link in cell.source for cell in nb.cells), (name, stem)
            assert setup.metadata["jupyter"]["source_hidden"] is True


def setup_cell(packages: str) -> str:
    nb = nbformat.read(COURSE.release / LESSON / "1-scores-and-context.ipynb", as_version=4)
    source = next(c.source for c in nb.cells if c.get("id") == "setup")
    return re.sub(r"for _package in \(.*\):", f"for _package in {packages}:", source)


def run_setup(tmp_path, packages: str, **environment) -> subprocess.CompletedProcess:
    script = tmp_path / "setup.py"
    script.write_text(setup_cell(packages), encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1", "HOME": str(tmp_path), **environment},
    )


def test_setup_needs_nothing_where_the_packages_are_there(tmp_path):
    done = run_setup(tmp_path, '("numpy", "matplotlib")')
    assert done.returncode == 0, done.stderr
    assert "Setup is done" in done.stdout
    assert "pip" not in done.stderr


def test_setup_without_package_and_network_says_what_to_do(tmp_path):
    done = run_setup(tmp_path, '("numpy", "a_package_that_is_nowhere")')
    assert done.returncode != 0
    assert "a_package_that_is_nowhere is missing" in done.stderr
    assert "Connect to a network" in done.stderr


def test_the_helper_is_embedded_letter_for_letter():
    helper = (ROOT / "attention_lab.py").read_text(encoding="utf-8")
    assert helper in setup_cell("()")
    assert len(helper.splitlines()) < 400
