"""What a job costs the server, beside the cheapest SQL that adds, claims and completes jobs of the same table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Final, TypeAlias

from bench.benchmarks.read_commands import OUR_INDEXES
from bench.harness import Benchmark, Measured, NotMeasuredError, WrongResultError
from bench.measure import Bench
from bench.peers import Gw
from bench.resources import cpu_seconds
from bench.server import ask
from gw_core import JobSpec
from gw_core.domain.job.claim import queue_locks
from gw_core.domain.job.outcome import Completed
from gw_core.postgres.connection.database import Database
from gw_core.postgres.road.add_calls import bulk_calls
from gw_core.postgres.road.claims import CLAIM_PLAN
from gw_core.postgres.road.job_store import SETTLE_PLAN, JobStore

BATCH: Final = 500
"""Jobs of one claim; a busy worker claims as many, and twice as many that take microseconds."""
WORKER: Final = "gw-bench"
ADD: Final = """
insert into graphile_worker._private_jobs (task_id, payload)
select %s, json_build_object('n', n) from generate_series(%s::int, %s::int) as n
"""
CLAIM: Final = """
update graphile_worker._private_jobs
   set attempts = attempts + 1, locked_by = %s, locked_at = now()
 where id = any(array(
         select id
           from graphile_worker._private_jobs
          where is_available = true and job_queue_id is null and task_id = %s and run_at <= now()
          order by priority, run_at
          limit %s
            for update skip locked
       ))
returning id, payload
"""
COMPLETE: Final = "delete from graphile_worker._private_jobs where id = any(%s)"


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """No task runs, so all that is counted is the server's."""
    return (
        Benchmark(
            name="job-cost",
            title=f"What each of {bench.scale.bulk:,} jobs costs the server, in batches of {BATCH}",
            sides={
                "gw": partial(job_cost, bench, GwStatements),
                "gw, 1,000 queues": partial(job_cost, bench, partial(GwStatements, queues=1_000)),
                "cheapest SQL": partial(job_cost, bench, PlainStatements),
                "cheapest SQL, npm's indexes": partial(job_cost, bench, PlainStatements, without=OUR_INDEXES),
            },
        ),
    )


def job_cost(bench: Bench, make: Callable[[Database], Statements], *, without: Sequence[str] = ()) -> Measured:
    """Add all jobs, then claim and complete them; what each of the two uses is divided by the number of jobs."""
    jobs = bench.scale.bulk
    with bench.place() as (url, _):
        Gw().install(url)
        for index in without:
            ask(url, f"drop index graphile_worker.{index}")
        bench.server.settle_down(url)
        with closing(Database(url)) as database:
            statements = make(database)
            added = _counted(url, statements, partial(statements.add, jobs))
            done = _counted(url, statements, statements.run)
            for connection in statements.connections:
                connection.close()
        if left := ask(url, "select count(*) from graphile_worker._private_jobs"):
            raise WrongResultError(f"{left:,} of {jobs:,} jobs are left")
    figures = {f"add: {name}": value / jobs for name, value in added.items()}
    return Measured(figures | {f"claim and complete: {name}": value / jobs for name, value in done.items()})


def _counted(url: str, statements: Statements, act: Callable[[], None]) -> dict[str, float]:
    """Return what the connections and the log of the server use while something is done."""
    pids = [connection.info.backend_pid for connection in statements.connections]
    before = 1e6 * cpu_seconds(pids), _wal_bytes(url), 1_000 * statements.count
    if not before[0]:
        raise NotMeasuredError("the server's processes are not on this machine")
    act()
    after = 1e6 * cpu_seconds(pids), _wal_bytes(url), 1_000 * statements.count
    names = ("server CPU us", "WAL bytes", "statements/1,000")
    return {name: new - old for name, old, new in zip(names, before, after, strict=True)}


def _wal_bytes(url: str) -> float:
    return float(ask(url, "select pg_current_wal_insert_lsn() - '0/0'"))


class GwStatements:
    """The statements of our client and of our worker."""

    def __init__(self, database: Database, *, queues: int = 0) -> None:
        adding = database.connect("add")
        claiming, settling = database.connect("claim", CLAIM_PLAN), database.connect("settle", SETTLE_PLAN)
        self.connections = (adding, claiming, settling)
        self.count = 0
        self._schema = database.schema
        self._queues: Sequence[str | None] = [f"queue-{number}" for number in range(queues)] or [None]
        self._claiming, self._settling = JobStore(claiming, self._schema), JobStore(settling, self._schema)
        self._tasks = self._claiming.register_tasks(["noop"])

    def add(self, jobs: int) -> None:
        """Add this many jobs, spread evenly over the queues."""
        names = self._queues
        specs = [JobSpec(task="noop", payload={"n": n}, queue_name=names[n % len(names)]) for n in range(jobs)]
        for call in bulk_calls(specs):
            self.connections[0].execute(*call.named(self._schema))
            self.count += 1

    def run(self) -> None:
        """Claim and complete in turn: a queue stays locked until its jobs are settled."""
        claim = partial(self._claiming.claims.claim, worker_id=WORKER, tasks=self._tasks, limit=BATCH, per_queue=BATCH)
        while jobs := claim():
            outcomes = [Completed(job, 0.0) for job in jobs]
            self._settling.complete(outcomes, worker_id=WORKER, releases=queue_locks(jobs))
            self.count += 2


class PlainStatements:
    """What remains of them without queues, keys, flags, limits on memory, and proof that the lock is still held."""

    def __init__(self, database: Database) -> None:
        connection = database.connect("plain", CLAIM_PLAN)
        self.connections = (connection,)
        self.count = 0
        self._connection = connection
        self._task = JobStore(connection, database.schema).register_tasks(["noop"])

    def add(self, jobs: int) -> None:
        """Add this many jobs, 5,000 at a time."""
        for first in range(0, jobs, 5_000):
            self._connection.execute(ADD, (*self._task, first, min(first + 5_000, jobs) - 1))
            self.count += 1

    def run(self) -> None:
        """Claim and complete in turn."""
        while jobs := self._connection.execute(CLAIM, (WORKER, *self._task, BATCH)).fetchall():
            self._connection.execute(COMPLETE, ([number for number, _ in jobs],))
            self.count += 2


Statements: TypeAlias = GwStatements | PlainStatements
"""Adds jobs on one connection, and claims and completes them on the same or others; counts the statements."""
