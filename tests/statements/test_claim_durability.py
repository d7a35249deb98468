"""How durable a claim is: a crash may lose the claim of a job, but not the lock of a named queue."""

from __future__ import annotations

import psycopg
import pytest

from statements.statement_fixture import Queue


@pytest.mark.parametrize(
    ("queue_names", "durability"),
    [
        pytest.param([None], "off", id="a job without a queue"),
        pytest.param(["a"], "on", id="a job of a queue"),
        pytest.param([None, "a", None, "b"], "on", id="jobs of both kinds"),
    ],
)
def test_a_claim_that_holds_a_queue_waits_for_the_disk(
    queue: Queue, queue_names: list[str | None], durability: str
) -> None:
    for queue_name in queue_names:
        queue.add(queue_name=queue_name)
    tasks = queue.store.register_tasks(["mail"])

    with queue.store.connection.transaction():
        jobs = queue.store.claims.claim(worker_id="ours", tasks=tasks, limit=100)
        at_commit = setting(queue.store.connection)

    assert [job.queue_name for job in sorted(jobs, key=lambda job: job.id)] == queue_names
    assert at_commit == durability
    assert setting(queue.store.connection) == "off"


def setting(connection: psycopg.Connection[tuple[str, ...]]) -> str:
    return connection.execute("show synchronous_commit").fetchall()[0][0]
