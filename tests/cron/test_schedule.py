"""Schedules: what matches, what comes next, how they are printed and described."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

import pytest
from hypothesis import given, strategies as st
from support.profiles import examples

from gw_core.crontab import (
    Schedule,
    daily_at,
    every_minute,
    every_n_minutes,
    hourly_at,
    monthly_on,
    weekly_on,
    yearly_on,
)
from gw_core.errors import InvalidInputError
from gw_core.front_ends import describe_schedule

FOUR_YEARS_IN_DAYS = 4 * 365 + 1
MINUTE = timedelta(minutes=1)
FIELDS = (range(60), range(24), range(1, 32), range(1, 13), range(7))
"""The values of the five fields: minute, hour, day, month, weekday."""


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def some_values(field_number: int) -> st.SearchStrategy[tuple[int, ...]]:
    values = FIELDS[field_number]
    few = st.lists(st.sampled_from(values), min_size=1, max_size=4)
    steps = st.integers(1, 40).map(lambda step: list(values[::step]))
    return st.one_of(st.just(list(values)), few, steps).map(lambda values: tuple(sorted(set(values))))


schedules = st.builds(Schedule, *(some_values(number) for number in range(5)))
timestamps = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))


# -- matching ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "timestamp", "fires"),
    [
        pytest.param("30 4 * * 1", "2026-11-23T04:30", True, id="Monday at half past four"),
        pytest.param("30 4 * * 1", "2026-11-24T04:30", False, id="not on Tuesday"),
        pytest.param("0 0 * * 0", "2026-11-22T00:00", True, id="0 is Sunday"),
        pytest.param("0 0 * * 7", "2026-11-22T00:00", True, id="7 is Sunday"),
        pytest.param("0 0 * * 5-7", "2026-11-22T00:00", True, id="7 ends a range"),
        pytest.param("0 0 13 * 5", "2026-11-13T00:00", True, id="both restricted, both match"),
        pytest.param("0 0 13 * 5", "2026-11-20T00:00", True, id="both restricted, the weekday suffices"),
        pytest.param("0 0 13 * 5", "2026-12-13T00:00", True, id="both restricted, the day suffices"),
        pytest.param("0 0 13 * 5", "2026-12-14T00:00", False, id="both restricted, neither matches"),
        pytest.param("0 0 13 * *", "2026-11-20T00:00", False, id="an open weekday does not let every day in"),
        pytest.param("0 0 1-31 * 5", "2026-12-13T00:00", False, id="1-31 restricts nothing"),
        pytest.param("0 0 */2 * *", "2026-11-01T00:00", True, id="*/2 of days begins with the first"),
        pytest.param("0 0 */2 * *", "2026-11-02T00:00", False, id="*/2 of days is not the even days"),
        pytest.param("0 0 1 */5 *", "2026-11-01T00:00", True, id="*/5 of months is January, June, November"),
    ],
)
def test_a_schedule_matches_as_cron_does(pattern: str, timestamp: str, fires: bool) -> None:
    assert Schedule.parse(pattern).matches(at(timestamp)) is fires


def test_seconds_and_zones_do_not_matter_for_matching() -> None:
    tokyo = timezone(timedelta(hours=9))

    assert Schedule.parse("30 4 * * *").matches(datetime(2026, 11, 21, 13, 30, 59, 999, tzinfo=tokyo))


def test_a_time_without_a_zone_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="no time zone"):
        every_minute().matches(datetime(2026, 1, 1))


@pytest.mark.parametrize(
    "pattern",
    ["", "* * * *", "* * * * * *", "60 * * * *", "* * * jan *", "*/0 * * * *", "5-5 * * * *", "x" * 2_000],
)
def test_a_wrong_pattern_is_rejected_with_a_message(pattern: str) -> None:
    with pytest.raises(InvalidInputError, match="the cron pattern"):
        Schedule.parse(pattern)


# -- searching --------------------------------------------------------------------------------------------------------


@examples(25)
@given(schedule=schedules, start=timestamps)
def test_searching_finds_exactly_the_minutes_that_match_over_four_years(schedule: Schedule, start: datetime) -> None:
    first = start.replace(second=0, microsecond=0) + MINUTE
    end = first + timedelta(days=FOUR_YEARS_IN_DAYS)

    expected = _minutes_by_matching(schedule, first, end)

    assert list(schedule.between(first, end)) == expected
    assert schedule.next_after(start) == (expected[0] if expected else schedule.next_after(end - MINUTE))


def _minutes_by_matching(schedule: Schedule, first: datetime, end: datetime) -> list[datetime]:
    """Ask of each minute whether it matches; a day's minutes are asked once, for they are alike on all days."""
    midnight = first.replace(hour=0, minute=0)
    clock = [timedelta(minutes=number) for number in range(24 * 60)]
    times = [time for time in clock if _in_time(schedule, midnight + time)]
    days = (midnight + timedelta(days=number) for number in range(FOUR_YEARS_IN_DAYS + 1))
    return [day + time for day in days if _day_fits(schedule, day) for time in times if first <= day + time < end]


def _matches(schedule: Schedule, timestamp: datetime) -> bool:
    return _in_time(schedule, timestamp) and _day_fits(schedule, timestamp)


def _in_time(schedule: Schedule, timestamp: datetime) -> bool:
    return timestamp.minute in schedule.minutes and timestamp.hour in schedule.hours


def _day_fits(schedule: Schedule, timestamp: datetime) -> bool:
    """The rule again, written apart from the code under test."""
    day_listed, weekday_listed = timestamp.day in schedule.days, timestamp.isoweekday() % 7 in schedule.weekdays
    either = len(schedule.days) < 31 and len(schedule.weekdays) < 7
    day_fits = (day_listed or weekday_listed) if either else (day_listed and weekday_listed)
    return timestamp.month in schedule.months and day_fits


@examples(200)
@given(schedule=schedules, timestamp=timestamps)
def test_the_next_run_lies_ahead_matches_and_nothing_matches_before_it(schedule: Schedule, timestamp: datetime) -> None:
    upcoming = schedule.next_after(timestamp)

    if upcoming is None:
        assert describe_schedule(schedule).startswith("never: ")
    else:
        assert upcoming > timestamp
        assert _matches(schedule, upcoming)
        assert not any(
            _matches(schedule, upcoming - number * MINUTE) for number in range(1, _distance(upcoming, timestamp))
        )


def _distance(upcoming: datetime, timestamp: datetime) -> int:
    return min(2_000, -((timestamp - upcoming) // MINUTE))


@pytest.mark.parametrize(
    ("after", "upcoming"),
    [
        ("2026-11-21T05:00", "2028-02-29T00:00"),
        ("2028-02-28T23:59:59.999999", "2028-02-29T00:00"),
        ("2028-02-29T00:00", "2032-02-29T00:00"),
        ("2096-02-29T00:00", "2104-02-29T00:00"),
    ],
)
def test_the_29th_of_february_is_found_even_eight_years_away(after: str, upcoming: str) -> None:
    assert Schedule.parse("0 0 29 2 *").next_after(at(after)) == at(upcoming)


def test_a_day_that_does_not_exist_never_comes() -> None:
    assert Schedule.parse("0 0 30 2 *").next_after(at("2026-11-21T05:00")) is None


def test_a_year_of_hourly_runs_has_8760_of_them_and_ends_where_it_should() -> None:
    runs = list(islice(hourly_at(0).upcoming(at("2026-01-01T00:00")), 8_760))

    assert len(set(runs)) == 8_760
    assert runs[-1] == at("2027-01-01T00:00")


def test_the_end_of_time_is_an_end_and_not_an_error() -> None:
    last = datetime.max.replace(tzinfo=UTC)

    assert every_minute().next_after(last) is None
    assert list(islice(every_minute().upcoming(last - 2 * MINUTE), 5)) == [
        last.replace(minute=58, second=0, microsecond=0),
        last.replace(minute=59, second=0, microsecond=0),
    ]


# -- printing ---------------------------------------------------------------------------------------------------------


@examples(500)
@given(schedule=schedules)
def test_what_is_printed_parses_as_the_same_schedule(schedule: Schedule) -> None:
    assert Schedule.parse(str(schedule)) == schedule


@pytest.mark.parametrize(
    ("given_text", "printed"),
    [
        ("0-59", "*"),
        ("*/1", "*"),
        ("*/15", "*/15"),
        ("0,15,30,45", "*/15"),
        ("1,2,3,7,9,10", "1-3,7,9,10"),
        ("*/60", "0"),
        ("0,59", "*/59"),
        ("5,5,4", "4,5"),
    ],
)
def test_a_field_is_printed_in_its_shortest_usual_form(given_text: str, printed: str) -> None:
    assert str(Schedule.parse(f"{given_text} * * * *")) == f"{printed} * * * *"


# -- the builder ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("built", "pattern"),
    [
        (every_minute(), "* * * * *"),
        (every_n_minutes(5), "*/5 * * * *"),
        (every_n_minutes(59), "*/59 * * * *"),
        (hourly_at(30), "30 * * * *"),
        (daily_at(8), "0 8 * * *"),
        (daily_at(8, 15), "15 8 * * *"),
        (weekly_on("Monday", 4, 30), "30 4 * * 1"),
        (weekly_on("sun", 4), "0 4 * * 0"),
        (weekly_on(7, 4), "0 4 * * 0"),
        (monthly_on(31, 0), "0 0 31 * *"),
        (yearly_on("feb", 29, 12), "0 12 29 2 *"),
        (yearly_on(12, 31, 23, 59), "59 23 31 12 *"),
    ],
)
def test_the_builder_makes_the_schedule_its_name_says(built: Schedule, pattern: str) -> None:
    assert str(built) == pattern


@pytest.mark.parametrize(
    "build",
    [
        lambda: every_n_minutes(0),
        lambda: every_n_minutes(60),
        lambda: hourly_at(60),
        lambda: daily_at(24),
        lambda: daily_at(True),
        lambda: weekly_on("Caturday", 1),
        lambda: weekly_on(8, 1),
        lambda: monthly_on(0, 1),
        lambda: monthly_on(32, 1),
        lambda: yearly_on("feb", 30, 1),
        lambda: yearly_on(13, 1, 1),
        lambda: Schedule(minutes=()),
    ],
)
def test_the_builder_rejects_what_no_clock_shows(build: object) -> None:
    with pytest.raises(InvalidInputError):
        build()  # type: ignore[operator]


# -- words ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/7 * * * *", "every hour at minutes 0, 7, 14, 21, 28, 35, 42, 49 and 56"),
        ("0 * * * *", "every hour at minute 0"),
        ("5,35 * * * *", "every hour at minutes 5 and 35"),
        ("30 4 * * *", "every day at 04:30 UTC"),
        ("0 8,20 * * *", "every day at 08:00 and 20:00 UTC"),
        ("30 4 * * 1", "every Monday at 04:30 UTC"),
        ("30 4 * * 0,1", "every Monday and Sunday at 04:30 UTC"),
        ("30 4 * * 1-5", "every day from Monday to Friday at 04:30 UTC"),
        ("0 0 1,15 * *", "the 1st and 15th of every month at 00:00 UTC"),
        ("0 0 29 2 *", "every 29 February at 00:00 UTC"),
        ("0 0 30 2 *", "never: the 30th of February does not exist"),
        ("0 0 1 * 1", "the 1st of every month and every Monday at 00:00 UTC"),
        ("0 0 1 6 1", "the 1st of June and every Monday in June at 00:00 UTC"),
        ("0 12 * 6-8 *", "every day in June to August at 12:00 UTC"),
        ("7 */2 * * *", "every 2 hours from 00:07 UTC"),
        ("*/10 8-17 * * 1-5", "every 10 minutes of hours 8 to 17 UTC, every day from Monday to Friday"),
        ("0,30 9-17 * * *", "minutes 0 and 30 of hours 9 to 17 UTC"),
        ("0 0 */2 * *", "every 2nd day counted from the 1st of every month at 00:00 UTC"),
        ("0 0 11-13,21-23 * *", "the 11th to 13th and 21st to 23rd of every month at 00:00 UTC"),
    ],
)
def test_a_schedule_is_said_in_words(pattern: str, words: str) -> None:
    assert describe_schedule(Schedule.parse(pattern)) == words


@examples(300)
@given(schedule=schedules)
def test_every_schedule_can_be_said(schedule: Schedule) -> None:
    words = describe_schedule(schedule)

    assert words == words.strip()
    assert words.startswith("never") == (schedule.next_after(at("2026-01-01T00:00")) is None)
