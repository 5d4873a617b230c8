"""Shared fixtures: the repository, and scratch courses in which commands can be run for real."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autograder import classroom
from autograder.course import Course

ROOT = Path(__file__).resolve().parent.parent
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


class Scratch:
    """A course folder of its own, with the repository's release and configuration."""

    def __init__(self, root: Path):
        self.root = root
        for name in ("nbgrader_config.py", "attention_lab.py", ".check-grader.json"):
            if (ROOT / name).exists():
                shutil.copy(ROOT / name, root / name)
        # The package is found from the repository: the configuration puts its own folder first.
        (root / "autograder").symlink_to(ROOT / "autograder")
        shutil.copytree(ROOT / "source", root / "source")
        shutil.copytree(ROOT / "release", root / "release")
        (root / "submitted").mkdir()

    def hand_in(self, student: str, assignment: str, notebooks: dict[str, object]) -> Path:
        """Put notebooks (nodes, dicts, text or bytes) under submitted/; returns the folder."""
        return classroom.hand_in(Course(self.root), student, assignment, notebooks)

    def run(self, *words: str, check: bool = True) -> subprocess.CompletedProcess:
        """`python -m autograder --root HERE words...` as its user would run it."""
        command = [sys.executable, "-m", "autograder", "--root", str(self.root), *words]
        return self._run(command, check)

    def nbgrader(self, *words: str, check: bool = True) -> subprocess.CompletedProcess:
        """`nbgrader words...` in this course's folder."""
        return self._run([str(Path(sys.executable).parent / "nbgrader"), *words], check, self.root)

    def _run(self, command, check, folder=ROOT):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if check and done.returncode not in (0, 1):
            raise AssertionError(f"{command} gave {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def results(self, assignment: str) -> dict:
        path = self.root / "autograded" / f"{assignment}.results.json"
        return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def scratch(tmp_path) -> Scratch:
    return Scratch(tmp_path)


@pytest.fixture(scope="module")
def module_scratch(tmp_path_factory) -> Scratch:
    return Scratch(tmp_path_factory.mktemp("course"))
