"""Cancelling running jobs: the request reaches their worker, and the answer is correct."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.cli_program import CliProgram
from support.database_proxy import DatabaseProxy
from support.queue_fixture import DEADLINE, NEVER, Gate, QueueFixture, RunningWorker, RunRecord, ms
from support.waiting import wait_until

from gw_core import JobContext, StopReason
from gw_core.events import JobCancelling, JobCompleted, JobStarted
from gw_core.front_ends import CancelResult, PoolListening, load_folder
from gw_core.operations import CancelledJob
from gw_core.worker import timeouts

SOON = timedelta(seconds=DEADLINE)
FAILED, USAGE, NOT_FOUND = 1, 2, 6
"""Exit codes; docs/reference/exit-codes.md explains them."""


class Obedient:
    """A task that stands still until it is asked to stop."""

    def __init__(self) -> None:
        self.reasons: list[StopReason | None] = []

    def __call__(self, payload: Any, context: JobContext) -> None:
        assert context.should_stop.wait(DEADLINE)
        self.reasons.append(context.stop_reason)


@pytest.fixture
def insisting_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test wait for the seconds that a task has after the request."""
    monkeypatch.setattr(timeouts, "FORCE_AFTER", 0.1)


def started(running: RunningWorker, count: int = 1) -> list[int]:
    return [event.job.id for event in running.recorded.wait_for(JobStarted, count=count)]


def cancel(site: QueueFixture, *ids: int, **options: Any) -> list[CancelResult]:
    jobs: list[CancelledJob] = site.client.jobs.cancel(ids, **{"by": "ann@desk", "timeout": SOON, **options})
    return [job.result for job in jobs]


def test_a_cancelled_task_gets_the_reason_and_its_job_has_failed_permanently(site: QueueFixture) -> None:
    task = Obedient()
    with site.running({"work": task}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.fill(1)
        (job,) = started(running)

        assert cancel(site, job, reason="wrong customer") == [CancelResult.CANCELLED]

    row = site.job(job)
    assert task.reasons == [StopReason.CANCELLED]
    assert (row["attempts"], row["max_attempts"]) == (25, 25)
    assert row["last_error"] == "cancelled by ann@desk: wrong customer"
    assert site.held() == []


def test_with_retry_only_this_attempt_has_failed(site: QueueFixture) -> None:
    site.fill(1)
    site.let_retries_wait()
    with site.running({"work": Obedient()}, poll_interval=NEVER) as running:
        (job,) = started(running)

        assert cancel(site, job, retry=True) == [CancelResult.CANCELLED]

    assert site.job(job)["attempts"] == 10


@pytest.mark.usefixtures("insisting_soon")
@pytest.mark.parametrize("queue", [None, "q"], ids=["without a queue", "in a queue"])
def test_a_job_is_cancelled_when_its_task_has_ended(site: QueueFixture, queue: str | None) -> None:
    gate = site.gate()
    with site.running({"work": gate}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.add(queue_name=queue)
        (job,) = started(running)

        # Who asks for so short a time may get no answer.
        wait_until(lambda: cancel(site, job, timeout=ms(400)) == [CancelResult.STOPPING])
        assert site.held() == [job, *([] if queue is None else [queue])]
        gate.open()
        running.recorded.wait_for(JobCompleted)

    assert site.job(job)["last_error"] == "cancelled by ann@desk"
    assert site.held() == []


@pytest.mark.usefixtures("insisting_soon")
def test_a_coroutine_is_cancelled(site: QueueFixture) -> None:
    ended: list[str] = []

    async def work(payload: Any) -> None:
        try:
            await asyncio.sleep(DEADLINE)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    with site.running({"work": work}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.fill(1)
        (job,) = started(running)

        assert cancel(site, job) == [CancelResult.CANCELLED]
        wait_until(lambda: ended == ["cancelled"])


def test_a_program_is_asked_with_sigterm(site: QueueFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeouts, "FORCE_AFTER", DEADLINE)
    program = tmp_path / "tasks" / "work"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\ntrap 'echo TERM > \"$0.signal\"; kill $!; exit 1' TERM\nsleep 600 &\necho ready\nwait\n"
    )
    os.chmod(program, stat.S_IRWXU)
    with site.running(load_folder(program.parent).registry, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.fill(1)
        (job,) = started(running)
        running.log.wait_for("ready")  # it has a handler for the signal

        assert cancel(site, job) == [CancelResult.CANCELLED]

    assert program.with_suffix(".signal").read_text() == "TERM\n"
    assert site.job(job)["last_error"] == "cancelled by ann@desk"


def test_a_job_claimed_ahead_is_cancelled_before_it_begins(site: QueueFixture) -> None:
    gate = site.gate()
    results: list[CancelResult] = []
    tasks = {"quick": RunRecord(), "work": gate}
    with site.running(tasks, poll_interval=NEVER, concurrency=1, prefetch=timedelta(minutes=10)) as running:
        running.recorded.wait_for(PoolListening)
        site.fill(5, task="quick")
        running.recorded.wait_for(JobCompleted, count=5)
        site.fill(3)
        gate.wait_for(1)
        wait_until(lambda: len(site.held()) == 3)
        last = site.jobs()[2]["id"]
        asking = threading.Thread(target=lambda: results.extend(cancel(site, last)))
        asking.start()
        running.recorded.wait_for(JobCancelling)
        gate.open()
        asking.join(DEADLINE)

    assert results == [CancelResult.CANCELLED]
    assert gate.arrived == 2
    assert [row["id"] for row in site.jobs()] == [last]


def test_a_pool_that_only_polls_receives_requests_with_its_heartbeat(site: QueueFixture) -> None:
    options: dict[str, Any] = {"listen": False, "poll_interval": ms(50), "heartbeat_interval": ms(100)}
    with site.running({"work": Obedient()}, **options) as running:
        site.fill(1)
        (job,) = started(running)

        assert cancel(site, job) == [CancelResult.CANCELLED]


@pytest.mark.parametrize("statement", ["select requests", "delete from"], ids=["of the read", "of the confirmation"])
def test_a_request_survives_a_lost_answer(site: QueueFixture, statement: str) -> None:
    task, proxy = Obedient(), DatabaseProxy(site.url)
    with site.running({"work": task}, url=proxy.url, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.fill(1)
        (job,) = started(running)
        loss = proxy.lose_next("gw:claim", mark=statement)

        assert cancel(site, job) == [CancelResult.CANCELLED]
        assert loss.happened.is_set()
        wait_until(lambda: site.run("select from _private_gw_cancellations") == [], what="the confirmation")

    proxy.close()
    assert len(running.recorded.of(JobCancelling)) == 1


def test_what_cannot_be_cancelled_is_said_honestly(site: QueueFixture) -> None:
    waiting, node, dead = (site.add(payload={"n": n}) for n in (1, 2, 3))
    for job, worker in ((node, "worker-8f2c"), (dead, "gw-host-1-0123456789")):
        site.run("update _private_jobs set locked_at = now(), locked_by = %s where id = %s", worker, job)

    assert cancel(site, waiting, node, dead, 10**15, timeout=ms(200)) == [
        CancelResult.NOT_RUNNING,
        CancelResult.UNSUPPORTED_WORKER,
        CancelResult.NO_RESPONSE,
        CancelResult.NOT_FOUND,
    ]
    assert site.run("select pool, job_id from _private_gw_cancellations") == [
        {"pool": "gw-host-1-0123456789", "job_id": dead}
    ]
    site.force_unlock("worker-8f2c", "gw-host-1-0123456789")
    site.run("delete from _private_gw_cancellations")


def test_a_job_that_ends_on_its_own_in_the_meantime_is_not_called_cancelled(site: QueueFixture) -> None:
    gate: Gate = site.gate()
    with site.running({"work": gate}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.fill(1)
        (job,) = started(running)
        running.claimer.on_cancel_request = lambda: None  # type: ignore[union-attr, method-assign]
        threading.Timer(0.2, gate.open).start()

        assert cancel(site, job) == [CancelResult.ALREADY_FINISHED]
    site.run("delete from _private_gw_cancellations")


# -- the command ------------------------------------------------------------------------------------------------------


def test_the_command_says_what_became_of_each_job(site: QueueFixture, gw: CliProgram) -> None:
    waiting = site.add(payload={"n": 1}, run_at=timedelta(hours=1))
    with site.running({"work": Obedient()}, poll_interval=NEVER) as running:
        running.recorded.wait_for(PoolListening)
        site.fill(1)
        (job,) = started(running)

        options = ("--reason", "a\tb", "--json", "--timeout", "60s", "--connection", site.url)
        ended = gw("cancel", job, waiting, *options)

    assert [(row["id"], row["result"]) for row in ended.json] == [(waiting, "not_running"), (job, "cancelled")]
    assert ended.code == FAILED
    assert str(site.job(job)["last_error"]).endswith(": a\\tb")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        pytest.param(["1000000000"], NOT_FOUND, id="no such job"),
        pytest.param(["--job-key", "nobody"], NOT_FOUND, id="no such key"),
        pytest.param([], USAGE, id="no job at all"),
        pytest.param(["1", "--job-key", "k"], NOT_FOUND, id="another key"),
        pytest.param(["task:mail"], NOT_FOUND, id="none that runs"),
        pytest.param(["task:mail", "--all"], USAGE, id="all and not all"),
        pytest.param(["1", "--timeout", "soon"], USAGE, id="no span of time"),
        pytest.param(["one"], USAGE, id="no number"),
    ],
)
def test_what_the_command_cannot_do_ends_in_a_verdict(
    site: QueueFixture, gw: CliProgram, arguments: list[str], code: int
) -> None:
    assert gw("cancel", *arguments, "--connection", site.url).code == code
