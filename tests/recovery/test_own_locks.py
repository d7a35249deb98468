"""A worker releases what is locked in its name and what it does not know: within a minute, and when it stops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from support.database_proxy import DatabaseProxy, LateRequest
from support.queue_fixture import NEVER, Gate, QueueFixture, RunningWorker, RunRecord, ms
from support.waiting import wait_until

from gw_core.events import JobCompleted, JobLockLost, PoolStopped
from gw_core.front_ends import PoolListening, UnknownLocksReleased
from gw_core.postgres.road.job_store import JobStore
from gw_core.worker import own_locks

pytestmark = pytest.mark.direct("it breaks the claiming connection; test_poolers.py does so behind a pooler")

CLAIM = "claimed as ("
CHECK = "unknown_jobs as"
LOCK_JOB = "update _private_jobs set locked_by = %s, locked_at = now(), attempts = attempts + 1 where id = %s"
LOCK_QUEUE = "update _private_job_queues set locked_by = %s, locked_at = now() where queue_name = %s"


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers check every 50 ms instead of once a minute."""
    monkeypatch.setattr(own_locks, "CHECK_INTERVAL", 0.05)


def lock_unknown(site: QueueFixture, running: RunningWorker) -> int:
    """Add a job of a named queue, locked in the name of a worker that does not know it, as a late claim leaves it."""
    with site.hands.transaction():
        job_id = site.add_in(site.hands, "work", queue_name="unknown")
        site.run(LOCK_JOB, running.worker_id, job_id)
        site.run(LOCK_QUEUE, running.worker_id, "unknown")
    return job_id


@contextmanager
def late_claim(site: QueueFixture, proxy: DatabaseProxy) -> Iterator[tuple[RunningWorker, LateRequest, Gate]]:
    """Run a worker whose one thread is busy, and whose earlier claim is still on its way to the server."""
    gate = site.gate()
    with site.running({"work": gate}, url=proxy.url, poll_interval=NEVER, concurrency=1) as running:
        running.recorded.wait_for(PoolListening)
        wait_until(lambda: running.claimer.polled_at is not None, what="the first claim, which prepares the statement")
        late = proxy.delay_next("gw:claim", mark=CLAIM)
        site.add()
        assert late.happened.wait(60)
        gate.wait_for(1)  # claimed on the next connection
        yield running, late, gate


def test_a_claim_that_arrives_after_the_worker_has_connected_again_locks_nothing(
    site: QueueFixture, proxy: DatabaseProxy
) -> None:
    with late_claim(site, proxy) as (running, late, gate):
        wait_until(lambda: not running.own_locks.is_in_doubt, what="the end of the session")
        waiting = site.add()
        late.deliver()
        assert site.job(waiting)["locked_by"] is None

        gate.open()
        running.recorded.wait_for(JobCompleted, count=2)
        running.stop()

    assert site.held() == []
    assert [event.has_unknown_claim for event in running.recorded.of(PoolStopped)] == [False]
    assert site.run("select id from _private_gw_workers") == []


@pytest.mark.usefixtures("often")
def test_a_late_claim_is_returned_where_its_session_cannot_be_ended(
    site: QueueFixture, proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobStore, "end_session", lambda self, pid: None)  # as behind a pooler
    with late_claim(site, proxy) as (running, late, gate):
        site.add()
        late.deliver()
        [event] = running.recorded.wait_for(UnknownLocksReleased)
        gate.open()
        running.recorded.wait_for(JobCompleted, count=2)
        running.stop()

    assert (event.jobs, event.queues) == (1, 0)
    assert [event.job.attempts for event in running.recorded.of(JobCompleted)] == [1, 1]
    assert [event.has_unknown_claim for event in running.recorded.of(PoolStopped)] == [True]
    assert site.held() == []
    assert site.run("select id from _private_gw_workers") == [{"id": running.worker_id}]


@pytest.mark.usefixtures("often")
def test_what_a_worker_does_not_know_returns_while_it_works(site: QueueFixture) -> None:
    gate, ran = site.gate(), RunRecord()
    with site.running({"gate": gate, "work": ran}, poll_interval=NEVER) as running:
        site.add("gate", queue_name="known")
        gate.wait_for(1)
        job_id = lock_unknown(site, running)
        [event] = running.recorded.wait_for(UnknownLocksReleased)
        running.recorded.wait_for(JobCompleted, lambda event: event.job.id == job_id)
        assert site.held() != []  # what it knows
        gate.open()
        running.recorded.wait_for(JobCompleted, count=2)

    assert (event.jobs, event.queues) == (1, 1)
    assert "Released what this worker had locked without knowing: 1 job, 1 queue" in str(running.log.of("info"))
    assert running.recorded.of(JobLockLost) == []


def test_what_a_worker_does_not_know_returns_when_it_stops(site: QueueFixture) -> None:
    gate = site.gate()
    with site.running({"gate": gate, "work": print}, poll_interval=NEVER) as running:
        site.add("gate")
        gate.wait_for(1)
        running.request_stop()
        wait_until(lambda: running.claimer.has_ended, what="the end of all claims")
        job_id = lock_unknown(site, running)
        gate.open()
        running.end()

    assert site.held() == []
    assert site.job(job_id)["attempts"] == 0
    assert site.run("select id from _private_gw_workers") == []


@pytest.mark.usefixtures("often")
def test_a_check_leaves_alone_what_runs_and_what_waits_to_be_written(site: QueueFixture, proxy: DatabaseProxy) -> None:
    gate = site.gate()
    site.fill(3, queue="'q' || n / 2")
    with site.running({"work": gate}, url=proxy.url, poll_interval=ms(50), prefetch=timedelta(minutes=10)) as running:
        gate.wait_for(2)
        # As after a renewal.
        site.run("update _private_jobs set locked_at = locked_at - interval '50 minutes' where locked_by is not null")
        site.run("update _private_job_queues set locked_at = locked_at - interval '50 minutes'")
        proxy.hold("gw:settle")
        statements = proxy.record()
        gate.open()
        wait_until(lambda: len([text for _, text in statements if CHECK in text]) >= 3, what="three checks")
        proxy.heal("gw:settle")
        running.recorded.wait_for(JobCompleted, count=3)

    assert running.recorded.of(JobLockLost) == running.recorded.of(UnknownLocksReleased) == []
    assert sorted(event.job.attempts for event in running.recorded.of(JobCompleted)) == [1, 1, 1]


@pytest.mark.usefixtures("often")
def test_a_worker_that_has_locked_nothing_does_not_check(site: QueueFixture, proxy: DatabaseProxy) -> None:
    with site.running({"work": print}, url=proxy.url, poll_interval=ms(10)) as running:
        site.add()
        running.recorded.wait_for(JobCompleted)
        wait_until(lambda: not running.own_locks.may_hold, what="a check that finds nothing")
        statements = proxy.record()
        wait_until(lambda: len([name for name, _ in statements if name == "gw:claim"]) > 20, what="20 polls")

    assert [text for _, text in statements if CHECK in text] == []
