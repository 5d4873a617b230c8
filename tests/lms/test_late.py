"""Late work: what it costs, across time zones and changes of the clock."""

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traitlets.config import Config

from autograder.course import CourseError
from autograder.lms.late import (
    CoursePenalty,
    Policy,
    configured,
    days_late,
    moment,
    penalty,
    penalty_of_seconds,
    seconds,
)

ZONE = "Europe/Berlin"
NOON = datetime(2026, 11, 2, 12)
DUE = "2026-10-24 23:59"  # Clocks go back in the night after it.


@pytest.mark.parametrize(
    ("submitted", "days"),
    [
        ("2026-10-24 23:58", 0),
        ("2026-10-24 23:59", 0),
        ("2026-10-25 00:01", 1),
        ("2026-10-25 23:59", 1),  # 25 hours later, and still one day
        ("2026-10-26 00:00", 2),
        ("2026-10-31 23:00", 7),
    ],
)
def test_days_are_those_of_the_calendar(submitted, days):
    assert days_late(moment(submitted, ZONE), moment(DUE, ZONE), ZONE) == days


def test_the_zone_of_the_writer_counts():
    due = moment("2026-11-12 23:59", ZONE)
    assert days_late(moment("2026-11-12 22:59 +00:00"), due, ZONE) == 0
    assert days_late(moment("2026-11-12 23:30 +00:00"), due, ZONE) == 1
    assert days_late(moment("2026-11-12 17:00", "America/New_York"), due, ZONE) == 0


def test_grace():
    due = moment(DUE, ZONE)
    late = moment("2026-10-25 00:20", ZONE)
    assert days_late(late, due, ZONE, grace_minutes=30) == 0
    assert days_late(late, due, ZONE, grace_minutes=20) == 1


@pytest.mark.parametrize("text", ["soon", "2026-13-40", ""])
def test_a_time_that_is_none(text):
    with pytest.raises(CourseError, match="no date"):
        moment(text)


def test_a_zone_that_is_none():
    with pytest.raises(CourseError, match="time zone"):
        moment("2026-11-12", "Mars/Base")


def test_times_without_a_zone_are_not_compared():
    due = moment(DUE)
    with pytest.raises(ValueError, match="time zone"):
        days_late(due.replace(tzinfo=None), due)


@given(st.floats(0, 100), st.integers(0, 400), st.floats(0, 100), st.floats(0, 100))
def test_a_penalty_never_exceeds_the_score_and_grows_with_the_days(score, days, percent, most):
    policy = Policy(percent, most_percent=most)
    taken = penalty(score, days, policy)
    assert 0 <= taken <= score * (most + 1e-9) / 100
    assert taken <= penalty(score, days + 1, policy)


@pytest.mark.parametrize(
    ("late", "taken"), [(None, 0), (0, 0), (60, 0), (601, 1), (86400, 1), (86401, 2), (9e9, 5)]
)
def test_seconds(late, taken):
    policy = Policy(percent_per_day=10, grace_minutes=10, most_percent=50)
    assert penalty_of_seconds(10, late, policy) == taken


def test_nbgraders_plugin_costs_nothing_unless_set():
    assert CoursePenalty().late_submission_penalty("ada", 10, 90000) is None
    plugin = CoursePenalty(percent_per_day=10)
    assert plugin.late_submission_penalty("ada", 10, 90000) == 2
    assert plugin.late_submission_penalty("ada", 10, 0) is None


def test_the_policy_of_the_configuration():
    config = Config()
    config.CoursePenalty.percent_per_day = 10
    assert configured(config) == Policy()
    config.AssignLatePenalties.plugin_class = "autograder.lms.late.CoursePenalty"
    assert configured(config) == Policy(percent_per_day=10)


@pytest.mark.parametrize(
    ("submitted", "due", "hours", "late"),
    [
        (NOON, NOON - timedelta(hours=2), 0, 7200),
        (NOON, NOON - timedelta(hours=2), 1, 3600),
        (NOON, NOON - timedelta(hours=2), 3, 0),
        (NOON, NOON + timedelta(hours=2), 0, 0),
        (None, NOON, 0, 0),
        (NOON, None, 1, 0),
    ],
)
def test_seconds_late_are_past_the_due_time_and_its_extension(submitted, due, hours, late):
    assert seconds(submitted, due, timedelta(hours=hours) if hours else None) == late
