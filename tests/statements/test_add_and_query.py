"""add_job, add_jobs, remove_job, find_jobs and manual actions: what the store answers."""

from __future__ import annotations

from datetime import UTC, datetime

from support.time_range import MeasuredBlock

from gw_core import JobKeyMode, JobSpec
from statements.statement_fixture import HOUR, Queue

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


# -- look -------------------------------------------------------------------------------------------------------------


def test_infinity_is_the_end_of_the_calendar(queue: Queue) -> None:
    job_id = queue.add()
    queue.change(job_id, run_at="infinity")

    job = queue.get(job_id)
    assert job is not None
    assert job.run_at == datetime.max.replace(tzinfo=UTC)
