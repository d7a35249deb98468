"""Durations and times as people type them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from gw_core.errors import InvalidInputError
from gw_core.front_ends import format_duration, parse_duration, parse_time

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("1h30m", timedelta(minutes=90)),
        ("250ms", timedelta(milliseconds=250)),
        ("2d", timedelta(days=2)),
        ("1w", timedelta(weeks=1)),
        ("1.5s", timedelta(milliseconds=1500)),
        (" 3h ", timedelta(hours=3)),
        ("0s", timedelta()),
    ],
)
def test_a_duration_is_read(text: str, duration: timedelta) -> None:
    assert parse_duration(text) == duration


@pytest.mark.parametrize(
    "text",
    ["", "5", "m", "-5m", "5 m", "5y", "1h30", "\u0665m", "1e5s", "9" * 50 + "w", "5m" * 100, "5m\n5m", "99999999999w"],
)
def test_what_is_no_duration_is_rejected_with_a_message(text: str) -> None:
    with pytest.raises(InvalidInputError, match="duration"):
        parse_duration(text)


@given(duration=st.integers(0, 10**12).map(lambda number: timedelta(milliseconds=number)))
def test_a_printed_duration_is_read_as_the_same_duration(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


@pytest.mark.parametrize(
    ("text", "timestamp"),
    [
        ("now", NOW),
        ("+5m", NOW + timedelta(minutes=5)),
        ("-2h", NOW - timedelta(hours=2)),
        ("2026-01-31T08:00:00Z", datetime(2026, 1, 31, 8, tzinfo=UTC)),
        ("2026-01-31 08:00+02:00", datetime(2026, 1, 31, 6, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_and_answered_in_utc(text: str, timestamp: datetime) -> None:
    parsed = parse_time(text, NOW)

    assert parsed == timestamp
    assert parsed.utcoffset() == timedelta()


@pytest.mark.parametrize("text", ["", "yesterday", "+", "+5", "2026-13-01T00:00Z", "12:00", "\x1b[31m", "++5m"])
def test_what_is_no_time_is_rejected_with_a_message(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"not a (valid time|duration)"):
        parse_time(text, NOW)


def test_a_time_without_its_zone_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="no time zone"):
        parse_time("2026-01-31T08:00:00", NOW)


def test_a_time_beyond_the_calendar_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="years 1 to 9999"):
        parse_time("+999999w", NOW)
