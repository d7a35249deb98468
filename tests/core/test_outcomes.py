"""How runs end: every kind of outcome, from the task to its row."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from support.queue_fixture import QueueFixture, RunRecord, ms
from support.time_range import MeasuredBlock

from gw_core import Client, GiveUp, RetryAfter, Snooze
from gw_core.events import JobCompleted, JobErrored, JobFailed, JobLockLost, JobReturned


def raising(error: BaseException) -> Callable[[object], None]:
    def work(payload: object) -> None:
        raise error

    return work


USUAL = math.exp(10)
"""The delay of the usual backoff after ten attempts, in seconds."""


class BrokenRetry(RetryAfter):
    """Forgets to be a `RetryAfter`."""

    def __init__(self) -> None:
        Exception.__init__(self, "no delay was ever set")


@pytest.mark.parametrize(
    ("error", "attempts", "message", "seconds"),
    [
        pytest.param(RuntimeError("boom"), 10, "RuntimeError: boom", USUAL, id="any error: the usual backoff"),
        pytest.param(GiveUp("card refused"), 34, "card refused", USUAL, id="GiveUp: no attempt is left"),
        pytest.param(RetryAfter(600, "busy"), 10, "busy", 600, id="RetryAfter: its own delay"),
        pytest.param(RetryAfter(timedelta(hours=1)), 10, "the task asked", 3600, id="RetryAfter with a timedelta"),
        pytest.param(Snooze(600), 9, None, 600, id="Snooze: the attempt is not counted"),
        pytest.param(SystemExit(3), 10, "sys.exit(3)", USUAL, id="sys.exit"),
        pytest.param(KeyboardInterrupt(), 10, "KeyboardInterrupt", USUAL, id="KeyboardInterrupt"),
        pytest.param(BrokenRetry(), 10, "AttributeError", USUAL, id="an exception that is broken itself"),
    ],
)
def test_what_a_task_raises_decides_its_row(
    site: QueueFixture, error: BaseException, attempts: int, message: str | None, seconds: float
) -> None:
    job_id = site.add()
    site.let_retries_wait()
    with MeasuredBlock(site.now) as block:
        result = site.run_once({"work": raising(error)})

    job = site.job(job_id)
    assert (job["attempts"], job["locked_by"], job["locked_at"]) == (attempts, None, None)
    assert (job["last_error"] or "").find(message or "") >= 0
    assert (job["last_error"] is None) == (message is None)
    assert job["run_at"] in block.later(seconds)
    assert (result.completed, result.failed) == (0, 0 if message is None else 1)


def test_sys_exit_in_a_task_ends_neither_the_thread_nor_the_program(site: QueueFixture) -> None:
    def work(payload: dict[str, int]) -> None:
        if payload["n"] <= 3:
            sys.exit(payload["n"])

    site.fill(8)
    site.let_retries_wait()
    result = site.run_once({"work": work}, concurrency=1)

    assert (result.completed, result.failed, result.exit_code) == (5, 3, 0)


@pytest.mark.parametrize(("strict", "exit_code"), [(True, 1), (False, 0)])
def test_strict_reports_failures_by_the_exit_code(site: QueueFixture, strict: bool, exit_code: int) -> None:
    site.add()
    site.let_retries_wait()

    assert site.run_once({"work": raising(ValueError())}, strict=strict).exit_code == exit_code


def test_strict_without_failures_is_success(site: QueueFixture) -> None:
    site.fill(3)

    assert site.run_once({"work": RunRecord()}, strict=True).exit_code == 0


def test_of_a_batch_job_only_the_failed_items_stay(site: QueueFixture) -> None:
    def work(payload: list[int]) -> list[object]:
        return [ValueError(f"item {item}") if item % 2 else None for item in payload]

    site.client.add_batch("work", [1, 2, 3, 4])
    site.let_retries_wait()
    site.run_once({"work": work})

    (job,) = site.jobs()
    assert (job["payload"], job["attempts"]) == ([1, 3], 10)
    assert "2 of 4 batch items failed" in job["last_error"]


def test_events_of_failures_say_which_was_the_last(site: QueueFixture) -> None:
    site.add(payload={"n": 1}, max_attempts=1)
    site.add(payload={"n": 2}, max_attempts=2)
    site.let_retries_wait()
    with site.running({"work": raising(ValueError("no"))}) as running:
        running.recorded.wait_for(JobCompleted, count=2)

    assert len(running.recorded.of(JobErrored)) == 2
    assert [event.job.payload for event in running.recorded.of(JobFailed)] == [{"n": 1}]
    assert all(isinstance(event.error, ValueError) for event in running.recorded.of(JobCompleted))


def test_a_snooze_is_reported_as_returned(site: QueueFixture) -> None:
    site.add()
    with site.running({"work": raising(Snooze(60, "the shop is closed"))}) as running:
        (returned,) = running.recorded.wait_for(JobReturned)

    assert returned.reason == "the shop is closed"


def test_a_jobs_life_from_retry_to_success(site: QueueFixture) -> None:
    tries: list[int] = []

    def work(payload: object, context: Any) -> None:
        tries.append(context.job.attempts)
        if len(tries) < 3:
            raise RetryAfter(0)

    site.add()
    result = site.run_once({"work": work})

    assert (tries, result.completed, result.failed) == ([1, 2, 3], 1, 2)


# -- jobs that are no longer ours ----------------------------------------------------------------------------------


def test_a_job_unlocked_by_force_while_it_ran_is_lost_and_nothing_is_changed(site: QueueFixture) -> None:
    gate = site.gate()
    job_id = site.add(queue_name="q")
    with site.running({"work": gate}) as running:
        gate.wait_for(1)
        site.run("update _private_jobs set locked_by = 'another', locked_at = now()")
        site.run("update _private_job_queues set locked_by = 'another', locked_at = now()")
        gate.open()
        (lost,) = running.recorded.wait_for(JobLockLost)
        result = running.stop()

    assert lost.job.id == job_id
    assert result.completed == 0
    assert running.recorded.of(JobCompleted) == []
    assert (site.job(job_id)["locked_by"], site.held()) == ("another", [job_id, "q"])
    assert any("Lost job" in message for message in running.log.of("warning"))


@pytest.mark.parametrize("queue_name", [None, "q"])
def test_a_job_claimed_again_by_its_worker_waits_for_the_older_run_which_counts_for_nothing(
    site: QueueFixture, queue_name: str | None
) -> None:
    gates = [site.gate(), site.gate()]
    entered: list[int] = []

    def work(payload: object) -> None:
        entered.append(len(entered))
        gates[len(entered) - 1](payload)

    job_id = site.add(queue_name=queue_name)
    with site.running({"work": work}, poll_interval=ms(20)) as running:
        gates[0].wait_for(1)
        site.force_unlock(running.worker_id)
        running.recorded.wait_for(JobReturned)
        assert len(entered) == 1, "the next attempt does not start beside the one that still runs here"
        gates[0].open()
        running.recorded.wait_for(JobLockLost)
        site.run("update _private_jobs set run_at = now()")
        gates[1].wait_for(1)
        assert site.job(job_id)["locked_by"] == running.worker_id
        assert site.held() == [job_id] + ([queue_name] if queue_name else [])
        gates[1].open()
        (completed,) = running.recorded.wait_for(JobCompleted)
        running.stop()

    assert completed.job.attempts == 2
    assert site.held() == []
    assert site.jobs() == []


def test_a_job_that_moved_to_another_queue_while_it_was_not_ours_keeps_neither_queue(site: QueueFixture) -> None:
    gates = [site.gate(), site.gate()]
    entered: list[int] = []

    def work(payload: object) -> None:
        entered.append(len(entered))
        gates[len(entered) - 1](payload)

    site.add(queue_name="first", job_key="k")
    with site.running({"work": work, "quick": RunRecord()}, poll_interval=ms(20)) as running:
        gates[0].wait_for(1)
        with site.hands.transaction():
            site.force_unlock(running.worker_id)
            site.add_in(site.hands, "work", job_key="k", queue_name="second")
        running.recorded.wait_for(JobReturned)
        for gate in gates:
            gate.open()
        running.recorded.wait_for(JobLockLost)
        site.run("update _private_jobs set run_at = now()")
        running.recorded.wait_for(JobCompleted)
        site.add("quick", {"n": 1}, queue_name="first")
        site.add("quick", {"n": 2}, queue_name="second")
        running.recorded.wait_for(JobCompleted, count=3)
        running.stop()

    assert site.held() == []


@pytest.mark.parametrize("fails", [False, True], ids=["completes", "fails"])
def test_a_keyed_add_while_the_job_runs_makes_a_second_job(site: QueueFixture, fails: bool) -> None:
    gate = site.gate()
    ran: list[int] = []

    def work(payload: dict[str, int]) -> None:
        ran.append(payload["n"])
        if payload["n"] == 1:
            gate(payload)
            if fails:
                raise RetryAfter(0)

    first = site.add(payload={"n": 1}, job_key="k")
    with site.running({"work": work}) as running:
        gate.wait_for(1)
        second = site.add(payload={"n": 2}, job_key="k")
        running.recorded.wait_for(JobCompleted, lambda event: event.job.id == second)
        gate.open()
        running.recorded.wait_for(JobCompleted, lambda event: event.job.id == first)
        running.stop()

    assert ran == [1, 2]
    assert [job["id"] for job in site.jobs()] == ([first] if fails else [])


def test_a_job_removed_while_it_runs_is_not_tried_again(site: QueueFixture, shared_url: str) -> None:
    gate = site.gate()

    def work(payload: object) -> None:
        gate(payload)
        raise RetryAfter(0)

    site.add(job_key="k")
    with site.running({"work": work}, poll_interval=ms(10)) as running, Client(shared_url) as client:
        gate.wait_for(1)
        removed = client.remove("k")
        assert removed is not None
        assert removed.was_running
        gate.open()
        running.recorded.wait_for(JobCompleted)
        running.stop()

    assert gate.arrived == 1
    assert site.jobs()[0]["attempts"] == 25
