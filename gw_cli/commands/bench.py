"""`gw bench`: how fast a queue would be in this database."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import quantiles
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from gw_cli import output, stderr
from gw_cli.arguments import positive_number
from gw_cli.command import Json, command
from gw_cli.exit_codes import ExitCode
from gw_cli.sanitize import visible
from gw_cli.settings import Configuration, table
from gw_core.errors import GraphileWorkerError, InvalidInputError

if TYPE_CHECKING:
    from gw_core import Client, Runner

MIN_COUNT: Final = 100
MAX_COUNT: Final = 10_000_000
LATENCY_JOBS: Final = 200
WARM_UP: Final = 20
TIMEOUT_SECONDS: Final = 30.0
LATENCY_SECONDS: Final = 20.0
"""How long latencies are measured at most: a worker that only polls needs a second for each job."""
QUEUES: Final = 1_000
TASK: Final = "nothing"


@command("bench")
def bench(
    configuration: Configuration,
    count: Annotated[
        str, typer.Option("--count", "-n", metavar="N", help=f"Number of jobs, {MIN_COUNT} to {MAX_COUNT}")
    ] = "20000",
    as_json: Json = False,
) -> int:
    """Measure how fast a queue is in this database.

    Adds jobs, runs them, and measures how soon a new job starts. It works in a schema with a random name and removes
    the schema at the end, also after Ctrl-C. The tasks do nothing, but the server is under load for some seconds.
    """
    wanted = positive_number("--count", count, MAX_COUNT)
    if wanted < MIN_COUNT:
        raise InvalidInputError(f"--count {wanted}: give at least {MIN_COUNT} jobs")
    try:
        with _sigterm_like_ctrl_c():
            record = _measure(configuration, wanted)
    except _TerminatedError:
        return ExitCode.TERMINATED
    if as_json:
        output.line(output.to_json(record))
    else:
        _show(record)
    return ExitCode.OK


# -- measuring -------------------------------------------------------------------------------------------------------


def _measure(configuration: Configuration, count: int) -> dict[str, Any]:
    """Return what was measured under the keys we promise."""
    from gw_core import Client
    from gw_core.front_ends import ScratchSchema

    conninfo, pg_bin = configuration[table.CONNECTION], configuration[table.PG_BIN]
    with ScratchSchema(conninfo, pg_bin=pg_bin) as scratch:
        stderr.note(f"Working in schema {scratch.name}, removed at the end; the server is under load until then.")
        times = scratch.times()
        with Client(
            conninfo,
            schema=scratch.name,
            prepared_statements=configuration[table.PREPARED_STATEMENTS],
            max_pool_size=1,
            pg_bin=pg_bin,
        ) as client:
            client.migrate()
            client.jobs.get(0)  # connects
            added = _add(client, count)
            scratch.settle_down()
            drained = _drain(configuration, scratch.name)
            added_queued = _add(client, count, queues=QUEUES)
            scratch.settle_down()
            drained_queued = _drain(configuration, scratch.name)
            p50, p99 = _latency(configuration, scratch.name, client)
    return {
        "jobs": count,
        "concurrency": configuration[table.CONCURRENCY],
        "server_version": times.server,
        "server_settings": times.settings,
        "round_trip_ms": _milliseconds(times.round_trip),
        "commit_ms": _milliseconds(times.commit),
        "commit_async_ms": _milliseconds(times.commit_unflushed),
        "added_per_second": round(count / added),
        "added_queued_per_second": round(count / added_queued),
        "processed_per_second": round(count / drained),
        "processed_queued_per_second": round(count / drained_queued),
        "latency_p50_ms": _milliseconds(p50),
        "latency_p99_ms": _milliseconds(p99),
    }


def _add(client: Client, count: int, *, queues: int = 0) -> float:
    from gw_core import JobSpec

    names: list[str | None] = [f"queue-{number}" for number in range(queues)] or [None]
    began = time.perf_counter()
    client.add_many(
        [JobSpec(task=TASK, payload={"n": number}, queue_name=names[number % len(names)]) for number in range(count)]
    )
    return time.perf_counter() - began


def _drain(configuration: Configuration, schema: str) -> float:
    """Return how long the jobs took, from the first that was begun to the end of the last."""
    began: list[float] = []

    def nothing() -> None:
        if not began:
            began.append(time.perf_counter())

    runner = _runner(configuration, schema, nothing)
    try:
        runner.run_once()
    except BaseException:
        _end(runner)
        raise
    return time.perf_counter() - began[0]


def _latency(configuration: Configuration, schema: str, client: Client) -> tuple[float, float]:
    """Add one job after the other and return how many seconds passed until they started: median and 99th percentile."""
    started: list[float] = []
    arrived = threading.Semaphore(0)

    def arrive() -> None:
        started.append(time.perf_counter())
        arrived.release()

    latencies: list[float] = []
    until = time.perf_counter() + LATENCY_SECONDS
    runner = _runner(configuration, schema, arrive)
    try:
        runner.start()
        while len(latencies) < WARM_UP + LATENCY_JOBS:
            began = time.perf_counter()
            if began > until and len(latencies) >= 2:
                break
            client.add(TASK)
            if not arrived.acquire(timeout=TIMEOUT_SECONDS):
                raise _TooSlowError(f"a job did not start within {TIMEOUT_SECONDS:g} s")
            latencies.append(started[-1] - began)
    finally:
        _end(runner)
    cuts = quantiles(latencies[WARM_UP:] if len(latencies) > 2 * WARM_UP else latencies, n=100, method="inclusive")
    return cuts[49], cuts[98]


def _runner(configuration: Configuration, schema: str, act: Callable[[], None]) -> Runner:
    """Return a runner that logs nothing and whose task calls `act`."""
    import logging

    from gw_core import Runner, TaskRegistry, WorkerSettings

    quiet = logging.getLogger("gw_bench")
    quiet.setLevel(logging.CRITICAL + 1)
    registry = TaskRegistry()
    registry.task(TASK)(lambda payload: act())
    return Runner(
        configuration[table.CONNECTION],
        tasks=registry,
        settings=WorkerSettings(concurrency=configuration[table.CONCURRENCY]),
        schema=schema,
        logger=quiet,
        prepared_statements=configuration[table.PREPARED_STATEMENTS],
        handle_signals=False,
        pg_bin=configuration[table.PG_BIN],
    )


def _end(runner: Runner) -> None:
    """End its threads, or they would hold the tables that are to be removed."""
    if runner.worker_id is not None:
        runner.stop("the measurement is over")
        runner.force()
        runner.wait()


class _TooSlowError(GraphileWorkerError):
    """The queue did not do what was measured."""


# -- ending early ----------------------------------------------------------------------------------------------------


class _TerminatedError(BaseException):
    """SIGTERM came; like KeyboardInterrupt it ends everything on its way up."""


@contextmanager
def _sigterm_like_ctrl_c() -> Iterator[None]:
    def end(_number: int, _frame: FrameType | None) -> None:
        # Once is enough: what comes now is the clearing up, and a second signal must not end that.
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, signal.SIG_IGN)
        raise _TerminatedError if _number == signal.SIGTERM else KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():  # who may not listen to signals
        yield
        return
    former = {each: signal.signal(each, end) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


# -- showing ---------------------------------------------------------------------------------------------------------


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)


def _show(record: dict[str, Any]) -> None:
    settings = ", ".join(f"{name} {value}" for name, value in record["server_settings"].items())
    rows = (
        ("Server", f"PostgreSQL {record['server_version']}; {settings}"),
        ("Round trip", f"{record['round_trip_ms']} ms"),
        ("Commit", f"{record['commit_ms']} ms; without waiting for the disk {record['commit_async_ms']} ms"),
        (
            "Add",
            f"{record['added_per_second']:,} jobs/s, {record['jobs']:,} in one call; "
            f"in {QUEUES:,} named queues {record['added_queued_per_second']:,}",
        ),
        (
            "Run",
            f"{record['processed_per_second']:,} jobs/s, {record['concurrency']} at a time, tasks that do nothing; "
            f"in {QUEUES:,} named queues {record['processed_queued_per_second']:,}",
        ),
        ("Start", f"{record['latency_p50_ms']} ms after its add, one in a hundred {record['latency_p99_ms']} ms"),
    )
    for name, text in rows:
        output.line(f"{name:10}  {visible(text)}")
