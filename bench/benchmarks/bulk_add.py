"""Add many jobs with one call."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from bench.harness import Benchmark, Goal, Measured, Sides, WrongResultError
from bench.measure import RATE, Bench
from bench.peers import Gw, Node
from bench.processes import LIMIT_SECONDS, run_together
from bench.rust import Rust
from bench.server import ask

QUEUES: Final = 1_000
JOBS: Final = "select count(*) from graphile_worker._private_jobs"
NUMBERS: Final = "select count(distinct (payload->>'n')::int) from graphile_worker._private_jobs"


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """Compare the client's `add_many` with the same of the workers for Node.js and Rust."""
    return (
        Benchmark(
            name="bulk-add",
            title=f"Add {bench.scale.bulk:,} jobs in bulk",
            sides=_sides(bench, 0),
            goals=(Goal(figure=RATE, beside="Node", at_least=1.5),),
        ),
        Benchmark(
            name="bulk-add-queued",
            title=f"Add {bench.scale.bulk:,} jobs of {QUEUES:,} queues in bulk",
            sides=_sides(bench, QUEUES),
            goals=(Goal(figure=RATE, beside="Node", at_least=1.5),),
        ),
    )


def _sides(bench: Bench, queues: int) -> Sides:
    peers: dict[str, Gw | Node | Rust] = {"gw": Gw(), "Node": Node(), "Rust": Rust()}
    return {name: partial(bulk_add, bench, peer, queues) for name, peer in peers.items()}


def bulk_add(
    bench: Bench,
    peer: Gw | Node | Rust,
    queues: int = 0,
    *,
    count: int | None = None,
    limit_seconds: float = LIMIT_SECONDS,
) -> Measured:
    """Let a process add jobs and time itself, from plain values to committed jobs; then count what is there."""
    count = count or bench.scale.bulk
    with bench.place() as (url, folder):
        peer.install(url)
        bench.server.settle_down(url)
        program = peer.bulk_add(url, folder, count, queues)
        run_together([program], limit_seconds=limit_seconds)
        seconds = float(program.output.read_text().split()[-1])
        check_added(url, count)
    return Measured({RATE: count / seconds})


def check_added(url: str, count: int) -> None:
    """Raise `WrongResultError` unless there are this many jobs, each with a number of its own."""
    there = int(ask(url, JOBS))
    different = int(ask(url, NUMBERS))
    if (there, different) != (count, count):
        raise WrongResultError(f"{count:,} jobs were added, {different:,} different ones are there")
