"""What our index of locked jobs costs those who claim: claims and completions with it and without it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

from bench.harness import Benchmark, Goal, Measured, WrongResultError
from bench.measure import RATE, Bench
from bench.peers import Gw, Jobs
from bench.server import ask
from gw_core.domain.job.outcome import Completed
from gw_core.postgres.connection.database import Database
from gw_core.postgres.road.claims import CLAIM_PLAN
from gw_core.postgres.road.job_store import SETTLE_PLAN, JobStore

COST: Final = "server CPU us a job"
WITHOUT: Final = "gw, without the index"
BATCH: Final = 500
POOL: Final = "gw-bench"


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """One connection claims, another completes, in turn. No task runs, so the time is the server's."""
    return (
        Benchmark(
            name="index-cost",
            title="Claim and complete, with and without the index of locked jobs",
            sides={
                "gw": partial(claim_and_complete, bench, has_index=True),
                WITHOUT: partial(claim_and_complete, bench, has_index=False),
            },
            goals=(Goal(figure=RATE, beside=WITHOUT, at_least=0.95),),
        ),
    )


def claim_and_complete(bench: Bench, *, has_index: bool) -> Measured:
    """Empty a queue by the statements of a pool; the processor's time is that of the two sessions."""
    count = bench.scale.drain
    with bench.place() as (url, _):
        gw = Gw()
        gw.install(url)
        if not has_index:
            ask(url, "drop index graphile_worker.jobs_gw_locked_index")
        gw.fill(url, Jobs(count=count))
        bench.server.settle_down(url)
        database = Database(url)
        with (
            closing(database.connect("claim", CLAIM_PLAN)) as one,
            closing(database.connect("settle", SETTLE_PLAN)) as two,
        ):
            claiming, settling = JobStore(one, database.schema), JobStore(two, database.schema)
            tasks = claiming.register_tasks(["noop"])
            pids = [one.info.backend_pid, two.info.backend_pid]
            before, began, done = _spent(pids), time.perf_counter(), 0
            while jobs := claiming.claims.claim(worker_id=POOL, tasks=tasks, limit=BATCH):
                done += len(settling.complete([Completed(job, 0.0) for job in jobs], worker_id=POOL))
            seconds, after = time.perf_counter() - began, _spent(pids)
    if done != count:
        raise WrongResultError(f"{count:,} jobs were added, {done:,} were completed")
    cost = {} if before is None or after is None else {COST: (after - before) / count / 1000}
    return Measured({RATE: count / seconds, **cost})


def _spent(pids: Sequence[int]) -> int | None:
    """Return the nanoseconds processes have had of the processor; None when they are not on this machine."""
    try:
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids)
    except (OSError, ValueError):
        return None
