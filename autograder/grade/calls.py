"""What a Dask worker is asked to call: names and bytes alone.

Dask's scheduler reads every task before it passes it on. This module imports nothing of the grader, so that
neither that costs the scheduler anything, nor must it be able to run the grader.
"""

from __future__ import annotations

import pickle


def open_room(job: bytes) -> str:
    """`worker.open_room` of a pickled `Job`."""
    from autograder.grade import worker

    return worker.open_room(pickle.loads(job))


def grade(key: str, student: str, parcel: bytes) -> bytes:
    """`worker.grade` of a pickled `Parcel`; the outcome is pickled too."""
    from autograder.grade import worker

    return pickle.dumps(worker.grade(key, student, pickle.loads(parcel)))


async def close_room(key: str) -> None:
    """`worker.close_room`."""
    from autograder.grade import worker

    await worker.close_room(key)
