"""All benchmarks, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from bench.benchmarks import (
    add_from,
    bulk_add,
    console,
    drain,
    features,
    fleet,
    footprint,
    idle,
    job_cost,
    latency,
    mixed,
    processes,
    python_peers,
    queues,
    read_commands,
    sizes,
    soak,
    start,
    waiting,
    worst_case_claims,
)
from bench.harness import Benchmark
from bench.measure import Bench

MAKERS: Final[Sequence[Callable[[Bench], Sequence[Benchmark]]]] = (
    drain.benchmarks,
    features.benchmarks,
    sizes.benchmarks,
    latency.benchmarks,
    queues.benchmarks,
    idle.benchmarks,
    fleet.benchmarks,
    soak.benchmarks,
    mixed.benchmarks,
    worst_case_claims.benchmarks,
    bulk_add.benchmarks,
    add_from.benchmarks,
    footprint.benchmarks,
    start.benchmarks,
    processes.benchmarks,
    read_commands.benchmarks,
    console.benchmarks,
    job_cost.benchmarks,
    waiting.benchmarks,
    python_peers.benchmarks,
)


def all_benchmarks(bench: Bench) -> list[Benchmark]:
    """Return all benchmarks at the chosen scale."""
    return [each for make in MAKERS for each in make(bench)]
