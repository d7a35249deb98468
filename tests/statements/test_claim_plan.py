"""A claim must walk its indexes, whatever the planner knows of the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support.plans import kept_plan, numbered_query
from support.profiles import IS_NIGHTLY

from statements.statement_fixture import Queue

ROWS = 1_000_000 if IS_NIGHTLY else 200_000

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def backlog(databases: Any, template: str) -> Iterator[Queue]:
    """Many jobs: half without a queue, half in 1,000 queues."""
    name = f"{databases.run.prefix}{databases.worker}_backlog"
    databases.create(name, template=template)
    queue = Queue(databases.url(name))
    queue.run("alter table _private_jobs set (autovacuum_enabled = off)")
    queue.store.register_tasks(["mail"])
    queue.run("insert into _private_job_queues (queue_name) select 'q' || n from generate_series(1, 1000) as n")
    queue.run(
        "insert into _private_jobs (task_id, job_queue_id) "
        "select tasks.id, case when mod(n, 2) = 0 then 1 + mod(n / 2, 1000) end "
        f"from generate_series(1, {ROWS}) as n, _private_tasks as tasks"
    )
    yield queue
    queue.close()
    databases.drop(name)


def plan_of_a_claim(queue: Queue, limit: int, name: str) -> str:
    """EXPLAIN of the claim as its session runs it: prepared, with the generic plan."""
    text, names = numbered_query(name, queue.store.schema)
    known: dict[str, str] = {
        "worker_id": "'ours'::text",
        "task_ids": f"array[{next(iter(queue.store.register_tasks(['mail'])))}]",
        "limit": str(limit),
        "per_queue": str(limit),
        "queue_names": "array['q7', 'q8']",
        "scan_limit": str(max(100, limit)),
        "max_bytes": "1000000",
    }
    arguments = ", ".join(known.get(each, "0" if each.startswith("scan") else "null") for each in names)
    connection: psycopg.Connection[Any] = queue.store.connection
    with connection.transaction(force_rollback=True):
        connection.execute(b"prepare plan_of_a_claim as " + text)
        try:
            rows = connection.execute(f"explain (costs off) execute plan_of_a_claim({arguments})".encode()).fetchall()
        finally:
            connection.execute("deallocate plan_of_a_claim")
    return "\n".join(row[0] for row in rows)


@pytest.mark.parametrize("statistics", ["missing", "fresh"])
@pytest.mark.parametrize("limit", [1, 500])
@pytest.mark.parametrize(
    "name",
    [
        "claim_jobs",
        "claim_unqueued_jobs",
        "claim_jobs_of_queues",
        "is_anything_runnable",
        "is_any_of_queues_runnable",
        "left_jobs",
    ],
)
def test_a_claim_neither_scans_nor_sorts_the_jobs(backlog: Queue, statistics: str, limit: int, name: str) -> None:
    if statistics == "fresh":
        backlog.run("analyze _private_jobs, _private_job_queues, _private_tasks")
    plan = plan_of_a_claim(backlog, limit, name)

    assert "Seq Scan on _private_jobs" not in plan
    assert "Seq Scan on _private_job_queues" not in plan
    # What is sorted has been cut to a limit before: rows of a part of the statement, never of the table.
    lines = plan.splitlines()
    for place, line in enumerate(lines):
        if "Sort" in line and "Sort Key" not in line:
            below = lines[place + 1 : place + 4]
            assert not any("on _private_jobs" in each for each in below), plan


@pytest.mark.parametrize("statistics", ["missing", "fresh"])
def test_a_small_claim_reads_little_of_a_big_backlog(backlog: Queue, statistics: str) -> None:
    if statistics == "fresh":
        backlog.run("analyze _private_jobs, _private_job_queues, _private_tasks")
    tasks = backlog.store.register_tasks(["mail"])
    connection = backlog.store.connection
    with connection.transaction(force_rollback=True):
        before = _rows_read(connection)
        assert len(backlog.store.claims.claim(worker_id="ours", tasks=tasks, limit=10, per_queue=1)) == 10
        assert _rows_read(connection) - before < 5_000


@pytest.mark.parametrize("name", ["is_anything_runnable", "left_jobs"])
@pytest.mark.parametrize("statistics", ["missing", "fresh"])
def test_a_run_that_may_end_passes_jobs_of_another_day(queue: Queue, statistics: str, name: str) -> None:
    """A million of them took a quarter of a second at the end of each `run --once`."""
    tasks = queue.store.register_tasks(["mail"])
    queue.run("insert into _private_job_queues (queue_name) select 'q' || n from generate_series(1, 100) as n")
    queue.run(
        "insert into _private_jobs (task_id, job_queue_id, run_at) "
        "select tasks.id, case when mod(n, 2) = 0 then (select min(id) from _private_job_queues) + mod(n, 100) end, "
        "now() + interval '1 day' from generate_series(1, 20000) as n, _private_tasks as tasks"
    )
    if statistics == "fresh":
        queue.run("analyze _private_jobs, _private_job_queues, _private_tasks")
    plan = kept_plan(
        queue.store.connection,
        name,
        {"task_ids": sql.Literal(list(tasks)), "most": sql.Literal(1000)},
        options="analyze, buffers, costs off, timing off, summary off",
    )
    read = re.search(r"Buffers: shared ([^\n]*)", plan)
    assert read is None or sum(map(int, re.findall(r"=(\d+)", read[1]))) < 40, plan


def test_a_claim_reads_little_with_statistics_from_a_time_without_queued_jobs(queue: Queue) -> None:
    """From a time when all jobs were locked, for example."""
    queue.store.register_tasks(["mail"])
    queue.run(
        "insert into _private_jobs (task_id, locked_at) select id, now() from _private_tasks, generate_series(1, 3000)"
    )
    queue.run("analyze _private_jobs")
    queue.run("delete from _private_jobs")
    for number in range(10):
        queue.add(queue_name=f"q{number}")
    queue.run(
        "insert into _private_jobs (task_id, job_queue_id) select tasks.id, queues.id "
        "from _private_tasks as tasks, _private_job_queues as queues, generate_series(1, 500)"
    )
    queue.store.claims.claims_with_queues = 1

    with queue.store.connection.transaction(force_rollback=True):
        assert len(queue.claim(limit=10)) == 10
        assert _rows_read(queue.store.connection) < 300


def _rows_read(connection: psycopg.Connection[Any]) -> int:
    """Rows of the jobs this transaction has read, by whatever scan."""
    row = connection.execute(
        "select coalesce(sum(seq_tup_read + idx_tup_fetch), 0)::bigint from pg_stat_xact_user_tables "
        "where relname = '_private_jobs'"
    ).fetchone()
    assert row is not None
    return int(row[0])


def test_a_claim_passes_40_000_priorities_of_later_jobs(queue: Queue) -> None:
    tasks = queue.store.register_tasks(["mail"])
    queue.run(
        "insert into _private_jobs (task_id, priority, run_at) select id, n - 20000, now() + interval '1 hour' "
        "from _private_tasks, generate_series(0, 39999) as n"
    )
    due = queue.add(priority=30_000)
    queued = queue.add(priority=30_001, queue_name="q")

    # The session ends a claim after 15 seconds; this one takes a third of a second.
    assert {job.id for job in queue.store.claims.claim(worker_id="ours", tasks=tasks, limit=10)} == {due, queued}
