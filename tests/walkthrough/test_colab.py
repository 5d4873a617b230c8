"""Under Colab's versions: the released notebooks run, and the helper's messages and pictures come out.

Builds virtual environments with pip, so it is a system test. The versions are in constraints/.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from autograder.grade.submission import shown_evidence
from tests.walkthrough.play import NOTEBOOKS, ROOT
from tests.walkthrough.test_release_form import released

pytestmark = pytest.mark.system
CONSTRAINTS = ROOT / "constraints" / "colab-2026-08.txt"
ONE, TWO, THREE = NOTEBOOKS


def interpreter(version: str) -> str:
    """A Python of this version, from PATH or pyenv. Its absence is a failure, not a skip."""
    places = [Path(sys.executable), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
    found = shutil.which(f"python{version}")
    for python in [*([found] if found else []), *map(str, places)]:
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        asked = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
        if asked.stdout.strip() == version:
            return python
    pytest.fail(
        f"Python {version} is not there: install it (for instance `pyenv install {version}`)"
    )


def environment(folder: Path, version: str, packages: list[str]) -> Path:
    """A virtual environment with exactly these packages; the path of its python."""
    subprocess.run([interpreter(version), "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        *packages,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"pip could not install {packages}: {done.stderr[-600:]}")
    return python


def kernel(python: Path, folder: Path) -> KernelManager:
    """A manager of kernels that run in that environment."""
    spec = folder / "kernels" / "colab"
    spec.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": "colab", "language": "python"})
    )
    specs = KernelSpecManager(kernel_dirs=[str(folder / "kernels")])
    return KernelManager(kernel_name="colab", kernel_spec_manager=specs)


def run(nb, manager, folder: Path, allow_errors: bool = False):
    client = NotebookClient(
        nb,
        km=manager,
        timeout=300,
        allow_errors=allow_errors,
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return nb


@pytest.fixture(scope="module")
def colab(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("colab")
    return environment(folder / "env", "3.13", ["-r", str(CONSTRAINTS)])


@pytest.fixture(scope="module")
def colab_with_torch(tmp_path_factory) -> Path:
    """Colab's numpy and matplotlib with PyTorch, on Python 3.11 where its CPU build is at hand."""
    folder = tmp_path_factory.mktemp("colab-torch")
    pins = [line for line in CONSTRAINTS.read_text().splitlines() if line[:5] in ("numpy", "matpl")]
    return environment(folder / "env", "3.11", [*pins, "ipykernel", "torch==2.13.0"])


def versions(python: Path) -> str:
    code = "import sys, numpy, matplotlib; print(sys.version_info[:2], numpy.__version__, matplotlib.__version__)"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout


def assert_ran(nb, folder: Path) -> None:
    assert shown_evidence(nb) is not None
    assert [path.name for path in folder.iterdir()] == ["artifacts"]
    pictures = [
        out
        for cell in nb.cells
        for out in cell.get("outputs", [])
        if "image/png" in out.get("data", {})
    ]
    assert len(pictures) >= 3
    assert all(len(out.metadata["image/png"]["alt"]) > 40 for out in pictures)


@pytest.mark.parametrize("name", [ONE, TWO])
def test_it_runs_in_an_empty_folder_under_colab_s_versions(colab, name, tmp_path):
    assert versions(colab).strip() == "(3, 13) 2.1.3 3.10.0"
    folder = tmp_path / "content"
    folder.mkdir()
    assert_ran(run(released(name), kernel(colab, tmp_path), folder), folder)


def test_notebook_3_runs_with_colab_s_numpy_and_matplotlib(colab_with_torch, tmp_path):
    assert versions(colab_with_torch).strip() == "(3, 11) 2.1.3 3.10.0"
    folder = tmp_path / "content"
    folder.mkdir()
    assert_ran(run(released(THREE), kernel(colab_with_torch, tmp_path), folder), folder)


def test_a_failed_check_shows_no_frames_under_colab_s_ipython(colab, tmp_path):
    nb = released(ONE)
    cells = {cell.id: cell for cell in nb.cells}
    cells["run-3"].source = cells["run-3"].source.replace(" / np.sqrt(K.shape[-1])", "")
    folder = tmp_path / "content"
    folder.mkdir()
    run(nb, kernel(colab, tmp_path), folder, allow_errors=True)
    (error,) = [out for out in cells["scores-scaled"].outputs if out.output_type == "error"]
    shown = "\n".join(error.traceback)
    assert shown.startswith(
        "✗ scores-scaled\n  Seen: `scores`[0, 0] is 1, the property gives 0.707107"
    )
    assert "Traceback" not in shown
    assert "attention_lab" not in shown
    assert nbformat.validate(nb) is None
