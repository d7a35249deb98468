"""Drain trivial jobs: how fast a queue empties."""

from __future__ import annotations

from collections.abc import Sequence

from bench.harness import Benchmark, Goal
from bench.measure import RATE, Bench, RunOptions, drain
from bench.peers import Gw, Jobs, Node, node_tuned
from bench.rust import Rust

TWO = RunOptions(processes=2)


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """One process beside one, and two beside two."""
    many, few = Jobs(count=bench.scale.drain), Jobs(count=bench.scale.drain_slow)
    return (
        Benchmark(
            name="drain",
            title="Drain trivial jobs, one process",
            sides={
                "gw": lambda: drain(bench, Gw(), many),
                "gw, warnings only": lambda: drain(bench, Gw(("--log-level", "warning")), many),
                "Node tuned": lambda: drain(bench, node_tuned(), many),
                "Rust": lambda: drain(bench, Rust(), many),
                "Node defaults": lambda: drain(bench, Node(), few),
            },
            goals=(
                Goal(figure=RATE, beside="Node tuned", at_least=1.15),
                Goal(figure=RATE, beside="Node defaults", at_least=10),
            ),
        ),
        Benchmark(
            name="drain-two",
            title="Drain trivial jobs, two processes",
            sides={
                "gw": lambda: drain(bench, Gw(), many, TWO),
                "gw, warnings only": lambda: drain(bench, Gw(("--log-level", "warning")), many, TWO),
                "Node tuned": lambda: drain(bench, node_tuned(), many, TWO),
                "Rust": lambda: drain(bench, Rust(), many, TWO),
            },
            goals=(Goal(figure=RATE, beside="Node tuned", at_least=1.2),),
        ),
    )
