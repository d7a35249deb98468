"""return_jobs.sql: a run that does not count leaves no trace, and revives no failed job."""

from __future__ import annotations

import json
from datetime import timedelta

import psycopg
import pytest
from support.time_range import MeasuredBlock

from statements.statement_fixture import OURS, THEIRS, Queue


def test_a_returned_job_is_as_it_was_before(queue: Queue) -> None:
    job_id = queue.add(job_key="k", queue_name="q")
    before = queue.job(job_id)
    (job,) = queue.claim()
    assert job.queue_id is not None

    assert queue.return_jobs(job, release=[job]) == {job_id}
    assert queue.job(job_id) == before
    assert queue.queue_holder("q") is None


def test_a_delay_moves_the_job_and_never_to_an_earlier_time(queue: Queue) -> None:
    soon, later = queue.claimed(), queue.claimed()
    with MeasuredBlock(queue.now) as block:
        queue.change(later.id, run_at="=now() + interval '1 day'")
        queue.return_jobs(soon, later, delay=timedelta(minutes=5))

    assert queue.job(soon.id)["run_at"] in block.later(300)
    assert queue.job(later.id)["run_at"] in block.later(86_400)


@pytest.mark.parametrize("max_attempts", [25, 1], ids=["with attempts left", "on its last attempt"])
@pytest.mark.parametrize("retire", ["removed", "superseded"])
def test_a_job_retired_while_it_ran_does_not_come_back(queue: Queue, retire: str, max_attempts: int) -> None:
    job = queue.claimed(job_key="k", max_attempts=max_attempts)
    queue.client.remove("k") if retire == "removed" else queue.add(job_key="k", run_at=timedelta(days=1))

    assert queue.return_jobs(job) == {job.id}
    assert queue.job(job.id)["attempts"] == max_attempts
    assert queue.claim() == []


@pytest.mark.parametrize("key", ["k", None], ids=["keyed", "without a key"])
def test_the_last_attempt_is_not_counted_either(queue: Queue, key: str | None) -> None:
    job = queue.claimed(max_attempts=1, job_key=key)
    queue.return_jobs(job)

    assert queue.claim_ids() == [job.id]


def test_a_job_whose_attempts_were_used_up_with_sql_while_it_ran_stays_failed(queue: Queue) -> None:
    job = queue.claimed(max_attempts=2)
    queue.change(job.id, attempts="=max_attempts", updated_at="=now()", last_error="by hand")
    queue.return_jobs(job)

    assert queue.claim() == []


@pytest.mark.parametrize("max_attempts", [25, 1], ids=["with attempts left", "on its last attempt"])
def test_an_unsafe_dedupe_add_while_it_ran_retires_nothing(queue: Queue, max_attempts: int) -> None:
    job = queue.claimed(job_key="k", max_attempts=max_attempts)
    assert queue.add(job_key="k", job_key_mode="unsafe_dedupe") == job.id
    queue.return_jobs(job)

    assert queue.claim_ids() == [job.id]


def test_a_deduped_job_that_was_retired_afterwards_stays_retired(queue: Queue) -> None:
    job = queue.claimed(job_key="k", max_attempts=1)
    queue.add(job_key="k", job_key_mode="unsafe_dedupe")
    queue.client.remove("k")
    queue.return_jobs(job)

    assert queue.claim() == []


def test_a_job_of_another_pool_is_left_alone(queue: Queue) -> None:
    job = queue.claimed()
    queue.change(job.id, locked_by=THEIRS)

    assert queue.return_jobs(job) == set()
    assert (queue.holder(job.id), queue.job(job.id)["attempts"]) == (THEIRS, 1)


def test_a_repeated_statement_leaves_the_queue_to_its_next_holder(queue: Queue) -> None:
    job = queue.claimed(queue_name="q")
    assert job.queue_id is not None
    queue.return_jobs(job, release=[job])
    queue.claim()
    queue.change(job.id, locked_by="somebody's since")

    assert queue.return_jobs(job, release=[job]) == set()
    assert queue.queue_holder("q") == OURS


@pytest.mark.parametrize(("delay", "recorded"), [(timedelta(0), [2]), (timedelta(minutes=5), [])], ids=["now", "later"])
def test_listeners_are_notified_of_returned_jobs_that_can_run(
    shared_url: str, queue: Queue, delay: timedelta, recorded: list[int]
) -> None:
    jobs = [queue.claimed(), queue.claimed()]
    reported: list[str] = []
    with psycopg.connect(shared_url, autocommit=True) as idle:
        idle.add_notify_handler(lambda notice: reported.append(notice.payload))
        idle.execute('listen "jobs:insert"')
        queue.return_jobs(*jobs, delay=delay)
        # What was notified before comes before the answer.
        idle.execute("select pg_notify('jobs:insert', 'the end')")

    assert reported.pop() == "the end"
    assert [json.loads(payload)["count"] for payload in reported] == recorded
