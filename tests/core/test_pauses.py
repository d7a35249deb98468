"""Pauses: paused jobs do not start, prefetched ones are returned, and paused queues stay closed for all workers."""

from __future__ import annotations

import inspect
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.queue_fixture import DEADLINE, NEVER, QueueFixture, RunRecord, ms
from support.waiting import wait_until

from gw_core import JobSpec
from gw_core.errors import InvalidInputError
from gw_core.events import JobCompleted
from gw_core.front_ends import CheckStatus, ClaimEmpty, Pauses, PauseTarget, PoolListening

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _without_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for confirmations as long as it takes, and let workers that do not listen read the rules often."""
    for method in (Pauses.pause, Pauses.resume):
        monkeypatch.setitem(inspect.unwrap(method).__kwdefaults__, "timeout", timedelta(seconds=DEADLINE))
    monkeypatch.setattr("gw_core.worker.pauses.POLL_SECONDS", 0.1)


def lock_of(site: QueueFixture, queue: str) -> Any:
    rows = site.run("select locked_by from _private_job_queues where queue_name = %s", queue)
    return rows[0]["locked_by"] if rows else None


def test_jobs_of_a_paused_task_wait_and_others_run(site: QueueFixture) -> None:
    ran = RunRecord()
    with site.running({"paused": ran, "work": ran}, poll_interval=NEVER) as running:
        result = site.client.pauses.pause("task:paused", by="ada", reason="provider down")
        site.add("paused", {"n": 1})
        site.add("work", {"n": 2})
        running.recorded.wait_for(JobCompleted)
        assert ran.entries == [2]

        site.client.pauses.resume("task:paused")
        running.recorded.wait_for(JobCompleted, count=2)

    assert (result.changed, result.unconfirmed) == (1, ())
    assert ran.entries == [2, 1]


@pytest.mark.parametrize("target", ["task:paused", "queue:paused", "cron:paused"])
def test_an_end_that_is_over_by_the_servers_clock_changes_nothing(site: QueueFixture, target: str) -> None:
    pauses = site.client.pauses
    with pytest.raises(InvalidInputError, match="ends before it begins"):
        pauses.pause(target, until=site.now() - DAY)
    assert pauses.list() == []

    pauses.pause(target, by="ada")
    before = pauses.list()
    with pytest.raises(InvalidInputError, match="ends before it begins"), site.hands.transaction():
        pauses.pause(target, until=site.now() - DAY, conn=site.hands)
    assert pauses.list() == before
    pauses.resume(target)


@pytest.mark.parametrize(
    ("target", "options"),
    [("task:work", {}), ("queue:slow", {"queue_name": "slow"}), ("flag:mail", {"flags": ["mail"]}), ("all", {})],
    ids=["task", "queue", "flag", "all"],
)
@pytest.mark.parametrize("listen", [True, False], ids=["listening", "polling"])
def test_no_job_starts_once_the_pause_is_confirmed(
    site: QueueFixture, target: str, options: dict[str, Any], listen: bool
) -> None:
    started: list[float] = []
    paused_at = float("inf")

    def work(payload: object) -> None:
        started.append(time.monotonic())
        time.sleep(0.01)

    with site.running({"work": work}, concurrency=2, listen=listen, poll_interval=ms(50)) as running:
        site.client.add_many([JobSpec(task="work", **options)] * 3_000)
        running.recorded.wait_for(JobCompleted, count=5)
        result = site.client.pauses.pause(target)
        paused_at = time.monotonic()
        assert result.unconfirmed == ()
        time.sleep(0.2)
        # Each thread may be on its way into a job that it took before; without the pause, forty would start.
        assert len([at for at in started if at > paused_at]) <= 2
        left = site.run("select count(*) as left, max(attempts) as attempts from _private_jobs where locked_at is null")
        assert left[0]["left"] > 0
        assert left[0]["attempts"] == 0  # what was claimed and had not started is not counted

        resumed_at = time.monotonic()
        site.client.pauses.resume(target)
        wait_until(lambda: started[-1] > resumed_at, what="a job to start again")


def test_a_batch_of_a_paused_queue_stops_after_its_current_job(site: QueueFixture) -> None:
    gate, first = site.gate(), site.gate()
    site.add("first")
    with site.running({"work": gate, "first": first}, concurrency=1, prefetch=timedelta(minutes=10)) as running:
        first.wait_for(1)
        running.recorded.wait_for(PoolListening)
        first.open()
        # From now on a claim takes several jobs of a queue; none that began earlier is still under way.
        running.recorded.wait_for(JobCompleted)
        running.recorded.wait_for(ClaimEmpty)
        site.fill(5, queue="'slow'")
        gate.wait_for(1)
        locked = "select 1 as found from _private_jobs where locked_at is not null"
        assert len(site.run(locked)) == 5
        site.client.pauses.pause("queue:slow")
        assert lock_of(site, "slow") == "gw-pause:slow"
        gate.open()
        running.recorded.wait_for(JobCompleted, count=2)
        wait_until(lambda: not site.run(locked), what="the return of the others")

        assert gate.arrived == 1
        assert [row["attempts"] for row in site.jobs()] == [0] * 4
        assert lock_of(site, "slow") == "gw-pause:slow"


def test_resuming_gives_the_lock_back_to_the_job_that_still_runs(site: QueueFixture) -> None:
    gate = site.gate()
    for _ in range(2):
        site.add("work", queue_name="slow")
    with site.running({"work": gate}, concurrency=2) as running:
        gate.wait_for(1)
        site.client.pauses.pause("queue:slow")
        site.client.pauses.resume("queue:slow")
        assert lock_of(site, "slow") == running.worker_id
        time.sleep(0.2)
        assert gate.arrived == 1  # the queue is still serial

        gate.open()
        running.recorded.wait_for(JobCompleted, count=2)
    assert site.held() == []


def test_a_pause_outlives_its_worker_and_binds_the_next(site: QueueFixture) -> None:
    ran = RunRecord()
    site.client.pauses.pause("task:work")
    site.add("work", {"n": 1})

    site.run_once({"work": ran})

    assert ran.entries == []
    assert [str(each.target) for each in site.client.pauses.list()] == ["task:work"]


def test_a_run_ends_when_everything_is_paused(site: QueueFixture) -> None:
    site.add("work")
    site.client.pauses.pause("all")

    result = site.run_once({"work": RunRecord()})

    assert result.completed == 0


@pytest.mark.parametrize("target", ["task:work", "queue:slow"])
def test_jobs_start_when_the_pause_ends(site: QueueFixture, target: str) -> None:
    started: list[datetime] = []
    site.client.pauses.pause(target, until=ms(700))
    (until,) = [row["until"] for row in site.run("select until from _private_gw_pauses")]
    site.add("work", queue_name="slow")
    with site.running({"work": lambda payload: started.append(datetime.now(UTC))}, poll_interval=NEVER):
        wait_until(lambda: started, deadline_seconds=DEADLINE)

    assert started[0] >= until
    assert list(site.client.pauses.list()) == []
    assert site.run("select 1 as found from _private_gw_pauses") == []
    assert site.held() == []


def test_resuming_starts_jobs_without_a_poll(site: QueueFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.worker.pauses.REFRESH_SECONDS", NEVER.total_seconds())
    ran = RunRecord()
    site.client.pauses.pause("task:work", "queue:slow")
    site.add(payload={"n": 1})
    site.add("other", {"n": 2}, queue_name="slow")
    with site.running({"work": ran, "other": ran}, poll_interval=NEVER) as running:
        site.client.pauses.pause("task:work", "queue:slow")  # returns once the worker has confirmed
        assert ran.entries == []
        site.client.pauses.resume("task:work", "queue:slow")
        running.recorded.wait_for(JobCompleted, count=2)


def test_workers_that_do_not_confirm_are_named(site: QueueFixture) -> None:
    site.run(
        "insert into _private_gw_workers (id, started_at, last_heartbeat_at) values"
        " ('stuck', now(), now()), ('long-dead', now() - interval '1 day', now() - interval '1 hour')"
    )

    result = site.client.pauses.pause("task:work", timeout=ms(50))

    assert result.unconfirmed == ("stuck",)


def test_a_worker_that_was_killed_is_named_until_its_lease_ends(site: QueueFixture) -> None:
    """A worker starts no job once its last heartbeat is older than its lease."""
    site.run(
        "insert into _private_gw_workers (id, started_at, last_heartbeat_at, metadata) select"
        " name, now(), now() - interval '1 minute', metadata::jsonb from (values"
        """ ('ended', '{"lease_seconds": 59}'), ('holds', '{"lease_seconds": 90}'), ('says nothing', '{}'),"""
        """ ('odd', '{"lease_seconds": "x"}'), ('endless', '{"lease_seconds": 1e400}')) as workers (name, metadata)"""
    )

    result = site.client.pauses.pause("task:work", timeout=ms(0))

    assert result.unconfirmed == ("endless", "holds", "odd", "says nothing")


def test_the_list_says_since_when_by_whom_and_why(site: QueueFixture) -> None:
    until = datetime.now(UTC) + timedelta(hours=1)
    site.client.pauses.pause("flag:mail", until=until, reason="provider down", by="ada")
    site.client.pauses.pause("flag:mail", until=until, reason="still down", by="bob")

    [pause] = site.client.pauses.list()

    assert (pause.target, pause.until, pause.reason, pause.by) == (
        PauseTarget.parse("flag:mail"),
        until,
        "still down",
        "bob",
    )
    assert abs(pause.since - site.now()) < timedelta(minutes=1)


def test_a_sweep_and_expired_locks_leave_a_paused_queue_alone(site: QueueFixture) -> None:
    site.client.pauses.pause("queue:slow")
    site.run("update _private_job_queues set locked_at = now() - interval '5 hours'")

    report = site.client.workers.sweep()
    site.run_once({"work": RunRecord()})

    assert report.workers == ()
    assert site.client.workers.list() == []
    assert lock_of(site, "slow") == "gw-pause:slow"
    ages = site.run("select locked_at > now() - interval '1 hour' as is_fresh from _private_job_queues")
    assert ages == [{"is_fresh": True}]  # the worker has renewed it


def test_a_worker_locks_a_paused_queue_again_that_another_program_released(site: QueueFixture) -> None:
    ran = RunRecord()
    site.client.pauses.pause("queue:slow")
    site.run("update _private_job_queues set locked_at = null, locked_by = null")
    site.add("work", {"n": 1}, queue_name="slow")

    site.run_once({"work": ran})

    assert (ran.entries, lock_of(site, "slow")) == ([], "gw-pause:slow")


@pytest.mark.parametrize("target", ["", "task:", "task", "all:x", "job:1", "queue:\x00"])
def test_what_cannot_be_paused_is_rejected(site: QueueFixture, target: str) -> None:
    with pytest.raises(InvalidInputError, match="task:NAME"):
        site.client.pauses.pause(target)


def test_resuming_what_is_not_paused_changes_nothing(site: QueueFixture) -> None:
    assert site.client.pauses.resume("task:work").changed == 0

    site.client.pauses.pause("task:work")
    resumed = site.client.pauses.resume("task:work", "queue:slow")
    assert [str(each) for each in resumed.targets] == ["task:work"]


# -- what is reported --------------------------------------------------------------------------------------------------


def test_reports_say_what_is_paused_by_whom_and_why(site: QueueFixture) -> None:
    site.client.pauses.pause("queue:slow", "task:mail", "flag:big", by="ada", reason="provider down")
    job = site.add("mail", queue_name="slow", flags=["big"])
    site.add("work", queue_name="fast")

    report = site.client.jobs.show(job)
    queues = {each.name: each.pause for each in site.client.queues.list()}
    findings = [each for each in site.client.doctor.findings() if each.check == "pauses"]

    assert report is not None
    assert [str(each.code) for each in report.reasons[:3]] == ["paused"] * 3
    assert "queue_locked" not in [str(each.code) for each in report.reasons]
    assert "paused by ada" in report.reasons[0].message
    assert "provider down" in report.reasons[0].message
    assert [name for name, pause in queues.items() if pause is not None] == ["slow"]
    assert {str(each.target) for each in site.client.counts().pauses} == {"queue:slow", "task:mail", "flag:big"}
    assert {(each.status, each.fix) for each in findings} == {
        (CheckStatus.WARNING, f"gw resume {target}") for target in ("queue:slow", "task:mail", "flag:big")
    }


def test_the_doctor_names_workers_that_have_not_confirmed(site: QueueFixture) -> None:
    site.run("insert into _private_gw_workers (id, started_at, last_heartbeat_at) values ('stuck', now(), now())")
    site.client.pauses.pause("task:mail", timeout=ms(0))

    [error] = [each for each in site.client.doctor.findings() if each.status is CheckStatus.ERROR]

    assert (error.check, "stuck" in error.message) == ("pauses", True)
