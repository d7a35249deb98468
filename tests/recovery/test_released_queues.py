"""A queue that is released stays released: no statement trusts a snapshot that is older than its wait for a job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest
from support.queue_fixture import QueueFixture, ms
from support.waiting import wait_until

from gw_core import GiveUp, JobSpec
from gw_core.front_ends import JobsSettled, PoolListening
from gw_core.postgres.road.job_store import SETTLE_PLAN
from gw_core.postgres.road.pauses import end_expired_pauses

WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
ORPHANS = "select count(*) from _private_job_queues where locked_by is not null"
QUEUE_LOCK = "select from _private_job_queues where queue_name = %s for update"

QUEUES = 40

Ending = Callable[[object], None]


def returns(payload: object) -> None:
    """End well."""


def fails(payload: object) -> None:
    raise GiveUp("as the test has it")


@pytest.fixture(autouse=True)
def _without_lock_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let outcomes wait for a job's row as long as the test takes: after a lock timeout they are sent again."""
    monkeypatch.setitem(SETTLE_PLAN, "lock_timeout", "60s")


@contextmanager
def resuming(site: QueueFixture, queue: str) -> Iterator[None]:
    """Keep a resume in the middle: it has locked the running job, and waits for the row of the queue."""
    with psycopg.connect(site.direct, options=f"-c search_path={site.schema}") as other:
        other.execute(QUEUE_LOCK, [queue])
        resume = threading.Thread(target=site.client.pauses.resume, args=(f"queue:{queue}",))
        resume.start()
        wait_until(lambda: site.value(WAITING) == 1, what="the resume to wait for the queue")
        yield
        other.rollback()
        resume.join()


@contextmanager
def passing(site: QueueFixture, queue: str) -> Iterator[None]:
    """Keep a transaction open in which a worker ends the pause of this queue, whose time has come."""
    site.run("update _private_gw_pauses set until = now()")
    with psycopg.connect(site.direct) as other, other.transaction():
        end_expired_pauses(other, site.schema)
        yield


@pytest.mark.parametrize("end_pause", [resuming, passing], ids=["resumed", "until"])
@pytest.mark.parametrize("ending", [returns, fails])
@pytest.mark.parametrize("history", [None, timedelta(days=1)], ids=["without history", "with history"])
def test_a_job_that_ends_while_its_queue_is_resumed_leaves_the_queue_free(
    site: QueueFixture, end_pause: Callable[..., Iterator[None]], ending: Ending, history: timedelta | None
) -> None:
    gate = site.gate()

    def work(payload: object) -> None:
        gate(payload)
        ending(payload)

    with site.running({"work": work}, **({} if history is None else {"history": history})) as running:
        running.recorded.wait_for(PoolListening)
        site.add("work", queue_name="slow")
        gate.wait_for(1)
        site.client.pauses.pause("queue:slow", until=timedelta(hours=1))
        with end_pause(site, "slow"):  # type: ignore[attr-defined]
            waiting = site.value(WAITING)
            gate.open()
            wait_until(lambda: site.value(WAITING) > waiting, what="the outcome to wait for the job's row")
        running.recorded.wait_for(JobsSettled)
        assert site.held() == []


@pytest.mark.slow
@pytest.mark.parametrize("ends_alone", [False, True], ids=["resumed", "until"])
def test_no_queue_of_a_thousand_stays_locked_whose_job_ends_as_its_pause_does(
    site: QueueFixture, ends_alone: bool
) -> None:
    started = threading.Barrier(QUEUES + 1)

    def work(payload: float) -> None:
        started.wait(60)
        time.sleep(payload)

    names = [f"q{number}" for number in range(QUEUES)]
    targets = [f"queue:{name}" for name in names]
    with site.running({"work": work}, concurrency=QUEUES) as running:
        running.recorded.wait_for(PoolListening)
        for round_ in range(1_000 // QUEUES):
            # The jobs end one after the other while the pauses do.
            site.client.add_many(
                JobSpec(task="work", payload=0.3 + number / 1_000, queue_name=name) for number, name in enumerate(names)
            )
            wait_until(lambda: started.n_waiting == QUEUES, what="all jobs to begin")
            site.client.pauses.pause(*targets, until=ms(310) if ends_alone else None)
            started.wait(60)
            time.sleep(0.3 + round_ % 10 / 500)
            if not ends_alone:
                site.client.pauses.resume(*targets)
            wait_until(lambda: not site.jobs(), what="all jobs to be settled")
            wait_until(lambda: not site.client.pauses.list(), what="all pauses to end")
            assert site.value(ORPHANS) == 0, f"round {round_}"
