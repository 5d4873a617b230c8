"""The class in threads of this process, each with a kernel of its own: how grading runs without a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from autograder.course import CourseError
from autograder.execute import Executor
from autograder.grade.submission import Graded, Plan, grade_guarded

Todo = Sequence[tuple[str, str]]
"""(student, digest of the submission) of everybody who is to be graded."""
Grading = Callable[[Todo], Iterator[tuple[Graded, str]]]
"""Outcomes with the digests of `Todo`, as they come."""


class Doors:
    """Opens an executor's kernels until it is shut: then those that run end, and no other begins.

    A notebook may take minutes. Whoever presses Ctrl-C does not want to wait for it, and what it would
    have given is not recorded any more.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._shut = False

    def kernel(self, **options):
        if self._shut:
            raise CourseError("grading has been stopped.")
        return self._executor.kernel(**options)

    def close(self) -> None:
        self._shut = True
        self._executor.close()


def released_code(plan: Plan) -> list[list[str]]:
    """The code cells of each released notebook: what is still as released runs once for the class."""
    return [
        [cell.source for cell in nb.cells if cell.cell_type == "code"]
        for nb in plan.released.values()
    ]


@contextlib.contextmanager
def local_pool(plan: Plan, workers: int, cold: bool, sandbox: bool) -> Iterator[Grading]:
    """Grading with `workers` kernels at once; leaving early ends the notebooks that run.

    Raises:
        CourseError: where notebooks can't be run or isolated.
    """
    released = released_code(plan)
    with (
        Executor(workers=workers, cold=cold, sandbox=sandbox, released=released) as executor,
        ThreadPoolExecutor(workers) as threads,
    ):
        executor.start()  # where isolation can't be had, this says so before any student's turn
        doors = Doors(executor)

        def grading(todo: Todo) -> Iterator[tuple[Graded, str]]:
            return _in_threads(plan, todo, doors, threads, 2 * workers)

        try:
            yield grading
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            doors.close()
            raise


def _in_threads(plan, todo, doors, threads, most: int) -> Iterator[tuple[Graded, str]]:
    """At most so many are handed to the threads at a time, so that memory does not grow with the class."""
    waiting = list(reversed(todo))
    running: dict = {}
    while waiting or running:
        while waiting and len(running) < most:
            student, digest = waiting.pop()
            running[threads.submit(grade_guarded, plan, student, doors)] = digest
        for job in wait(running, return_when=FIRST_COMPLETED).done:
            yield job.result(), running.pop(job)
