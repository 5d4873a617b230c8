"""A real Chromium, and a graded class whose pages are opened in it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "feedback"))

EXERCISES = ("w07-h2-practice", "attention-mechanism")
LESSONS = [
    f"{path.parent.name}/{path.stem}" for path in sorted((ROOT / "release").glob("*/*.ipynb"))
]
SIZES = {"wide": (1280, 900), "phone": (390, 844)}


@pytest.fixture(scope="session")
def chromium():
    """Debian's Chromium under Playwright; fails, naming what is missing, where there is none."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail("the Debian package chromium is missing: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        pytest.fail("the package playwright is missing: pip install -r requirements-dev.txt")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page, and everything that it did besides showing itself."""

    def __init__(self, page):
        self.page = page
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        self.console: list[str] = []
        self.stopped: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfailed", self._failed)
        page.on("dialog", self._dialog)
        page.on("console", lambda message: self.console.append(message.text))
        page.on("popup", lambda popup: self.requests.append(popup.url))

    def _dialog(self, dialog):
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _failed(self, request):
        if "csp" in (request.failure or "").lower():
            self.stopped.append(request.url)

    def open(self, path: Path) -> None:
        self.page.goto(path.as_uri())
        self.page.wait_for_load_state("networkidle")

    @property
    def elsewhere(self) -> list[str]:
        """Requests for anything but the page itself and the pictures inside it."""
        own = self.page.url.split("#")[0]
        return [url for url in self.requests if url != own and not url.startswith("data:")]

    @property
    def sent(self) -> list[str]:
        """Those of them that the policy did not stop."""
        return [url for url in self.elsewhere if url not in self.stopped]

    @property
    def ran(self) -> bool:
        """Whether a payload got to run: each of them sets this name."""
        return bool(self.page.evaluate("() => 'pwned' in window")) or bool(self.dialogs)


@pytest.fixture(params=list(SIZES))
def size(request):
    """Name of a screen size."""
    return request.param


@pytest.fixture
def watched(chromium):
    """A wide page."""
    page = chromium.new_page(viewport=dict(zip(("width", "height"), SIZES["wide"], strict=True)))
    yield Watched(page)
    page.close()


@pytest.fixture
def sized(chromium, size):
    """A page of the given size."""
    page = chromium.new_page(viewport=dict(zip(("width", "height"), SIZES[size], strict=True)))
    yield Watched(page)
    page.close()


@pytest.fixture(scope="session")
def demo_class(tmp_path_factory):
    """The demo's class, graded, in a folder of its own; returns that course folder."""
    import subprocess

    from autograder import stamp
    from autograder.course import Course

    root = tmp_path_factory.mktemp("course")
    for name in ("nbgrader_config.py", "attention_lab.py"):
        shutil.copy(ROOT / name, root / name)
    (root / "autograder").symlink_to(ROOT / "autograder")
    for name in ("source", "release"):
        shutil.copytree(ROOT / name, root / name)
    # Whether the grader is right is tested elsewhere; here pages are looked at.
    stamp.write(Course(root), "w07-h2-attention")
    done = subprocess.run(
        [sys.executable, "-m", "autograder", "--root", str(root), "demo", "--quiet"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        },
    )
    if done.returncode:
        pytest.fail(f"the demo's class could not be made:\n{done.stdout}\n{done.stderr}")
    return root / "demo"


@pytest.fixture(scope="session")
def exercise_class(tmp_path_factory):
    """A small graded class of the two assignments with answers to write; returns its course folder.

    Robin got the first function of each notebook wrong, Kim wrote nothing, Lee's first notebook broke off.
    """
    import json

    from autograder import classroom
    from autograder.check_grader import _with
    from autograder.course import Course
    from autograder.tasks.model import FunctionTask
    from autograder.tasks.registry import assignment as tasks_of
    from tests.conftest import Scratch

    scratch = Scratch(tmp_path_factory.mktemp("exercises"))
    course = Course(scratch.root)
    for assignment in EXERCISES:
        good = classroom.diligent(course, assignment)
        robin = dict(good)
        for notebook in tasks_of(assignment).notebooks:
            wrong = [p for p in notebook.parts if isinstance(p, FunctionTask) and p.misconceptions]
            if wrong:
                first = wrong[0].misconceptions[0].implementation
                robin.update(_with(robin, notebook, wrong[0], first))
        saved = {name: classroom.saved_by_colab(nb) for name, nb in robin.items()}
        scratch.hand_in("robin", assignment, saved)
        scratch.hand_in("kim", assignment, classroom.untouched(course, assignment))
        broken = next(iter(good))
        scratch.hand_in("lee", assignment, {broken: json.dumps(good[broken])[:4000]})
        scratch.run("grade", assignment, "--quiet")
        scratch.run("feedback", assignment, "--quiet")
        scratch.run("report", assignment)
    return scratch.root


@pytest.fixture(scope="session")
def pages(demo_class, exercise_class, tmp_path_factory):
    """The pages that people open, by name."""
    from autograder.course import Course
    from autograder.site import write_site

    site = tmp_path_factory.mktemp("site")
    write_site(Course(ROOT), site, run=True)
    lesson = "w07-h2-attention"
    feedback = demo_class / "feedback"
    theirs = exercise_class / "feedback"
    practice, mechanism = EXERCISES
    return {
        "feedback": feedback / "demo-chen" / lesson / "1-scores-and-context.html",
        "feedback-repaired": feedback / "demo-hana" / lesson / "1-scores-and-context.html",
        "feedback-ungradable": feedback / "demo-kofi" / lesson / "2-queries-and-masks.html",
        "feedback-missing": feedback / "demo-milo" / lesson / "1-scores-and-context.html",
        "feedback-practice": theirs / "robin" / practice / "1-attention.html",
        "feedback-untouched": theirs / "kim" / practice / "3-experiments.html",
        "feedback-mechanism": theirs / "robin" / mechanism / "1-additive-and-luong.html",
        "feedback-copy-task": theirs / "robin" / mechanism / "3-copy-task.html",
        "feedback-cut-off": theirs / "lee" / mechanism / "1-additive-and-luong.html",
        "report": demo_class / "autograded" / f"{lesson}.report.html",
        "report-practice": exercise_class / "autograded" / f"{practice}.report.html",
        "report-mechanism": exercise_class / "autograded" / f"{mechanism}.report.html",
        "site-index": site / "index.html",
        "site-lesson": site / lesson / "2-queries-and-masks.html",
        **{f"site/{name}": site / f"{name}.html" for name in LESSONS},
    }
