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
from gw_core.events import JobCompleted, MaintenanceFailed
from gw_core.operations import RunStatistics

MINUTE = timedelta(minutes=1)
INSERT = """
insert into _private_gw_statistics
select date_trunc('minute', now()) - make_interval(mins => %s), %s, %s, %s, %s, 0, 1.5,
       array[0, 0, 0, 0, 0, 0, 4, 0, 1] || array_fill(0, array[8]), 2, 3.0
"""


def rows(site: QueueFixture) -> list[dict[str, Any]]:
    return site.run("select * from _private_gw_statistics order by minute, task, worker_id")


def record(
    site: QueueFixture, ago: int, task: str = "a", worker: str = "w", completed: int = 4, failed: int = 1
) -> None:
    site.run(INSERT, ago, task, worker, completed, failed)


def fail(payload: object) -> None:
    raise ValueError("no")


def test_a_worker_writes_what_each_task_did(site: QueueFixture) -> None:
    site.fill(30)
    site.fill(3, task="broken")

    with site.running({"work": RunRecord(), "broken": fail}, concurrency=2) as running:
        running.recorded.wait_for(JobCompleted, count=33)
        worker = running.worker_id

    broken, work = rows(site)
    assert [each["worker_id"] for each in (broken, work)] == [worker] * 2
    assert (work["task"], work["completed"], work["failed"], work["permanently_failed"]) == ("work", 30, 0, 0)
    assert (broken["task"], broken["completed"], broken["failed"], broken["permanently_failed"]) == ("broken", 0, 3, 0)
    assert (sum(work["durations"]), sum(broken["durations"])) == (30, 3)
    assert 0 < work["run_seconds"] < 30
    assert 0 < work["waited"] <= 30
    assert 0 < work["wait_seconds"] < 30 * 60
    assert work["minute"].second == 0
    assert abs(work["minute"] - datetime.now(UTC)) < 3 * MINUTE


def test_a_run_once_writes_too(site: QueueFixture) -> None:
    site.fill(5)

    site.run_once({"work": RunRecord()})

    assert [(each["task"], each["completed"]) for each in rows(site)] == [("work", 5)]


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
    for ago in (10, 59, 61, 500):
        record(site, ago)
    site.fill(1)

    site.run_once({"work": RunRecord()}, statistics=timedelta(hours=1))

    ages = site.run("select extract(epoch from now() - minute) / 60 as age from _private_gw_statistics order by minute")
    assert [round(each["age"]) for each in ages[:2]] == [pytest.approx(59, abs=2), pytest.approx(10, abs=2)]
    assert len(ages) == 3


def test_history_adds_up_workers_and_shows_zeros_and_gaps(site: QueueFixture) -> None:
    record(site, 20, worker="a")
    record(site, 20, worker="b", task="other")
    record(site, 17, worker="a", completed=7, failed=0)
    record(site, 5, worker="c")

    history = site.client.queries.run_history(timedelta(minutes=30))
    start = site.run("select date_trunc('minute', now()) as minute")[0]["minute"]

    found = {round((start - point.at) / MINUTE): point.runs for point in history.points}
    assert sorted(found, reverse=True) == [20, 19, 18, 17, 5]
    assert (found[20].completed, found[20].failed, found[17].completed) == (8, 2, 7)
    assert (found[19], found[18]) == (RunStatistics(), RunStatistics())
    alone = site.client.queries.run_history(timedelta(minutes=30), task="other").points[0].runs
    assert (alone.completed, alone.failed) == (4, 1)


def test_a_live_worker_without_jobs_shows_zeros(site: QueueFixture) -> None:
    site.run(
        "insert into _private_gw_workers (id, started_at, last_heartbeat_at, host, pid, version, metadata)"
        " select name, now() - interval '10 minutes', now(), 'h', 1, '1', json_build_object('statistics', name = 'on')"
        " from unnest(array['on', 'off']) as name"
    )

    assert len(site.client.queries.run_history().points) in (8, 9)

    site.run("delete from _private_gw_workers where id = 'on'")
    assert site.client.queries.run_history().points == []


def test_runs_of_each_task(site: QueueFixture) -> None:
    record(site, 3)
    record(site, 2)
    record(site, 90)
    record(site, 2, task="b", completed=0, failed=5)

    found = site.client.queries.runs_by_task(timedelta(hours=1))

    assert {name: (each.completed, each.failed) for name, each in found.items()} == {"a": (8, 2), "b": (0, 5)}
    assert found["a"].mean_wait == timedelta(seconds=1.5)


@pytest.mark.parametrize("step", [timedelta(0), timedelta(seconds=90)])
def test_a_step_is_whole_minutes(site: QueueFixture, step: timedelta) -> None:
    with pytest.raises(InvalidInputError, match="whole minutes"):
        site.client.queries.run_history(step=step)


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
    assert site.client.queries.run_history().points == ()
    assert site.client.queries.runs_by_task() == {}


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
    monkeypatch.setattr("gw_core.runner.MAINTENANCE", {"lock_timeout": "100ms"})
    monkeypatch.setattr("gw_core.maintenance.statistics_writer.MINUTE", 1)
    monkeypatch.setattr("gw_core.maintenance.statistics_writer.FIRST_REST", timedelta(seconds=0.1))
    monkeypatch.setattr("gw_core.maintenance.statistics_writer.RETRY_INTERVAL", timedelta(seconds=0.2))


@pytest.mark.usefixtures("second_is_a_minute")
def test_each_minute_is_one_statement_whatever_the_number_of_jobs(site: QueueFixture) -> None:
    with site.running({"work": RunRecord(), "other": RunRecord()}) as running:
        for second in range(3):
            site.fill(200)
            site.fill(50, task="other")
            wait_until(lambda second=second: len(rows(site)) > second * 2)
        running.recorded.wait_for(JobCompleted, count=750)

    found = site.run(
        "select count(distinct xmin::text) as sent, count(distinct minute) as minutes,"
        " sum(completed)::int as completed from _private_gw_statistics"
    )[0]
    assert found["completed"] == 750
    assert 3 <= found["minutes"] == found["sent"]


@pytest.mark.usefixtures("second_is_a_minute")
def test_minutes_wait_for_the_database(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}) as running:
        with psycopg.connect(site.url) as other:
            other.execute("lock table graphile_worker._private_gw_statistics in access exclusive mode")
            site.fill(20)
            running.recorded.wait_for(JobCompleted, count=20)
            running.recorded.wait_for(MaintenanceFailed)
        wait_until(lambda: rows(site))
        assert len(running.recorded.of(MaintenanceFailed)) == 1

    assert sum(each["completed"] for each in rows(site)) == 20
