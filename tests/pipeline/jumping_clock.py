"""`python -m tests.pipeline.jumping_clock ...`: `python -m autograder ...` while the clock is set again and again.

Every look at the wall clock finds it days before or after the last one; the monotonic clock goes on as it should.
"""

from __future__ import annotations

import datetime
import itertools
import sys
import time

DAY = 86_400
JUMPS = itertools.cycle([0, 3 * DAY, -5 * DAY, 400 * DAY, -1 * DAY])


class _Kind(type(datetime.datetime)):
    def __instancecheck__(cls, thing) -> bool:
        return isinstance(thing, _REAL)


_REAL, _time, _time_ns = datetime.datetime, time.time, time.time_ns


class Jumping(_REAL, metaclass=_Kind):
    """A datetime whose now is somewhere else each time."""

    @classmethod
    def now(cls, tz=None):
        return _REAL.now(tz) + datetime.timedelta(seconds=next(JUMPS))

    @classmethod
    def utcnow(cls):
        return _REAL.now(datetime.timezone.utc).replace(tzinfo=None) + datetime.timedelta(
            seconds=next(JUMPS)
        )

    today = now


def install() -> None:
    """Replace this process's wall clock."""
    time.time = lambda: _time() + next(JUMPS)
    time.time_ns = lambda: _time_ns() + next(JUMPS) * 10**9
    datetime.datetime = Jumping


if __name__ == "__main__":
    install()
    from autograder.__main__ import main

    sys.exit(main())
