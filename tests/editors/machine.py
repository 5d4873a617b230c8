"""Colab's machine, as near as one gets without it: its versions, numpy imported, an empty folder, no network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "constraints" / "colab-2026-08.txt"
TORCH = "torch==2.13.0"
"""Colab has 2.11.0 with Python 3.13; tested is the one version that the course's own requirements have."""
# Colab has imported numpy before the first cell runs: nothing may install another one then.
START = "import numpy; from ipykernel.kernelapp import launch_new_instance; launch_new_instance()"


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


def environment(folder: Path, version: str, *more: str) -> Path:
    """A virtual environment with Colab's packages and `more`; the path of its python."""
    subprocess.run([interpreter(version), "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command = [*pip, "-r", str(CONSTRAINTS), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"pip could not install Colab's packages: {done.stderr[-600:]}")
    return python


def offline() -> list[str]:
    """The words before a command that take its network away."""
    for words in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        if subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0:
            return words
    pytest.fail("no command can be run without a network here: `unshare --net` is refused")


@dataclass
class Machine:
    """An environment in which notebooks are run, each in an empty folder of its own.

    Args:
        python: its interpreter.
        folder: where it may keep what it needs.
    """

    python: Path
    folder: Path
    runs: int = field(default=0)

    def run(self, nb: nbformat.NotebookNode, allow_errors: bool = False) -> Path:
        """Run all cells, outputs into `nb`; the folder that they ran in, empty at first.

        Raises:
            nbclient.exceptions.CellExecutionError: if a cell fails and may not.
        """
        self.runs += 1
        content = self.folder / f"run-{self.runs}" / "content"
        content.mkdir(parents=True)
        # A socket's path is short, and without a network there is no other way to the kernel.
        with tempfile.TemporaryDirectory(prefix="k-") as sockets:
            manager = self._kernel(content.parent, Path(sockets) / "s")
            try:
                NotebookClient(
                    nb,
                    km=manager,
                    timeout=300,
                    allow_errors=allow_errors,
                    resources={"metadata": {"path": str(content)}},
                ).execute(env=self._environment(content.parent))
            finally:
                if manager.has_kernel:
                    manager.shutdown_kernel(now=True)
        return content

    def _kernel(self, folder: Path, sockets: Path) -> KernelManager:
        spec = folder / "kernels" / "colab"
        spec.mkdir(parents=True)
        argv = [*offline(), str(self.python), "-c", START, "-f", "{connection_file}"]
        text = json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"})
        (spec / "kernel.json").write_text(text)
        specs = KernelSpecManager(kernel_dirs=[str(folder / "kernels")])
        manager = KernelManager(kernel_name="colab", kernel_spec_manager=specs)
        manager.transport, manager.ip = "ipc", str(sockets)
        return manager

    def _environment(self, folder: Path) -> dict[str, str]:
        """What a kernel gets of this process's variables: nothing that leads to the repository."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "JUPYTER"))}
        home = {"HOME": str(folder), "IPYTHONDIR": str(folder), "MPLCONFIGDIR": str(folder)}
        return {**kept, **home, "OMP_NUM_THREADS": "1"}
