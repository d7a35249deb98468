"""Answers that never arrive: what the server has committed all the same lets no two attempts overlap."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import GRACE, NEVER, QueueFixture, RunningWorker, RunRecord, ms
from support.waiting import wait_until

from gw_core import RetryAfter
from gw_core.events import JobCompleted, JobLockLost, PoolConnectionRestored, PoolStopped, WorkersRecovered
from gw_core.front_ends import PoolListening
from gw_core.worker import settler

ROUNDS = int(os.environ.get("GW_ROUNDS", "4"))
JOBS = int(os.environ.get("GW_JOBS", "2000"))
QUEUES = 100
WAITING_CLAIM = """
select pid from pg_stat_activity
 where datname = current_database() and application_name = 'gw:claim' and wait_event_type = 'Lock'
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """When an attempt began and ended, by the steady clock."""

    job_id: int
    queue: str | None
    began: float
    ended: float
    succeeded: bool


@dataclass(slots=True)
class Attempts:
    """What the tasks themselves saw; appending is safe from any thread."""

    all: list[Attempt] = field(default_factory=list)

    def noted(self, work: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        """Return the task that also notes when it began and ended."""

        def run(payload: Any, context: Any) -> None:
            began, succeeded = time.monotonic(), False
            try:
                work(payload, context)
                succeeded = True
            finally:
                job = context.job
                self.all.append(Attempt(job.id, job.queue_name, began, time.monotonic(), succeeded))

        return run

    def overlaps(self) -> list[tuple[Attempt, Attempt]]:
        """Return attempts of one job, or of one named queue, that went on at the same time."""
        groups: dict[Any, list[Attempt]] = defaultdict(list)
        for each in self.all:
            groups["job", each.job_id].append(each)
            if each.queue is not None:
                groups["queue", each.queue].append(each)
        found = []
        for group in groups.values():
            group.sort(key=lambda attempt: attempt.began)
            found += [(one, other) for one, other in pairwise(group) if other.began < one.ended]
        return found

    def successes(self) -> list[int]:
        return sorted(each.job_id for each in self.all if each.succeeded)


def test_a_server_that_goes_away_before_it_answers_lets_no_attempts_overlap(
    site: QueueFixture, proxy: DatabaseProxy
) -> None:
    """It has committed a failure, comes back within a second, and the worker has claimed the job again by then."""
    attempts = Attempts()

    def flaky(payload: Any, context: Any) -> None:
        if context.job.attempts == 1:
            raise RetryAfter(0, f"first attempt of round {payload['n']} fails")
        time.sleep(0.6)

    def other(payload: Any, context: Any) -> None:
        time.sleep(0.1)

    tasks = {"flaky": attempts.noted(flaky), "other": attempts.noted(other)}
    with site.running(tasks, url=proxy.url, poll_interval=ms(50)) as running:
        running.recorded.wait_for(PoolListening)
        for number in range(ROUNDS):
            loss = proxy.lose_next("gw:settle", mark=f"first attempt of round {number} fails")
            ids = {
                site.add("flaky", {"n": number}, queue_name=f"q{number}"),
                site.add("other", queue_name=f"q{number}", priority=10),
            }
            assert loss.happened.wait(60)
            proxy.cut()
            time.sleep(0.1 * (number % 4))  # how long the server is away
            proxy.restore()
            wait_until(lambda ids=ids: ids <= set(attempts.successes()), what=f"round {number}")  # type: ignore[misc]
        running.recorded.wait_for(JobCompleted, count=3 * ROUNDS)

    assert attempts.overlaps() == []
    assert len(attempts.successes()) == 2 * ROUNDS
    assert running.recorded.of(JobLockLost) == []
    assert site.jobs() == []
    assert site.held() == []


@pytest.mark.slow
def test_thousands_of_jobs_of_named_queues_survive_frequently_lost_answers(
    site: QueueFixture, proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for the jobs of the lost answer to be claimed again before it is sent again.
    monkeypatch.setattr("gw_core.worker.outage.reconnect_delay", lambda tries: ms(200))
    attempts = Attempts()
    ended = threading.Event()

    def work(payload: Any, context: Any) -> None:
        if payload["n"] // QUEUES % 5 == 0 and context.job.attempts == 1:
            raise RetryAfter(0, "fails at first")
        time.sleep(0.15 if context.job.attempts > 1 else 0.001)

    def lose_answers() -> None:
        while True:
            loss = proxy.lose_next("gw:settle", mark="fails at first")
            loss.happened.wait(1.0)
            proxy.withdraw(loss)
            if ended.wait(0.5):
                return

    loser = threading.Thread(target=lose_answers, daemon=True)
    loser.start()
    site.fill(JOBS, queue=f"'q' || mod(n, {QUEUES})")
    with site.running({"work": attempts.noted(work)}, url=proxy.url, poll_interval=ms(50), concurrency=16) as running:
        wait_until(lambda: len(attempts.successes()) >= JOBS, deadline_seconds=240, what="all jobs to succeed")
        ended.set()
        loser.join()
        wait_until(lambda: not site.jobs(), what="all results to be written")

    assert proxy.lost > 0
    assert attempts.overlaps() == []
    assert attempts.successes() == sorted(set(attempts.successes())), "a job succeeded twice"
    assert running.recorded.of(JobLockLost) == []
    assert site.held() == []


def test_a_worker_alone_with_its_tasks_does_not_overlap_itself_after_it_was_cut_off(
    site: QueueFixture, proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs are swept; back again, it claims them before its old results are written."""
    monkeypatch.setattr("gw_core.worker.claimed_jobs.CONFLICT_DELAY", ms(500))
    attempts = Attempts()
    recovery = {"sweep_threshold": ms(1200), "heartbeat_interval": ms(200), "recovery_delay": ms(0)}

    def work(payload: Any, context: Any) -> None:
        time.sleep(0.5 if payload["n"] % 2 else 3.0)

    with site.running({"another": attempts.noted(work)}, recover=True, sweep_interval=ms(200), **recovery) as doctor:
        doctor.recorded.wait_for(PoolListening)
        with site.running({"work": attempts.noted(work)}, url=proxy.url, poll_interval=ms(50), **recovery) as running:
            running.recorded.wait_for(PoolListening)
            wait_until(lambda: len(site.run("select id from _private_gw_workers")) == 2)
            site.fill(12, queue="'q' || n / 2")
            wait_until(lambda: len(site.held()) >= 7, what="the first job of each queue to be claimed")
            proxy.hold()
            doctor.recorded.wait_for(WorkersRecovered)
            proxy.heal()
            wait_until(lambda: not site.jobs(), what="everything to run")

    assert attempts.overlaps() == []
    assert site.held() == []


def lose_the_answer(proxy: DatabaseProxy, settle: Callable[[], object]) -> None:
    """Let the settling statement wait in the network, then break its connection."""
    sent = proxy.record()
    proxy.hold()
    settle()
    wait_until(lambda: any(name == "gw:settle" for name, _ in list(sent)), what="the settling statement to be sent")
    proxy.break_all()


def reject_the_connection(proxy: DatabaseProxy, settle: Callable[[], object]) -> None:
    """Let no connection for outcomes come about, so that nothing is sent."""
    proxy.cut()
    settle()


@pytest.mark.parametrize(
    ("fail", "in_doubt", "words"),
    [
        pytest.param(lose_the_answer, True, "its outcome is unknown", id="its answer was lost"),
        pytest.param(reject_the_connection, False, "the result was discarded", id="it was not sent"),
    ],
)
def test_no_success_is_reported_for_a_job_that_others_recovered(
    site: QueueFixture,
    proxy: DatabaseProxy,
    fail: Callable[[DatabaseProxy, Callable[[], object]], None],
    in_doubt: bool,
    words: str,
) -> None:
    gate = site.gate()
    recovery = {"sweep_threshold": ms(1200), "heartbeat_interval": ms(200), "sweep_interval": ms(200)}
    with site.running({"another": RunRecord()}, recovery_delay=NEVER, **recovery) as other:
        other.recorded.wait_for(PoolListening)
        with site.running({"work": gate, "quick": RunRecord()}, url=proxy.url, **recovery) as running:
            running.recorded.wait_for(PoolListening)
            if in_doubt:  # it needs a connection on which its answer can be lost
                site.fill(1, task="quick")
                running.recorded.wait_for(JobCompleted)
            site.fill(1)
            gate.wait_for(1)
            fail(proxy, gate.open)
            other.recorded.wait_for(WorkersRecovered)
            proxy.heal()
            proxy.restore()
            (lost,) = running.recorded.wait_for(JobLockLost)
        assert running.result is not None
        assert running.result.completed == len(running.recorded.of(JobCompleted)) == in_doubt

    assert lost.in_doubt is in_doubt
    assert [line for line in running.log.of("warning") if line.startswith("Lost job") and words in line]
    assert len([line for line in running.log.of("info") if "with success" in line]) == in_doubt
    assert site.value("select coalesce(sum(completed), 0) from _private_gw_statistics") == in_doubt


@pytest.mark.parametrize("committed", [True, False], ids=["after the commit", "before the commit"])
@pytest.mark.parametrize("line", ["gw:claim", "gw:settle", "gw:heartbeat"])
def test_a_lost_answer_is_made_up_for(site: QueueFixture, proxy: DatabaseProxy, line: str, committed: bool) -> None:
    gate = site.gate()
    options: dict[str, Any] = {"poll_interval": ms(50), "heartbeat_interval": ms(100)}
    with site.running({"work": gate}, url=proxy.url, **options) as running:
        running.recorded.wait_for(PoolListening)
        site.fill(2, queue="'q'")
        gate.wait_for(1)
        loss = proxy.lose_next(line, committed=committed)
        gate.open()
        site.fill(3)
        assert loss.happened.wait(60)
        running.recorded.wait_for(JobCompleted, count=5)
        if line != "gw:heartbeat":
            running.recorded.wait_for(PoolConnectionRestored)

    assert running.recorded.of(JobLockLost) == []
    assert (site.jobs(), site.held()) == ([], [])


def test_answers_that_are_held_back_arrive_late_and_nothing_breaks(site: QueueFixture, proxy: DatabaseProxy) -> None:
    gate = site.gate()
    site.fill(3, queue="'q'")
    with site.running({"work": gate}, url=proxy.url, poll_interval=ms(50)) as running:
        gate.wait_for(1)
        proxy.hold("gw:settle")
        proxy.delay(0.05, "gw:claim")
        gate.open()
        site.fill(3)
        wait_until(lambda: gate.arrived >= 4, what="other jobs to run meanwhile")
        proxy.heal("gw:settle")
        proxy.heal("gw:claim")
        running.recorded.wait_for(JobCompleted, count=6)

    assert len(running.recorded.of(PoolConnectionRestored)) == 0
    assert site.held() == []


def test_a_connection_whose_answers_were_swallowed_is_given_up(
    site: QueueFixture, proxy: DatabaseProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settler, "RESPONSE_TIMEOUT", ms(500))
    gate = site.gate()
    site.fill(1, task="quick")
    with site.running({"work": gate, "quick": print}, url=proxy.url, poll_interval=ms(50)) as running:
        running.recorded.wait_for(JobCompleted)
        site.fill(1)
        gate.wait_for(1)
        proxy.swallow("gw:settle")
        gate.open()
        time.sleep(0.2)
        proxy.heal("gw:settle")  # the network is well again, and the answer will never come
        running.recorded.wait_for(JobCompleted, count=2)

    assert running.recorded.of(JobLockLost) == []
    assert site.held() == []


@pytest.fixture
def amid_claim(request: pytest.FixtureRequest, site: QueueFixture, proxy: DatabaseProxy) -> Iterator[RunningWorker]:
    """A worker whose claim has committed, and whose answer never arrives; the parameter is its grace period."""
    with site.running({"work": print}, url=proxy.url, poll_interval=NEVER, grace_period=request.param) as running:
        running.recorded.wait_for(PoolListening)
        wait_until(lambda: running.claimer.polled_at is not None, what="the first claim, which prepares the statement")
        with site.hands.transaction():
            site.run("lock table _private_jobs in exclusive mode")
            running.claimer.request_claim()
            wait_until(lambda: site.run(WAITING_CLAIM), what="a claim that waits for the table")
            proxy.swallow("gw:claim")  # the notification of the new job as well
            site.fill(1)
        wait_until(lambda: site.held() != [], what="the claim to commit")
        yield running


@pytest.mark.parametrize("amid_claim", [ms(200)], indirect=True, ids=["short grace period"])
def test_a_worker_that_stops_amid_a_claim_keeps_its_heartbeat_for_a_sweep(
    site: QueueFixture, amid_claim: RunningWorker
) -> None:
    """The claim may lock jobs after the worker has ended, and only its heartbeat lets a sweep find them."""
    amid_claim.request_stop()
    amid_claim.end()

    assert [event.has_unknown_claim for event in amid_claim.recorded.of(PoolStopped)] == [True]
    assert "A claim was not answered before the worker stopped" in str(amid_claim.log.of("warning"))
    assert site.run("select id from _private_gw_workers") == [{"id": amid_claim.worker_id}]
    assert site.held() != []


@pytest.mark.parametrize("amid_claim", [GRACE], indirect=True, ids=["long grace period"])
def test_a_claim_whose_session_has_ended_is_returned_and_leaves_no_doubt(
    site: QueueFixture, proxy: DatabaseProxy, amid_claim: RunningWorker
) -> None:
    site.kill_connections("gw:claim")
    proxy.heal("gw:claim")
    proxy.break_all()
    amid_claim.recorded.wait_for(JobCompleted)
    amid_claim.stop()

    assert [event.has_unknown_claim for event in amid_claim.recorded.of(PoolStopped)] == [False]
    assert site.run("select id from _private_gw_workers") == []
