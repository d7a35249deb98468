"""A queue that runs for long at an even pace: dead rows, the table and the time of a claim must not grow."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final

import psycopg

from bench.harness import Benchmark, Goal, Measured, NotMeasuredError
from bench.measure import Bench
from bench.peers import FILL, Gw
from bench.processes import running
from gw_core.postgres.connection.database import Database
from gw_core.postgres.road.claims import CLAIM_PLAN
from gw_core.postgres.road.job_store import JobStore

TICK_SECONDS: Final = 0.05
PERIODS: Final = 12
DEAD_GROWTH: Final = "growth of dead rows"
SIZE_GROWTH: Final = "growth of MiB"
CLAIM_GROWTH: Final = "growth of claim p99"

TABLE: Final = """
select (select n_dead_tup from pg_stat_user_tables where relid = 'graphile_worker._private_jobs'::regclass),
       pg_total_relation_size('graphile_worker._private_jobs') / 1048576.0,
       (select count(*) from graphile_worker._private_jobs),
       (select vacuum_count + autovacuum_count from pg_stat_user_tables
         where relid = 'graphile_worker._private_jobs'::regclass)
"""


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """One process at an even pace."""
    scale = bench.scale
    return (
        Benchmark(
            name="vacuum-soak",
            title=f"{scale.soak_rate:,} jobs/s for {scale.soak_seconds / 60:g} minutes",
            sides={"gw": lambda: soak(bench)},
            goals=(
                Goal(figure=DEAD_GROWTH, at_most=2),
                Goal(figure=SIZE_GROWTH, at_most=1.5),
                Goal(figure=CLAIM_GROWTH, at_most=2),
            ),
            rounds=1,
        ),
    )


@dataclass(slots=True)
class _Period:
    """What was seen in a twelfth of the time."""

    dead: int
    mebibytes: float
    waiting: int
    vacuums: int
    claim_p99: float


def soak(bench: Bench) -> Measured:
    """Add at an even pace while one process works; compare the middle of the time with its end.

    The first third is left out: until vacuum has come for the first time a table only grows.
    """
    scale = bench.scale
    with bench.place() as (url, folder):
        Gw().install(url)
        database = Database(url)
        with (
            running(Gw().worker(url, folder, once=False)) as process,
            psycopg.connect(url, autocommit=True) as connection,
            closing(database.connect("probe", CLAIM_PLAN)) as claiming,  # a claimer of our own beside the worker's
        ):
            probe = JobStore(claiming, database.schema)
            periods = _run(connection, probe, seconds=scale.soak_seconds, rate=scale.soak_rate)
            if process.poll() is not None:
                raise NotMeasuredError(f"the worker exited early with code {process.returncode}")
    middle, end = periods[PERIODS // 3 : 2 * PERIODS // 3], periods[2 * PERIODS // 3 :]
    return Measured(
        {
            "dead rows": median(each.dead for each in end),
            DEAD_GROWTH: _growth([each.dead + 1 for each in middle], [each.dead + 1 for each in end]),
            "MiB": end[-1].mebibytes,
            SIZE_GROWTH: _growth([each.mebibytes for each in middle], [each.mebibytes for each in end]),
            "claim p99 ms": median(each.claim_p99 for each in end),
            CLAIM_GROWTH: _growth([each.claim_p99 for each in middle], [each.claim_p99 for each in end]),
            "waiting": max(each.waiting for each in periods),
            "vacuums": end[-1].vacuums,
        }
    )


def _growth(before: Sequence[float], after: Sequence[float]) -> float:
    return median(after) / max(median(before), 1e-9)


def _run(connection: psycopg.Connection, probe: JobStore, *, seconds: float, rate: int) -> list[_Period]:
    """Add what is due at every tick, and time a claim for a task that has no jobs: it reads what stands in the way."""
    began = time.monotonic()
    added, periods, durations = 0, list[_Period](), list[float]()
    tasks = probe.register_tasks(["nothing-of-this"])
    while len(periods) < PERIODS:
        time.sleep(max(0.0, began + added / rate + TICK_SECONDS - time.monotonic()))
        due = int((time.monotonic() - began) * rate)
        if due > added:
            connection.execute(FILL, ("noop", 0, "", 1, added, due - 1))
            added = due
        claim_began = time.perf_counter()
        probe.claims.claim(worker_id="bench", tasks=tasks, limit=10)
        durations.append((time.perf_counter() - claim_began) * 1000)
        if time.monotonic() - began >= (len(periods) + 1) * seconds / PERIODS:
            periods.append(_read_all(connection, durations))
            durations.clear()
    return periods


def _read_all(connection: psycopg.Connection, durations: Sequence[float]) -> _Period:
    row = connection.execute(TABLE).fetchone()
    assert row is not None
    cuts = quantiles(durations, n=100, method="inclusive") if len(durations) > 1 else [0.0] * 99
    return _Period(int(row[0]), float(row[1]), int(row[2]), int(row[3]), cuts[98])
