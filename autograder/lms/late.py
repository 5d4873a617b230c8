"""Late policies: plain functions of times with time zones, and the plugin that nbgrader calls.

A policy takes a share of the score for each started day after the due time, counted from after a period of
grace. A day is a day of the calendar in the course's time zone where the two times are known (so that "the
same time tomorrow" stays that when clocks change), and 24 hours where only seconds are, as in nbgrader.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from dateutil import parser as dates
from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Float

from autograder.course import CourseError


@dataclass(frozen=True)
class Policy:
    """How much being late costs.

    Args:
        percent_per_day: of the score, for each started day; 0 costs nothing.
        grace_minutes: being late by no more than this costs nothing.
        most_percent: the penalty never exceeds this share of the score.
    """

    percent_per_day: float = 0.0
    grace_minutes: float = 0.0
    most_percent: float = 100.0


def moment(text: str, zone: str = "UTC") -> datetime:
    """A time as somebody wrote it, as a time in UTC; without an offset of its own it is in `zone`.

    Raises:
        CourseError: if it is no time, or there is no such zone.
    """
    try:
        local = ZoneInfo(zone)
    except (KeyError, ValueError, OSError):
        raise CourseError(f"There is no time zone {zone!r}; an example is Europe/Berlin.") from None
    try:
        time = dates.parse(text)
    except (ValueError, OverflowError):
        raise CourseError(
            f"{text!r} is no date and time; an example is 2026-11-12 23:59."
        ) from None
    if time.tzinfo is None:
        time = time.replace(tzinfo=local)
    return time.astimezone(timezone.utc)


def days_late(
    submitted: datetime, due: datetime, zone: str = "UTC", grace_minutes: float = 0
) -> int:
    """Started days between two times that have a zone: 0 until the due time (and grace), 1 until the same
    time on the clock of the next day, and so on.
    """
    if submitted.tzinfo is None or due.tzinfo is None:
        raise ValueError("Both times need a time zone.")
    if submitted <= due + timedelta(minutes=grace_minutes):
        return 0
    local = due.astimezone(ZoneInfo(zone))
    days = max(1, (submitted - due).days - 1)
    # Adding a day to a local time keeps the hour on the clock, also when clocks change in between.
    while (local + timedelta(days=days)).astimezone(timezone.utc) < submitted:
        days += 1
    return days


def penalty(score: float, days: int, policy: Policy) -> float:
    """What is taken off the score for so many started days; at least 0, at most the score."""
    percent = min(policy.percent_per_day * max(days, 0), policy.most_percent, 100.0)
    return max(0.0, score) * percent / 100.0


def penalty_of_seconds(score: float, seconds: float | None, policy: Policy) -> float:
    """The same where only the seconds are known; a day is 24 hours."""
    if not seconds or seconds <= policy.grace_minutes * 60:
        return 0.0
    return penalty(score, math.ceil(seconds / 86400), policy)


class CoursePenalty(LateSubmissionPlugin):
    """nbgrader's hook for late work, set by `c.AssignLatePenalties.plugin_class`."""

    percent_per_day = Float(0.0, min=0, max=100, help="taken off for each started day").tag(
        config=True
    )
    grace_minutes = Float(0.0, min=0, help="being late by no more than this is free").tag(
        config=True
    )
    most_percent = Float(100.0, min=0, max=100, help="never more than this is taken off").tag(
        config=True
    )

    def late_submission_penalty(self, student_id, score, total_seconds_late):
        policy = Policy(self.percent_per_day, self.grace_minutes, self.most_percent)
        return penalty_of_seconds(score, total_seconds_late, policy) or None


def seconds(submitted: datetime | None, due: datetime | None, extension: timedelta | None) -> float:
    """How late it is by nbgrader's reckoning: past the due time and what was added to it; 0 if either is unknown."""
    if submitted is None or due is None:
        return 0.0
    return max(0.0, (submitted - due - (extension or timedelta())).total_seconds())


def configured(config) -> Policy:
    """The policy that a course's nbgrader configuration sets; one that costs nothing if none is."""
    chosen = config.get("AssignLatePenalties", {}).get("plugin_class")
    if chosen is None or not str(chosen).rstrip("'>").endswith("CoursePenalty"):
        return Policy()
    values = config.get("CoursePenalty", {})
    names = ("percent_per_day", "grace_minutes", "most_percent")
    return Policy(**{name: float(values[name]) for name in names if name in values})
