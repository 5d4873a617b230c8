"""Does isolation work wherever the course and its environment lie, /tmp included?"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT

PROBE = """
import sys
sys.path.insert(0, {root!r})
from autograder.execute import Executor
with Executor(workers=1) as executor, executor.kernel() as kernel:
    done = kernel.execute({cell!r})
    print(done.status, [o.get("text") or o.get("evalue") for o in done.outputs])
"""
CELL = """
import tempfile, stack_data, numpy
with tempfile.TemporaryDirectory() as folder:
    print("writable")
"""


def probe(python: Path, cell: str = CELL) -> str:
    code = PROBE.format(root=str(ROOT), cell=cell)
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def linked_environment(folder: Path) -> Path:
    """An environment in `folder` that has the packages of this one; returns its interpreter."""
    bin_ = folder / "env" / "bin"
    bin_.mkdir(parents=True)
    (bin_ / "python").symlink_to(os.path.realpath(sys.executable))
    home = Path(os.path.realpath(sys.executable)).parent
    (folder / "env" / "pyvenv.cfg").write_text(f"home = {home}\n")
    (folder / "env" / "lib").symlink_to(Path(sys.prefix) / "lib")
    return bin_ / "python"


def test_an_environment_below_tmp_is_seen_and_temporary_files_work():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        told = probe(linked_environment(Path(folder)))
    assert "ok ['writable\\n']" in told, told


def test_what_is_not_shown_is_still_refused_there():
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        secret = Path(folder) / "secret.txt"
        secret.write_text("x")
        told = probe(linked_environment(Path(folder)), f"print(open({str(secret)!r}).read())")
    assert "error" in told
    assert "No such file" in told
