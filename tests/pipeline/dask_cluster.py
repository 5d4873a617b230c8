"""A real scheduler and real workers, each a process of its own, for one test."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import distributed
import psutil

from tests.conftest import ROOT

PATIENCE = 300


class Cluster:
    """Processes of `dask scheduler` and `dask worker`; what they print is in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.space = folder / "space"
        self.processes: list[subprocess.Popen] = []
        self.scheduler = self._start(
            "scheduler", "--port", "0", "--scheduler-file", str(self.file), folder=ROOT
        )
        while not self.file.exists():
            assert self.scheduler.poll() is None, self.log()
            time.sleep(0.05)
        self.address = json.loads(self.file.read_text())["address"]

    def worker(self, *words: str, folder: Path = ROOT) -> subprocess.Popen:
        """Start a worker of one thread; `folder` is where it finds the grader."""
        words = words or ("--no-nanny",)
        place = ("--local-directory", str(self.space))
        return self._start("worker", self.address, "--nthreads", "1", *place, *words, folder=folder)

    def _start(self, *words: str, folder: Path) -> subprocess.Popen:
        command = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--no-dashboard"]
        with (self.folder / "log").open("a") as log:
            # An activated environment's PYTHONPATH would put another grader first.
            env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
            process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=env)
        self.processes.append(process)
        return process

    def await_workers(self, count: int) -> None:
        """Wait until so many have registered."""
        with distributed.Client(self.address, set_as_default=False) as client:
            client.wait_for_workers(count)

    def submissions(self) -> list[str]:
        """Folders with students' work on the workers' disks."""
        found = [name for _, folders, _ in os.walk(self.space) for name in folders]
        return [name for name in found if name.startswith("grading-")]

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def close(self) -> None:
        """Workers first, as whoever ends a cluster does it."""
        for process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(PATIENCE / 10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def started(folder: Path, workers: int = 0) -> Iterator[Cluster]:
    """A cluster for the time of a test."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(folder)
    try:
        for _ in range(workers):
            cluster.worker()
        yield cluster
    finally:
        cluster.close()


def family(process: subprocess.Popen) -> list[psutil.Process]:
    """All that a process has started, and what that has started."""
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
