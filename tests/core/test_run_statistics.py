"""Statistics: workers write what ran in each minute, readers add it up, and old rows go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from support.queue_fixture import QueueFixture, RunRecord
from support.waiting import wait_until

from gw_core import WorkerSettings
from gw_core.errors import InvalidInputError, InvalidSettingError
from gw_core.events import JobCompleted
from gw_core.front_ends import MaintenanceFailed
from gw_core.operations import RunStatistics

MINUTE = timedelta(minutes=1)
INSERT = """
insert into _private_gw_statistics
select date_trunc('minute', %s::timestamptz) - make_interval(mins => %s), %s, %s, %s, %s, 0, 1.5,
       array[0, 0, 0, 0, 0, 0, 4, 0, 1] || array_fill(0, array[8]), 2, 3.0
"""


def rows(site: QueueFixture) -> list[dict[str, Any]]:
    return site.run("select * from _private_gw_statistics order by minute, task, worker_id")


def summed(site: QueueFixture, task: str) -> dict[str, float]:
    """Add up the rows of a task: when a minute ends during the test, there are two."""
    found = [each for each in rows(site) if each["task"] == task]
    names = ("completed", "failed", "permanently_failed", "run_seconds", "waited", "wait_seconds")
    sums = {name: sum(each[name] for each in found) for name in names}
    return {**sums, "durations": sum(sum(each["durations"]) for each in found)}


def record(
    site: QueueFixture,
    ago: int,
    task: str = "a",
    worker: str = "w",
    completed: int = 4,
    failed: int = 1,
    *,
    now: datetime | None = None,
) -> None:
    """Write a row of the minute this many before the current one, or before that of `now`."""
    site.run(INSERT, now or site.now(), ago, task, worker, completed, failed)


def fail(payload: object) -> None:
    raise ValueError("no")


def test_a_worker_writes_what_each_task_did(site: QueueFixture) -> None:
    site.fill(30)
    site.fill(3, task="broken")
    site.let_retries_wait()

    with site.running({"work": RunRecord(), "broken": fail}, concurrency=2) as running:
        running.recorded.wait_for(JobCompleted, count=33)
        worker = running.worker_id

    assert {(each["task"], each["worker_id"]) for each in rows(site)} == {("work", worker), ("broken", worker)}
    work, broken = summed(site, "work"), summed(site, "broken")
    assert (work["completed"], work["failed"], work["permanently_failed"]) == (30, 0, 0)
    assert (broken["completed"], broken["failed"], broken["permanently_failed"]) == (0, 3, 0)
    assert (work["durations"], broken["durations"]) == (30, 3)
    assert 0 < work["run_seconds"] < 30 * 60
    assert 0 < work["waited"] <= 30
    assert 0 < work["wait_seconds"] < 30 * 60
    assert {each["minute"].second for each in rows(site)} == {0}
    assert all(abs(each["minute"] - datetime.now(UTC)) < 30 * MINUTE for each in rows(site))


def test_a_run_once_writes_too(site: QueueFixture) -> None:
    site.fill(5)

    site.run_once({"work": RunRecord()})

    assert {each["task"] for each in rows(site)} == {"work"}
    assert summed(site, "work")["completed"] == 5


@pytest.mark.parametrize("once", [True, False], ids=["once", "lasting"])
def test_statistics_that_are_off_write_nothing(site: QueueFixture, once: bool) -> None:
    site.fill(5)

    if once:
        site.run_once({"work": RunRecord()}, statistics=timedelta(0))
    else:
        with site.running({"work": RunRecord()}, statistics=timedelta(0)) as running:
            running.recorded.wait_for(JobCompleted, count=5)

    assert rows(site) == []


def test_a_worker_without_jobs_writes_nothing(site: QueueFixture) -> None:
    site.run_once({"work": RunRecord()})

    assert rows(site) == []


def test_a_settings_limit_is_checked() -> None:
    with pytest.raises(InvalidSettingError, match="statistics must be at most 36500 days"):
        WorkerSettings(statistics=timedelta(days=40_000))


def test_rows_older_than_the_period_are_deleted(site: QueueFixture) -> None:
    for ago in (10, 40, 80, 500):
        record(site, ago)
    site.fill(1)

    site.run_once({"work": RunRecord()}, statistics=timedelta(hours=1))

    kept = site.run("select completed, minute < now() - interval '35 minutes' as is_old from _private_gw_statistics")
    assert sorted((each["completed"], each["is_old"]) for each in kept) == [(1, False), (4, False), (4, True)]


def test_history_adds_up_workers_and_shows_zeros_and_gaps(site: QueueFixture) -> None:
    start = site.now().replace(second=0, microsecond=0)
    record(site, 20, worker="a", now=start)
    record(site, 20, worker="b", task="other", now=start)
    record(site, 17, worker="a", completed=7, failed=0, now=start)
    record(site, 5, worker="c", now=start)

    history = site.client.tasks.statistics_over_time(timedelta(minutes=50))

    found = {round((start - point.at) / MINUTE): point.runs for point in history.points}
    assert sorted(found, reverse=True) == [20, 19, 18, 17, 5]
    assert (found[20].completed, found[20].failed, found[17].completed) == (8, 2, 7)
    assert (found[19], found[18]) == (RunStatistics(), RunStatistics())
    alone = site.client.tasks.statistics_over_time(timedelta(minutes=50), task="other").points[0].runs
    assert (alone.completed, alone.failed) == (4, 1)


def test_a_live_worker_without_jobs_shows_zeros(site: QueueFixture) -> None:
    site.run(
        "insert into _private_gw_workers (id, started_at, last_heartbeat_at, host, pid, version, metadata)"
        " select name, now() - interval '10 minutes', now(), 'h', 1, '1', json_build_object('statistics', name = 'on')"
        " from unnest(array['on', 'off']) as name"
    )

    assert len(site.client.tasks.statistics_over_time().points) in range(8, 20)

    site.run("delete from _private_gw_workers where id = 'on'")
    assert site.client.tasks.statistics_over_time().points == []


def test_runs_of_each_task(site: QueueFixture) -> None:
    record(site, 3)
    record(site, 2)
    record(site, 90)
    record(site, 2, task="b", completed=0, failed=5)

    found = site.client.tasks.statistics(timedelta(hours=1))

    assert {name: (each.completed, each.failed) for name, each in found.items()} == {"a": (8, 2), "b": (0, 5)}
    assert found["a"].mean_wait == timedelta(seconds=1.5)


@pytest.mark.parametrize("step", [timedelta(0), timedelta(seconds=90)])
def test_a_step_is_whole_minutes(site: QueueFixture, step: timedelta) -> None:
    with pytest.raises(InvalidInputError, match="whole minutes"):
        site.client.tasks.statistics_over_time(step=step)


@pytest.fixture
def table_is_away(site: QueueFixture) -> Iterator[Callable[[], None]]:
    """Rename the table; the function renames it back."""

    def restore() -> None:
        site.run("alter table if exists away rename to _private_gw_statistics")

    site.run("alter table _private_gw_statistics rename to away")
    yield restore
    restore()


@pytest.mark.usefixtures("table_is_away")
def test_without_the_table_nothing_is_known(site: QueueFixture) -> None:
    assert site.client.tasks.statistics_over_time().points == ()
    assert site.client.tasks.statistics() == {}


@pytest.mark.parametrize(("share", "seconds"), [(0.0, 0.05), (0.5, 0.08125), (0.8, 0.1), (0.95, 0.4375), (1.0, 0.5)])
def test_percentiles_are_interpolated_in_their_bucket(share: float, seconds: float) -> None:
    runs = RunStatistics(durations=(0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0))

    found = runs.percentile(share)

    assert found is not None
    assert found.total_seconds() == pytest.approx(seconds)


def test_without_runs_there_is_no_percentile() -> None:
    assert RunStatistics().percentile(0.5) is None
    assert RunStatistics().mean_wait is None


@pytest.fixture
def second_is_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers write a row for each task and second, and wait for no lock."""
    monkeypatch.setattr("gw_core.runner.connections.MAINTENANCE", {"lock_timeout": "100ms"})
    monkeypatch.setattr("gw_core.maintenance.statistics_writer.MINUTE", 1)
    monkeypatch.setattr("gw_core.maintenance.statistics_writer.FIRST_REST", timedelta(seconds=0.1))
    monkeypatch.setattr("gw_core.maintenance.statistics_writer.RETRY_INTERVAL", timedelta(seconds=0.2))


@pytest.mark.usefixtures("second_is_a_minute")
def test_each_minute_is_one_statement_whatever_the_number_of_jobs(site: QueueFixture) -> None:
    with site.running({"work": RunRecord(), "other": RunRecord()}) as running:
        for second in range(2):
            site.fill(200)
            site.fill(50, task="other")
            wait_until(lambda second=second: len(rows(site)) > second * 2)
        running.recorded.wait_for(JobCompleted, count=500)

    found = site.run(
        "select count(distinct xmin::text) as sent, count(distinct minute) as minutes,"
        " sum(completed)::int as completed from _private_gw_statistics"
    )[0]
    assert found["completed"] == 500
    assert 2 <= found["sent"] <= found["minutes"]


def is_of_statistics(event: MaintenanceFailed) -> bool:
    return event.service == "gw-statistics"


@pytest.mark.usefixtures("second_is_a_minute")
def test_minutes_wait_for_the_database(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}) as running:
        with psycopg.connect(site.url) as other:
            other.execute("lock table graphile_worker._private_gw_statistics in access exclusive mode")
            site.fill(20)
            running.recorded.wait_for(JobCompleted, count=20)
            running.recorded.wait_for(MaintenanceFailed, is_of_statistics)
        wait_until(lambda: rows(site))
        assert len([event for event in running.recorded.of(MaintenanceFailed) if is_of_statistics(event)]) == 1

    assert sum(each["completed"] for each in rows(site)) == 20
