"""complete_jobs: completed manually."""

from __future__ import annotations

from support.schema_fixture import SchemaFixture


def test_waiting_and_failed_jobs_are_deleted_and_answered(schema: SchemaFixture) -> None:
    waiting, failed, other = (schema.add_job() for _ in range(3))
    schema.fail_permanently(failed)

    done = schema.call("complete_jobs", job_ids=[waiting["id"], failed["id"]])

    assert {job["id"] for job in done} == {waiting["id"], failed["id"]}
    assert [job["id"] for job in schema.jobs()] == [other["id"]]


def test_a_running_job_is_left_alone(schema: SchemaFixture) -> None:
    job = schema.add_job()
    schema.claim(job, ago="3 hours 59 minutes")

    assert schema.call("complete_jobs", job_ids=[job["id"]]) == []
    assert len(schema.jobs()) == 1


def test_a_lock_older_than_four_hours_does_not_count(schema: SchemaFixture) -> None:
    job = schema.add_job()
    schema.claim(job, ago="4 hours 1 minute")

    assert len(schema.call("complete_jobs", job_ids=[job["id"]])) == 1
    assert schema.jobs() == []


def test_unknown_ids_are_passed_over(schema: SchemaFixture) -> None:
    assert schema.call("complete_jobs", job_ids=[99]) == []
