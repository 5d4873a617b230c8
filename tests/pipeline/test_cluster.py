"""Grading on a Dask cluster of separate processes: does it give what a local run gives, whatever dies?"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time

import psutil
import pytest

from autograder.course import Course, CourseError
from autograder.grade import cluster as clusters
from autograder.grade.command import run_command
from tests.conftest import ROOT, Scratch
from tests.pipeline.dask_cluster import PATIENCE, family, started
from tests.pipeline.small_class import NAME, STUDENTS, command, fill, finished, left_behind, rows
from tests.pipeline.test_interrupt import assert_stopped_well, fill_with_endless, interrupt

KILLER = "demo-02"


def made(folder, students: int = STUDENTS) -> Scratch:
    """A course with a class; one member handed in more than notebooks."""
    folder.mkdir()
    scratch = Scratch(folder)
    fill(scratch, students)
    odd = scratch.root / "submitted" / "demo-01" / NAME
    (odd / "data.csv").write_text("1,2\n")
    (odd / "elsewhere").symlink_to("/etc/passwd")
    (odd / "timestamp.txt").write_text("2026-11-12 23:59:00 UTC\n")
    return scratch


@pytest.fixture(scope="module")
def local(tmp_path_factory) -> Scratch:
    """The same class, graded without a cluster."""
    scratch = made(tmp_path_factory.mktemp("local") / "course")
    scratch.run("grade", NAME, "--quiet")
    return scratch


def graded_notebooks(scratch: Scratch) -> dict[str, bytes]:
    folder = scratch.root / "autograded"
    files = [path for path in folder.glob("demo-*/**/*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_worker_that_is_killed_half_way_changes_nothing(local, tmp_path):
    course = made(tmp_path / "course")
    with started(tmp_path / "cluster", workers=2) as cluster:
        workers = cluster.processes[1:]
        process = subprocess.Popen(
            command(course, "--scheduler", cluster.address),
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
        )
        while len(finished(course)) < 3 and process.poll() is None:
            time.sleep(0.02)
        assert process.poll() is None, process.communicate()[1]
        # A worker that has a warm process is at work; one of them has finished these three.
        killed = next(worker for worker in workers if family(worker))
        orphans = family(killed)
        killed.kill()
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        assert "is gone" in said
        assert "Traceback" not in said
        # Nothing is left of the killed one, and of the other only the worker itself.
        assert not psutil.wait_procs(orphans, timeout=PATIENCE)[1]
        other = next(worker for worker in workers if worker is not killed)
        assert not family(other)
        # The killed one's folder goes when the next worker starts on the machine.
        cluster.worker()
        while cluster.submissions():
            time.sleep(0.05)
    assert finished(course) == {f"demo-{number:02d}" for number in range(STUDENTS)}
    assert course.results(NAME) == local.results(NAME)
    assert rows(course) == rows(local)
    assert graded_notebooks(course) == graded_notebooks(local)
    assert not left_behind(str(tmp_path))


def test_the_comparison_would_see_another_outcome(local, tmp_path):
    course = made(tmp_path / "course")
    shutil.rmtree(course.root / "submitted" / "demo-01")
    course.run("grade", NAME, "--quiet")
    assert course.results(NAME) != local.results(NAME)
    assert rows(course) != rows(local)
    assert graded_notebooks(course) != graded_notebooks(local)


def test_a_submission_that_kills_its_workers_ends_ungradable_and_alone(local, tmp_path):
    course = made(tmp_path / "course", students=4)
    (tmp_path / "deadly.py").write_text(
        "import os, signal\n"
        "from autograder.grade import worker\n"
        "from autograder.grade.submission import grade_guarded as honest\n"
        "def deadly(plan, student, *more):\n"
        f"    if student == {KILLER!r}:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return honest(plan, student, *more)\n"
        "worker.grade_guarded = deadly\n"
    )
    with started(tmp_path / "cluster") as cluster:
        # With a nanny, as clusters usually have it: what dies is started again.
        cluster.worker("--preload", str(tmp_path / "deadly.py"))
        done = course.run("grade", NAME, "--quiet", "--scheduler", cluster.address)
    assert done.returncode == 1
    entries = course.results(NAME)["students"]
    assert entries[KILLER]["status"] == "ungradable"
    assert entries[KILLER]["score"] is None
    assert f"{clusters.LIVES} workers" in entries[KILLER]["reason"]
    assert f"--student {KILLER}" in entries[KILLER]["reason"]
    for student in ("demo-00", "demo-01", "demo-03"):
        assert entries[student] == local.results(NAME)["students"][student]
    # What the reason advises gives what it would have been.
    course.run("grade", NAME, "--quiet", "--force", "--student", KILLER)
    assert course.results(NAME)["students"][KILLER] == local.results(NAME)["students"][KILLER]


def test_ctrl_c_ends_what_runs_on_the_workers_too(tmp_path):
    course = made(tmp_path / "course")
    fill_with_endless(course)
    with started(tmp_path / "cluster", workers=2) as cluster:
        done = interrupt(course, "--scheduler", cluster.address)
        assert_stopped_well(course, done)
        for worker in cluster.processes[1:]:
            assert not psutil.wait_procs(family(worker), timeout=PATIENCE)[1]
        # The workers are free again, also the one that was at the endless notebook.
        left = sorted({f"demo-{n:02d}" for n in range(1, STUDENTS)} - finished(course))
        words = [word for student in left for word in ("--student", student)]
        course.run("grade", NAME, "--quiet", "--scheduler", cluster.address, *words)
    assert len(finished(course)) == STUDENTS - 1


# ---------------------------------------------------------------------------------- refusals


@pytest.fixture
def tiny(tmp_path) -> Course:
    return Course(made(tmp_path / "course", students=2).root)


def refused(course: Course, address: str, **options) -> str:
    """The one line that grading there is refused with; nobody is graded."""
    with pytest.raises(CourseError) as caught:
        run_command(course, NAME, quiet=True, scheduler=address, **options)
    assert not list((course.autograded / ".run" / NAME).glob("students/*"))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_no_scheduler_at_the_address(tiny, monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT", 0.5)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        assert address in refused(tiny, address)


@pytest.mark.parametrize("address", ["cluster:port", "tls://127.0.0.1:8786", "http://127.0.0.1:1"])
def test_what_is_no_address_or_needs_certificates(tiny, address, monkeypatch):
    monkeypatch.setattr(clusters, "CONNECT", 0.5)
    assert address in refused(tiny, address)


def test_dask_is_not_installed(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "requirements-cluster.txt" in refused(tiny, "tcp://127.0.0.1:8786")


def test_kernels_at_once_are_the_workers_business(tiny):
    assert "--nthreads" in refused(tiny, "tcp://127.0.0.1:8786", workers=3)


def test_no_worker(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "WAIT", 0.0)
    with started(tmp_path / "cluster") as cluster:
        assert "no worker is at" in refused(tiny, cluster.address)


def other_grader(folder) -> None:
    """The grader with one more line in one file that decides grades."""
    folder.mkdir()
    shutil.copy(ROOT / "attention_lab.py", folder)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "autograder", folder / "autograder", ignore=ignored)
    with (folder / "autograder" / "verify" / "verdicts.py").open("a") as file:
        file.write("# another definition\n")


def test_a_worker_with_other_definitions(tiny, tmp_path, capsys):
    other_grader(tmp_path / "other")
    with started(tmp_path / "cluster") as cluster:
        cluster.worker("--no-nanny", folder=tmp_path / "other")
        assert "other definitions" in refused(tiny, cluster.address)
        # Beside one that grades as we do, it is told of and left out.
        cluster.worker()
        cluster.await_workers(2)
        found = run_command(tiny, NAME, quiet=True, scheduler=cluster.address)
    assert {entry["status"] for entry in found["students"].values()} == {"incomplete"}
    warnings = [line for line in capsys.readouterr().err.splitlines() if "is not used" in line]
    assert len(warnings) >= 2
    assert all("other definitions" in line for line in warnings)


def test_a_worker_without_the_grader(tiny, tmp_path):
    (tmp_path / "empty").mkdir()
    with started(tmp_path / "cluster") as cluster:
        cluster.worker("--no-nanny", folder=tmp_path / "empty")
        assert "course's folder" in refused(tiny, cluster.address)


def test_the_scheduler_goes_away(tiny, tmp_path):
    with started(tmp_path / "cluster", workers=1) as cluster:
        plan_and_kill = [sys.executable, "-c", KILL_AT_ONCE, str(tiny.root), cluster.address]
        done = subprocess.run(
            [*plan_and_kill, str(cluster.scheduler.pid)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    lines = [line for line in done.stderr.splitlines() if not line.startswith("warning:")]
    assert done.returncode == 2, done.stderr
    assert len(lines) == 1, done.stderr
    assert "scheduler went away" in lines[0]


KILL_AT_ONCE = """
import os, signal, sys
from autograder.__main__ import main
from autograder.grade import cluster
send = cluster.Crew._send
def send_and_kill(crew, task, worker):
    send(crew, task, worker)
    os.kill(int(sys.argv[3]), signal.SIGKILL)
cluster.Crew._send = send_and_kill
sys.exit(main(["--root", sys.argv[1], "grade", "w07-h2-attention", "--quiet", "--scheduler", sys.argv[2]]))
"""


def test_without_the_option_dask_is_not_even_imported(tiny):
    code = (
        "import sys\nfrom autograder.__main__ import main\nmain(sys.argv[1:])\n"
        "print(sorted({'dask', 'distributed'} & set(sys.modules)))"
    )
    words = ["--root", str(tiny.root), "grade", NAME, "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.splitlines()[-1] == "[]"
    assert len(list((tiny.autograded / ".run" / NAME).glob("students/*"))) == 2
