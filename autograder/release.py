"""Builds release/ from source/: nbgrader's generate_assignment with the helper put into each notebook.

`python -m autograder release` refuses where the grader has not been checked against the present task
definitions; `--check` builds into a scratch folder and fails if the committed release/ differs.
"""

from __future__ import annotations

import ast
import contextlib
import filecmp
import hashlib
import json
import logging
import os
import shutil
import tempfile
from pathlib import Path

import nbformat

from autograder import stamp as grader_stamp
from autograder.configuration import load_config
from autograder.course import Course, CourseError
from autograder.tables import public_tables
from autograder.tasks.model import NotebookTasks
from autograder.tasks.registry import MODULES, assignment

INSTALLABLE = ("numpy", "matplotlib", "torch")
COLAB = "https://colab.research.google.com/github/{repository}/blob/main/release/{path}"

SETUP = """\
# @title Setup: run this cell first {{ display-mode: "form" }}
# It installs only what is missing (never numpy when it is there) and loads the course helper.
import importlib.util
import json
import subprocess
import sys
import types


class SetupProblem(Exception):
    def _render_traceback_(self):
        return [f"Setup: {{self}}"]


for _package in {packages!r}:
    if importlib.util.find_spec(_package) is None:
        _pip = [sys.executable, "-m", "pip", "install", "--quiet", _package]
        if subprocess.run(_pip, capture_output=True, check=False).returncode:
            raise SetupProblem(
                f"the package {{_package}} is missing and could not be installed. Connect to a network "
                f"and run this cell again, or ask for {{_package}} on this machine."
            )

COURSE_STAMP = {stamp!r}
_source = r'''{helper}'''
attention_lab = types.ModuleType("attention_lab", "The course helper, carried by this notebook.")
sys.modules["attention_lab"] = attention_lab
exec(compile(_source, "attention_lab.py", "exec"), attention_lab.__dict__)
{load}print("Setup is done. Course release", COURSE_STAMP["release"])
"""
LOAD = """\
attention_lab.load_tables(json.loads(r'''{tables}'''))
"""


def imported_packages(nb: nbformat.NotebookNode) -> tuple[str, ...]:
    """The installable packages that the notebook's code imports, numpy always among them."""
    found = {"numpy"}
    for cell in nb.cells:
        if cell.cell_type != "code":
            continue
        with contextlib.suppress(SyntaxError):
            for node in ast.walk(ast.parse(cell.source)):
                if isinstance(node, ast.Import):
                    found.update(alias.name.split(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    found.add((node.module or "").split(".")[0])
    found.add("matplotlib")
    return tuple(name for name in INSTALLABLE if name in found)


def version(assignment_name: str, notebook: str, helper: str, tables: str) -> dict:
    """The version stamp of one notebook: what it is, and a digest of helper and tables."""
    digest = hashlib.sha256((helper + tables).encode()).hexdigest()[:12]
    return {"assignment": assignment_name, "notebook": notebook, "release": digest}


def setup_source(course: Course, assignment_name: str, nb: nbformat.NotebookNode, name: str) -> str:
    """The text of the locked `setup` cell of one released notebook: packages, helper, tables, stamp."""
    helper = (course.root / "attention_lab.py").read_text(encoding="utf-8")
    if "'''" in helper:
        raise CourseError("attention_lab.py may not use ''' (it is embedded between them).")
    tasks = assignment(assignment_name).notebook(name)
    tables = json.dumps(public_tables(tasks), separators=(",", ":"), sort_keys=True)
    tables = tables.replace("'", "\\u0027")
    return SETUP.format(
        packages=imported_packages(nb),
        stamp=version(assignment_name, name, helper, tables),
        helper=helper,
        load=LOAD.format(tables=tables) if tables != "{}" else "",
    ).rstrip()


def stamp_of(source: str) -> dict:
    """The version stamp that a released setup cell carries, {} if there is none."""
    for line in source.splitlines():
        if line.startswith("COURSE_STAMP = "):
            return ast.literal_eval(line.removeprefix("COURSE_STAMP = "))
    return {}


def colab_link(repository: str, assignment_name: str, notebook: str) -> str:
    """The address behind "Open in Colab" of one notebook."""
    return COLAB.format(repository=repository, path=f"{assignment_name}/{notebook}.ipynb")


def known_notebook(assignment_name: str, name: str) -> NotebookTasks:
    """The task definition of one notebook.

    Raises:
        CourseError: if the assignment's definition does not name it.
    """
    try:
        return assignment(assignment_name).notebook(name)
    except StopIteration:
        raise CourseError(
            f"source/{assignment_name}/{name}.ipynb has no task definition; "
            f"name it in autograder/tasks (docs/authors.md says how)."
        ) from None


def source_names(course: Course) -> list[str]:
    """Assignments that have notebooks under source/, in the registry's order."""
    return [name for name in MODULES if list((course.source / name).glob("*.ipynb"))]


def generate(course: Course, name: str) -> None:
    """Run nbgrader's generate_assignment for one assignment in `course.root`, with our config.

    Raises:
        CourseError: if there is no such source folder, or nbgrader refuses; its log is in the message.
    """
    from nbgrader.apps import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory

    if not list((course.source / name).glob("*.ipynb")):
        known = ", ".join(source_names(course))
        raise CourseError(f"source/{name} holds no notebook; assignments here: {known}.")
    config = load_config(course)
    directory = CourseDirectory(config=config)
    api = NbGraderAPI(directory, config=config)
    logging.getLogger("traitlets").setLevel(logging.ERROR)
    result = api.generate_assignment(name, force=True)
    if not result["success"]:
        lines = [line for line in result.get("log", "").splitlines() if "ERROR" in line]
        told = [line.partition("error: ")[2] for line in lines if "error: " in line]
        raise CourseError(f"release of {name} failed: {[*told, *lines, 'no log'][0]}")


def scratch_course(course: Course, folder: Path) -> Course:
    """A copy of the course's trusted files below `folder`, with an empty gradebook of its own."""
    for name in ("attention_lab.py", "nbgrader_config.py", grader_stamp.STAMP):
        if (course.root / name).exists():
            shutil.copy(course.root / name, folder / name)
    shutil.copytree(course.source, folder / "source", ignore=shutil.ignore_patterns(".ipynb*"))
    return Course(folder)


def stale(course: Course, names: list[str]) -> list[str]:
    """Released files that differ from a fresh build, as paths relative to release/."""
    different: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        scratch = scratch_course(course, Path(folder))
        for name in names:
            generate(scratch, name)
            built, kept = scratch.release / name, course.release / name
            files = {p.name for p in built.glob("*")} | {p.name for p in kept.glob("*.ipynb")}
            _, mismatch, errors = filecmp.cmpfiles(built, kept, sorted(files), shallow=False)
            different += [f"{name}/{file}" for file in mismatch + errors]
    return different


def configure(parser) -> None:
    parser.add_argument("assignments", nargs="*", help="assignments (default: all in source/)")
    parser.add_argument("--check", action="store_true", help="fail if release/ is stale")


def run(args, course: Course) -> int:
    load_config(course)
    names = args.assignments or source_names(course)
    for name in names:
        assignment(name)
        if not grader_stamp.valid(course, name):
            raise CourseError(
                f"the grader has not been checked against the present tasks of {name}: "
                f"run `make check-grader` first."
            )
    os.chdir(course.root)
    if args.check:
        different = stale(course, names)
        if different:
            raise CourseError(
                f"release/ is stale: {', '.join(different)}. Run `make release` and commit it."
            )
        print(f"release/ is up to date: {', '.join(names)}")
        return 0
    for name in names:
        generate(course, name)
        print(f"release/{name}: {len(list((course.release / name).glob('*.ipynb')))} notebooks")
    return 0
