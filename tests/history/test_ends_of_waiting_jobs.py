"""A job that waits for others and is dropped becomes a final row of history, with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from psycopg.conninfo import make_conninfo
from support.queue_fixture import QueueFixture
from support.shell import Shell
from support.waiting import wait_until

from gw_core import AsyncClient, Client, GiveUp, Job, JobContext, TaskRegistry
from gw_core.errors import ResultUnavailableError
from gw_core.operations import EndedAttempt

WEEK = timedelta(days=7)
TOMORROW = timedelta(days=1)


def registry(keep: timedelta | None = WEEK) -> TaskRegistry:
    """Tasks that history keeps: one fails, one succeeds, and one returns the results that it waited for."""
    registry = TaskRegistry()

    @registry.task("fails", keep=keep)
    def fails(payload: object) -> None:
        raise GiveUp("no account")

    @registry.task("report", keep=keep)
    def report(payload: object) -> None:
        pass

    @registry.task("sum", keep=keep, result=keep is not None)
    def total(payload: object, context: JobContext) -> list[object]:
        return list(context.results())

    return registry


def attempts(site: QueueFixture, job: Job | int) -> tuple[EndedAttempt, ...]:
    return site.client.history.attempts(job if isinstance(job, int) else job.id)


def waiting(site: QueueFixture) -> list[int]:
    return [each.job.id for each in site.client.jobs.list("state:waiting").jobs]


def known(site: QueueFixture) -> None:
    """Let history keep the task from now on, as the client of an operator knows no worker's settings."""
    site.client.add("report")
    site.run_once(registry())


def cancel_asynchronously(site: QueueFixture, job: Job, *, as_group: bool) -> None:
    async def cancel() -> None:
        async with AsyncClient(site.url) as client:
            if as_group:
                assert await client.groups.cancel(job.id, by="anna") == (job.id,)
            else:
                await client.jobs.cancel([job.id], by="anna")

    asyncio.run(cancel())


CANCELS: dict[str, Callable[[QueueFixture, Job], object]] = {
    "as a job": lambda site, job: site.client.jobs.cancel([job.id], by="anna"),
    "as a group": lambda site, job: site.client.groups.cancel(job.id, by="anna"),
    "by a selection": lambda site, job: site.client.jobs.cancel("state:waiting job_key:k", by="anna"),
    "asynchronously as a job": lambda site, job: cancel_asynchronously(site, job, as_group=False),
    "asynchronously as a group": lambda site, job: cancel_asynchronously(site, job, as_group=True),
}


@pytest.mark.parametrize("cancel", CANCELS.values(), ids=CANCELS)
def test_a_cancelled_job_and_those_that_wait_for_it_get_a_final_row(
    site: QueueFixture, cancel: Callable[[QueueFixture, Job], object]
) -> None:
    known(site)
    first = site.client.add("report", run_at=TOMORROW)
    second = site.client.add("report", after=[first], queue_name="q", job_key="k")
    third = site.client.add("report", after=[second], priority=3)

    cancel(site, second)

    assert [job["id"] for job in site.jobs()] == [first.id]
    [ended], [later] = attempts(site, second), attempts(site, third)
    assert (ended.state, ended.final, ended.task, ended.queue_name, ended.job_key) == (
        "removed",
        True,
        "report",
        "q",
        "k",
    )
    assert (ended.attempt, ended.started_at, ended.worker_id) == (0, None, None)
    assert ended.expires_at - ended.finished_at == WEEK
    assert (later.state, later.final) == ("removed", True)
    assert (ended.error, later.error) == ("cancelled by anna", f"cancelled because job {second.id} was cancelled")
    with pytest.raises(ResultUnavailableError, match="was removed before it completed"):
        site.client.result(second.id, timeout=0)


def test_the_reason_of_an_operator_is_recorded(site: QueueFixture) -> None:
    known(site)
    job = site.client.add("report", after=[site.client.add("report", run_at=TOMORROW)])

    site.client.jobs.cancel([job.id], by="anna", reason="sent twice")

    assert [each.error for each in attempts(site, job)] == ["cancelled by anna: sent twice"]


@pytest.mark.parametrize("command", [("cancel",), ("groups", "cancel")], ids=" ".join)
def test_a_command_records_what_it_cancels(site: QueueFixture, tmp_path: Path, command: tuple[str, ...]) -> None:
    known(site)
    job = site.client.add("report", after=[site.client.add("report", run_at=TOMORROW)])
    shell = Shell(tmp_path, database=site.url)

    assert shell.gw(*command, str(job.id)).code == 0

    [ended] = attempts(site, job)
    assert (ended.state, ended.final) == ("removed", True)
    assert (ended.error or "").startswith("cancelled by ")
    assert "was cancelled" not in shell.gw("show", str(job.id)).err


# -- the end of another job ----------------------------------------------------------------------------------------


def fails_in_a_worker(site: QueueFixture, job: Job) -> None:
    with site.running(registry()):
        wait_until(lambda: waiting(site) == [], what="the waiting jobs to be dropped")


def fails_in_a_single_run(site: QueueFixture, job: Job) -> None:
    site.run_once(registry())


def fails_elsewhere(site: QueueFixture, job: Job) -> None:
    """As a worker in another language does it; the last check of a single run notices."""
    site.run("select from permanently_fail_jobs(array[%s])", job.id)
    site.run_once(registry())


def fails_before_a_check(site: QueueFixture, job: Job) -> None:
    """As a worker in another language does it; the check that each worker makes notices."""
    site.run("select from permanently_fail_jobs(array[%s])", job.id)
    site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
    with site.running(registry()):
        wait_until(lambda: waiting(site) == [], what="the waiting jobs to be dropped")


FAILURES = [fails_in_a_worker, fails_in_a_single_run, fails_elsewhere, fails_before_a_check]


@pytest.mark.parametrize("fail", FAILURES)
def test_a_job_that_is_dropped_for_a_failure_gets_a_final_row_though_its_task_never_ran(
    site: QueueFixture, fail: Callable[[QueueFixture, Job], None]
) -> None:
    first = site.client.add("fails")
    second = site.client.add("report", after=[first], on_failure="cancel")
    third = site.client.add("sum", after=[second])

    fail(site, first)

    assert [job["id"] for job in site.jobs()] == [first.id]
    [ended], [later] = attempts(site, second), attempts(site, third)
    assert (ended.state, ended.final, ended.error) == ("removed", True, f"cancelled because job {first.id} failed")
    assert (later.state, later.final) == ("removed", True)
    assert later.error == f"cancelled because job {second.id} was cancelled"
    assert (ended.expires_at - ended.finished_at, later.expires_at - later.finished_at) == (WEEK, WEEK)


def test_a_job_added_after_a_failure_and_dropped_with_it_gets_a_final_row(site: QueueFixture) -> None:
    known(site)
    first = site.client.add("fails")
    site.run_once(registry())

    job = site.client.add("report", after=[first], on_failure="cancel")

    assert [(each.state, each.error) for each in attempts(site, job)] == [
        ("removed", f"cancelled because job {first.id} failed")
    ]


def test_a_job_that_runs_on_failure_reads_no_result_of_a_dropped_one(site: QueueFixture) -> None:
    first = site.client.add("fails")
    second = site.client.add("report", after=[first], on_failure="cancel")
    last = site.client.add("sum", after=[second], on_failure="run")

    site.run_once(registry())

    assert site.client.result(last.id, timeout=0) == [None]


# -- without history -----------------------------------------------------------------------------------------------


def history(site: QueueFixture) -> list[object]:
    return [row["job_id"] for row in site.run("select job_id from _private_gw_history")]


def test_without_history_nothing_is_recorded(site: QueueFixture) -> None:
    first = site.client.add("fails")
    site.client.add("report", after=[first], on_failure="cancel")
    other = site.client.add("report", after=[site.client.add("report", run_at=TOMORROW)])

    site.run_once(registry(keep=None))
    site.client.groups.cancel(other.id)

    assert (len(site.jobs()), history(site)) == (2, [])


def test_the_trigger_for_jobs_of_others_records_the_only_row_with_the_reason(site: QueueFixture) -> None:
    known(site)
    site.client.history.record_others(TOMORROW)
    first = site.client.add("report", run_at=TOMORROW)
    job = site.client.add("report", after=[first])
    try:
        site.client.groups.cancel(job.id, by="anna")
    finally:
        site.client.history.record_others(None)

    [ended] = attempts(site, job)
    assert (ended.state, ended.final, ended.error) == ("removed", True, "cancelled by anna")
    assert ended.expires_at - ended.finished_at == TOMORROW


@pytest.mark.parametrize("operator", ["insert"], indirect=True)
def test_a_role_that_may_not_write_history_drops_jobs_all_the_same(own_site: QueueFixture, operator: str) -> None:
    known(own_site)
    first = own_site.client.add("report", run_at=TOMORROW)
    job = own_site.client.add("report", after=[own_site.client.add("report", after=[first])])

    with Client(make_conninfo(own_site.url, user=operator)) as client:
        assert client.groups.cancel(job.id) == (job.id,)

    assert len(waiting(own_site)) == 1
    assert attempts(own_site, job) == ()
