"""`grade --scheduler ADDRESS`: the class on a Dask cluster, its results recorded by this one process.

Dask carries tasks and data, and tells which workers there are. Which worker gets which submission is
decided here: a submission that kills its worker must not take the next worker and its neighbours with
it, and a worker that would judge otherwise than this machine gets nothing at all. Each task is tied to
one worker; when that is gone, its tasks are given to others.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import pickle
import pkgutil
import queue
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from autograder.course import CourseError
from autograder.grade import calls
from autograder.grade import worker as remote
from autograder.grade.parcel import Unsendable, pack
from autograder.grade.pool import Grading, Todo
from autograder.grade.submission import Graded, Plan, ungradable

CONNECT = 30.0
"""Seconds to wait for the scheduler."""
WAIT = 60.0
"""Seconds to wait for the first worker."""
RETURN = 600.0
"""Seconds to wait when none is left: a queue may take its time to start another job."""
PAUSE = 1.0
"""Seconds between two looks at who is there."""
FETCH = 10.0
"""Seconds to wait for a result that has been announced; its worker may be gone since."""
LIVES = 3
"""A submission with which so many workers went away is given up; the last time it is alone with one."""
LOUD = ("distributed", "tornado", "asyncio")
RETRY = "run this again: what was finished is kept."


@contextlib.contextmanager
def cluster(plan: Plan, address: str, cold: bool, sandbox: bool) -> Iterator[Grading]:
    """Grading on the cluster whose scheduler is at `address`; leaving early stops what runs there.

    Raises:
        CourseError: no Dask here, no scheduler there, no worker that grades as this machine does.
    """
    dask = _dask()
    client = _connect(dask, address)
    try:
        crew = Crew(dask, client, plan, remote.job_of(plan, cold, sandbox))
        try:
            yield crew.grading
        finally:
            crew.dismiss()
    finally:
        with contextlib.suppress(Exception):
            client.close()


def _dask() -> Any:
    try:
        import dask
        import distributed
    except ImportError:
        raise CourseError(
            "--scheduler needs Dask, which is not installed here: "
            "pip install -r requirements-cluster.txt (docs/cluster.md)."
        ) from None
    # A submission is larger than what Dask likes in a task, and is meant to be.
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "10GB"})
    # What Dask logs of a lost worker or scheduler, we say in one line.
    for name in (*LOUD, *logging.root.manager.loggerDict):
        if name.partition(".")[0] in LOUD:
            logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed


def _connect(dask: Any, address: str) -> Any:
    try:
        asyncio.run(_probe(dask, address))
        return dask.Client(address, timeout=CONNECT, set_as_default=False)
    except Exception as error:  # which one depends on what is wrong with the address
        lines = str(error).splitlines() or [type(error).__name__]
        raise CourseError(
            f"no Dask scheduler answers at {address} ({lines[0]}): start one, or correct the address "
            f"(docs/cluster.md)."
        ) from None


async def _probe(dask: Any, address: str) -> None:
    """Connect once: a Client that fails to does not go quietly."""
    security = dask.Security().get_connection_args("client")
    (await dask.comm.connect(address, timeout=CONNECT, **security)).abort()


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass
class _Task:
    """One submission; `losses` counts the workers that went away with it."""

    student: str
    digest: str
    losses: int = 0

    @property
    def alone(self) -> bool:
        return self.losses >= LIVES - 1


@dataclass(eq=False)
class _Worker:
    """One worker process, and what it has in hand."""

    address: str
    threads: int
    ready: bool = False
    refused: str = ""
    tasks: list[_Task] = field(default_factory=list)

    def takes(self, task: _Task) -> bool:
        """Whether it has room: a little more than its threads, so that none waits for the next."""
        if not self.ready or any(mine.alone for mine in self.tasks):
            return False
        if task.alone:
            return not self.tasks
        return len(self.tasks) < self.threads + self.threads // 4 + 1


class Crew:
    """The workers of a cluster, at work on one run."""

    def __init__(
        self,
        dask: Any,
        client: Any,
        plan: Plan,
        job: remote.Job,
        say: Callable[[str], None] = _say,
    ) -> None:
        self.dask, self.client, self.plan, self.job, self.say = dask, client, plan, job, say
        self.workers: dict[str, _Worker] = {}
        self.waiting: deque[_Task] = deque()
        self.greetings: dict[str, tuple[Any, _Worker]] = {}
        self.running: dict[str, tuple[Any, _Worker, _Task]] = {}
        self.outcomes: deque[tuple[Graded, str]] = deque()
        self._ended: queue.SimpleQueue = queue.SimpleQueue()
        self._numbers = itertools.count(1)
        self._looked = -PAUSE
        self._had_worker = time.monotonic()
        self._had_ready = False

    def grading(self, todo: Todo) -> Iterator[tuple[Graded, str]]:
        """Outcomes as they come; see `pool.Grading`."""
        self.waiting.extend(_Task(student, digest) for student, digest in todo)
        while self.waiting or self.running or self.outcomes:
            self._look_around()
            self._hand_out()
            self._take_in()
            while self.outcomes:
                yield self.outcomes.popleft()

    def dismiss(self) -> None:
        """Take back what is in hand, and end the run's process on each worker."""
        futures = [future for future, *_ in (*self.running.values(), *self.greetings.values())]
        ready = [worker.address for worker in self.workers.values() if not worker.refused]
        # Whoever went away meanwhile needs no dismissal.
        with contextlib.suppress(Exception):
            self.client.cancel(futures)
            if ready:
                self.client.run(calls.close_room, self.job.key, workers=ready, on_error="ignore")

    # ------------------------------------------------------------------------------- the workers

    def _look_around(self) -> None:
        """Greet new workers, and take back the tasks of those that are gone."""
        now = time.monotonic()
        if now - self._looked < PAUSE:
            return
        self._looked = now
        present = self._present()
        for address in self.workers.keys() - present.keys():
            self._lost(address)
        for address in present.keys() - self.workers.keys():
            self._greet(_Worker(address, present[address]))
        usable = [worker for worker in self.workers.values() if not worker.refused]
        if usable:
            self._had_worker = now
        elif now - self._had_worker >= self._patience():
            raise CourseError(self._nobody())

    def _patience(self) -> float:
        if self._had_ready:
            return RETURN
        return 0.0 if self.workers else WAIT  # those that are there have all been refused

    def _nobody(self) -> str:
        reasons = [f"{worker.address}: {worker.refused}" for worker in self.workers.values()]
        where = f"the scheduler {self.client.scheduler.address}"
        if reasons:
            return f"no worker of {where} can grade this ({reasons[0]}): mend that, then {RETRY}"
        return f"no worker is at {where}: start some (docs/cluster.md), then {RETRY}"

    def _present(self) -> dict[str, int]:
        """Addresses of all workers, with their threads."""
        try:
            return self.client.nthreads()
        except Exception as error:  # Dask has many for a connection that is gone
            raise CourseError(
                f"the Dask scheduler went away ({type(error).__name__}): start it again, then {RETRY}"
            ) from None

    def _greet(self, worker: _Worker) -> None:
        """Ask a worker for a file of the grader, with Python's own means: a task that it can't read ends it."""
        self.workers[worker.address] = worker
        self._ask(worker, pkgutil.get_data, "autograder.grade", "calls.py")

    def _ask(self, worker: _Worker, function: Callable, *args: Any) -> None:
        future = self._submit(worker, function, *args)
        self.greetings[future.key] = future, worker

    def _greeted(self, future: Any, worker: _Worker) -> None:
        """A worker has the grader: send it the run. Or it is ready for students, or can't be."""
        try:
            answer = future.result(timeout=FETCH)
        except Exception as error:
            answer = (
                f"it, or the scheduler, can't load the grader ({type(error).__name__}): start both in the "
                f"course's folder, with its environment"
            )
        if self.workers.get(worker.address) is not worker:
            return  # gone meanwhile
        if isinstance(answer, bytes):
            self._ask(worker, calls.open_room, pickle.dumps(self.job))
        elif answer:
            self._refuse(worker, answer)
        else:
            worker.ready = self._had_ready = True

    def _refuse(self, worker: _Worker, reason: str) -> None:
        worker.ready, worker.refused = False, reason
        self.say(f"warning: worker {worker.address} is not used: {reason}.")

    def _lost(self, address: str) -> None:
        """A worker is gone; what it had in hand goes to others, at the end of the queue."""
        gone = self.workers.pop(address)
        self.say(f"warning: worker {address} is gone; what it was at is graded elsewhere.")
        for key, (_, worker) in list(self.greetings.items()):
            if worker is gone:
                del self.greetings[key]
        for key, (_, worker, task) in list(self.running.items()):
            if worker is gone:
                self._drop(key)
                self._blame(task)

    def _blame(self, task: _Task, why: str = "the worker went away") -> None:
        """Grading it did not come to an end: perhaps because of it."""
        task.losses += 1
        if task.losses < LIVES:
            self.waiting.append(task)
            return
        self._give_up(
            task,
            f"{task.losses} workers of the cluster failed while they graded this submission ({why}), so "
            f"it was given up.",
        )

    def _give_up(self, task: _Task, reason: str) -> None:
        """This submission is ungradable here; the line says how to grade it all the same."""
        advice = (
            f"Grade it without the cluster: grade {self.plan.name} --force --student {task.student}"
        )
        graded = ungradable(self.plan, task.student, f"{reason} {advice}")
        self.outcomes.append((graded, task.digest))

    # ------------------------------------------------------------------------------- submissions

    def _hand_out(self) -> None:
        """Give submissions to workers that have room, those with the least to do first."""
        while self.waiting:
            free = [worker for worker in self.workers.values() if worker.takes(self.waiting[0])]
            if not free:
                return
            self._send(
                self.waiting.popleft(), min(free, key=lambda w: len(w.tasks) / max(w.threads, 1))
            )

    def _send(self, task: _Task, worker: _Worker) -> None:
        try:
            folder = self.plan.course.submitted / task.student / self.plan.name
            parcel = pickle.dumps(pack(folder))
        except Unsendable as error:
            self._give_up(task, f"The submission can't be sent to the cluster: {error}.")
            return
        future = self._submit(worker, calls.grade, self.job.key, task.student, parcel)
        worker.tasks.append(task)
        self.running[future.key] = future, worker, task

    def _submit(self, worker: _Worker, function: Callable, *args: Any) -> Any:
        key = f"{function.__name__}-{self.client.id}-{next(self._numbers)}"
        future = self.client.submit(function, *args, key=key, workers=[worker.address])
        future.add_done_callback(self._ended.put)
        return future

    def _drop(self, key: str) -> None:
        _, worker, task = self.running.pop(key)
        worker.tasks.remove(task)

    def _take_in(self) -> None:
        """Wait a moment for a task to end, and take its outcome."""
        try:
            future = self._ended.get(timeout=0 if self.outcomes else PAUSE)
        except queue.Empty:
            return
        if future.key in self.greetings:
            self._greeted(*self.greetings.pop(future.key))
        elif future.key in self.running:
            self._take(future)

    def _take(self, future: Any) -> None:
        _, worker, task = self.running[future.key]
        try:
            outcome = pickle.loads(future.result(timeout=FETCH))
        except (TimeoutError, self.dask.TimeoutError):
            # Its worker is gone with it, or slow: _look_around finds out which.
            self._ended.put(future)
            return
        except self.dask.CancelledError:
            outcome = None  # the connection to the scheduler broke; _look_around finds out
        except (
            Exception
        ) as error:  # a worker that died and came back at once, or Dask's own trouble
            outcome = remote.Failed(type(error).__name__)
        self._drop(future.key)
        if isinstance(outcome, Graded):
            self.outcomes.append((outcome, task.digest))
        elif isinstance(outcome, remote.Failed):
            self._blame(task, outcome.reason)
        else:
            self.waiting.append(task)
            self._unready(worker, outcome.reason if outcome else "")

    def _unready(self, worker: _Worker, reason: str) -> None:
        """A worker turned a submission down."""
        if reason:
            self._refuse(worker, reason)
        elif self.workers.get(worker.address) is worker:
            del self.workers[worker.address]  # another process now, under its address: greet it
