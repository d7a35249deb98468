"""reschedule_jobs: rescheduled manually."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from psycopg import errors as pg
from support.schema_fixture import SchemaFixture

LATER = datetime(2099, 1, 2, 3, 4, 5, tzinfo=UTC)


def test_nothing_given_keeps_everything_but_the_time_of_change(schema: SchemaFixture) -> None:
    job = schema.add_job(run_at=LATER, priority=3, max_attempts=4, job_key="k")

    (moved,) = schema.call("reschedule_jobs", job_ids=[job["id"]])

    assert moved["updated_at"] > job["updated_at"]
    assert {**moved, "updated_at": None} == {**job, "updated_at": None}


@pytest.mark.parametrize(
    ("column", "value"), [("run_at", LATER), ("priority", -1), ("attempts", 0), ("max_attempts", 7), ("priority", 0)]
)
def test_what_is_given_is_stored_and_the_rest_kept(schema: SchemaFixture, column: str, value: Any) -> None:
    job = schema.add_job(priority=5)
    schema.change(job, attempts=2, last_error="broken")
    before = schema.job(job["id"])

    (moved,) = schema.call("reschedule_jobs", job_ids=[job["id"]], **{column: value})

    assert moved == {**(before or {}), column: value, "updated_at": moved["updated_at"]}


def test_a_job_that_failed_permanently_is_revived_by_fewer_attempts(schema: SchemaFixture) -> None:
    job = schema.add_job()
    schema.fail_permanently(job)

    (moved,) = schema.call("reschedule_jobs", job_ids=[job["id"]], attempts=0)

    assert moved["is_available"]


def test_a_running_job_is_left_alone_until_its_lock_is_four_hours_old(schema: SchemaFixture) -> None:
    young, old = schema.add_job(), schema.add_job()
    schema.claim(young, ago="3 hours 59 minutes")
    schema.claim(old, ago="4 hours 1 minute")

    moved = schema.call("reschedule_jobs", job_ids=[young["id"], old["id"]], priority=9)

    assert [job["id"] for job in moved] == [old["id"]]


def test_a_priority_beyond_smallint_is_rejected(schema: SchemaFixture) -> None:
    job = schema.add_job()

    with pytest.raises(pg.NumericValueOutOfRange):
        schema.call("reschedule_jobs", job_ids=[job["id"]], priority=32768)
