"""Recurring tasks as rows: their state in the database beside their definition in the crontab."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gw_core import CronItem, cron_item
from gw_core.operations import KnownCronItem
from gw_tui.rules.recurring import MAX_MISSED, CronStatus, recurring

NOW = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


def known(identifier: str, last: datetime | None = None) -> KnownCronItem:
    return KnownCronItem(identifier, NOW - timedelta(days=1), last)


def courses(memories: list[KnownCronItem], items: list[CronItem] | None) -> dict[str, CronStatus]:
    return {row.identifier: row.course for row in recurring(memories, items, NOW)}


def test_a_task_whose_last_run_was_its_last_due_minute_is_on_time() -> None:
    (row,) = recurring([known("report", NOW.replace(minute=0, second=0))], [cron_item("0 * * * *", "report")], NOW)

    assert (row.course, row.missed) == (CronStatus.ON_TIME, 0)
    assert row.next_run == NOW.replace(hour=13, second=0)


def test_the_next_run_lies_after_a_last_run_that_a_clock_ahead_has_left() -> None:
    last = NOW.replace(second=0) + timedelta(minutes=10)

    (row,) = recurring([known("tick", last)], [cron_item("* * * * *", "tick")], NOW)

    assert row.next_run == last + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("until", "expected"),
    [
        (NOW.replace(hour=15, second=0), NOW.replace(hour=15, second=0)),
        (NOW.replace(hour=15, second=1), NOW.replace(hour=16, second=0)),
        (NOW - timedelta(hours=1), NOW.replace(hour=13, second=0)),
        (datetime.max.replace(tzinfo=UTC), None),
    ],
    ids=["ends with the beginning of a run", "ends after it", "is over", "has no end"],
)
def test_the_next_run_lies_after_a_pause(until: datetime, expected: datetime | None) -> None:
    memory = KnownCronItem("report", NOW - timedelta(days=1), skipped_until=until)

    (row,) = recurring([memory], [cron_item("0 * * * *", "report")], NOW.replace(minute=0))

    assert row.next_run == expected


def test_the_run_of_this_minute_is_not_missed_yet() -> None:
    last = NOW.replace(second=0) - timedelta(minutes=1)

    assert courses([known("tick", last)], [cron_item("* * * * *", "tick")]) == {"tick": CronStatus.ON_TIME}


def test_runs_since_the_last_are_counted_as_missed_and_come_first() -> None:
    memories = [known("early"), known("late", NOW.replace(hour=9, minute=0, second=0))]
    items = [cron_item("0 0 1 1 *", "early"), cron_item("0 * * * *", "late")]

    rows = recurring(memories, items, NOW)

    assert [(row.identifier, row.missed) for row in rows] == [("late", 2), ("early", 0)]
    assert rows[0].course is CronStatus.MISSED


def test_counting_missed_runs_ends_at_a_bound() -> None:
    memory = KnownCronItem("tick", NOW - timedelta(days=9000), None)

    (row,) = recurring([memory], [cron_item("* * * * *", "tick")], NOW)

    assert (row.missed, row.missed_is_bound) == (MAX_MISSED, True)


def test_what_only_one_side_knows_is_said() -> None:
    assert courses([known("a")], None) == {"a": CronStatus.UNKNOWN}
    assert courses([known("a")], []) == {"a": CronStatus.FOREIGN}
    assert courses([], [cron_item("* * * * *", "b")]) == {"b": CronStatus.NEW}


def test_the_identifier_stands_for_the_task_without_a_crontab() -> None:
    item = cron_item("* * * * *", "send", id="nightly")

    assert [row.task for row in recurring([known("nightly")], None, NOW)] == ["nightly"]
    assert [row.task for row in recurring([known("nightly")], [item], NOW)] == ["send"]
