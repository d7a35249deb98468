"""Enqueue-to-start latency: from the call that adds a job to the first line of its task."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Final

import psycopg

from bench.harness import Benchmark, Goal, Measured, NotMeasuredError
from bench.measure import Bench
from bench.peers import Gw, Node, Peer, node_tuned
from bench.processes import Command, running
from bench.rust import Rust

WARM_UP: Final = 20
TIMEOUT_SECONDS: Final = 15.0
P50: Final = "p50 ms"
P99: Final = "p99 ms"


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """One job after the other, each added when the one before has started."""
    return (
        Benchmark(
            name="latency",
            title="Enqueue to start, one job after the other",
            sides={
                "gw": lambda: latency(bench, Gw()),
                "Node tuned": lambda: latency(bench, node_tuned()),
                "Node defaults": lambda: latency(bench, Node()),
                "Rust": lambda: latency(bench, Rust()),
            },
            goals=(
                Goal(figure=P50, beside="Node tuned", at_most=1),
                Goal(figure=P99, beside="Node tuned", at_most=0.5),
                Goal(figure=P99, beside="Node defaults", at_most=0.5),
            ),
        ),
    )


def latency(bench: Bench, peer: Peer) -> Measured:
    """Add jobs through one connection, the same for every side; the task reports when it starts."""
    with bench.place() as (url, folder), pipe_at(folder / "started") as pipe:
        peer.install(url)
        worker = peer.worker(url, folder, once=False)
        with running(worker), psycopg.connect(url, autocommit=True) as connection:
            durations = [_one(connection, pipe, worker) for _ in range(WARM_UP + bench.scale.latency)][WARM_UP:]
    whole, adding = (quantiles(each, n=100, method="inclusive") for each in zip(*durations, strict=True))
    return Measured(
        {P50: whole[49], P99: whole[98], "p50 ms of it adding": adding[49], "p99 ms of it adding": adding[98]}
    )


def _one(connection: psycopg.Connection, pipe: int, worker: Command) -> tuple[float, float]:
    """Return the milliseconds until the job started, and those until the statement that added it had answered."""
    began = time.monotonic_ns()
    connection.execute("select from graphile_worker.add_job('started', '{}')")
    added = time.monotonic_ns()
    # One at a time and shorter than a pipe's atomic write: what can be read is one whole line.
    ready, _, _ = select.select([pipe], [], [], TIMEOUT_SECONDS)
    if not ready:
        raise NotMeasuredError(f"a job did not start within {TIMEOUT_SECONDS:g} s: {worker.last_words()}")
    return (int(os.read(pipe, 100)) - began) / 1e6, (added - began) / 1e6


@contextmanager
def pipe_at(path: Path) -> Iterator[int]:
    """Make a named pipe, and open it for reading."""
    os.mkfifo(path)
    # Open for both: reading alone would wait here for the worker, and end when it closes.
    pipe = os.open(path, os.O_RDWR)
    try:
        yield pipe
    finally:
        os.close(pipe)
