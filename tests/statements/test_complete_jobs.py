"""complete_jobs.sql: jobs that ran to their end are deleted, by their owner alone."""

from __future__ import annotations

from statements.statement_fixture import OURS, THEIRS, Queue


def test_completed_jobs_are_deleted_and_their_ids_answered(queue: Queue) -> None:
    first, second = queue.add(), queue.add()
    other = queue.add("other")

    assert queue.complete(*queue.claim()) == {first, second}
    assert queue.ids() == [other]


def test_a_job_another_pool_has_claimed_since_is_left_alone(queue: Queue) -> None:
    job = queue.claimed()
    queue.change(job.id, locked_by=THEIRS)

    assert queue.complete(job) == set()
    assert queue.holder(job.id) == THEIRS


def test_a_job_whose_lock_was_taken_away_is_left_alone(queue: Queue) -> None:
    lost, kept = queue.claimed(), queue.claimed()
    queue.change(lost.id, locked_at=None, locked_by=None)

    assert queue.complete(lost, kept) == {kept.id}
    assert queue.ids() == [lost.id]


def test_a_job_that_is_gone_is_no_error(queue: Queue) -> None:
    job = queue.claimed()
    queue.run("delete from _private_jobs")

    assert queue.complete(job) == set()


def test_a_job_retired_while_it_ran_is_deleted_all_the_same(queue: Queue) -> None:
    job = queue.claimed(job_key="k")
    successor = queue.add(job_key="k")

    assert queue.complete(job) == {job.id}
    assert queue.ids() == [successor]


def test_only_the_queues_named_are_freed_and_only_when_they_are_ours(queue: Queue) -> None:
    for name in ("done", "kept", "stolen"):
        queue.add(queue_name=name)
    jobs = {job.queue_name: job for job in queue.claim()}
    queue.change_queue("stolen", locked_by=THEIRS)
    released = [job for name, job in jobs.items() if name != "kept"]

    queue.complete(*jobs.values(), release=released)

    assert [queue.queue_holder(name) for name in ("done", "kept", "stolen")] == [None, OURS, THEIRS]


def test_a_repeated_statement_frees_the_queue_when_the_first_was_not_written(queue: Queue) -> None:
    job = queue.claimed(queue_name="q")
    assert job.queue_id is not None

    assert queue.complete(job, release=[job]) == {job.id}
    assert queue.queue_holder("q") is None


def test_a_repeated_statement_leaves_the_queue_to_its_next_job_when_the_first_was_written(queue: Queue) -> None:
    job, following = queue.claimed(queue_name="q"), queue.add(queue_name="q")
    assert job.queue_id is not None
    queue.complete(job, release=[job])
    assert queue.claim_ids() == [following]

    assert queue.complete(job, release=[job]) == set()
    assert queue.queue_holder("q") == OURS
