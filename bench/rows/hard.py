"""What a claim must get past: a long backlog, rows that cannot be removed, jobs of tasks that nobody here knows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import quantiles
from typing import Final

import psycopg

from bench.contenders import FILL, Gw, Jobs
from bench.frame import Goal, Measured, NotMeasuredError, Row
from bench.measure import RATE, Bench, How, drain
from bench.server import ask
from gw_core.domain.outcome import Completed
from gw_core.postgres.database import Database
from gw_core.postgres.store import CLAIM_PLAN, JobStore

GROWTH: Final = "growth of p99"
FREE: Final = "gw, nothing in the way"
CHUNK: Final = 100_000
IDLE_THREADS: Final = 10

ADD_QUEUES: Final = """
insert into graphile_worker._private_job_queues (queue_name) select 'queue-' || n from generate_series(1, 1000) as n
"""
ADD_BACKLOG: Final = """
insert into graphile_worker._private_jobs (task_id, job_queue_id, run_at, payload)
select tasks.id,
       case when n %% 4 = 1 then 1 + n %% 1000 end,
       case when n %% 4 = 3 then now() + interval '1 day' else now() end,
       json_build_object('n', n)
  from generate_series(%s::int, %s::int) as n, graphile_worker._private_tasks as tasks
"""
"""Half without a queue, a quarter in 1,000 queues, a quarter for tomorrow."""


def rows(bench: Bench) -> Sequence[Row]:
    """The claim's cost by the length of the backlog, and draining with something in the way."""
    sizes = bench.sizes
    jobs = Jobs(count=sizes.free)
    return (
        Row(
            name="backlog",
            title=f"Claim {IDLE_THREADS} jobs out of {' / '.join(f'{count:,}' for count in sizes.backlog)} waiting",
            sides={"gw": lambda: backlog(bench)},
            goals=(Goal(figure=GROWTH, at_most=2),),
            rounds=1,
        ),
        Row(
            name="held-back",
            title=f"Drain {sizes.free:,} jobs while a long transaction keeps dead rows from being removed",
            sides={"gw": lambda: held_back(bench, jobs), FREE: lambda: drain(bench, Gw(), jobs)},
            goals=(Goal(figure=RATE, beside=FREE, at_least=0.5),),
        ),
        Row(
            name="unknown-tasks",
            title=f"Drain {sizes.free:,} jobs behind {sizes.stuck:,} of a task that is not known here",
            sides={"gw": lambda: unknown_tasks(bench, jobs), FREE: lambda: drain(bench, Gw(), jobs)},
            goals=(Goal(figure=RATE, beside=FREE, at_least=0.5),),
        ),
    )


def backlog(bench: Bench) -> Measured:
    """Fill step by step; at each step time claims of as many jobs as a process with idle threads asks for."""
    figures: dict[str, float] = {}
    p99s: list[float] = []
    with bench.place() as (url, _):
        Gw().install(url)
        ask(url, "insert into graphile_worker._private_tasks (identifier) values ('noop')")
        ask(url, ADD_QUEUES)
        there = 0
        for count in bench.sizes.backlog:
            for first in range(there, count, CHUNK):
                ask(url, ADD_BACKLOG, first, min(first + CHUNK, count) - 1)
            there = count
            bench.server.settle_down(url)
            cuts = quantiles(claims(url, bench.sizes.claims), n=100, method="inclusive")
            p99s.append(cuts[98])
            figures |= {f"p50 ms, {count:,}": cuts[49], f"p99 ms, {count:,}": cuts[98]}
    return Measured({**figures, GROWTH: p99s[-1] / p99s[0]})


def claims(url: str, count: int) -> list[float]:
    """Return the milliseconds of so many claims, after some to warm up; what was claimed is completed."""
    database = Database(url)
    claiming, settling = database.connect("claim", CLAIM_PLAN), database.connect("settle")
    store, settler = JobStore(claiming, database.schema), JobStore(settling, database.schema)
    spans: list[float] = []
    try:
        tasks = store.register_tasks(["noop"])
        for _ in range(20 + count):
            began = time.perf_counter()
            jobs = store.claim(pool="bench", tasks=tasks, limit=IDLE_THREADS)
            spans.append((time.perf_counter() - began) * 1000)
            if not jobs:
                raise NotMeasuredError("a claim found nothing")
            queues = {job.queue_id for job in jobs if job.queue_id is not None}
            settler.complete([Completed(job, 0.0) for job in jobs], pool="bench", freed_queues=sorted(queues))
    finally:
        claiming.close()
        settling.close()
    return spans[20:]


def held_back(bench: Bench, jobs: Jobs) -> Measured:
    """Drain while a transaction is open that is older than every job."""
    kept: list[psycopg.Connection] = []

    def open_a_long_transaction(url: str) -> int:
        kept.append(psycopg.connect(url))
        kept[-1].execute("select pg_current_xact_id()")
        return 0

    try:
        return drain(bench, Gw(), jobs, How(prepare=open_a_long_transaction))
    finally:
        for connection in kept:
            connection.close()


def unknown_tasks(bench: Bench, jobs: Jobs) -> Measured:
    """Drain what stands behind jobs that no worker here can run."""

    def add_unknown(url: str) -> int:
        ask(url, FILL, "somebody-elses", 0, "", 1, 0, bench.sizes.stuck - 1)
        return bench.sizes.stuck

    return drain(bench, Gw(), jobs, replace(How(), prepare=add_unknown, limit_seconds=4 * bench.sizes.limit_seconds))
