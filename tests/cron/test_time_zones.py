"""Schedules in a time zone: clock changes, names of zones, and every place that shows a zone."""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from support.cron_fixture import CronFixture, ManualClock
from support.profiles import IS_NIGHTLY

from gw_core import CronItem, TaskRegistry, cron, cron_item
from gw_core.crontab import Schedule, daily_at, every_n_minutes, weekly_on
from gw_core.errors import InvalidInputError
from gw_core.front_ends import describe_schedule

MINUTE = timedelta(minutes=1)
YEARS = 10 if IS_NIGHTLY else 2
START, END = datetime(2020, 1, 1, tzinfo=UTC), datetime(2020 + YEARS, 1, 1, tzinfo=UTC)

# An hour at two o'clock; the same; half an hour; twice a year more for Ramadan; at midnight.
ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def runs(pattern: str, tz: str, start: str, count: int) -> list[str]:
    found = islice(Schedule.parse(pattern, tz=tz).upcoming(utc(start)), count)
    return [f"{each:%d %H:%M}" for each in found]


# -- the hours that are skipped or repeated ------------------------------------------------------------------------

# In New York, 02:00 to 03:00 was skipped on 9 March 2025 (at 07:00 UTC), and 01:00 to 02:00 repeated on 2 November.


@pytest.mark.parametrize(
    ("pattern", "start", "expected"),
    [
        pytest.param(
            "30 2 * * *", "2025-03-08", ["08 07:30", "09 07:00", "10 06:30"], id="a skipped time runs at its end"
        ),
        pytest.param(
            "0,20,40 2 * * *",
            "2025-03-08T08:00",
            ["09 07:00", "10 06:00", "10 06:20"],
            id="skipped times of one hour run once, together",
        ),
        pytest.param("0 3 * * *", "2025-03-08T09:00", ["09 07:00", "10 07:00"], id="the end of the skipped hour"),
        pytest.param(
            "30 2,3 * * *", "2025-03-08T09:00", ["09 07:00", "09 07:30", "10 06:30"], id="a skipped time and a later"
        ),
        pytest.param(
            "*/30 2 * * *", "2025-03-08T08:00", ["10 06:00", "10 06:30"], id="a wildcard skips the skipped hour"
        ),
        pytest.param(
            "30 */2 * * *", "2025-03-09T05:00", ["09 05:30", "09 08:30"], id="a wildcard of hours skips it too"
        ),
        pytest.param("30 1 * * *", "2025-11-01", ["01 05:30", "02 05:30", "03 06:30"], id="a repeated time runs once"),
        pytest.param(
            "*/30 1 * * *",
            "2025-11-02",
            ["02 05:00", "02 05:30", "02 06:00", "02 06:30", "03 06:00"],
            id="a wildcard repeats the repeated hour",
        ),
        pytest.param("0 2 * * *", "2025-11-01T07:00", ["02 07:00", "03 07:00"], id="the end of the repeated hour"),
    ],
)
def test_clock_changes_follow_the_rules_of_debian(pattern: str, start: str, expected: list[str]) -> None:
    assert runs(pattern, "America/New_York", start, len(expected)) == expected


def test_a_search_that_starts_within_a_repeated_hour_knows_its_first_pass() -> None:
    assert runs("30,45 1 * * *", "America/New_York", "2025-11-02T06:10", 1) == ["03 06:30"]


def test_a_skipped_day_counts_as_a_correction() -> None:
    # Samoa left out 30 December 2011.
    assert runs("0 12 * * *", "Pacific/Apia", "2011-12-28T23:00", 3) == ["29 22:00", "30 22:00", "31 22:00"]
    assert runs("0 12 30 12 *", "Pacific/Apia", "2011-12-01", 1) == ["29 22:00"]


@pytest.mark.parametrize("tz", ["UTC", "Etc/UTC", "Asia/Kathmandu"])
def test_a_zone_without_changes_is_shifted_only(tz: str) -> None:
    offset = timedelta(hours=5, minutes=45) if tz == "Asia/Kathmandu" else timedelta(0)

    assert Schedule.parse("0 8 * * 1", tz=tz).next_after(utc("2026-11-21")) == utc("2026-11-23T08:00") - offset


def test_rare_schedules_end_and_are_found_fast() -> None:
    assert Schedule.parse("0 0 30 2 *", tz="Europe/Berlin").next_after(START) is None
    assert Schedule.parse("0 0 29 2 *", tz="Europe/Berlin").next_after(utc("2096-03-01")) == utc("2104-02-28T23:00")


@pytest.mark.parametrize("edge", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_the_edges_of_the_calendar_raise_nothing(edge: datetime) -> None:
    schedule = Schedule(tz="Pacific/Kiritimati")

    assert next(schedule.upcoming(edge), None) is None or edge.year == 1


# -- against other implementations -----------------------------------------------------------------------------------

PATTERNS = (
    "0 0 * * *",
    "30 0 * * *",
    "59 1 * * *",
    "15,45 2 * * *",
    "0 3 * * 0",
    "5 1-3 * * *",
    "30 2 29 * 6",
    "*/20 2 * * *",
    "10 */3 * * *",
    "0 * * * *",
)


@cache
def days_of_changes(tz: str) -> tuple[datetime, ...]:
    """The days, in UTC, within which the offset of the zone changes."""
    zone = ZoneInfo(tz)
    days = [START + timedelta(days=number) for number in range((END - START).days)]
    offsets = [day.astimezone(zone).utcoffset() for day in (*days, END)]
    return tuple(day for day, before, after in zip(days, offsets, offsets[1:], strict=False) if before != after)


def debian_cron(schedule: Schedule, tz: str, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield when Debian's cron would run a job: its main loop, minute by minute.

    cron compares the local time with the virtual time, the last local minute whose jobs it has run.
    """
    local_schedule = Schedule(schedule.minutes, schedule.hours, schedule.days, schedule.months, schedule.weekdays)
    zone, virtual, now = ZoneInfo(tz), datetime.min, start
    while now < end:
        local = now.astimezone(zone).replace(tzinfo=None)
        behind = (local - virtual) // MINUTE
        if 5 < behind <= 180:
            missed = [virtual + number * MINUTE for number in range(1, behind + 1)]
            due = [local] if schedule.wildcard else missed
        elif -180 < behind <= 0:
            due, local = ([local] if schedule.wildcard else []), virtual
        else:
            due = [local]
        if any(local_schedule.matches(each.replace(tzinfo=UTC)) for each in due):
            yield now
        virtual, now = local, now + MINUTE


@pytest.mark.parametrize("tz", ZONES)
def test_every_change_of_years_runs_as_in_debian(tz: str) -> None:
    days = days_of_changes(tz)
    assert len(days) >= 2 * YEARS

    for pattern in PATTERNS:
        schedule = Schedule.parse(pattern, tz=tz)
        for day in days:
            start, end = day - timedelta(hours=6), day + timedelta(hours=30)
            expected = list(debian_cron(schedule, tz, start, end))
            assert list(schedule.between(start, end)) == expected, (pattern, day)


@pytest.mark.parametrize("tz", ZONES)
def test_years_agree_with_cronsim(tz: str) -> None:
    cronsim = pytest.importorskip("cronsim")
    for pattern in PATTERNS:
        if tz == "Australia/Lord_Howe" and Schedule.parse(pattern, tz=tz).wildcard:
            continue  # cronsim leaves out the half hour after a repeated one; Debian's cron, simulated above, does not
        local_runs = cronsim.CronSim(pattern, START.astimezone(ZoneInfo(tz)))
        expected = list(takewhile(lambda at: at < END, (local.astimezone(UTC) for local in local_runs)))

        assert list(Schedule.parse(pattern, tz=tz).between(START + MINUTE, END)) == expected, pattern


# -- names of zones ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(
            "America/NewYork", "the time zone 'America/NewYork' is unknown; did you mean America/New_York?", id="close"
        ),
        pytest.param(
            "europe/berlim", "the time zone 'europe/berlim' is unknown; did you mean Europe/Berlin", id="case"
        ),
        pytest.param("Mars", "the time zone 'Mars' is unknown; use a name such as Europe/Berlin", id="unknown"),
        pytest.param("", "the time zone '' is unknown; use a name such as Europe/Berlin", id="empty"),
        pytest.param("../../etc/passwd", "the time zone '../../etc/passwd' is unknown; use a name", id="a path"),
        pytest.param(3, "the time zone must be a name such as Europe/Berlin, not 3", id="no text"),
    ],
)
def test_an_unknown_zone_is_one_sentence(name: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        cron_item("0 8 * * *", "report", tz=name)

    assert str(caught.value).startswith(message)


def test_a_system_without_a_time_zone_database_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_package(*_: object) -> object:
        raise FileNotFoundError

    monkeypatch.setattr("importlib.resources.open_binary", no_package)
    monkeypatch.setattr("importlib.resources.files", no_package)
    zoneinfo.reset_tzpath(to=[])
    try:
        with pytest.raises(InvalidInputError) as caught:
            cron_item("0 8 * * *", "report", tz="Asia/Thimphu")
        assert Schedule.parse("0 8 * * *").next_after(START) is not None
    finally:
        zoneinfo.reset_tzpath()

    assert str(caught.value) == (
        "the time zone 'Asia/Thimphu' needs a time zone database, which this machine does not have; "
        "install tzdata with the system's package manager or with pip"
    )


# -- items -----------------------------------------------------------------------------------------------------------


def test_a_builder_and_text_mean_the_same_in_a_zone() -> None:
    texts = {"15 8 * * *": daily_at(8, 15), "*/5 * * * *": every_n_minutes(5), "30 4 * * 1": weekly_on("monday", 4, 30)}

    for text, schedule in texts.items():
        assert cron_item(schedule, "a", tz="Europe/Berlin") == cron_item(text, "a", tz="Europe/Berlin")


def test_two_zones_are_two_schedules() -> None:
    assert cron_item("0 8 * * *", "a", tz="Europe/Berlin") != cron_item("0 8 * * *", "a")
    assert cron_item("0 8 * * *", "a", tz="UTC") == cron_item("0 8 * * *", "a")


@pytest.mark.parametrize("pattern", ["0,30 2 * * *", "*/30 2 * * *", "0 */4 * * *", "0 0-23 * * *"])
def test_the_text_of_a_schedule_keeps_its_wildcard(pattern: str) -> None:
    schedule = Schedule.parse(pattern, tz="Europe/Berlin")

    assert str(schedule) == pattern
    assert schedule.matches(utc("2025-03-30T01:00")) is (pattern in ("0,30 2 * * *", "0 0-23 * * *"))


def test_a_task_declares_its_zone() -> None:
    tasks = TaskRegistry()

    @tasks.task
    @cron("0 8 * * *", tz="Asia/Tokyo")
    def report(payload: object) -> None: ...

    (item,) = tasks.cron_items
    assert item.schedule == Schedule.parse("0 8 * * *", tz="Asia/Tokyo")


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        pytest.param("0 8 * * 1-5", "every day from Monday to Friday at 08:00 Asia/Kolkata", id="a time of day"),
        pytest.param("0 * * * *", "every hour at minute 0 (Asia/Kolkata)", id="every hour"),
        pytest.param("* * * * *", "every minute (Asia/Kolkata)", id="every minute"),
    ],
)
def test_words_name_the_zone(pattern: str, words: str) -> None:
    assert describe_schedule(Schedule.parse(pattern, tz="Asia/Kolkata")) == words


# -- the scheduler -----------------------------------------------------------------------------------------------------


@pytest.fixture
def new_york(database_url: str) -> Iterator[Callable[[str, CronItem], CronFixture]]:
    fixtures: list[CronFixture] = []

    def make(now: str, item: CronItem) -> CronFixture:
        fixtures.append(CronFixture(database_url, ManualClock(utc(now))))
        fixtures[0].know(item.identifier, since=utc("2025-01-01"), last=utc("2025-03-08T07:30"))
        fixtures[0].scheduler([item]).step()
        return fixtures[0]

    yield make
    for each in fixtures:
        each.close()


def test_backfill_counts_in_the_zone(new_york: Callable[[str, CronItem], CronFixture]) -> None:
    item = cron_item("30 2 * * *", "report", tz="America/New_York", fill=timedelta(days=3))
    world = new_york("2025-03-11T06:30:30", item)

    rows = world.execute("select run_at from graphile_worker._private_jobs order by run_at")
    assert [f"{at.astimezone(UTC):%d %H:%M}" for (at,) in rows] == ["09 07:00", "10 06:30", "11 06:30"]
