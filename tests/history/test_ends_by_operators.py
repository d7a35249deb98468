"""A job that an operator ends is in exactly one place: it leaves the queue and becomes a final row of history."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support.queue_fixture import QueueFixture
from support.shell import Shell
from support.waiting import wait_until

from gw_core import AsyncClient, Client, GiveUp, RetryAfter, TaskRegistry
from gw_core.errors import ResultUnavailableError
from gw_core.front_ends import CleanupTarget, HistoryState
from gw_core.operations import EndedAttempt

WEEK = timedelta(days=7)


def failing() -> TaskRegistry:
    """Tasks that fail permanently: one that history keeps, and one that it does not."""
    registry = TaskRegistry()

    @registry.task("kept", keep=WEEK)
    def kept(payload: object) -> None:
        raise GiveUp("no account")

    @registry.task("unkept")
    def unkept(payload: object) -> None:
        raise GiveUp("no account")

    return registry


def failed(site: QueueFixture, task: str = "kept", **options: object) -> int:
    """Run a job to its permanent failure."""
    job_id = site.add(task, **options)
    site.run_once(failing())
    return job_id


def complete_asynchronously(site: QueueFixture, job_id: int) -> None:
    async def complete() -> None:
        async with AsyncClient(site.url) as client:
            assert (await client.jobs.complete([job_id])).ids == (job_id,)

    asyncio.run(complete())


ENDS: dict[str, Callable[[QueueFixture, int], object]] = {
    "completed": lambda site, job_id: site.client.jobs.complete([job_id]),
    "completed by a selection": lambda site, job_id: site.client.jobs.complete("state:failed"),
    "completed asynchronously": complete_asynchronously,
    "cleaned up": lambda site, job_id: site.client.cleanup.delete(CleanupTarget.FAILED_JOBS),
    "removed by its key": lambda site, job_id: site.client.remove("k"),
}


@pytest.fixture(params=ENDS.values(), ids=ENDS)
def end(request: pytest.FixtureRequest) -> Callable[[QueueFixture, int], object]:
    """Each way in which an operator ends a job."""
    way: Callable[[QueueFixture, int], object] = request.param
    return way


def attempts(site: QueueFixture, job_id: int) -> tuple[EndedAttempt, ...]:
    return site.client.history.attempts(job_id)


def test_a_failed_job_that_history_keeps_gets_a_final_row(
    site: QueueFixture, end: Callable[[QueueFixture, int], object]
) -> None:
    job_id = failed(site, queue_name="q", job_key="k")

    end(site, job_id)

    first, last = attempts(site, job_id)
    assert site.jobs() == []
    assert (first.state, first.final) == (HistoryState.FAILED, False)
    assert (last.state, last.final, last.task, last.queue_name, last.job_key) == ("removed", True, "kept", "q", "k")
    assert last.error == first.error
    assert last.expires_at - last.finished_at == WEEK
    assert first.finished_at < last.finished_at
    with pytest.raises(ResultUnavailableError, match="was removed before it completed"):
        site.client.result(job_id, timeout=0)


def test_a_job_of_a_task_that_history_does_not_keep_leaves_no_row(
    site: QueueFixture, end: Callable[[QueueFixture, int], object]
) -> None:
    job_id = failed(site, "unkept", job_key="k")

    end(site, job_id)

    assert (site.jobs(), attempts(site, job_id)) == ([], ())


def test_a_job_that_never_ran_is_recorded_where_history_keeps_its_task(site: QueueFixture) -> None:
    failed(site)
    waiting, other = site.add("kept"), site.add("unkept")

    site.client.jobs.complete([waiting, other])

    assert [each.state for each in attempts(site, waiting)] == ["removed"]
    assert attempts(site, other) == ()


def test_the_trigger_for_jobs_of_others_records_no_second_row(
    site: QueueFixture, end: Callable[[QueueFixture, int], object]
) -> None:
    job_id = failed(site, job_key="k")
    site.client.history.record_others(WEEK)

    end(site, job_id)
    site.client.history.record_others(None)

    assert [each.final for each in attempts(site, job_id)] == [False, True]


def test_a_running_job_is_neither_ended_nor_recorded(site: QueueFixture) -> None:
    failed(site)
    gate = site.gate()
    job_id = site.add("work")
    with site.running({"work": gate}, history=WEEK):
        gate.wait_for(1)
        site.client.jobs.complete([job_id])
        assert attempts(site, job_id) == ()


def test_a_role_that_may_not_write_history_ends_jobs_all_the_same(own_site: QueueFixture, operator: str) -> None:
    job_id = failed(own_site)

    with Client(make_conninfo(own_site.url, user=operator)) as client:
        assert client.jobs.complete([job_id]).ids == (job_id,)

    assert [each.final for each in attempts(own_site, job_id)] == [False]


def test_show_reports_that_the_job_was_removed(site: QueueFixture, tmp_path: Path) -> None:
    shell = Shell(tmp_path, database=site.url)
    by_command, by_sql = failed(site), failed(site)
    assert shell.gw("complete", str(by_command)).code == 0
    site.run("select complete_jobs(array[%s])", by_sql)

    shown = shell.gw("show", str(by_command), "--json")
    assert json.loads(shown.out)["state"] == "removed"
    assert shown.err == ""

    shown = shell.gw("show", str(by_sql), "--json")
    assert json.loads(shown.out)["state"] == "failed"
    ended = "SQL or another program completed or deleted it"
    assert shown.err == f"Job {by_sql} has left the queue since this attempt: {ended}.\n"


WAITING = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"


def test_a_job_that_ends_while_it_is_removed_gets_no_final_row(site: QueueFixture) -> None:
    """It stays in the queue as a failed job: a removal deletes no job that a worker has."""
    registry, gate, calls = TaskRegistry(), site.gate(), iter([1, 2])

    @registry.task("kept", keep=WEEK)
    def kept(payload: object) -> None:
        if next(calls) == 1:
            raise RetryAfter(0, "again")
        gate(payload)

    job_id = site.add("kept", job_key="k")
    with site.running(registry):
        gate.wait_for(1)
        with ThreadPoolExecutor(1) as thread:
            with site.hands.transaction():  # as the statement that settles does, which has not committed yet
                site.run("update _private_jobs set locked_by = null, locked_at = null where id = %s", job_id)
                removing = thread.submit(site.client.remove, "k")
                with psycopg.connect(site.url) as other:
                    wait_until(lambda: other.execute(WAITING).fetchall(), what="the removal to wait")
            removed = removing.result(60)
        gate.open()

    assert removed is not None
    assert (removed.was_running, removed.was_deleted) == (False, False)
    assert [row["id"] for row in site.jobs()] == [job_id]
    assert {each.state for each in attempts(site, job_id)} == {HistoryState.RETRIED}
