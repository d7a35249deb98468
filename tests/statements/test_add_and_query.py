"""add_job, add_jobs, remove_job, find_jobs and manual actions: what the store answers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from support.time_range import MeasuredBlock

from gw_core import Client, JobKeyMode, JobSpec
from gw_core.errors import InvalidJobError, SchemaMissingError
from statements.statement_fixture import HOUR, OURS, Queue

SOME_TIME = datetime(2031, 2, 3, 4, 5, 6, 789_012, tzinfo=UTC)

# -- add --------------------------------------------------------------------------------------------------------------


def test_an_added_job_is_answered_as_it_stands_in_the_table(queue: Queue) -> None:
    spec = JobSpec(
        task="mail",
        payload={"to": "ü \" ' % \\ 🚂"},
        queue_name='odd "queue" 100%',
        run_at=SOME_TIME,
        max_attempts=3,
        job_key="a key",
        priority=-7,
        flags=["b", "a"],
    )
    job = queue.client.add(spec)

    assert job == queue.get(job.id)
    assert (job.task, job.queue_name, job.run_at) == ("mail", 'odd "queue" 100%', SOME_TIME)
    assert job.payload == {"to": "ü \" ' % \\ 🚂"}
    assert (job.max_attempts, job.job_key, job.priority, sorted(job.flags)) == (3, "a key", -7, ["a", "b"])
    assert (job.attempts, job.revision, job.locked_by, job.locked_at) == (0, 0, None, None)


def test_what_is_not_given_is_the_schemas_default(queue: Queue) -> None:
    with MeasuredBlock(queue.now) as block:
        job_id = queue.add()

    row = queue.job(job_id)
    assert (row["payload"], row["priority"], row["max_attempts"], row["flags"]) == ({}, 0, 25, None)
    assert row["run_at"] in block.later()


def test_a_timedelta_counts_from_the_databases_clock(queue: Queue) -> None:
    with MeasuredBlock(queue.now) as block:
        one = queue.add(run_at=HOUR)
        many = queue.client.add_many([JobSpec(task="mail", run_at=HOUR), JobSpec(task="mail", run_at=-HOUR)])

    assert queue.job(one)["run_at"] in block.later(3600)
    assert [queue.job(each)["run_at"] in block.later(3600) for each in sorted(many)] == [True, False]
    assert queue.job(max(many))["run_at"] in block.later(-3600)


def test_many_jobs_keep_all_their_fields_and_their_order(queue: Queue) -> None:
    ids = queue.client.add_many(
        [
            JobSpec(task="mail", payload=[1, {"a": None}], queue_name="q", run_at=SOME_TIME, priority=4),
            JobSpec(task="other", payload="text", max_attempts=2, flags=["x"]),
            JobSpec(task="mail", job_key="k"),
        ]
    )

    first, second, third = (queue.get(each) for each in sorted(ids))
    assert first is not None
    assert second is not None
    assert third is not None
    assert (first.payload_json, first.queue_name, first.run_at, first.priority) == ('[1,{"a":null}]', "q", SOME_TIME, 4)
    assert (second.task, second.payload_json, second.max_attempts, second.flags) == (
        "other",
        '"text"',
        2,
        ("x",),
    )
    assert (third.job_key, third.queue_name) == ("k", None)


def test_a_bulk_in_which_a_key_comes_twice_keeps_the_last(queue: Queue) -> None:
    queue.client.add_many([JobSpec(task="mail", payload={"n": n}, job_key="k") for n in range(3)])

    (job_id,) = queue.ids()
    assert (queue.job(job_id)["payload"], queue.job(job_id)["revision"]) == ({"n": 2}, 2)


def test_key_modes_may_be_mixed_in_a_bulk(queue: Queue) -> None:
    for key in ("replaced", "kept", "left"):
        queue.add(payload={"old": key}, job_key=key, run_at=HOUR)
    queue.client.add_many(
        [
            JobSpec(task="mail", payload={"new": 1}, job_key="replaced"),
            JobSpec(task="mail", payload={"new": 2}, job_key="kept", job_key_mode=JobKeyMode.PRESERVE_RUN_AT),
            JobSpec(task="mail", payload={"new": 3}, job_key="left", job_key_mode=JobKeyMode.UNSAFE_DEDUPE),
        ]
    )

    rows = [queue.job(job_id) for job_id in queue.ids()]
    assert [row["payload"] for row in rows] == [{"new": 1}, {"new": 2}, {"old": "left"}]
    assert [row["run_at"] > queue.now() for row in rows] == [False, True, True]


def test_a_missing_schema_is_reported_with_the_command_that_makes_it(queue: Queue) -> None:
    with (
        Client(queue.url, schema="no such schema", max_pool_size=1) as client,
        pytest.raises(SchemaMissingError, match="gw migrate '--schema=no such schema'"),
    ):
        client.add("mail")


def test_a_number_the_table_rejects_is_an_invalid_job(queue: Queue) -> None:
    queue.run("alter table _private_jobs add constraint calm check (priority > -10)")

    with pytest.raises(InvalidJobError, match="calm"):
        queue.add(priority=-10)


# -- remove -----------------------------------------------------------------------------------------------------------


def test_removing_by_key_answers_what_was_removed(queue: Queue) -> None:
    job_id = queue.add(job_key="k", queue_name="q")

    removed = queue.client.remove("k")

    assert removed is not None
    assert (removed.job.id, removed.was_running, removed.job.queue_name) == (job_id, False, "q")
    assert queue.ids() == []
    assert queue.client.remove("k") is None


def test_removing_a_running_job_keeps_it_from_running_again(queue: Queue) -> None:
    job = queue.claimed(job_key="k")

    removed = queue.client.remove("k")

    assert removed is not None
    assert removed.was_running
    assert (queue.holder(job.id), queue.job(job.id)["key"], queue.job(job.id)["attempts"]) == (OURS, None, 25)


# -- look -------------------------------------------------------------------------------------------------------------


def test_a_job_is_found_by_id_and_by_key(queue: Queue) -> None:
    queue.add()
    job_id = queue.add(job_key="k")

    by_id, by_key = queue.get(job_id), queue.get(job_key="k")
    assert by_id == by_key
    assert by_id is not None
    assert by_id.id == job_id
    assert queue.get(10**12) is None
    assert queue.get(job_key="other") is None


def test_infinity_is_the_end_of_the_calendar(queue: Queue) -> None:
    job_id = queue.add()
    queue.change(job_id, run_at="infinity")

    job = queue.get(job_id)
    assert job is not None
    assert job.run_at == datetime.max.replace(tzinfo=UTC)
