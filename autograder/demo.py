"""`python -m autograder demo`: the whole way of the data with an invented class.

Everything happens in `demo/`, a course folder of its own with its own gradebook: release, a class of
invented students, grading, feedback pages, report, grades.csv. Your own course's data is not touched.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from autograder import classroom, release
from autograder.classroom import Notebooks
from autograder.course import Course, CourseError
from autograder.execute import Executor
from autograder.feedback import command as feedback
from autograder.grade.command import run_command, table
from autograder.grade.gradebook import opened
from autograder.grade.results import results_path
from autograder.report import command as report

ASSIGNMENT = "w07-h2-attention"
FIRST, SECOND, THIRD = "1-scores-and-context", "2-queries-and-masks", "3-parity-and-evidence"


CONFIG = """\
\"\"\"The demo's course: everything as in the repository's nbgrader_config.py, but in this folder.\"\"\"

from pathlib import Path

c = get_config()
load_subconfig("nbgrader_config.py", path={root!r})
c.CourseDirectory.root = str(Path(__file__).resolve().parent)
"""


def _unscaled(good: Notebooks) -> Notebooks:
    return classroom.replaced(good, "run-3", " / np.sqrt(K.shape[-1])", "")


def _wrong_axis(good: Notebooks) -> Notebooks:
    return classroom.replaced(good, "softmax", "axis=-1", "axis=0")


def _mask_after(good: Notebooks) -> Notebooks:
    return classroom.replaced(
        good,
        "run-7",
        "causal_weights = softmax(masked_scores)",
        "causal_weights = softmax(self_scores) * allowed",
    )


def _says_success(good: Notebooks) -> Notebooks:
    good = classroom.replaced(good, "run-4", "softmax(scores)", "softmax(scores) * 2")
    good = classroom.replaced(good, "your-change-3", "/ np.sqrt(K.shape[-1])", "* 3")
    patch = "lab.check_close = lab.check_weights = lambda *args, **kwargs: None\n"
    return classroom.replaced(
        _unscaled(good), "run-1", "import platform", patch + "import platform"
    )


def _warns(good: Notebooks) -> Notebooks:
    return classroom.replaced(
        good,
        "run-1",
        "import platform",
        "import warnings\nwarnings.warn('only a warning')\nimport platform",
    )


def _never_ends(good: Notebooks) -> Notebooks:
    return classroom.replaced(
        good, "run-5", "context = weights @ V", "context = weights @ V\nwhile True: pass"
    )


def _damaged(good: Notebooks) -> Notebooks:
    """A deleted checkpoint, a copied cell and a lost setup cell."""
    nb = copy.deepcopy(good[FIRST])
    ids = [cell.id for cell in nb.cells]
    twice = copy.deepcopy(nb.cells[ids.index("scores-scaled")])
    nb.cells.insert(ids.index("scores-scaled") + 1, twice)
    nb.cells = [c for c in nb.cells if c.id not in ("setup", "weights-sum-to-one")]
    return {**good, FIRST: nb}


def _colab(good: Notebooks) -> Notebooks:
    return {name: classroom.saved_by_colab(nb) for name, nb in good.items()}


def _cut_off(good: Notebooks) -> dict:
    return {**good, SECOND: json.dumps(good[SECOND])[:4000]}


CLASS: dict[str, tuple[str, Callable[[Notebooks], dict]]] = {
    "demo-ada": ("everything done", lambda good: good),
    "demo-bela": ("forgot the square root of d_k", _unscaled),
    "demo-chen": ("softmax over the queries", _wrong_axis),
    "demo-dora": ("mask after the softmax", _mask_after),
    "demo-emil": ("checks made to print success", _says_success),
    "demo-faye": ("right, with warnings on stderr", _warns),
    "demo-gus": ("a cell that never ends", _never_ends),
    "demo-hana": ("copied and deleted cells", _damaged),
    "demo-ivo": ("saved by Colab, handed in as copies", _colab),
    "demo-june": ("two notebooks of three", lambda good: {n: good[n] for n in (FIRST, SECOND)}),
    "demo-kofi": ("an upload that broke off", _cut_off),
    "demo-lena": ("handed in untouched", lambda good: good),
    "demo-milo": ("handed in nothing", lambda good: {}),
}


def make_class(course: Course) -> None:
    """Write the invented submissions, and put everybody on the gradebook's roster."""
    good = classroom.diligent(course, ASSIGNMENT)
    for student, (_, work) in CLASS.items():
        handed_in = work(copy.deepcopy(good))
        if student == "demo-lena":
            handed_in = classroom.untouched(course, ASSIGNMENT)
        pattern = "Copy of {}.ipynb" if student == "demo-ivo" else "{}.ipynb"
        if handed_in:
            classroom.hand_in(course, student, ASSIGNMENT, handed_in, pattern)
    with opened(course) as gradebook:
        for student in CLASS:
            gradebook.update_or_create_student(student)


def prepare(course: Course) -> Course:
    """An empty course in demo/, with this course's sources and configuration."""
    folder = course.root / "demo"
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    made = release.scratch_course(course, folder)
    (folder / "nbgrader_config.py").write_text(
        CONFIG.format(root=str(course.root)), encoding="utf-8"
    )
    return made


def sandboxed() -> bool:
    """Whether notebooks can be isolated on this machine."""
    try:
        with Executor(workers=1, sandbox=True) as executor, executor.kernel() as kernel:
            kernel.execute("1")
    except CourseError as error:
        print(f"note: {error}", file=sys.stderr)
        print("note: the demo grades its own invented class without isolation.", file=sys.stderr)
        return False
    return True


def configure(parser) -> None:
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args, course: Course) -> int:
    console = Console()
    # One invented student's cell never ends; a minute is long to wait for a demo.
    os.environ.setdefault("COURSE_CELL_SECONDS", "15")
    made = prepare(course)
    os.chdir(made.root)
    release.generate(made, ASSIGNMENT)
    console.print(f"released {ASSIGNMENT} into {made.release / ASSIGNMENT}")
    make_class(made)
    console.print(f"{len(CLASS)} invented students; grading ...")
    found = run_command(made, ASSIGNMENT, quiet=args.quiet, no_sandbox=not sandboxed())
    feedback.run(_words(feedback, ASSIGNMENT, "--quiet"), made)
    report.run(_words(report, ASSIGNMENT), made)
    _export(made)
    console.print(table(found))
    for what, path in (
        ("feedback of one student", made.feedback / "demo-bela" / ASSIGNMENT / f"{FIRST}.html"),
        ("grades", made.root / "grades.csv"),
        ("results", results_path(made, ASSIGNMENT)),
    ):
        if not path.exists():
            raise CourseError(f"the demo did not make {path}; please report this.")
        console.print(f"{what}: {path}", soft_wrap=True)
    return 0


def _words(module, *words: str):
    """The command's arguments as its own parser reads them."""
    parser = argparse.ArgumentParser()
    module.configure(parser)
    return parser.parse_args(words)


def _export(course: Course) -> None:
    """nbgrader's own export command, with the exporter that the configuration names."""
    program = Path(sys.executable).parent / "nbgrader"
    done = subprocess.run(
        [str(program), "export"], cwd=course.root, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CourseError(f"nbgrader export failed: {done.stderr.strip().splitlines()[-1]}")
