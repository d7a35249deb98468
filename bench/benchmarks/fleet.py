"""Many workers: what they cost the server while idle, and while each job's notification wakes all of them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from fcntl import F_SETPIPE_SZ, fcntl
from statistics import quantiles
from typing import Final

import psycopg

from bench.benchmarks.idle import COUNTED_AFTER, Usage, check_alive, usage, wait_until_connected
from bench.benchmarks.latency import P50, P99, pipe_at
from bench.harness import Benchmark, Goal, Measured, NotMeasuredError
from bench.measure import Bench
from bench.peers import Gw, Peer, node_tuned
from bench.processes import new_folders, running
from bench.server import ask

THREADS: Final = 10
SERVER: Final = "server CPU ms/job"
PIPE_BYTES: Final = 1 << 20
"""The kernel keeps what tasks report until the end; reading it earlier would disturb the adding."""
TIMEOUT_SECONDS: Final = 20.0
SCHEDULED: Final = 1_000
"""Jobs for another day in the second row: idle workers find that jobs wait, and none is due."""
SCHEDULE: Final = """
select count(*)
  from graphile_worker.add_jobs(array(
         select row('started', json_build_object('n', n), null, now() + interval '1 day', null, null, null, null
                )::graphile_worker.job_spec
           from generate_series(%s::int, %s::int) as n
       ))
"""
ADD: Final = "select from graphile_worker.add_job('started', json_build_object('n', %s::int))"


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """One client adds jobs one by one, each in a transaction of its own; every worker is idle most of the time."""
    scale = bench.scale
    node = node_tuned()
    node = replace(node, configuration={**node.configuration, "concurrentJobs": THREADS, "maxPoolSize": THREADS + 1})
    work = f"{scale.idle_workers} workers, {scale.fleet_rate:,} notifications/s for {scale.fleet_seconds:g} s"

    def row(name: str, title: str, scheduled: int) -> Benchmark:
        return Benchmark(
            name=name,
            title=title,
            sides={
                "gw": lambda: fleet(bench, Gw(("--concurrency", str(THREADS))), scheduled),
                "Node tuned": lambda: fleet(bench, node, scheduled),
            },
            goals=(
                Goal(figure=P99, beside="Node tuned", at_most=0.5),
                Goal(figure=SERVER, beside="Node tuned", at_most=1),
            ),
            rounds=3,
        )

    return (row("fleet", work, 0), row("fleet-scheduled", f"{work}, beside {SCHEDULED:,} scheduled jobs", SCHEDULED))


def fleet(bench: Bench, peer: Peer, scheduled: int) -> Measured:
    """Start many workers, let them settle, then add jobs at a steady rate and measure all CPU time."""
    with bench.place() as (url, folder), pipe_at(folder / "started") as pipe, ExitStack() as stack:
        fcntl(pipe, F_SETPIPE_SZ, PIPE_BYTES)
        peer.install(url)
        ask(url, SCHEDULE, 1, scheduled)
        parts = new_folders(folder, bench.scale.idle_workers)
        for part in parts:  # from which a worker reaches the pipe that all share
            (part / "started").symlink_to(folder / "started")
        workers = [stack.enter_context(running(peer.worker(url, part, once=False))) for part in parts]
        wait_until_connected(url, len(workers))
        time.sleep(min(COUNTED_AFTER, bench.scale.idle_seconds))
        before = usage(url, workers)
        added = _add(url, bench.scale.fleet_rate, bench.scale.fleet_seconds)
        _wait_until_empty(url)
        used = usage(url, workers).since(before)
        check_alive(workers)
        return Measured(_figures(used, added, _started(pipe)))


def _add(url: str, rate: int, seconds: float) -> Mapping[int, int]:
    """Add jobs one by one at this rate; return when each call began, by the job's number."""
    began: dict[int, int] = {}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("set synchronous_commit = off")  # the disk's share is no concern of this benchmark
        start = time.monotonic()
        for number in range(int(rate * seconds)):
            time.sleep(max(0.0, start + number / rate - time.monotonic()))
            began[number] = time.monotonic_ns()
            connection.execute(ADD, (number,))
    return began


def _wait_until_empty(url: str) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while ask(url, "select exists (select from graphile_worker._private_jobs where run_at <= now())"):
        if time.monotonic() > deadline:
            raise NotMeasuredError(f"jobs were left {TIMEOUT_SECONDS:g} s after the last was added")
        time.sleep(0.02)


def _started(pipe: int) -> Mapping[int, int]:
    """Return when each job started, by its number."""
    os.set_blocking(pipe, False)
    lines = os.read(pipe, PIPE_BYTES).decode().splitlines()
    return {int(number): int(when) for when, number in (line.split() for line in lines)}


def _figures(used: Usage, added: Mapping[int, int], started: Mapping[int, int]) -> dict[str, float]:
    if added.keys() != started.keys():
        raise NotMeasuredError(f"{len(added):,} jobs were added, {len(started):,} reported their start")
    delays = [(started[number] - began) / 1e6 for number, began in added.items()]
    percentiles = quantiles(delays, n=100, method="inclusive")
    return {
        P50: percentiles[49],
        P99: percentiles[98],
        SERVER: 1000 * used.server_seconds / len(added),
        "workers' CPU ms/job": 1000 * used.workers_seconds / len(added),
        "transactions/job": used.transactions / len(added),
        "added/s": len(added) / ((max(added.values()) - min(added.values())) / 1e9),
    }
