"""force_unlock_workers: the locks of workers that died."""

from __future__ import annotations

from support.schema_fixture import SchemaFixture


def test_jobs_and_queues_of_the_named_workers_are_unlocked_and_nothing_else_changes(schema: SchemaFixture) -> None:
    dead, alive = schema.add_job(queue_name="q1"), schema.add_job(queue_name="q2")
    schema.claim(dead, by="dead")
    schema.claim(alive, by="alive")
    schema.run("update :S._private_job_queues set locked_at = now(), locked_by = 'dead' where queue_name = 'q1'")
    schema.run("update :S._private_job_queues set locked_at = now(), locked_by = 'alive' where queue_name = 'q2'")
    before = schema.job(dead["id"])

    schema.call("force_unlock_workers", worker_ids=["dead", "unheard of"])

    freed = {"locked_at": None, "locked_by": None, "is_available": True}
    assert schema.job(dead["id"]) == {**(before or {}), **freed}
    assert (schema.job(alive["id"]) or {})["locked_by"] == "alive"
    queues = schema.run("select queue_name, locked_by, is_available from :S._private_job_queues order by queue_name")
    assert [tuple(queue.values()) for queue in queues] == [("q1", None, True), ("q2", "alive", False)]
