"""Jobs with small and large payloads: how fast a queue of them empties, and the memory of its worker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.benchmarks.footprint import PEAK, memory
from bench.harness import Benchmark, Goal, Measured
from bench.measure import RATE, Bench, drain
from bench.peers import Gw, Jobs, Peer, node_tuned

SIZES: Final = {"1kB": 1_000, "100kB": 100_000, "4MB": 4_000_000}


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """One row for each size."""
    return tuple(
        _row(bench, name, Jobs(count=count, task="sized", payload_bytes=size))
        for (name, size), count in zip(SIZES.items(), bench.scale.sizes, strict=True)
    )


def _row(bench: Bench, size: str, jobs: Jobs) -> Benchmark:
    return Benchmark(
        name=f"payload-{size}",
        title=f"Drain {jobs.count:,} jobs with payloads of {size}",
        sides={
            "gw": lambda: sized(bench, Gw(), jobs),
            "Node tuned": lambda: sized(bench, node_tuned(), jobs),
        },
        goals=(
            Goal(figure=RATE, beside="Node tuned", at_least=1),
            Goal(figure=PEAK, beside="Node tuned", at_most=1),
        ),
    )


def sized(bench: Bench, peer: Peer, jobs: Jobs) -> Measured:
    """Drain twice: reading the memory every 20 ms would slow the drain that is timed."""
    rate = drain(bench, peer, jobs)
    return Measured({**rate.figures, PEAK: memory(bench, peer, jobs).figures[PEAK]}, rate.notes)
