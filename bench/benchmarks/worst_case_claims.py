"""What a claim must skip: a long backlog, rows that cannot be removed, jobs of unknown tasks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from statistics import quantiles
from typing import Final

import psycopg

from bench.benchmarks.read_commands import OUR_INDEXES, TASKS, fill
from bench.harness import Benchmark, Goal, Measured, NotMeasuredError
from bench.measure import RATE, Bench, RunOptions, drain
from bench.peers import FILL, Gw, Jobs
from bench.server import ask
from gw_core.domain.job.claim import queue_locks
from gw_core.domain.job.outcome import Completed
from gw_core.postgres.connection.database import Database
from gw_core.postgres.road.claims import CLAIM_PLAN
from gw_core.postgres.road.job_store import SETTLE_PLAN, JobStore

GROWTH: Final = "growth of p99"
FREE: Final = "gw, nothing in the way"
IDLE_THREADS: Final = 10
WARM_UP: Final = 20
CLAIMS_OF_A_QUEUE: Final = 200
"""So few that a short queue stays about as long as it is, and as few in a long one: each leaves dead rows behind."""


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """The claim's cost by the length of the backlog, and draining with something in the way."""
    scale = bench.scale
    jobs = Jobs(count=scale.free)
    return (
        Benchmark(
            name="backlog",
            title=f"Claim {IDLE_THREADS} jobs out of {' / '.join(f'{count:,}' for count in scale.backlog)} waiting",
            sides={"gw": lambda: backlog(bench)},
            goals=(Goal(figure=GROWTH, at_most=2),),
            rounds=3,
        ),
        Benchmark(
            name="held-back",
            title=f"Drain {scale.free:,} jobs while a long transaction keeps dead rows from being removed",
            sides={"gw": lambda: held_back(bench, jobs), FREE: lambda: drain(bench, Gw(), jobs)},
            goals=(Goal(figure=RATE, beside=FREE, at_least=0.5),),
        ),
        Benchmark(
            name="unknown-tasks",
            title=f"Drain {scale.free:,} jobs behind {scale.stuck:,} of a task that is not known here",
            sides={"gw": lambda: unknown_tasks(bench, jobs), FREE: lambda: drain(bench, Gw(), jobs)},
            goals=(Goal(figure=RATE, beside=FREE, at_least=0.5),),
        ),
    )


def backlog(bench: Bench) -> Measured:
    """Time claims of as many jobs as a process with idle threads asks for, in shorter and longer queues."""
    figures: dict[str, float] = {}
    p99s: list[float] = []
    for count in bench.scale.backlog:
        durations: list[float] = []
        while len(durations) < bench.scale.claims:
            with bench.place() as (url, _):
                fill(bench, url, OUR_INDEXES, count)
                durations += claims(url, min(bench.scale.claims, CLAIMS_OF_A_QUEUE, count // 50))
        cuts = quantiles(durations, n=100, method="inclusive")
        p99s.append(cuts[98])
        figures |= {f"p50 ms, {count:,}": cuts[49], f"p99 ms, {count:,}": cuts[98]}
    return Measured({**figures, GROWTH: p99s[-1] / p99s[0]})


def claims(url: str, count: int) -> list[float]:
    """Return the milliseconds of this many claims, after some to warm up; what was claimed is completed."""
    database = Database(url)
    with (
        closing(database.connect("claim", CLAIM_PLAN)) as one,
        closing(database.connect("settle", SETTLE_PLAN)) as two,
    ):
        store, settler = JobStore(one, database.schema), JobStore(two, database.schema)
        tasks = store.register_tasks(f"task_{number}" for number in range(1, TASKS + 1))
        durations = []
        for _ in range(WARM_UP + count):
            began = time.perf_counter()
            jobs = store.claims.claim(worker_id="bench", tasks=tasks, limit=IDLE_THREADS)
            durations.append((time.perf_counter() - began) * 1000)
            if not jobs:
                raise NotMeasuredError("a claim found nothing")
            settler.complete([Completed(job, 0.0) for job in jobs], worker_id="bench", releases=queue_locks(jobs))
    return durations[WARM_UP:]


def held_back(bench: Bench, jobs: Jobs) -> Measured:
    """Drain while a transaction is open that is older than every job."""
    kept: list[psycopg.Connection] = []

    def open_a_long_transaction(url: str) -> int:
        kept.append(psycopg.connect(url))
        kept[-1].execute("select pg_current_xact_id()")
        return 0

    try:
        return drain(bench, Gw(), jobs, RunOptions(prepare=open_a_long_transaction))
    finally:
        for connection in kept:
            connection.close()


def unknown_tasks(bench: Bench, jobs: Jobs) -> Measured:
    """Drain what stands behind jobs that no worker here can run."""

    def add_unknown(url: str) -> int:
        ask(url, FILL, "unknown-task", 0, "", 1, 0, bench.scale.stuck - 1)
        return bench.scale.stuck

    return drain(
        bench, Gw(), jobs, replace(RunOptions(), prepare=add_unknown, limit_seconds=4 * bench.scale.limit_seconds)
    )
