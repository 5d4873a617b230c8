"""A student in JupyterLab: open, run, see plots, err, read the diagnosis, mend, validate, save."""

import json
import shutil
from pathlib import Path

import lab_server
import nbformat
import pytest

from autograder import classroom
from autograder.course import Course
from autograder.report.times import recorded

pytestmark = pytest.mark.system

ROOT = Path(__file__).resolve().parents[2]
LESSON = "w07-h2-attention"
NOTEBOOK = "1-scores-and-context"
ANSWERED = {
    "w07-h2-attention": "1-scores-and-context",
    "w07-h2-practice": "1-attention",
    "attention-mechanism": "1-additive-and-luong",
}
# A line at the end of one answer cell that spoils it, and what this must cost.
SPOILED = {
    "w07-h2-attention": "run-5",
    "w07-h2-practice": "accepts",
    "attention-mechanism": "dot_attention",
}
SPOIL = {
    "w07-h2-attention": "context = context + 1",
    "w07-h2-practice": "accepts = lambda candidate: True",
    "attention-mechanism": "dot_attention = lambda state, states: (states[0], states[:, 0])",
}
COSTS = {
    "w07-h2-attention": {"context-weighted-sum"},
    "w07-h2-practice": {"accepts-formula", "accepts-masks", "accepts-contract"},
    "attention-mechanism": {"dot_attention-values", "dot_attention-sizes", "dot_attention-stable"},
}
RIGHT = "scores = Q @ K.T / np.sqrt(K.shape[-1])"
WRONG = "scores = Q @ K.T"


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """A student's folder with a released notebook and one that is worked on; address and folder."""
    home = tmp_path_factory.mktemp("student")
    work = home / "work"
    work.mkdir()
    shutil.copy(ROOT / "release" / LESSON / f"{NOTEBOOK}.ipynb", work / "released.ipynb")
    done = classroom.diligent(Course(ROOT), LESSON)[NOTEBOOK]
    nbformat.write(done, work / "worked-on.ipynb")
    for assignment, name in ANSWERED.items():
        nbformat.write(classroom.diligent(Course(ROOT), assignment)[name], work / f"{name}.ipynb")
    with lab_server.server(work, home) as address:
        yield address, work


@pytest.fixture
def opened(desk, chromium):
    """Opens a notebook of the desk."""
    address, work = desk
    page = chromium.new_page(viewport={"width": 1280, "height": 900})

    def open_notebook(name: str) -> lab_server.Lab:
        return lab_server.Lab(page, address, f"{name}.ipynb", work / f"{name}.ipynb")

    yield open_notebook
    page.close()


def test_the_release_runs_and_shows_its_plots(opened, tmp_path):
    lab = opened("released")
    lab.run_all()
    pictures = lab.page.locator(".jp-Notebook .jp-RenderedImage img")
    assert pictures.count() >= 4
    assert "Setup is done" in lab.output("setup")
    assert "checkpoints pass" in lab.output("summary")
    lab.cell("run-4").scroll_into_view_if_needed()
    picture(lab.page, "student-jupyterlab", tmp_path)


def test_a_mistake_is_diagnosed_and_mending_it_passes(opened, tmp_path):
    lab = opened("worked-on")
    lab.run_all()
    assert "NameError" not in lab.page.locator(".jp-Notebook").inner_text()
    cell = next(c for c in json.loads(lab.notebook.read_text())["cells"] if c["id"] == "run-3")
    source = "".join(cell["source"])
    assert RIGHT in source
    lab.write("run-3", source.replace(RIGHT, WRONG))
    lab.run("run-3", "scores-scaled")
    said = lab.output("scores-scaled")
    assert "sqrt" in said or "square root" in said
    assert "Traceback" not in said
    lab.cell("scores-scaled").scroll_into_view_if_needed()
    picture(lab.page, "student-diagnosis", tmp_path)
    lab.write("run-3", source)
    lab.run("run-3", "scores-scaled")
    mended = lab.output("scores-scaled")
    assert mended != said
    assert "cause" not in mended.lower()
    saved = lab.save()
    kept = next(c for c in saved["cells"] if c["id"] == "run-3")
    assert "".join(kept["source"]) == source


@pytest.mark.parametrize("assignment", ANSWERED)
def test_what_jupyterlab_saves_is_graded_to_full_marks(opened, desk, scratch, assignment):
    """Run, saved and handed in as a copy; then the same file with the first answer's checkpoints spoiled."""
    name = ANSWERED[assignment]
    lab = opened(name)
    lab.run_all()
    saved = lab.save()
    assert any("iopub.execute_input" in c["metadata"].get("execution", {}) for c in saved["cells"])
    download = scratch.root / "download"
    for student in ("lab", "lab-wrong"):
        (download / student).mkdir(parents=True)
    spoiled = json.loads(json.dumps(saved))
    first = next(c for c in spoiled["cells"] if c["id"] == SPOILED[assignment])
    first["source"] = ["".join(first["source"]), "\n", SPOIL[assignment]]
    for student, nb in (("lab", saved), ("lab-wrong", spoiled)):
        (download / student / f"Copy of {name}.ipynb").write_text(json.dumps(nb), encoding="utf-8")
    scratch.run("collect", assignment, str(download), "--new")
    scratch.run("grade", assignment, "--quiet")
    students = scratch.results(assignment)["students"]
    assert lost(students["lab"], name) == set()
    assert lost(students["lab-wrong"], name) == COSTS[assignment]
    assert recorded(scratch.root / "submitted" / "lab" / assignment / f"Copy of {name}.ipynb")


def lost(entry: dict, notebook: str) -> set[str]:
    """Automatic checkpoints of the notebook that miss a mark."""
    return {
        grade_id
        for grade_id, c in entry["checkpoints"].items()
        if c["notebook"] == notebook and c["verdict"] != "manual" and c["score"] < c["max_score"]
    }


def test_validate_tells_a_right_notebook_from_a_wrong_one(opened):
    lab = opened("worked-on")
    assert "Success" in validated(lab)
    cell = next(c for c in json.loads(lab.notebook.read_text())["cells"] if c["id"] == "run-3")
    source = "".join(cell["source"])
    lab.write("run-3", source.replace(RIGHT, WRONG))
    lab.save()
    said = validated(lab)
    assert "Success" not in said
    assert "scores-scaled" in said or "sqrt" in said or "scores" in said
    lab.write("run-3", source)
    lab.save()


def validated(lab) -> str:
    """Press nbgrader's Validate and read its dialog."""
    lab.page.get_by_text("Validate", exact=True).click()
    dialog = lab.page.locator(".jp-Dialog-content, .modal-dialog").last
    dialog.wait_for()
    text = dialog.inner_text()
    dialog.locator("button").last.click()
    dialog.wait_for(state="detached")
    return text


def test_locked_cells_stay_locked_and_others_do_not(opened):
    lab = opened("worked-on")
    for cell_id, opens in (("scores-scaled", False), ("your-change-3", True)):
        cell = lab.cell(cell_id)
        before = cell.locator(".cm-content").inner_text()
        count = lab.page.locator(".jp-Notebook .jp-Cell").count()
        cell.locator(".cm-content").click()
        lab.page.keyboard.type("# typed ")
        lab.page.wait_for_timeout(300)
        assert (cell.locator(".cm-content").inner_text() != before) == opens
        lab.page.keyboard.press("Escape")
        lab.page.keyboard.type("dd")
        lab.page.wait_for_timeout(500)
        assert (lab.page.locator(".jp-Notebook .jp-Cell").count() < count) == opens


def picture(page, name: str, folder: Path) -> None:
    from test_pages_in_chromium import keep

    path = folder / f"{name}.png"
    page.screenshot(path=path)
    keep(path)
