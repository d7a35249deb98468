"""return_unknown_jobs.sql and row_locked_jobs.sql: what a pool holds without knowing, and what it cannot reach."""

from __future__ import annotations

import psycopg
import pytest

from statements.statement_fixture import OURS, THEIRS, Queue


def test_all_but_what_the_pool_knows_of_is_returned_without_counting_an_attempt(queue: Queue) -> None:
    forgotten, held = queue.claimed(queue_name="a"), queue.claimed(queue_name="b")
    queue.add("theirs")
    (theirs,) = queue.claim(["theirs"], worker_id=THEIRS)

    answer = queue.return_unknown(held)

    assert answer == {forgotten.id}
    assert (queue.holder(forgotten.id), queue.job(forgotten.id)["attempts"]) == (None, 0)
    assert (queue.holder(held.id), queue.holder(theirs.id)) == (OURS, THEIRS)
    assert (queue.queue_holder("a"), queue.queue_holder("b")) == (None, OURS)


@pytest.mark.parametrize("max_attempts", [1, 25])
def test_a_forgotten_job_that_was_removed_stays_removed(queue: Queue, max_attempts: int) -> None:
    job = queue.claimed(job_key="k", max_attempts=max_attempts)
    queue.client.remove("k")
    queue.return_unknown()

    assert queue.job(job.id)["attempts"] == max_attempts
    assert queue.claim() == []


@pytest.mark.parametrize("key", [None, "k"])
def test_a_forgotten_last_attempt_is_not_counted(queue: Queue, key: str | None) -> None:
    job = queue.claimed(max_attempts=1, job_key=key)
    queue.return_unknown()

    assert queue.claim_ids() == [job.id]


def test_a_job_whose_row_is_locked_is_left_to_the_next_check_with_its_queue(queue: Queue) -> None:
    locked, other = queue.claimed(queue_name="a"), queue.claimed()
    check = {"worker_id": OURS, "jobs": (), "queues": ()}

    with queue.locking("select from _private_jobs where id = %s for update", locked.id):
        assert queue.store.return_unknown_jobs(**check) == ({other.id}, 0, 2)
        assert queue.queue_holder("a") == OURS
    assert queue.store.return_unknown_jobs(**check) == ({locked.id}, 1, 0)
    assert queue.store.return_unknown_jobs(**check) == (set(), 0, 0)


def test_a_queue_whose_row_is_locked_is_left_to_the_next_check(queue: Queue) -> None:
    job = queue.claimed(queue_name="a")
    check = {"worker_id": OURS, "jobs": (), "queues": ()}

    with queue.locking("select from _private_job_queues for update"):
        assert queue.store.return_unknown_jobs(**check) == ({job.id}, 0, 1)
    assert queue.store.return_unknown_jobs(**check) == (set(), 1, 0)


def test_rows_that_stay_locked_are_named_and_those_that_are_gone_are_not(queue: Queue) -> None:
    locked, free, gone = queue.claimed(), queue.claimed(), queue.claimed()
    queue.run("delete from _private_jobs where id = %s", gone.id)

    with queue.locking("select from _private_jobs where id = %s for update", locked.id):
        assert queue.store.blocked([locked.id, free.id, gone.id]) == {locked.id}
    assert queue.store.blocked([locked.id, free.id, gone.id]) == set()


@pytest.mark.parametrize("max_attempts", [1, 25])
@pytest.mark.parametrize(
    "retire",
    ["remove_job('k')", "add_job('mail', job_key => 'k', run_at => now() + '1 day')"],
    ids=["remove", "replace"],
)
def test_a_forgotten_job_that_an_older_transaction_retired_stays_retired(
    queue: Queue, retire: str, max_attempts: int
) -> None:
    with psycopg.connect(queue.url) as older:
        older.execute("select now()")  # what `updated_at` will be is decided here, before the claim
        job = queue.claimed(job_key="k", max_attempts=max_attempts)
        older.execute(f"select graphile_worker.{retire}")  # type: ignore[arg-type]
    queue.return_unknown()

    assert queue.holder(job.id) is None
    assert queue.job(job.id)["attempts"] == max_attempts
    assert queue.claim() == []
