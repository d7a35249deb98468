"""complete_jobs.sql and fail_jobs.sql with `:KEEPS`: an ended attempt is settled and recorded in one statement."""

from __future__ import annotations

from collections.abc import Set
from datetime import timedelta
from itertools import takewhile
from typing import Any

import psycopg
import pytest

from gw_core import Job
from gw_core.domain.job.history import Keep
from gw_core.front_ends import Completed
from statements.statement_fixture import OURS, THEIRS, Queue, a_failure

WEEK = {"mail": Keep(timedelta(days=7), result=True)}


@pytest.fixture(autouse=True)
def _empty_history(queue: Queue) -> None:
    queue.run("truncate _private_gw_history")
    queue.drop_history_partitions()


def complete(queue: Queue, *jobs: Job, keeps: Any = WEEK, result: str | None = "null", **options: Any) -> Set[int]:
    outcomes = [Completed(job, 0.1, result) for job in jobs]
    return queue.store.complete(outcomes, worker_id=OURS, keeps=keeps, **options).ids


def rows(queue: Queue) -> list[dict[str, Any]]:
    return queue.run("select * from _private_gw_history order by job_id, attempt, finished_at")


def test_a_completed_job_moves_to_history_with_its_result(queue: Queue) -> None:
    job = queue.claimed(payload={"to": "a@example.com"}, queue_name="q", max_attempts=7)

    assert complete(queue, job, result='{"sent": 3}') == {job.id}

    assert queue.ids() == []
    (row,) = rows(queue)
    expected = {
        "job_id": job.id,
        "attempt": 1,
        "max_attempts": 7,
        "task": "mail",
        "queue_name": "q",
        "key": None,
        "state": "completed",
        "final": True,
        "result": {"sent": 3},
        "error": None,
        "worker_id": OURS,
        "payload": None,
        "created_at": job.created_at,
        "started_at": job.started_at,
    }
    assert {name: row[name] for name in expected} == expected
    assert row["expires_at"] - row["finished_at"] == timedelta(days=7)
    assert row["started_at"] <= row["finished_at"]


def test_the_payload_is_kept_only_when_the_task_says_so(queue: Queue) -> None:
    job = queue.claimed(payload={"card": "4111"})

    complete(queue, job, keeps={"mail": Keep(timedelta(days=1), payload=True)})

    assert [row["payload"] for row in rows(queue)] == [{"card": "4111"}]


def test_a_statement_that_is_sent_again_records_nothing_more(queue: Queue) -> None:
    job = queue.claimed()
    complete(queue, job)

    assert complete(queue, job) == set()
    assert len(rows(queue)) == 1


def test_the_job_of_another_claim_is_neither_deleted_nor_recorded(queue: Queue) -> None:
    lost, kept = queue.claimed(), queue.claimed()
    queue.change(lost.id, locked_by=THEIRS)

    assert complete(queue, lost, kept) == {kept.id}
    assert [row["job_id"] for row in rows(queue)] == [kept.id]
    assert queue.ids() == [lost.id]


def test_a_job_whose_record_is_rejected_stays_in_the_queue(queue: Queue) -> None:
    job = queue.claimed()
    queue.run("alter table _private_gw_history add constraint calm check (task <> 'mail')")
    try:
        with pytest.raises(Exception, match="calm"):
            complete(queue, job)
    finally:
        queue.run("alter table _private_gw_history drop constraint calm")

    assert (queue.ids(), rows(queue)) == ([job.id], [])


def test_a_failed_attempt_is_recorded_beside_the_job_that_waits_for_the_next(queue: Queue) -> None:
    job = queue.claimed(job_key="k")

    assert queue.store.fail([a_failure(job)], worker_id=OURS, keeps=WEEK).ids == {job.id}

    (row,) = rows(queue)
    found = (row["state"], row["final"], row["error"], row["attempt"], row["worker_id"], row["key"])
    assert found == ("retried", False, "Boom: it broke", 1, OURS, "k")
    assert queue.ids() == [job.id]


def test_the_last_attempt_is_recorded_as_failed_and_the_job_stays_in_the_queue(queue: Queue) -> None:
    last, given_up = queue.claimed(max_attempts=1), queue.claimed()

    failures = [a_failure(last), a_failure(given_up, permanent=True)]
    queue.store.fail(failures, worker_id=OURS, keeps=WEEK)

    assert [(row["state"], row["final"], row["attempt"]) for row in rows(queue)] == [("failed", False, 1)] * 2
    assert queue.ids() == [last.id, given_up.id]


def test_a_failure_that_is_sent_again_records_nothing_more(queue: Queue) -> None:
    job = queue.claimed()
    queue.store.fail([a_failure(job)], worker_id=OURS, keeps=WEEK)

    assert queue.store.fail([a_failure(job)], worker_id=OURS, keeps=WEEK).ids == set()
    assert len(rows(queue)) == 1


def test_only_jobs_whose_results_are_kept_notify(queue: Queue) -> None:
    awaited = [queue.claimed() for _ in range(700)]
    without_result = queue.claimed()
    with psycopg.connect(queue.url, autocommit=True) as listener:
        listener.execute('listen "gw:done"')
        complete(queue, *awaited)
        complete(queue, without_result, keeps={"mail": Keep(timedelta(days=7))})

        queue.run("select pg_notify('gw:done', 'the end')")
        notices = list(takewhile(lambda notice: notice.payload != "the end", listener.notifies(timeout=60)))

    recorded = [int(each) for notice in notices for each in notice.payload.split(",")]
    assert sorted(recorded) == [job.id for job in awaited]
    assert len(notices) == 3


def test_queues_are_released_as_without_history(queue: Queue) -> None:
    job = queue.claimed(queue_name="q")
    assert job.queue_id is not None

    assert job.locked_at is not None
    complete(queue, job, releases=[(job.queue_id, job.locked_at.timestamp())])

    assert queue.queue_holder("q") is None


def test_a_worker_that_keeps_nothing_sends_the_statements_without_history() -> None:
    from gw_core.postgres.connection.statements import query

    for name in ("complete_jobs", "fail_jobs"):
        assert "history" not in query(name, "s")


# -- partitions


def partitions(queue: Queue) -> list[str]:
    found = queue.run(
        "select inhrelid::regclass::text as name from pg_inherits "
        "where inhparent = '_private_gw_history'::regclass order by 1"
    )
    return [row["name"].removeprefix("_private_gw_history_") for row in found]


def test_rows_that_wait_in_the_default_partition_move_to_the_partition_of_their_day(queue: Queue) -> None:
    queue.wait_for_midnight()
    complete(queue, queue.claimed(), queue.claimed())
    assert len(queue.run("select 1 from _private_gw_history_default")) == 2

    made = queue.run("select _private_gw_make_history_partition((now() at time zone 'UTC')::date + 7) as made")

    assert made == [{"made": True}]
    assert queue.run("select 1 from _private_gw_history_default") == []
    assert len(rows(queue)) == 2
    complete(queue, queue.claimed())
    assert queue.run("select 1 from _private_gw_history_default") == []
    (name,) = [each for each in partitions(queue) if each != "default"]
    queue.run(f"drop table _private_gw_history_{name}")


def test_partitions_whose_day_is_over_are_dropped_one_by_one(queue: Queue) -> None:
    queue.run(
        "create table _private_gw_history_20200101 partition of _private_gw_history "
        "for values from ('2020-01-01+00') to ('2020-01-02+00')"
    )
    queue.run(
        "create table _private_gw_history_20200102 partition of _private_gw_history "
        "for values from ('2020-01-02+00') to ('2020-01-03+00')"
    )
    complete(queue, queue.claimed())
    queue.run("update _private_gw_history set expires_at = now() - interval '1 minute'")
    expire = "select _private_gw_expire_history() as name"

    names = [queue.run(expire)[0]["name"] for _ in range(4)]

    assert [name and name.removeprefix("_private_gw_history_") for name in names] == [
        "20200101",
        "20200102",
        "default",
        None,
    ]
    assert partitions(queue) == ["default"]
    assert rows(queue) == []


def test_expiry_gives_up_soon_while_a_session_reads_the_history(queue: Queue) -> None:
    queue.run(
        "create table _private_gw_history_20200101 partition of _private_gw_history "
        "for values from ('2020-01-01+00') to ('2020-01-02+00')"
    )
    with queue.locking("select count(*) from _private_gw_history"), pytest.raises(psycopg.errors.LockNotAvailable):
        queue.run("select _private_gw_expire_history()")
    queue.run("select _private_gw_expire_history()")


@pytest.mark.parametrize("queue_name", [None, "q"], ids=["no queue", "in a queue"])
@pytest.mark.parametrize("keeps", [{}, WEEK], ids=["not kept", "kept"])
@pytest.mark.parametrize("kind", ["complete", "fail"])
def test_the_answer_names_a_job_for_which_another_waits_since_its_claim(
    queue: Queue, kind: str, keeps: dict[str, Keep], queue_name: str | None
) -> None:
    first, second = queue.claimed(), queue.claimed(queue_name=queue_name)
    queue.run("select _private_gw_add_waiting('{\"task\": \"mail\"}', array[%s::bigint], 'hold')", second.id)

    options: dict[str, Any] = {"worker_id": OURS, "releases": queue.locks_of(second), "keeps": keeps}
    if kind == "complete":
        settled = queue.store.complete([Completed(each, 0.1) for each in (first, second)], **options)
    else:
        settled = queue.store.fail([a_failure(each) for each in (first, second)], **options)

    assert (settled.ids, settled.waited_for) == ({first.id, second.id}, {second.id})
