"""`run_once` ends exactly when nothing is left that it can run."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.queue_fixture import DEADLINE, QueueFixture, RunRecord, a_registry, in_time, ms
from support.shell import Shell
from support.waiting import wait_until

from gw_core import RetryAfter, Runner, TaskRegistry, WorkerSettings
from gw_core.errors import InvalidSettingError, SchemaMissingError
from gw_core.front_ends import PoolClaimed, TaskLoadError


def test_an_empty_queue_ends_immediately(site: QueueFixture) -> None:
    result = site.run_once({"work": RunRecord()}, poll_interval=ms(60_000))

    assert (result.completed, result.exit_code, result.reason) == (0, 0, "no job is left to run")
    assert result.signal is None


def test_jobs_added_by_jobs_are_run(site: QueueFixture) -> None:
    def work(payload: dict[str, int], context: Any) -> None:
        if payload["n"] < 30:
            context.add("work", {"n": payload["n"] + 1})

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


def test_a_run_deletes_what_others_left_of_ended_jobs(site: QueueFixture) -> None:
    def work(payload: dict[str, int], context: Any) -> None:
        context.step("first", int)
        raise RetryAfter(3600)

    soon = timedelta(microseconds=1)
    site.add(payload={"n": 1})
    assert site.run_once({"work": work}).failed == 1
    site.client.add("other", expires_at=soon, unique_for=soon)
    site.run("select complete_jobs(array(select id from _private_jobs))")
    site.client.add("done")
    tables = ("_private_gw_steps", "_private_gw_unique", "_private_gw_expiring")
    assert all(site.run(f"select * from {table}") for table in tables)
    site.run_once({"done": RunRecord()})

    assert [table for table in tables if site.run(f"select * from {table}")] == []


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


# -- what is left when no job can run now -----------------------------------------------------------------------------


def left_by_a_run(site: QueueFixture, **options: Any) -> str:
    """Run once, and return why the run ended with success."""
    result = site.run_once({"work": RunRecord(), "other": RunRecord()}, poll_interval=ms(60_000), **options)

    assert result.exit_code == 0
    return result.reason


def test_a_limit_that_another_worker_has_filled_is_not_waited_for(site: QueueFixture) -> None:
    gate = site.gate()
    site.client.limits.set("work", running=1)
    site.fill(3)
    with site.running({"work": gate}):
        gate.wait_for(1)
        site.add("other", {"n": 1})

        assert left_by_a_run(site) == "no job can run now; left: 2 of work (the limit of running jobs is reached)"
        assert len(site.jobs()) == 3


def test_a_rate_that_is_used_up_is_not_waited_for(site: QueueFixture) -> None:
    site.client.limits.set("work", per_period=1, period=timedelta(hours=1), burst=1)
    site.fill(3)

    assert left_by_a_run(site) == "no job can run now; left: 2 of work (the rate is used up)"
    assert left_by_a_run(site) == "no job can run now; left: 2 of work (the rate is used up)"


def test_a_limit_by_field_that_is_full_for_one_value_is_not_waited_for(own_site: QueueFixture) -> None:
    gate = own_site.gate()
    own_site.client.limits.set("work", running=1, field="tenant")
    for tenant in ("a", "a", "b"):
        own_site.add(payload={"tenant": tenant, "n": 1})
    with own_site.running({"work": gate}, concurrency=2):
        gate.wait_for(2)
        own_site.add(payload={"tenant": "c", "n": 1})

        assert left_by_a_run(own_site) == "no job can run now; left: 1 of work (the limit of running jobs is reached)"
        assert len(own_site.jobs()) == 3


def test_a_limit_without_its_index_is_not_waited_for(own_site: QueueFixture) -> None:
    own_site.client.limits.set("work", running=1, field="tenant")
    own_site.fill(1)
    [(index,)] = own_site.rows(
        "select indexrelid::regclass::text from pg_index where indexrelid::regclass::text ~ 'gw_field'"
    )
    own_site.run(f"drop index {index}")

    assert left_by_a_run(own_site) == "no job can run now; left: 1 of work (the limit by tenant lacks its index)"


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("all", "paused"),
        ("task:work", "paused"),
        ("flag:slow", "paused"),
        ("queue:q", "the queue is paused"),
    ],
)
def test_what_is_paused_is_left_and_named(site: QueueFixture, target: str, why: str) -> None:
    for _ in range(2):
        site.add(queue_name="q", flags=["slow"])
    site.client.pauses.pause(target)

    assert left_by_a_run(site) == f"no job can run now; left: 2 of work ({why})"


def test_jobs_that_other_rules_hold_back_are_named_by_task(site: QueueFixture) -> None:
    site.add(flags=["no"])
    site.add("other", queue_name="held")
    site.add("unknown here")
    site.run("update _private_job_queues set locked_at = now(), locked_by = 'somebody'")

    assert left_by_a_run(site, forbidden_flags=["no"]) == (
        "no job can run now; left: 1 of work (a flag is forbidden, or the job was just added), "
        "1 of other (the queue is locked)"
    )


def test_the_program_says_what_is_left_and_ends_with_success(site: QueueFixture, tmp_path: Path) -> None:
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "work.py").write_text("def work(payload):\n    pass\n")
    site.client.limits.set("work", per_period=1, period=timedelta(hours=1), burst=1)
    site.fill(3)

    ended = Shell(tmp_path, database=site.url).gw("run", "--once")

    assert ended.code == 0
    assert "Stopped: no job can run now; left: 2 of work (the rate is used up)" in ended.err
