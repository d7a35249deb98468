"""The Python queues from PyPI, each at its best."""

from __future__ import annotations

from collections.abc import Sequence

from bench.harness import Benchmark, Goal
from bench.measure import RATE, Bench, RunOptions, drain
from bench.peers import Gw, Jobs
from bench.python_queues import PgQueuer, Procrastinate

TWO = RunOptions(processes=2)


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """Two processes each: that is the best of all three on two cores."""
    many, few = Jobs(count=bench.scale.peers), Jobs(count=bench.scale.procrastinate)
    return (
        Benchmark(
            name="python-peers",
            title="Drain trivial jobs, two processes, beside Python's other queues",
            sides={
                "gw": lambda: drain(bench, Gw(), many, TWO),
                "pgqueuer": lambda: drain(bench, PgQueuer(), many, TWO),
                "procrastinate": lambda: drain(bench, Procrastinate(), few, TWO),
            },
            goals=(
                Goal(figure=RATE, beside="pgqueuer", at_least=2),
                Goal(figure=RATE, beside="procrastinate", at_least=10),
            ),
        ),
    )
