"""`run_once` ends exactly when nothing is left that it can run."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from support.queue_fixture import DEADLINE, QueueFixture, RunRecord, a_registry, in_time, ms
from support.waiting import wait_until

from gw_core import RetryAfter, Runner, TaskRegistry, WorkerSettings
from gw_core.errors import InvalidSettingError, SchemaMissingError, TaskLoadError
from gw_core.events import PoolClaimed


def test_an_empty_queue_ends_immediately(site: QueueFixture) -> None:
    result = site.run_once({"work": RunRecord()}, poll_interval=ms(60_000))

    assert (result.completed, result.exit_code, result.reason) == (0, 0, "no job is left to run")
    assert result.signal is None


def test_jobs_added_by_jobs_are_run(site: QueueFixture) -> None:
    def work(payload: dict[str, int], context: Any) -> None:
        if payload["n"] < 30:
            context.add_job("work", {"n": payload["n"] + 1})

    site.add(payload={"n": 1})
    result = site.run_once({"work": work}, poll_interval=ms(60_000))

    assert result.completed == 30


def test_jobs_that_cannot_run_now_are_left(site: QueueFixture) -> None:
    site.add(run_at=ms(3_600_000))
    site.add("unknown here")
    site.add(flags=["no"])
    site.add(queue_name="held")
    site.run("update _private_job_queues set locked_at = now(), locked_by = 'somebody'")
    site.add(payload={"n": 1})

    result = site.run_once({"work": RunRecord()}, forbidden_flags=["no"])

    assert (result.completed, len(site.jobs())) == (1, 4)


def test_a_job_waiting_for_its_retry_is_left(site: QueueFixture) -> None:
    def work(payload: object) -> None:
        raise RetryAfter(3600)

    site.add()

    assert site.run_once({"work": work}).failed == 1


def test_a_briefly_locked_row_is_waited_for(site: QueueFixture) -> None:
    site.fill(2)
    runner, recorded, _ = site.runner({"work": RunRecord()}, poll_interval=ms(60_000))
    with psycopg.connect(site.url) as other:
        other.execute("select from graphile_worker._private_jobs order by id limit 1 for update")
        ended: list[Any] = []
        thread = threading.Thread(target=lambda: ended.append(runner.run_once()), daemon=True)
        thread.start()
        recorded.wait_for(PoolClaimed)
        wait_until(lambda: len(site.jobs()) == 1)
        thread.join(0.2)
        assert thread.is_alive(), "a job is left that will be free in a moment"
    thread.join(DEADLINE)

    assert ended[0].completed == 2


def test_a_long_queue_is_drained_by_one_run(site: QueueFixture) -> None:
    site.fill(300, queue="'q'")
    done = RunRecord()
    result = site.run_once({"work": done}, poll_interval=ms(60_000))

    assert (result.completed, done.entries) == (300, list(range(1, 301)))


def test_two_concurrent_runs_share_the_jobs(site: QueueFixture) -> None:
    site.fill(400, queue="case when mod(n, 2) = 0 then 'q' || mod(n, 5) end")
    done = RunRecord()
    first, _, _ = site.runner({"work": done})
    second, _, _ = site.runner({"work": done})
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda runner=runner: results.append(runner.run_once()), daemon=True)
        for runner in (first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)

    # One may end while the other holds a queue; what that one leaves is for the other, which is still running.
    assert sorted(done.entries) == list(range(1, 401))
    assert sum(result.completed for result in results) == 400
    assert site.held() == []


def test_a_fresh_database_has_the_tasks_made_by_the_first_client(site: QueueFixture) -> None:
    """Adding and starting at the same time: both make the task, and one of them waits for the other."""
    waits = "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    runner, _, _ = site.runner({"work": RunRecord()})
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(runner.run_once()), daemon=True)
    with psycopg.connect(site.url) as other:
        other.execute("insert into graphile_worker._private_tasks (identifier) values ('work')")
        thread.start()
        wait_until(lambda: site.run(waits))
        other.execute("select graphile_worker.add_job('work', '{\"n\": 1}')")
    thread.join(DEADLINE)

    assert ended[0].completed == 1


# -- what cannot begin ------------------------------------------------------------------------------------------------


def test_a_registry_without_tasks_is_rejected(site: QueueFixture) -> None:
    with pytest.raises(TaskLoadError, match="no tasks"):
        Runner(site.url, tasks=TaskRegistry(), handle_signals=False).run_once()


def test_a_missing_schema_is_reported(empty_database_url: str) -> None:
    runner = Runner(empty_database_url, tasks=a_registry({"work": RunRecord()}), handle_signals=False, migrate=False)

    with pytest.raises(SchemaMissingError, match="gw migrate"):
        in_time(runner.run_once)


def test_a_missing_schema_is_made_when_asked_for(empty_database_url: str) -> None:
    runner = Runner(empty_database_url, tasks=a_registry({"work": RunRecord()}), handle_signals=False)

    assert in_time(runner.run_once).exit_code == 0


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("concurrency", 0),
        ("concurrency", True),
        ("concurrency", 10_001),
        ("claim_limit", 0),
        ("poll_interval", ms(0)),
        ("grace_period", ms(-1)),
        ("lock_renewal_interval", ms(0)),
        ("lock_renewal_interval", timedelta(hours=4)),
        ("expired_lock_interval", (ms(2), ms(1))),
    ],
)
def test_a_setting_out_of_its_bounds_is_rejected_by_name(setting: str, value: object) -> None:
    with pytest.raises(InvalidSettingError, match=setting):
        WorkerSettings(**{setting: value})  # type: ignore[arg-type] # that is the point
