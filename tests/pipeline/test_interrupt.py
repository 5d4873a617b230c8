"""Ctrl-C in the middle of a class: one line, what is done is kept, nothing goes on or is left."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import psutil

from autograder import classroom
from autograder.course import Course
from tests.conftest import ROOT
from tests.pipeline.small_class import NAME, NOTEBOOK, command, fill, finished, left_behind

ENDLESS = "demo-00"
PATIENCE = 300


def fill_with_endless(scratch) -> None:
    """A class whose first member's notebook never ends by itself."""
    fill(scratch)
    good = classroom.diligent(Course(scratch.root), NAME)
    work = classroom.replaced(good, "run-1", "import platform", "while True: pass\nimport platform")
    classroom.hand_in(Course(scratch.root), ENDLESS, NAME, {NOTEBOOK: work[NOTEBOOK]})


def interrupt(scratch, *words: str) -> subprocess.CompletedProcess:
    """Start grading, send a real SIGINT once some are done, and wait for the end."""
    # No limit of ours ends the endless notebook: only being stopped does.
    process = subprocess.Popen(
        command(scratch, *words),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COURSE_CELL_SECONDS": "100000"},
        # A shell that runs these tests in the background makes them ignore SIGINT, also in children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while len(finished(scratch)) < 3 and process.poll() is None:
        time.sleep(0.02)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert not psutil.wait_procs(family, timeout=PATIENCE)[1]
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def assert_stopped_well(scratch, done: subprocess.CompletedProcess) -> None:
    """Exit code, one line, and the results of exactly those who were finished."""
    assert done.returncode == 130, done.stderr
    assert done.stderr.splitlines() == [
        "stopped: what was finished is kept; run the same command to go on."
    ]
    kept = scratch.results(NAME)["students"]
    assert set(kept) == finished(scratch)
    assert len(kept) >= 3
    assert ENDLESS not in kept
    assert {entry["status"] for entry in kept.values()} == {"incomplete"}
    assert not left_behind(str(scratch.root))


def test_ctrl_c_ends_also_a_notebook_that_does_not_end(scratch):
    fill_with_endless(scratch)
    done = interrupt(scratch)
    assert_stopped_well(scratch, done)
    # Whoever goes on then does not grade again what was finished.
    before = {p: p.stat().st_mtime_ns for p in (scratch.root / "autograded").rglob("*.ipynb")}
    others = sorted({f"demo-{n:02d}" for n in range(1, 12)} - finished(scratch))[:1]
    words = [word for student in others for word in ("--student", student)]
    scratch.run("grade", NAME, "--quiet", *words)
    assert before == {path: path.stat().st_mtime_ns for path in before}
