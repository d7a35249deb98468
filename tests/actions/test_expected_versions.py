"""Actions on expected versions of jobs: a job that has changed since is skipped and reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from support.jobs_in_states import Queue
from support.waiting import wait_until

from gw_core import Client, Job, Selection
from gw_core.errors import InvalidInputError
from gw_core.front_ends import FrontEnd, Jobs, SkipReason
from gw_core.operations import ActionResult

WAITS = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"

Act = Callable[[Jobs, Sequence[Job]], ActionResult]

ACTS: dict[str, Act] = {
    "complete": lambda jobs, seen: jobs.complete(expected=seen),
    "fail": lambda jobs, seen: jobs.fail(reason="by hand", expected=seen),
    "reschedule": lambda jobs, seen: jobs.reschedule(expected=seen, priority=7),
    "retry": lambda jobs, seen: jobs.retry(expected=seen),
}


@pytest.fixture
def client(queue: Queue) -> Iterator[Client]:
    with Client(queue.url, max_pool_size=1) as client:
        yield client


@pytest.fixture(params=ACTS.values(), ids=ACTS)
def act(request: pytest.FixtureRequest, client: Client) -> Callable[[Sequence[Job]], ActionResult]:
    """One of the actions."""
    return partial(request.param, client.jobs)


def versions_of(client: Client, *ids: int) -> list[Job]:
    """See jobs as a list shows them."""
    return [each.job for each in client.jobs.list(Selection.of(id=ids)).jobs]


def reasons(batch: ActionResult) -> list[tuple[int, SkipReason, str | None]]:
    return [(each.id, each.reason, each.changes) for each in batch.skipped]


# -- what has not changed is acted on ---------------------------------------------------------------------------------


def test_jobs_that_have_not_changed_are_acted_on(client: Client, queue: Queue, act: Any) -> None:
    jobs = [queue.failed(), queue.failed()]

    batch = act(versions_of(client, *jobs))

    assert [each.id for each in batch.changed] == jobs
    assert batch.skipped == ()


def test_a_failed_job_that_is_retried_really_runs_again(client: Client, queue: Queue) -> None:
    job = queue.failed()
    with FrontEnd(client).listen() as listener:
        client.jobs.retry(expected=versions_of(client, job))
        assert listener.wait(timedelta(seconds=60)) == 1

    assert queue.value("select is_available and run_at <= now() from graphile_worker._private_jobs")


def test_many_jobs_are_acted_on_in_batches(client: Client, queue: Queue) -> None:
    jobs = [queue.ready() for _ in range(5)]

    batches = list(client.jobs.in_batches(2).complete(expected=versions_of(client, *jobs)))

    assert [[each.id for each in batch.changed] for batch in batches] == [jobs[:2], jobs[2:4], jobs[4:]]


def test_to_act_on_nothing_is_to_do_nothing(client: Client, queue: Queue) -> None:
    queue.ready()

    assert client.jobs.complete(expected=[]) == ActionResult()
    assert len(queue.ids()) == 1


def test_it_must_be_said_which_jobs_are_meant(client: Client) -> None:
    with pytest.raises(InvalidInputError, match="not by a combination"):
        client.jobs.complete()
    with pytest.raises(InvalidInputError, match="not by a combination"):
        client.jobs.retry(Selection(), expected=[])


# -- what has changed is left alone -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("attempts = 3", "attempts 25→3"),
        ("revision = 4", "revision 0→4"),
        ("max_attempts = 30", "max attempts 25→30"),
        ("run_at = run_at + interval '1 hour'", "due at another time"),
        ("updated_at = updated_at + interval '1 second'", "changed by another session"),
        ("locked_by = 'old', locked_at = now() - interval '5 hours'", "taken by a worker"),
    ],
)
def test_a_job_that_changed_is_left_alone(client: Client, queue: Queue, act: Any, change: str, words: str) -> None:
    job, other = queue.failed(), queue.failed()
    seen = versions_of(client, job, other)
    queue.set(job, change)
    before = queue.rows("select * from graphile_worker._private_jobs where id = %s", job)

    batch = act(seen)

    assert reasons(batch) == [(job, SkipReason.CHANGED, words)]
    assert [each.id for each in batch.changed] == [other]
    assert queue.rows("select * from graphile_worker._private_jobs where id = %s", job) == before


def test_a_job_that_runs_by_now_is_left_to_its_worker(client: Client, queue: Queue, act: Any) -> None:
    job = queue.failed()
    seen = versions_of(client, job)
    queue.set(job, "attempts = 2, locked_by = 'pool-7', locked_at = now()")

    (skipped,) = act(seen).skipped

    assert (skipped.reason, skipped.locked_by) == (SkipReason.LOCKED, "pool-7")
    assert skipped.changes == "attempts 25→2, taken by a worker"


def test_a_job_that_is_gone_is_said_to_be(client: Client, queue: Queue, act: Any) -> None:
    job = queue.failed()
    seen = versions_of(client, job)
    queue.rows("delete from graphile_worker._private_jobs")

    batch = act(seen)

    assert (batch.changed, reasons(batch)) == ((), [(job, SkipReason.NOT_FOUND, None)])


def test_a_job_that_another_session_is_changing_is_not_waited_for(client: Client, queue: Queue, act: Any) -> None:
    job, other = queue.failed(), queue.failed()
    seen = versions_of(client, job, other)
    with psycopg.connect(queue.url) as theirs:
        theirs.execute("select from graphile_worker._private_jobs where id = %s for update", (job,))
        batch = act(seen)

    assert reasons(batch) == [(job, SkipReason.BUSY, None)]
    assert [each.id for each in batch.changed] == [other]


# -- what was removed can be restored ---------------------------------------------------------------------------------


def test_a_removed_job_comes_back_with_everything(client: Client, queue: Queue) -> None:
    job = queue.ready(queue_name="letters", job_key="welcome", priority=3, flags=["slow"], payload={"a": [1.50, "ü"]})
    queue.set(job, "attempts = 4, max_attempts = 9, last_error = 'refused', run_at = '2040-01-01T00:00:00.123456Z'")
    columns = (
        "payload::text, priority, run_at, attempts, max_attempts, last_error, key, flags, task_id, job_queue_id, "
        "locked_at is null"
    )
    before = queue.rows(f"select {columns} from graphile_worker._private_jobs")
    batch = client.jobs.complete(expected=versions_of(client, job))
    assert queue.ids() == []
    (removed,) = batch.changed
    assert removed.job is not None

    restored = client.jobs.restore(removed.job)

    assert restored is not None
    assert restored > job
    assert queue.rows(f"select {columns} from graphile_worker._private_jobs") == before


def test_a_job_is_restored_once(client: Client, queue: Queue) -> None:
    batch = client.jobs.complete(expected=versions_of(client, queue.ready()))
    assert batch.changed[0].job is not None

    restored = [client.jobs.restore(batch.changed[0].job) for _ in range(2)]
    assert restored == [queue.ids()[0]] * 2

    again = client.jobs.complete(expected=versions_of(client, queue.ids()[0]))
    assert again.changed[0].job is not None
    assert client.jobs.restore(batch.changed[0].job) == restored[0]
    assert queue.ids() == []
    assert [client.jobs.restore(again.changed[0].job)] == queue.ids()


def test_two_sessions_restore_a_job_once(client: Client, queue: Queue) -> None:
    batch = client.jobs.complete(expected=versions_of(client, queue.ready()))
    job = batch.changed[0].job
    assert job is not None
    with psycopg.connect(queue.url) as first, ThreadPoolExecutor() as threads:
        restored = client.jobs.restore(job, conn=first)
        second = threads.submit(client.jobs.restore, job)
        wait_until(lambda: queue.rows(WAITS), what="the second session to wait")
        first.commit()
        assert second.result(60) == restored

    assert queue.ids() == [restored]


def test_a_job_whose_key_is_free_again_is_restored(client: Client, queue: Queue) -> None:
    batch = client.jobs.complete(expected=versions_of(client, queue.ready(job_key="welcome")))
    queue.ready(job_key="welcome")
    assert batch.changed[0].job is not None
    assert client.jobs.restore(batch.changed[0].job) is None

    client.remove("welcome")

    assert [client.jobs.restore(batch.changed[0].job)] == queue.ids()


def test_a_restored_job_brings_back_its_task_and_its_queue(client: Client, queue: Queue) -> None:
    job = queue.ready(queue_name="letters")
    batch = client.jobs.complete(expected=versions_of(client, job))
    queue.rows("delete from graphile_worker._private_tasks")
    queue.rows("delete from graphile_worker._private_job_queues")
    assert batch.changed[0].job is not None

    restored = client.jobs.get(client.jobs.restore(batch.changed[0].job))

    assert restored is not None
    assert (restored.task, restored.queue_name) == ("mail", "letters")


def test_workers_are_notified_of_a_restored_job(client: Client, queue: Queue) -> None:
    batch = client.jobs.complete(expected=versions_of(client, queue.ready()))
    assert batch.changed[0].job is not None

    with FrontEnd(client).listen() as listener:
        client.jobs.restore(batch.changed[0].job)

        assert listener.wait(timedelta(seconds=60)) == 1


def test_a_job_whose_key_was_taken_in_the_meantime_is_not_restored(client: Client, queue: Queue) -> None:
    batch = client.jobs.complete(expected=versions_of(client, queue.ready(job_key="welcome", payload={"old": 1})))
    new = queue.ready(job_key="welcome", payload={"new": 1})
    assert batch.changed[0].job is not None

    assert client.jobs.restore(batch.changed[0].job) is None
    assert queue.rows("select id, payload::text, revision from graphile_worker._private_jobs") == [
        (new, '{"new":1}', 0)
    ]


def test_a_job_listed_without_its_payload_cannot_be_restored(client: Client, queue: Queue) -> None:
    queue.ready()
    (found,) = client.jobs.list().jobs

    with pytest.raises(InvalidInputError, match="without its payload"):
        client.jobs.restore(found.job)
