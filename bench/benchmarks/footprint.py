"""What a worker takes: connections of the server and memory of the machine."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from statistics import median
from typing import Final

import psycopg

from bench.harness import Benchmark, Goal, Measured, NotMeasuredError, WrongResultError
from bench.measure import Bench, check_numbers
from bench.peers import Gw, Jobs, Node, Peer, node_tuned
from bench.processes import LIMIT_SECONDS, repeating, running, stopping_after
from bench.resources import memory_kib

CONNECTIONS: Final = "connections"
PEAK: Final = "peak MiB"
GROWTH: Final = "MiB grown"
CONCURRENCIES: Final = (10, 100)
MEBIBYTE_IN_KIB: Final = 1024
MIN_SAMPLES: Final = 8
FLAT: Final = 4
"""What may be added in half of the time; of that, two belong to the numbers of a million jobs, which the task keeps."""

QUERY: Final = """
select exists (select from graphile_worker._private_jobs),
       (select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid())
"""
EVERY_SECONDS: Final = 0.005


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """Connections at two concurrencies, and memory while a long queue empties."""
    return (*(_connections(bench, number) for number in CONCURRENCIES), _memory(bench))


def _connections(bench: Bench, concurrency: int) -> Benchmark:
    arguments = ("-j", str(concurrency))
    scale = bench.scale
    return Benchmark(
        name=f"connections-{concurrency}",
        title=f"The most connections of one process, -j {concurrency}",
        sides={
            "gw": lambda: connections(bench, Gw(arguments), scale.connections),
            "Node defaults": lambda: connections(bench, Node(arguments=arguments), scale.connections_node),
            f"Node, -m {concurrency}": lambda: connections(
                bench, Node(arguments=(*arguments, "-m", str(concurrency))), scale.connections_node
            ),
        },
        goals=(Goal(figure=CONNECTIONS, at_most=4),),
        rounds=1,
    )


def connections(bench: Bench, peer: Peer, count: int) -> Measured:
    """Count a worker's connections again and again while it empties a queue and waits for more."""
    with bench.place() as (url, folder):
        peer.install(url)
        peer.fill(url, Jobs(count=count))
        worker = peer.worker(url, folder, once=False)
        with running(worker) as process, psycopg.connect(url, autocommit=True) as connection:
            most = _most_connections(connection, process, limit_seconds=4 * bench.scale.limit_seconds)
    if not most:
        raise NotMeasuredError(f"it never connected: {worker.last_words()}")
    return Measured({CONNECTIONS: most})


def _most_connections(connection: psycopg.Connection, process: subprocess.Popen[bytes], *, limit_seconds: float) -> int:
    most, busy = 0, True
    deadline = time.monotonic() + limit_seconds
    while busy and process.poll() is None and time.monotonic() < deadline:
        busy, there = connection.execute(QUERY).fetchone() or (False, 0)
        most = max(most, there)
        time.sleep(EVERY_SECONDS)
    return most


def _memory(bench: Bench) -> Benchmark:
    jobs = Jobs(count=bench.scale.memory)
    return Benchmark(
        name="memory",
        title=f"Resident memory while draining {jobs.count:,} jobs",
        sides={"gw": lambda: memory(bench, Gw(), jobs), "Node tuned": lambda: memory(bench, node_tuned(), jobs)},
        goals=(Goal(figure=PEAK, at_most=120), Goal(figure=GROWTH, at_most=FLAT)),
        rounds=3,
    )


def memory(bench: Bench, peer: Peer, jobs: Jobs) -> Measured:
    """Read a worker's resident memory while it empties a queue; the growth is from its second quarter to its last."""
    samples: list[int] = []
    with bench.place() as (url, folder):
        peer.install(url)
        peer.fill(url, jobs)
        bench.server.settle_down(url)
        with running(peer.worker(url, folder)) as process:
            sample = repeating(lambda: samples.append(memory_kib(process.pid)), every_seconds=0.02)
            with sample, stopping_after(LIMIT_SECONDS, [process]):
                code = process.wait()
        left = peer.jobs_left(url)
        check_numbers(folder, done=jobs.count - left, of=jobs.count)
    if code or left:
        raise WrongResultError(f"it ended with {code}, {left:,} jobs are left")
    samples = [kib for kib in samples if kib]  # the process may have ended before the last one
    if not samples:
        raise NotMeasuredError("this system does not report the memory of a process")
    return Measured({PEAK: max(samples) / MEBIBYTE_IN_KIB} | _growth(samples))


def _growth(samples: Sequence[int]) -> dict[str, float]:
    if len(samples) < MIN_SAMPLES:
        return {}
    quarter = len(samples) // 4
    return {GROWTH: (median(samples[-quarter:]) - median(samples[quarter : 2 * quarter])) / MEBIBYTE_IN_KIB}
