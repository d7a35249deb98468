"""A claim is named by its `locked_at`: what is sent for one claim never touches a later one of the same worker."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from gw_core import Job
from gw_core.domain.job.claim import RENEWAL_STEP, is_same_claim
from statements.statement_fixture import OURS, Queue, a_failure

MINUTE = timedelta(minutes=1)

SETTLE: dict[str, Callable[[Queue, Job], set[int]]] = {
    "complete": lambda queue, job: queue.complete(job, release=[job]),
    "fail": lambda queue, job: queue.fail(a_failure(job), release=[job]),
    "return": lambda queue, job: queue.return_jobs(job, release=[job]),
}


def renewed(queue: Queue, job: Job, *, age: str) -> None:
    """Make the locks of a claim this old, and renew them."""
    queue.run(f"update _private_jobs set locked_at = locked_at - interval '{age}' where locked_at is not null")
    queue.run(f"update _private_job_queues set locked_at = locked_at - interval '{age}' where locked_at is not null")
    assert queue.renew(job) == {job.id}


@pytest.mark.parametrize("settle", SETTLE)
def test_an_outcome_sent_again_leaves_the_next_attempt_of_the_same_worker_alone(queue: Queue, settle: str) -> None:
    first = queue.claimed(queue_name="q")
    queue.return_jobs(first, release=[first])
    (second,) = queue.claim()
    assert second.id == first.id

    assert SETTLE[settle](queue, first) == set()
    assert (queue.holder(second.id), queue.queue_holder("q")) == (OURS, OURS)
    assert SETTLE[settle](queue, second) == {second.id}
    assert queue.queue_holder("q") is None


@pytest.mark.parametrize("settle", SETTLE)
def test_a_renewed_claim_is_still_the_same_claim(queue: Queue, settle: str) -> None:
    job = queue.claimed(queue_name="q")
    renewed(queue, job, age="70 minutes")

    assert SETTLE[settle](queue, job) == {job.id}
    assert queue.queue_holder("q") is None


def test_a_renewal_of_an_earlier_claim_leaves_a_later_one_alone(queue: Queue) -> None:
    first = queue.claimed()
    queue.return_jobs(first)
    queue.claim()

    assert queue.store.renew_locks([first], worker_id=OURS)[0] == set()


def test_a_renewal_sent_twice_changes_nothing_the_second_time(queue: Queue) -> None:
    job = queue.claimed()
    renewed(queue, job, age="30 minutes")
    once = queue.job(job.id)

    assert queue.store.renew_locks([job], worker_id=OURS)[0] == {job.id}
    assert queue.job(job.id) == once


def test_a_renewed_lock_is_less_than_ten_minutes_old_and_the_start_of_the_attempt_is_kept(queue: Queue) -> None:
    job = queue.claimed()
    queue.run("update _private_jobs set locked_at = locked_at - interval '41 minutes'")
    started = queue.job(job.id)["locked_at"]
    moved = Job(**{name: getattr(job, name) for name in job.__struct_fields__} | {"_locked_at": started.timestamp()})

    queue.store.renew_locks([moved], worker_id=OURS)

    found = queue.get(job.id)
    assert found is not None
    assert found.started_at == started
    assert found.locked_at is not None
    assert found.locked_at - started == 40 * MINUTE


def test_the_start_of_an_attempt_that_was_renewed_is_not_taken_for_that_of_the_next(queue: Queue) -> None:
    job = queue.claimed()
    renewed(queue, job, age="70 minutes")
    queue.return_jobs(job)
    (following,) = queue.claim()

    found = queue.get(job.id)
    assert found is not None
    assert found.started_at == following.locked_at
    queue.store.renew_locks([], worker_id=OURS)
    assert queue.run("select from _private_gw_renewed_locks") == []


def test_what_was_claimed_without_knowing_goes_back_although_an_earlier_claim_of_it_is_known(queue: Queue) -> None:
    known = queue.claimed(queue_name="q")
    queue.return_jobs(known, release=[known])
    queue.claim()  # its answer is lost

    assert queue.return_unknown(known) == {known.id}
    assert (queue.holder(known.id), queue.queue_holder("q")) == (None, None)


def test_python_and_sql_agree_which_locks_are_of_the_same_claim(queue: Queue) -> None:
    job = queue.claimed()
    assert job.locked_at is not None
    locked_at = job.locked_at.timestamp()

    assert is_same_claim(locked_at, locked_at + 7 * RENEWAL_STEP)
    assert not is_same_claim(locked_at, locked_at + 7 * RENEWAL_STEP + 0.000_001)
    queue.run("update _private_jobs set locked_at = locked_at + interval '1 microsecond'")
    assert queue.complete(job) == set()
    queue.run("update _private_jobs set locked_at = locked_at - interval '70 minutes 1 microsecond'")
    assert queue.complete(job) == {job.id}
