"""fail_jobs.sql: failures are recorded, and the job waits for its next attempt."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from support.time_range import MeasuredBlock

from statements.statement_fixture import HOUR, OURS, THEIRS, Queue, a_failure


def test_a_failure_keeps_its_message_and_unlocks_the_job(queue: Queue) -> None:
    job = queue.claimed()

    assert queue.fail(a_failure(job, "Boom: it broke")) == {job.id}
    row = queue.job(job.id)
    assert (row["last_error"], row["locked_at"], row["locked_by"], row["attempts"]) == ("Boom: it broke", None, None, 1)


@pytest.mark.parametrize("attempts", [1, 2, 5, 9, 10, 11, 24])
def test_the_delay_is_e_to_the_attempts_but_at_most_e_to_the_tenth(queue: Queue, attempts: int) -> None:
    job = queue.claimed()
    queue.change(job.id, attempts=attempts)
    with MeasuredBlock(queue.now) as block:
        queue.fail(a_failure(job))

    assert queue.job(job.id)["run_at"] in block.later(math.exp(min(attempts, 10)))


def test_the_delay_counts_from_now_and_not_from_when_the_job_was_due(queue: Queue) -> None:
    job = queue.claimed(run_at=timedelta(days=-3))
    with MeasuredBlock(queue.now) as block:
        queue.fail(a_failure(job))

    assert queue.job(job.id)["run_at"] in block.later(math.e)


def test_the_delay_counts_from_a_time_the_job_was_moved_to_in_the_meantime(queue: Queue) -> None:
    job = queue.claimed()
    with MeasuredBlock(queue.now) as block:
        queue.change(job.id, run_at="=now() + interval '1 hour'")
    queue.fail(a_failure(job))

    assert queue.job(job.id)["run_at"] in block.later(3600 + math.e)


@pytest.mark.parametrize("seconds", [0, 90, 86_400 * 365 * 100])
def test_a_task_may_choose_its_own_delay(queue: Queue, seconds: float) -> None:
    job = queue.claimed()
    with MeasuredBlock(queue.now) as block:
        queue.fail(a_failure(job, delay=timedelta(seconds=seconds)))

    assert queue.job(job.id)["run_at"] in block.later(seconds)


def test_a_delay_beyond_the_calendar_is_cut_to_a_hundred_years(queue: Queue) -> None:
    job = queue.claimed()
    with MeasuredBlock(queue.now) as block:
        queue.fail(a_failure(job, delay=timedelta.max))

    assert queue.job(job.id)["run_at"] in block.later(86_400 * 365 * 100)


def test_a_permanent_failure_uses_up_the_attempts(queue: Queue) -> None:
    job = queue.claimed(max_attempts=7)
    queue.fail(a_failure(job, permanent=True))

    assert (queue.job(job.id)["attempts"], queue.job(job.id)["is_available"]) == (7, False)


def test_the_last_attempt_leaves_the_job_failed(queue: Queue) -> None:
    job = queue.claimed(max_attempts=1, job_key="k")
    queue.fail(a_failure(job, delay=timedelta(0)))

    assert queue.claim() == []
    assert queue.job(job.id)["key"] == "k"


def test_a_batch_job_keeps_only_what_is_left_to_do(queue: Queue) -> None:
    whole, part = queue.claimed(payload=[1, 2, 3]), queue.claimed(payload=[1, 2, 3])
    queue.fail(a_failure(whole), a_failure(part, payload="[2]"))

    assert [queue.job(job.id)["payload"] for job in (whole, part)] == [[1, 2, 3], [2]]


@pytest.mark.parametrize("retire", ["remove", "supersede"])
def test_a_job_retired_while_it_ran_stays_retired(queue: Queue, retire: str) -> None:
    job = queue.claimed(job_key="k")
    queue.client.remove("k") if retire == "remove" else queue.add(job_key="k", run_at=timedelta(days=1))
    queue.fail(a_failure(job, delay=timedelta(0)))

    assert (queue.job(job.id)["attempts"], queue.job(job.id)["key"]) == (25, None)
    assert queue.claim() == []


def test_a_job_of_another_pool_is_left_alone(queue: Queue) -> None:
    job = queue.claimed()
    queue.change(job.id, locked_by=THEIRS)

    assert queue.fail(a_failure(job)) == set()
    assert (queue.holder(job.id), queue.job(job.id)["last_error"]) == (THEIRS, None)


def test_only_the_queues_named_are_freed(queue: Queue) -> None:
    queue.add(queue_name="done")
    queue.add(queue_name="kept")
    jobs = {job.queue_name: job for job in queue.claim()}
    queue.fail(*map(a_failure, jobs.values()), release=[jobs["done"]])

    assert (queue.queue_holder("done"), queue.queue_holder("kept")) == (None, OURS)


def test_a_repeated_statement_leaves_the_queue_to_its_next_job_when_the_first_was_written(queue: Queue) -> None:
    job, following = queue.claimed(queue_name="q"), queue.add(queue_name="q")
    assert job.queue_id is not None
    queue.fail(a_failure(job, delay=HOUR), release=[job])
    assert queue.claim_ids() == [following]

    assert queue.fail(a_failure(job, delay=HOUR), release=[job]) == set()
    assert queue.queue_holder("q") == OURS
