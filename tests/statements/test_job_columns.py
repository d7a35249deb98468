"""Every statement that returns jobs has its columns in the order of the fields of `Job`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from gw_core import AsyncClient, Job
from gw_core.front_ends import Database
from gw_core.postgres.road.worker_store import WorkerStore
from statements.statement_fixture import OURS, SCHEMA, Queue

EXPECTED = """
select jobs.id,
       tasks.identifier as task,
       jobs.payload::text as payload_json,
       jobs.attempts,
       jobs.max_attempts,
       jobs.priority,
       extract(epoch from jobs.run_at)::float8 as _run_at,
       extract(epoch from jobs.created_at)::float8 as _created_at,
       extract(epoch from jobs.updated_at)::float8 as _updated_at,
       jobs.revision,
       jobs.key as job_key,
       jobs.flags::text as _flags,
       jobs.job_queue_id as queue_id,
       queues.queue_name,
       jobs.last_error,
       extract(epoch from jobs.locked_at)::float8 as _locked_at,
       jobs.locked_by,
       null as _started_at
  from _private_jobs as jobs
  join _private_tasks as tasks on tasks.id = jobs.task_id
  join _private_job_queues as queues on queues.id = jobs.job_queue_id
"""


def a_distinct_job(queue: Queue) -> int:
    """Add a job no two fields of which have the same value."""
    options = {"queue_name": "letters", "job_key": "letter-1", "priority": 3, "max_attempts": 7, "flags": ["slow"]}
    job_id = queue.add("mail", {"to": "Ada"}, **options)
    queue.change(
        job_id,
        attempts=2,
        revision=5,
        last_error="no stamps",
        run_at="=now() - interval '1 hour'",
        created_at="=now() - interval '3 hours'",
        updated_at="=now() - interval '2 hours'",
    )
    return job_id


def fields(job: Job) -> dict[str, object]:
    return {name: getattr(job, name) for name in Job.__struct_fields__}


def by_name(queue: Queue) -> dict[str, object]:
    (row,) = queue.run(EXPECTED)
    return row


# -- jobs that no worker has claimed -----------------------------------------------------------------------------------


def got_async(queue: Queue) -> Job | None:
    async def get() -> Job | None:
        async with AsyncClient(queue.url) as client:
            return await client.jobs.get(job_key="letter-1")

    return asyncio.run(get())


READS: dict[str, Callable[[Queue], Job | None]] = {
    "get": lambda queue: queue.client.jobs.get(job_key="letter-1"),
    "list": lambda queue: queue.client.jobs.list(with_payload=True).jobs[0].job,
    "async get": got_async,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_job_has_every_value_in_its_field(queue: Queue, read: Callable[[Queue], Job | None]) -> None:
    a_distinct_job(queue)

    job = read(queue)

    assert job is not None
    assert fields(job) == by_name(queue)


def test_a_replaced_job_has_every_value_in_its_field(queue: Queue) -> None:
    a_distinct_job(queue)

    job = queue.client.add("mail", {"to": "Eve"}, job_key="letter-1", queue_name="letters", priority=4, flags=["slow"])

    assert isinstance(job, Job)
    assert fields(job) == by_name(queue)


def test_a_removed_job_has_every_value_in_its_field(queue: Queue) -> None:
    a_distinct_job(queue)
    before = by_name(queue)

    removed = queue.client.remove("letter-1")

    assert removed is not None
    assert fields(removed.job) == before


# -- claimed jobs ------------------------------------------------------------------------------------------------------


def claim(queue: Queue) -> Job:
    (job,) = queue.store.claims.claim(worker_id=OURS, tasks=queue.store.register_tasks(["mail"]), limit=1)
    return job


def test_a_claimed_job_has_every_value_in_its_field(queue: Queue) -> None:
    a_distinct_job(queue)

    job = claim(queue)

    # A claim leaves out who claimed.
    assert fields(job) == {**by_name(queue), "locked_by": None}


def test_a_claimed_job_without_a_queue_has_every_value_in_its_field(queue: Queue) -> None:
    job_id = a_distinct_job(queue)
    queue.change(job_id, job_queue_id=None)

    job = claim(queue)

    (expected,) = queue.run(EXPECTED.replace("join _private_job_queues", "left join _private_job_queues"))
    assert fields(job) == {**expected, "locked_by": None}


def test_a_job_to_recover_has_every_value_in_its_field(queue: Queue) -> None:
    a_distinct_job(queue)
    claim(queue)
    with Database(queue.url).connect("test") as connection:
        (job,) = WorkerStore(connection, SCHEMA).list_jobs_to_recover({OURS: timedelta(0)})

    assert fields(job) == by_name(queue)


def test_a_recovered_job_is_returned_as_its_worker_held_it(queue: Queue) -> None:
    a_distinct_job(queue)
    claim(queue)
    before = by_name(queue)
    with Database(queue.url).connect("test") as connection:
        recovered = WorkerStore(connection, SCHEMA).recover(
            {OURS: timedelta(0)}, delay=timedelta(minutes=1), decisions={}
        )

    assert [fields(job) for job in recovered.jobs] == [before]
