"""A job that another session changes between a claim's snapshot and its lock is claimed, in its new version."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from support.waiting import wait_until

from statements.statement_fixture import OURS, Queue

GATE = 7_012_026
ROLE = f"gw_test_gate_{uuid4().hex[:12]}"
"""All databases of a server share its roles."""

ROWS = {"_private_jobs": "graphile_worker.pass_gate()", "_private_job_queues": "true", "_private_tasks": "true"}
REPLACE = "select add_job('mail', '{\"n\":2}', job_key => 'k', queue_name => %s, job_key_mode => 'preserve_run_at')"
WAITING = """
select pid from pg_locks
 where locktype = 'advisory' and objid = %s and not granted
   and database = (select oid from pg_database where datname = current_database())
"""


@pytest.fixture
def gate(queue: Queue) -> Iterator[Queue]:
    """A queue whose claims wait at a row policy, after they took their snapshot, while the gate is closed."""
    queue.run(f"create role {ROLE}")
    try:
        queue.run(f"grant usage on schema graphile_worker to {ROLE}")
        queue.run(f"grant all on all tables in schema graphile_worker to {ROLE}")
        queue.run(
            "create function pass_gate() returns boolean language plpgsql as "
            f"'begin perform pg_advisory_xact_lock_shared({GATE}); return true; end'"
        )
        for table, rows in ROWS.items():
            queue.run(f"create policy gate on {table} to {ROLE} using ({rows})")
        yield queue
    finally:
        queue.store.connection.execute("reset role")
        for table in ROWS:
            queue.run(f"drop policy if exists gate on {table}")
        queue.run("drop function if exists pass_gate")
        queue.run(f"drop owned by {ROLE}")
        queue.run(f"drop role {ROLE}")


@pytest.mark.parametrize("queue_name", [None, "q"], ids=["by the short statement", "by the complete one"])
def test_a_job_whose_payload_is_replaced_after_the_snapshot_is_claimed_with_the_new_one(
    gate: Queue, queue_name: str | None
) -> None:
    if queue_name:  # so that the next claim runs the statement for queues first
        gate.complete(gate.claimed(queue_name="earlier"))
    changed = gate.add(payload={"n": 1}, job_key="k", queue_name=queue_name)
    other = gate.add(payload={"n": 1}, queue_name=queue_name and "other")
    gate.store.connection.execute(f"set role {ROLE}")

    gate.run("select pg_advisory_lock(%s)", GATE)
    with ThreadPoolExecutor(1) as pool:
        claim = pool.submit(gate.claim)
        wait_until(lambda: claim.done() or gate.run(WAITING, GATE), what="the claim to wait at the gate")
        gate.run(REPLACE, queue_name)
        gate.run("select pg_advisory_unlock(%s)", GATE)
        jobs = claim.result(60)
    if queue_name is None:
        # The short statement leaves the changed row to the complete one. The jobs of both are never returned together:
        # should the second fail, those of the first would be lost.
        assert gate.store.claims.left_rest
        assert [job.id for job in jobs] == [other]
        jobs += gate.claim()

    assert {job.id: job.payload_json for job in jobs} == {changed: '{"n":2}', other: '{"n":1}'}
    assert {gate.holder(job.id) for job in jobs} == {OURS}
    assert queue_name is None or gate.queue_holder("q") == OURS
