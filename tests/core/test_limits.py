"""Limits of tasks: at most this many at a time and per period, across workers; others pay nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from support.queue_fixture import DEADLINE, NEVER, QueueFixture, RunRecord, ms
from support.waiting import wait_until

from gw_core import JobSpec
from gw_core.errors import InvalidInputError
from gw_core.events import JobCompleted, JobReturned


class Running:
    """A task that counts how many of its jobs run at a time; the first ones wait until this many do."""

    def __init__(self, together: int = 1) -> None:
        self._together = together
        self._are_together = threading.Event()
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0
        self.started: list[float] = []

    def __call__(self, payload: Any) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.started.append(time.monotonic())
            if self._now >= self._together:
                self._are_together.set()
        assert self._are_together.wait(DEADLINE), f"{self.most} ran together"
        time.sleep(0.003 if self._together > 1 else 0)
        with self._lock:
            self._now -= 1


def until_empty(site: QueueFixture) -> None:
    wait_until(
        lambda: not site.run("select 1 as found from _private_jobs limit 1"), what="every job to be done", every=0.05
    )


@pytest.mark.parametrize("field", [None, "n"], ids=["of a task", "of a field"])
def test_a_server_s_clock_that_was_set_back_stops_no_task_with_a_rate(
    own_site: QueueFixture, field: str | None
) -> None:
    site, started = own_site, RunRecord()
    site.client.limits.set("work", per_period=20, period=timedelta(seconds=1), burst=5, field=field)
    for _ in range(5):
        site.add(payload={"n": 1})
    site.run_once({"work": started})
    site.run("update _private_gw_buckets set filled_at = filled_at + interval '1 day'")
    for _ in range(10):
        site.add(payload={"n": 1})

    with site.running({"work": started}):
        wait_until(lambda: len(started.entries) == 15, what="every job to start")
        [bucket] = site.run("select filled_at <= now() as is_past, tokens < 5 as is_spent from _private_gw_buckets")
        assert bucket == {"is_past": True, "is_spent": True}


def test_no_more_jobs_run_at_a_time_than_the_limit_over_all_workers(site: QueueFixture) -> None:
    work = Running(together=3)
    site.client.limits.set("work", running=3)
    site.fill(300)

    with site.running({"work": work}, concurrency=6), site.running({"work": work}, concurrency=6):
        until_empty(site)

    assert work.most == 3
    assert len(work.started) == 300


@pytest.mark.parametrize("field", [None, "tenant"])
def test_jobs_that_a_worker_returns_unstarted_use_up_no_rate(site: QueueFixture, field: str | None) -> None:
    site.client.limits.set("work", per_period=10, period=timedelta(hours=1), burst=10, field=field)
    gate = site.gate()
    quick = [JobSpec(task="quick") for _ in range(100)]
    options = {"concurrency": 2, "prefetch": timedelta(minutes=1), "grace_period": timedelta(0)}
    with site.running({"work": gate, "quick": RunRecord()}, **options) as running:
        site.client.add_many(quick)
        running.recorded.wait_for(JobCompleted, count=len(quick))
        site.client.add_many([JobSpec(task="work", payload={"tenant": "a"}) for _ in range(10)])
        gate.wait_for(2)
        wait_until(lambda: len(site.held()) == 10, what="the prefetch of all jobs that may start")
        running.runner.stop()
        running.recorded.wait_for(JobReturned, count=10)

    (tokens,) = site.rows("select floor(tokens)::int from _private_gw_buckets")
    assert tokens == (8,)


def test_jobs_start_at_the_rate_of_the_limit(site: QueueFixture) -> None:
    work = Running()
    site.client.limits.set("work", per_period=100, period=timedelta(seconds=1))
    site.fill(80)

    began = time.monotonic()  # not when the first one starts: its thread may be late
    with site.running({"work": work}, concurrency=4), site.running({"work": work}, concurrency=4):
        until_empty(site)

    assert work.started[-1] - began >= 0.65  # ten jobs start together, the others ten milliseconds apart


def test_jobs_without_a_limit_do_not_wait_for_those_with_one(site: QueueFixture) -> None:
    ran, gate = RunRecord(), site.gate()
    site.client.limits.set("limited", running=1)
    site.fill(50, task="limited")
    site.fill(20)

    with site.running({"limited": gate, "work": ran}, concurrency=3):
        gate.wait_for(1)
        wait_until(lambda: len(ran.entries) == 20, what="all jobs without a limit")
        assert gate.arrived == 1
        assert [each.locked for each in site.client.limits.list()] == [1]
        site.run("delete from _private_jobs where locked_at is null")


def test_jobs_of_a_dead_worker_count_until_they_are_swept(site: QueueFixture) -> None:
    ran = RunRecord()
    site.client.limits.set("work", running=1)
    site.fill(2)
    site.run(
        "update _private_jobs set locked_at = now(), locked_by = 'dead', attempts = 1"
        " where id = (select min(id) from _private_jobs)"
    )

    with site.running({"work": ran}) as running:
        time.sleep(0.3)
        assert ran.entries == []
        site.client.workers.unlock(["dead"])
        running.recorded.wait_for(JobCompleted, count=2)


def test_a_limit_is_changed_and_removed_while_workers_run(site: QueueFixture) -> None:
    gate = site.gate()
    site.client.limits.set("work", running=1)
    site.fill(8)
    with site.running({"work": gate}, concurrency=8, poll_interval=NEVER):
        gate.wait_for(1)
        site.client.limits.set("work", running=3)
        gate.wait_for(3)
        time.sleep(0.2)
        assert gate.arrived == 3
        result = site.client.limits.remove("work", timeout=timedelta(seconds=DEADLINE))
        assert (result.changed, result.unconfirmed) == (1, ())
        gate.wait_for(8)


def test_a_run_that_ends_waits_for_limited_jobs(site: QueueFixture) -> None:
    ran = RunRecord()
    site.client.limits.set("work", running=1, per_period=50, period=timedelta(seconds=1))
    site.fill(20)

    result = site.run_once({"work": ran})

    assert result.completed == 20


def test_a_paused_task_with_a_limit_waits(site: QueueFixture) -> None:
    ran = RunRecord()
    site.client.limits.set("work", running=1)
    site.client.pauses.pause("task:work")
    site.fill(1)

    assert site.run_once({"work": ran}).completed == 0


def test_the_list_of_limits_says_how_many_jobs_are_locked(site: QueueFixture) -> None:
    site.client.limits.set("work", running=4, per_period=100, period=ms(500), by="ada")
    site.fill(3)
    site.run(
        "update _private_jobs set locked_at = now(), locked_by = 'gw-1' where id < (select max(id) from _private_jobs)"
    )

    [limit] = site.client.limits.list()

    assert (limit.task, limit.running, limit.per_period, limit.period, limit.burst, limit.set_by, limit.locked) == (
        "work", 4, 100, ms(500), 20, "ada", 2,
    )  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"running": 0},
        {"per_period": 5},
        {"period": ms(5)},
        {"per_period": 0, "period": ms(5)},
        {"per_period": 5, "period": ms(0)},
    ],
    ids=str,
)
def test_a_limit_that_makes_no_sense_is_rejected(site: QueueFixture, values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        site.client.limits.set("work", **values)

    assert list(site.client.limits.list()) == []


def test_reports_say_that_a_limit_is_full(site: QueueFixture) -> None:
    site.client.limits.set("work", running=1)
    site.fill(2)
    site.run(
        "update _private_jobs set locked_at = now(), locked_by = 'gw-1', attempts = 1"
        " where id = (select min(id) from _private_jobs)"
    )
    waiting = site.run("select max(id) as id from _private_jobs")[0]["id"]

    report = site.client.jobs.show(waiting)
    [finding] = [each for each in site.client.doctor.findings() if each.check == "limits"]

    assert report is not None
    assert (str(report.reasons[0].code), "1 of at most 1" in report.reasons[0].message) == ("limited", True)
    assert "task work: 1 of at most 1" in finding.message
    assert [each.locked for each in site.client.counts().limits] == [1]


@pytest.fixture
def failing_claims(site: QueueFixture) -> Iterator[QueueFixture]:
    """A queue in which claims fail of the tasks whose ids are in the table `failing_tasks`."""
    site.run("create table failing_tasks (task_id int)")
    site.run(
        "create function fail_claim() returns trigger language plpgsql set search_path = graphile_worker as $$ begin "
        "if new.locked_at is not null and exists (select from failing_tasks where task_id = new.task_id) then "
        "raise exception 'no claim' using errcode = 'lock_not_available'; end if; return new; end $$"
    )
    site.run("create trigger fail before update on _private_jobs for each row execute function fail_claim()")
    yield site
    site.run("drop function fail_claim cascade")
    site.run("drop table failing_tasks")


def test_a_job_claimed_before_a_claim_that_fails_runs(failing_claims: QueueFixture) -> None:
    """With limits, several statements claim; those that succeed count, whatever becomes of the next."""
    site, ran = failing_claims, list[str]()
    for task in ("first", "second"):
        site.client.limits.set(task, running=5)

    with site.running({name: lambda payload: ran.append(payload["of"]) for name in ("first", "second", "third")}):
        wait_until(lambda: len(site.run("select id from _private_tasks")) == 3, what="the tasks to be registered")
        site.run("insert into failing_tasks select id from _private_tasks where identifier = 'second'")
        for task in ("first", "second", "third"):
            site.add(task, payload={"of": task})
        wait_until(lambda: sorted(ran) == ["first", "third"], what="the jobs of the other tasks to run")
        site.run("truncate failing_tasks")
        until_empty(site)

    assert sorted(ran) == ["first", "second", "third"]
