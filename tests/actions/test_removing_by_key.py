"""A job removed by its key as it was seen: which of the two things happened, and when nothing does."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from support.jobs_in_states import Queue

from gw_core import Client, Job
from gw_core.front_ends import FrontEnd, SkippedJob, SkipReason
from gw_core.operations import RemovedJob


@pytest.fixture
def client(queue: Queue) -> Iterator[Client]:
    with Client(queue.url, max_pool_size=1) as client:
        yield client


def seen(client: Client, key: str) -> Job:
    job = client.jobs.get(job_key=key)
    assert job is not None
    return job


def test_a_job_that_waits_is_removed_and_comes_back_whole(client: Client, queue: Queue) -> None:
    job = queue.scheduled(job_key="welcome", payload={"n": 90071992547409931})

    removed = FrontEnd(client).remove_expected("welcome", seen(client, "welcome"))

    assert isinstance(removed, RemovedJob)
    assert (removed.job.id, removed.was_running, removed.job.payload_json) == (job, False, '{"n":90071992547409931}')
    assert queue.ids() == []
    assert client.jobs.restore(removed.job) == queue.ids()[0]
    assert client.jobs.get(job_key="welcome") is not None


def test_a_job_that_runs_is_only_kept_from_running_again(client: Client, queue: Queue) -> None:
    job = queue.running(job_key="welcome")

    removed = FrontEnd(client).remove_expected("welcome", seen(client, "welcome"))

    assert isinstance(removed, RemovedJob)
    assert removed.was_running
    assert queue.rows("select id, key, attempts = max_attempts, locked_by from graphile_worker._private_jobs") == [
        (job, None, True, "pool-1")
    ]


def test_a_job_that_was_taken_in_the_meantime_is_left_alone(client: Client, queue: Queue) -> None:
    job = queue.ready(job_key="welcome")
    before = seen(client, "welcome")
    queue.set(job, "locked_by = 'quick', locked_at = now(), attempts = 1")

    skipped = FrontEnd(client).remove_expected("welcome", before)

    assert isinstance(skipped, SkippedJob)
    assert (skipped.reason, skipped.changes) == (SkipReason.CHANGED, "attempts 0→1, taken by a worker")
    assert client.jobs.get(job_key="welcome") is not None


def test_another_job_that_has_the_key_by_now_is_left_alone(client: Client, queue: Queue) -> None:
    first = queue.ready(job_key="welcome")
    before = seen(client, "welcome")
    queue.rows("update graphile_worker._private_jobs set key = null")
    second = queue.ready(job_key="welcome")

    skipped = FrontEnd(client).remove_expected("welcome", before)

    assert isinstance(skipped, SkippedJob)
    assert (skipped.reason, skipped.changes) == (SkipReason.CHANGED, "has another key")
    assert queue.ids() == [first, second]


def test_a_job_that_is_gone_is_said_to_be(client: Client, queue: Queue) -> None:
    queue.ready(job_key="welcome")
    before = seen(client, "welcome")
    queue.rows("delete from graphile_worker._private_jobs")

    skipped = FrontEnd(client).remove_expected("welcome", before)

    assert isinstance(skipped, SkippedJob)
    assert skipped.reason is SkipReason.NOT_FOUND


def test_a_job_that_another_session_is_changing_is_not_waited_for(client: Client, queue: Queue) -> None:
    job = queue.ready(job_key="welcome")
    before = seen(client, "welcome")
    with psycopg.connect(queue.url) as other:
        other.execute("select from graphile_worker._private_jobs where id = %s for update", (job,))
        skipped = FrontEnd(client).remove_expected("welcome", before)

    assert isinstance(skipped, SkippedJob)
    assert skipped.reason is SkipReason.BUSY
