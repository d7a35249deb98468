"""add_jobs: many jobs in one call."""

from __future__ import annotations

import pytest
from psycopg import errors as pg
from support.schema_fixture import SchemaFixture


def test_jobs_are_stored_and_answered_in_the_order_given(schema: SchemaFixture) -> None:
    # With this many tasks and plans gone generic, a plain join finds the jobs in the order of the tasks.
    schema.run("insert into :S._private_tasks (identifier) select 'task' || n from generate_series(1, 50) as n")
    schema.run("analyze :S._private_tasks")
    wanted = [f"task{7 * place % 50 + 1}" for place in range(12)]

    for _ in range(8):
        added = schema.add_jobs(*({"identifier": name} for name in wanted))

        assert [schema.task_of(job) for job in added] == wanted
        assert [job["id"] for job in added] == sorted(job["id"] for job in added)


def test_a_bulk_reads_the_ids_of_names_once_for_all_jobs(schema: SchemaFixture) -> None:
    # As in a long table and the later calls of a session, whose plans expect few specifications.
    schema.run("set plan_cache_mode = force_generic_plan")
    for way in ("seqscan", "hashjoin", "mergejoin"):
        schema.run(f"set enable_{way} = off")
    schema.add_jobs({"identifier": "mail", "queue_name": "q"})

    with schema.connection.transaction():
        schema.add_jobs(*({"identifier": "mail", "queue_name": "q"} for _ in range(500)))
        scans = schema.run(
            "select idx_scan from pg_stat_xact_user_tables where relname in ('_private_tasks', '_private_job_queues')"
        )

    # 500 times by the insert of the jobs.
    assert all(500 <= row["idx_scan"] < 600 for row in scans), scans


def test_every_field_of_a_specification_reaches_its_column(schema: SchemaFixture) -> None:
    (job,) = schema.add_jobs(
        {
            "identifier": "mail",
            "payload": {"n": 1},
            "queue_name": "q",
            "run_at": "2099-01-02T03:04:05Z",
            "max_attempts": 3,
            "job_key": "k",
            "priority": 4,
            "flags": ["f"],
        }
    )

    assert (schema.task_of(job), schema.queue_of(job)) == ("mail", "q")
    assert (job["payload"], job["max_attempts"], job["key"], job["priority"]) == ({"n": 1}, 3, "k", 4)
    assert job["flags"] == {"f": True}
    assert job["run_at"].isoformat().startswith("2099-01-02")


def test_keyed_and_keyless_jobs_mix(schema: SchemaFixture) -> None:
    old = schema.add_job(job_key="b", payload={"n": 0})

    added = schema.add_jobs({"job_key": "a"}, {}, {"job_key": "b", "payload": {"n": 1}}, {})

    assert [job["key"] for job in added] == ["a", None, "b", None]
    assert added[2]["id"] == old["id"]
    assert len(schema.jobs()) == 4


def test_each_holder_of_a_key_is_treated_by_its_own_state(schema: SchemaFixture) -> None:
    waiting, running, failed = (schema.add_job(job_key=key) for key in "abc")
    schema.claim(running)
    schema.fail_permanently(failed)

    added = schema.add_jobs(*({"job_key": key} for key in "abcd"))

    assert [job["key"] for job in added] == ["a", "b", "c", "d"]
    assert [job["revision"] for job in added] == [1, 0, 0, 0]
    assert added[0]["id"] == waiting["id"]
    keys = {job["id"]: job["key"] for job in schema.jobs()}
    assert (keys[running["id"]], keys[failed["id"]]) == (None, None)


@pytest.mark.parametrize("flag", [False, None], ids=["false", "null"])
def test_the_time_is_kept_only_when_asked_for(schema: SchemaFixture, flag: bool | None) -> None:
    schema.add_jobs({"job_key": "k", "run_at": "2099-01-01T00:00:00Z"})

    (moved,) = schema.add_jobs({"job_key": "k", "run_at": "2099-02-02T00:00:00Z"}, preserve_run_at=flag)
    (kept,) = schema.add_jobs({"job_key": "k", "run_at": "2099-03-03T00:00:00Z"}, preserve_run_at=True)

    assert (moved["run_at"].month, kept["run_at"].month) == (2, 2)


@pytest.mark.parametrize("state", ["free", "waiting", "running"])
def test_a_key_twice_in_one_call_is_rejected(schema: SchemaFixture, state: str) -> None:
    if state != "free":
        job = schema.add_job(job_key="k")
        if state == "running":
            schema.claim(job)
    before = schema.jobs()

    with pytest.raises(pg.CardinalityViolation):
        schema.add_jobs({"job_key": "k"}, {"job_key": "k"})

    assert schema.jobs() == before


def test_workers_are_notified_once_how_many(schema: SchemaFixture) -> None:
    schema.listen()

    schema.add_jobs({}, {}, {"job_key": "k"})

    assert [note["count"] for note in schema.notices()] == [3]


def test_adding_no_jobs_answers_no_rows(schema: SchemaFixture) -> None:
    schema.listen()

    assert schema.add_jobs() == []
    assert schema.notices() == [{}]


def test_one_bad_specification_rejects_all(schema: SchemaFixture) -> None:
    with pytest.raises(pg.CheckViolation):
        schema.add_jobs({}, {"max_attempts": 0}, {"job_key": "k"})

    assert schema.jobs() == []
