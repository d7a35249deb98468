"""permanently_fail_jobs: failed manually."""

from __future__ import annotations

import pytest
from support.schema_fixture import SchemaFixture


@pytest.mark.parametrize(
    ("message", "stored"),
    [(None, "Manually marked as failed"), ("no such user", "no such user")],
    ids=["no reason", "a reason"],
)
def test_a_job_is_given_up_with_its_reason(schema: SchemaFixture, message: str | None, stored: str) -> None:
    job = schema.add_job(job_key="k", max_attempts=3)

    (failed,) = schema.call("permanently_fail_jobs", job_ids=[job["id"]], error_message=message)

    assert (failed["last_error"], failed["attempts"], failed["is_available"], failed["key"]) == (stored, 3, False, "k")
    assert failed["updated_at"] > job["updated_at"]


def test_a_running_job_is_left_alone_until_its_lock_is_four_hours_old(schema: SchemaFixture) -> None:
    young, old = schema.add_job(), schema.add_job()
    schema.claim(young, ago="3 hours 59 minutes")
    schema.claim(old, ago="4 hours 1 minute")

    (failed,) = schema.call("permanently_fail_jobs", job_ids=[young["id"], old["id"]])

    assert (failed["id"], failed["locked_by"]) == (old["id"], "pool-theirs")
