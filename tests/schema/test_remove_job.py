"""remove_job: by key."""

from __future__ import annotations

import pytest
from support.schema_fixture import SchemaFixture


@pytest.mark.parametrize("lock", [None, "4 hours 1 minute"], ids=["waiting", "locked by a worker that died"])
def test_a_job_that_no_worker_runs_is_deleted_and_answered(schema: SchemaFixture, lock: str | None) -> None:
    job = schema.add_job(job_key="k")
    if lock:
        schema.claim(job, ago=lock)

    (removed,) = schema.call("remove_job", job_key="k")

    assert removed["id"] == job["id"]
    assert schema.jobs() == []


def test_removing_notifies_the_workers_of_one_less(schema: SchemaFixture) -> None:
    schema.add_job(job_key="k")
    schema.listen()

    schema.call("remove_job", job_key="k")

    assert [note["count"] for note in schema.notices()] == [-1]


def test_a_running_job_is_kept_without_its_key_and_never_tried_again(schema: SchemaFixture) -> None:
    job = schema.add_job(job_key="k")
    schema.claim(job)
    schema.listen()

    (removed,) = schema.call("remove_job", job_key="k")

    assert (removed["id"], removed["key"], removed["attempts"], removed["locked_by"]) == (
        job["id"],
        None,
        25,
        "pool-theirs",
    )
    assert schema.notices() == []


@pytest.mark.parametrize("key", ["other", None], ids=["a key nobody has", "no key"])
def test_nothing_to_remove_answers_nulls(schema: SchemaFixture, key: str | None) -> None:
    schema.add_job(job_key="k")

    (removed,) = schema.call("remove_job", job_key=key)

    assert set(removed.values()) == {None}
    assert len(schema.jobs()) == 1
