"""renew_locks.sql, release_expired_locks.sql and force_unlock_workers.sql."""

from __future__ import annotations

import threading
from datetime import timedelta

import psycopg
import pytest
from support.time_range import MeasuredBlock
from support.waiting import wait_until

from gw_core.postgres.connection.statements import query
from statements.statement_fixture import OURS, THEIRS, Queue

# -- renew_locks ---------------------------------------------------------------------------------------------------


def test_locks_of_jobs_and_queues_are_renewed_where_they_are_still_ours(queue: Queue) -> None:
    ours, theirs = queue.claimed(queue_name="a"), queue.claimed(queue_name="b")
    queue.run("update _private_jobs set locked_at = locked_at - interval '3 hours'")
    queue.run("update _private_job_queues set locked_at = locked_at - interval '3 hours'")
    queue.change(theirs.id, locked_by=THEIRS)
    queue.change_queue("b", locked_by=THEIRS)

    assert queue.renew(ours, theirs) == {ours.id}

    age = "select now() - locked_at > '1 hour' as is_old from {} order by id"
    assert [row["is_old"] for row in queue.run(age.format("_private_jobs"))] == [False, True]
    assert [row["is_old"] for row in queue.run(age.format("_private_job_queues"))] == [False, True]


def test_renewing_changes_nothing_else(queue: Queue) -> None:
    job = queue.claimed()
    before = queue.job(job.id)
    queue.renew(job)

    after = queue.job(job.id)
    assert {**after, "locked_at": None} == {**before, "locked_at": None}


# -- reset_stale_locks ---------------------------------------------------------------------------------------------


def test_locks_older_than_four_hours_are_released_whatever_worker_holds_them(queue: Queue) -> None:
    stale, fresh = queue.claimed(queue_name="stale"), queue.claimed(queue_name="fresh")
    queue.change(stale.id, locked_at="=now() - interval '4 hours 1 second'", locked_by="worker-of-node")
    queue.change_queue("stale", locked_at="=now() - interval '4 hours 1 second'", locked_by="worker-of-node")
    queue.change(fresh.id, locked_at="=now() - interval '3 hours 59 minutes'")

    with MeasuredBlock(queue.now) as block:
        assert queue.store.reset_stale_locks() == (1, 1)
    assert (queue.holder(stale.id), queue.holder(fresh.id)) == (None, OURS)
    assert (queue.queue_holder("stale"), queue.queue_holder("fresh")) == (None, OURS)
    assert queue.job(stale.id)["attempts"] == 1, "it may well have run, so the attempt counts"
    assert queue.job(stale.id)["run_at"] in block.later()


@pytest.mark.parametrize("max_attempts", [1, 25])
def test_a_stale_job_that_was_retired_stays_retired(queue: Queue, max_attempts: int) -> None:
    job = queue.claimed(job_key="k", max_attempts=max_attempts)
    queue.add(job_key="k", run_at=timedelta(days=1))
    queue.change(job.id, locked_at="=now() - interval '5 hours'")
    queue.store.reset_stale_locks()

    assert queue.holder(job.id) is None
    assert queue.claim() == []


def test_an_expired_row_that_is_locked_is_left_for_the_next_sweep(queue: Queue) -> None:
    job = queue.claimed()
    queue.change(job.id, locked_at="=now() - interval '5 hours'")

    with queue.locking("select from _private_jobs for update"):
        assert queue.store.reset_stale_locks() == (0, 0)
    assert queue.store.reset_stale_locks() == (1, 0)


# -- force_unlock_workers ------------------------------------------------------------------------------------------


def force_unlock(queue: Queue, *pools: str) -> None:
    with psycopg.connect(queue.url, autocommit=True) as hands:
        hands.execute(query("force_unlock_workers", "graphile_worker"), {"worker_ids": list(pools)})


def test_only_the_named_pools_lose_their_locks(queue: Queue) -> None:
    queue.add(queue_name="a")
    queue.claim(worker_id="dead")
    queue.add(queue_name="b")
    queue.claim(worker_id="alive")

    force_unlock(queue, "dead", "never seen")

    assert [queue.holder(job_id) for job_id in queue.ids()] == [None, "alive"]
    assert (queue.queue_holder("a"), queue.queue_holder("b")) == (None, "alive")


def test_a_dead_workers_claim_that_commits_late_is_unlocked_whole_or_not_at_all(queue: Queue) -> None:
    held = queue.claimed()
    queue.change(held.id, locked_by="dead")
    late = queue.add(queue_name="a")
    claim = """with claimed as (update _private_jobs set locked_at = now(), locked_by = 'dead' where id = %s)
               update _private_job_queues set locked_at = now(), locked_by = 'dead' where queue_name = 'a'"""
    waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"

    with (
        queue.locking("select from _private_jobs where id = %s for update", held.id),
        psycopg.connect(queue.url, options="-c search_path=graphile_worker") as dead,
        psycopg.connect(queue.url, autocommit=True) as watch,
    ):
        dead.execute(claim, [late])
        unlocking = threading.Thread(target=force_unlock, args=(queue, "dead"))
        unlocking.start()
        wait_until(lambda: watch.execute(waiting).rowcount > 0, what="the unlock to wait")
        dead.commit()
    unlocking.join(60)

    assert queue.holder(held.id) is None
    assert (queue.holder(late), queue.queue_holder("a")) == ("dead", "dead")
