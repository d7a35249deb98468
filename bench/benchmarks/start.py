"""A whole process that finds nothing to do."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from bench.harness import Benchmark, Goal, Measured
from bench.measure import Bench
from bench.peers import Gw, Node, Peer
from bench.processes import run_together

DURATION: Final = "ms"


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """`run --once` on an empty queue."""
    return (
        Benchmark(
            name="start",
            title="run --once on an empty queue, whole process",
            sides={"gw": lambda: start(bench, Gw()), "Node defaults": lambda: start(bench, Node())},
            goals=(Goal(figure=DURATION, at_most=400),),
        ),
    )


def start(bench: Bench, peer: Peer) -> Measured:
    """Start it, and some times more; the first time, which fills caches, is not counted."""
    with bench.place() as (url, folder):
        peer.install(url)
        worker = peer.worker(url, folder)
        durations = [run_together([worker]).seconds for _ in range(1 + bench.scale.starts)]
    return Measured({DURATION: median(durations[1:]) * 1000})
