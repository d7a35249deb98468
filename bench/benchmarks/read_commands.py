"""Read a very large queue: every reading command as a whole process, and the console's snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import psycopg

from bench import checkout
from bench.harness import Benchmark, Goal, Measured, NotMeasuredError
from bench.measure import Bench
from bench.peers import Gw
from bench.processes import Command, running
from bench.server import ask
from bench.server_time import ServerTiming, percentile, with_timing
from gw_core import Client
from gw_core.front_ends import FrontEnd
from gw_tui.data.source import BACKGROUND_INTERVAL

SLOWEST: Final = "slowest reading command, p95 ms"
SNAPSHOT: Final = "snapshot p95 ms in the server"
SCANS: Final = "sequential scans of the jobs"
TASKS: Final = 20
WORKERS: Final = 3
THREADS: Final = 10
JOB_SECONDS: Final = 0.05
PACE: Final = round(THREADS / JOB_SECONDS)
"""How many jobs a second a worker can run: a steady load, and no race for what the machine has."""
A_TASK: Final = f"import time\n\n\ndef run(payload):\n    time.sleep({JOB_SECONDS})\n"
BETWEEN_SNAPSHOTS: Final = 0.1
TO_START_SECONDS: Final = 60.0
IN_MINIATURE: Final = 5
"""Only one of this many commands is run where figures mean nothing."""
OK: Final = 0
UNHEALTHY: Final = 7

OUR_INDEXES: Final = (
    "jobs_gw_queued_index",
    "jobs_gw_queue_heads_index",
    "jobs_gw_locked_index",
    "jobs_gw_failed_index",
)

# What survives is old: the first quarter has failed. Then ready, scheduled and waiting for a retry, in turns; all that
# is ready has the same run_at, as after one bulk insert.
FILL: Final = """
set search_path to graphile_worker;
set synchronous_commit to off;
insert into _private_tasks (identifier) select 'task_' || i from generate_series(1, {tasks}) as i;
insert into _private_job_queues (queue_name) select 'queue_' || i from generate_series(1, 200) as i;
insert into _private_jobs (job_queue_id, task_id, payload, priority, run_at, attempts, last_error, key, flags)
select case when i % 10 < 3 then 1 + i / 10 % 200 end,
       1 + i * 7 % {tasks},
       json_build_object('id', i, 'text', 'hello'),
       i % 5 - 2,
       case when i <= {count} / 4 or i % 8 < 4 then now() - interval '1 minute'
            else now() + make_interval(hours => 1, secs => i % 100000) end,
       case when i <= {count} / 4 then 25 when i % 8 = 7 then 3 else 0 end,
       case when i <= {count} / 4 or i % 8 = 7 then 'connection refused by host ' || i % 1000 end,
       case when i % 1000 = 0 then 'key-' || i end,
       case when i % 50 = 0 then '{{"slow": true}}'::jsonb end
  from generate_series(1, {count}) as i;
update _private_jobs set locked_at = now(), locked_by = 'pool-' || id % 60, attempts = 1
 where id in (select {count} / 2 + {count} / 10000 * i from generate_series(1, 2000) as i);
update _private_job_queues set locked_at = now(), locked_by = 'pool-1' where id <= 20;
"""

READING: Final[Sequence[tuple[str, ...]]] = (
    ("list",),
    ("list", "--after", "MIDDLE"),
    ("list", "--state", "ready"),
    ("list", "--state", "ready", "--after", "DEEP"),
    ("list", "--state", "scheduled"),
    ("list", "--state", "backoff"),
    ("list", "--state", "running"),
    ("list", "--state", "failed"),
    ("list", "--queue", "queue_100", "--state", "ready"),
    ("list", "--worker", "pool-7"),
    ("list", "--task", "task_7", "--flag", "slow"),
    ("list", "--error", "host 999"),
    ("show", "MIDDLE"),
    ("show", "--job-key", "KEY"),
    ("stats", "--tasks"),
    ("queues",),
    ("tasks",),
    ("workers",),
)
"""What must answer in 400 ms."""

OTHERS: Final[Sequence[tuple[str, ...]]] = (
    ("doctor",),
    ("health",),
    ("--complete", "gw", "list", "--task", "task"),
    ("--complete", "gw", "list", "--queue", "queue"),
    ("--complete", "gw", "remove", "key"),
    ("--complete", "gw", "unlock", "pool"),
)


WITHOUT_INDEXES: Final[Sequence[tuple[str, ...]]] = (
    ("list", "--state", "running"),
    ("list", "--state", "failed"),
    ("list", "--queue", "queue_100", "--state", "ready"),
    ("queues",),
    ("workers",),
)
"""What our own indexes make a difference to."""

INDEXES: Final = "select indexname::text, indexdef from pg_indexes where schemaname = 'graphile_worker'"
SEQUENTIAL_SCANS: Final = (
    "select seq_scan from pg_stat_all_tables where schemaname = 'graphile_worker' and relname = '_private_jobs'"
)


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """A queue of ten million jobs, with our own indexes and as npm leaves the schema."""
    count = bench.scale.read_jobs
    goals = (
        Goal(figure=SLOWEST, at_most=400),
        Goal(figure=SNAPSHOT, at_most=10),
        Goal(figure=SCANS, at_most=0),
    )
    return (
        Benchmark(
            name="ten-million",
            title=f"Read {count:,} jobs; the snapshot beside {WORKERS} workers at {PACE} jobs/s each at most",
            sides={"gw": partial(read_all, bench, OUR_INDEXES)},
            goals=goals,
            rounds=1,
        ),
        Benchmark(
            name="ten-million-npm",
            title=f"Read {count:,} jobs on the schema as npm leaves it",
            sides={"gw": partial(read_all, bench, ())},
            rounds=1,
        ),
    )


def read_all(bench: Bench, indexes: Sequence[str]) -> Measured:
    """Fill a queue, run every command several times, warm, and take snapshots while workers run jobs."""
    with bench.place() as (url, folder):
        fill(bench, url, indexes)
        marks = _marks(url, bench.scale.read_jobs)
        before = _scans(url)
        reading = _durations(bench, url, folder, READING if indexes else WITHOUT_INDEXES, marks)
        figures = {**reading, **_durations(bench, url, folder, OTHERS if indexes else (), marks)}
        figures[SLOWEST] = max(duration for name, duration in reading.items() if name.endswith("p95 ms"))
        # A worker would install what is missing before anything else.
        with workers(url, folder) if indexes else nullcontext():
            figures |= _snapshots(url, bench.scale.snapshots)
        figures[SCANS] = _scans(url) - before
    return Measured(figures)


def fill(bench: Bench, url: str, indexes: Sequence[str], count: int | None = None) -> None:
    """Make a database one with this many jobs, and of our own indexes these; the jobs are made once in a whole run."""
    count = bench.scale.read_jobs if count is None else count
    bench.server.become_copy(url, f"{count} jobs", lambda kept: _make(bench, kept, count))
    for name in set(OUR_INDEXES) - set(indexes):
        ask(url, f"drop index graphile_worker.{name}")


def _make(bench: Bench, url: str, count: int) -> None:
    """Make all jobs by one statement; indexes of ours are built afterwards, which takes less time."""
    Gw().install(url)
    with psycopg.connect(url, autocommit=True) as connection:
        made: dict[str, str] = dict(connection.execute(INDEXES).fetchall())
        for name in OUR_INDEXES:
            connection.execute(f"drop index graphile_worker.{name}".encode())
        connection.execute(FILL.format(count=count, tasks=TASKS).encode())
        for name in OUR_INDEXES:
            connection.execute(made[name].encode())
    bench.server.settle_down(url)


def _marks(url: str, count: int) -> dict[str, str]:
    """Return what stands for places that depend on the jobs: one deep among those with the same priority and run_at."""
    place = ask(
        url,
        "select replace((run_at at time zone 'UTC')::text, ' ', '_') || '/' || trim(both '()' from ctid::text) "
        "from graphile_worker._private_jobs where is_available and priority = 0 and run_at <= now() "
        "order by priority, run_at offset %s limit 1",
        count // 20,
    )
    middle = count // 2 // 1000 * 1000
    return {"DEEP": f"turn/0/{place}", "MIDDLE": str(middle), "KEY": f"key-{middle}"}


def _durations(
    bench: Bench, url: str, folder: Path, commands: Sequence[tuple[str, ...]], marks: dict[str, str]
) -> dict[str, float]:
    """Time whole processes; the first of each command, which fills caches, is not counted."""
    figures: dict[str, float] = {}
    for words in commands if bench.scale.refreshes else commands[::IN_MINIATURE]:
        command = _command(url, folder, [marks.get(word, word) for word in words])
        runs = [_duration(command) for _ in range(1 + bench.scale.refreshes)]
        durations = sorted(runs[1:] or runs)
        figures[f"gw {' '.join(words)}, p50 ms"] = median(durations)
        figures[f"gw {' '.join(words)}, p95 ms"] = durations[int(0.95 * (len(durations) - 1))]
    return figures


def _duration(command: Command) -> float:
    """Run a program to its end and return the milliseconds; to find something wrong is as good an end as any."""
    began = time.perf_counter()
    code = command.start().wait()
    milliseconds = 1000 * (time.perf_counter() - began)
    if code not in (OK, UNHEALTHY):
        raise NotMeasuredError(f"gw {' '.join(command.argv[3:])} ended with {code}: {command.last_words()}")
    return milliseconds


def _command(url: str, folder: Path, words: Sequence[str]) -> Command:
    environment = {**checkout.environment(), "DATABASE_URL": url, "XDG_CACHE_HOME": str(folder)}
    return Command(argv=(checkout.python(), "-m", "gw_cli", *words), folder=folder, environment=environment)


def _snapshots(url: str, count: int) -> dict[str, float]:
    """Take snapshots as the console does. The first reads what the schema has, and does not count."""
    walls, durations, background, times = [], [], [], ServerTiming()
    again = time.monotonic()
    with Client(with_timing(url), max_pool_size=1) as client:
        front_end = FrontEnd(client)
        front_end.snapshot()
        times.receive(client)
        for _ in range(count):
            if time.monotonic() >= again:
                again = time.monotonic() + BACKGROUND_INTERVAL.total_seconds()
                front_end.read_background()
                background.append(sum(times.take().values()))
            began = time.perf_counter()
            snapshot = front_end.snapshot(with_background=False)
            walls.append(1000 * (time.perf_counter() - began))
            durations.append(sum(times.take().values()))
            if snapshot.errors:
                raise NotMeasuredError(f"a snapshot could not read {snapshot.errors}")
            time.sleep(BETWEEN_SNAPSHOTS)
    return {
        "snapshot p50 ms in the server": median(durations),
        SNAPSHOT: percentile(durations, 0.95),
        "snapshot max ms in the server": max(durations),
        "background p95 ms in the server": percentile(background, 0.95),
        "snapshot p50 ms in all": median(walls),
        "snapshot p95 ms in all": percentile(walls, 0.95),
    }


@contextmanager
def workers(url: str, folder: Path) -> Iterator[None]:
    """Keep workers working on the ready jobs, at a steady pace."""
    tasks = folder / "tasks"
    tasks.mkdir()
    for number in range(1, TASKS + 1):
        (tasks / f"task_{number}.py").write_text(A_TASK)
    words = ("run", "--tasks", str(tasks), "--jobs", str(THREADS), "--log-level", "warning")
    command = _command(url, folder, words)
    with ExitStack() as stack:
        for _ in range(WORKERS):
            stack.enter_context(running(command))
        _wait_for_workers(url)
        yield


def _wait_for_workers(url: str) -> None:
    """Wait until they send heartbeats."""
    deadline = time.monotonic() + TO_START_SECONDS
    while ask(url, "select count(*) from graphile_worker._private_gw_workers") < WORKERS:
        if time.monotonic() > deadline:
            raise NotMeasuredError(f"the workers did not start in {TO_START_SECONDS:.0f} s")
        time.sleep(0.1)


def _scans(url: str) -> int:
    """Return how often the table of jobs was read sequentially; what a session counted arrives when it ends."""
    time.sleep(0.5)
    return int(ask(url, SEQUENTIAL_SCANS))
