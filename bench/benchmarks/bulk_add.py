"""Add many jobs with one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.harness import Benchmark, Goal, Measured, WrongResultError
from bench.measure import RATE, Bench
from bench.peers import Gw, Node
from bench.processes import run_together
from bench.server import ask

QUEUES: Final = 1_000


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """Compare the client's `add_many` with `addJobs` of Graphile Worker (Node.js)."""
    return (
        Benchmark(
            name="bulk-add",
            title=f"Add {bench.scale.bulk:,} jobs in bulk",
            sides={"gw": lambda: bulk_add(bench, Gw()), "Node": lambda: bulk_add(bench, Node())},
            goals=(Goal(figure=RATE, beside="Node", at_least=1.5),),
        ),
        Benchmark(
            name="bulk-add-queued",
            title=f"Add {bench.scale.bulk:,} jobs of {QUEUES:,} queues in bulk",
            sides={"gw": lambda: bulk_add(bench, Gw(), QUEUES), "Node": lambda: bulk_add(bench, Node(), QUEUES)},
            goals=(Goal(figure=RATE, beside="Node", at_least=1.5),),
        ),
    )


def bulk_add(bench: Bench, peer: Gw | Node, queues: int = 0) -> Measured:
    """Let a process add jobs and time itself, from plain values to committed jobs; then count what is there."""
    count = bench.scale.bulk
    with bench.place() as (url, folder):
        peer.install(url)
        bench.server.settle_down(url)
        program = peer.bulk_add(url, folder, count, queues)
        run_together([program])
        seconds = float(program.output.read_text().split()[-1])
        there = int(ask(url, "select count(distinct (payload->>'n')::int) from graphile_worker._private_jobs"))
        if (there, peer.jobs_left(url)) != (count, count):
            raise WrongResultError(f"{count:,} jobs were added, {there:,} different ones are there")
    return Measured({RATE: count / seconds})
