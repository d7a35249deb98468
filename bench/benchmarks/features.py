"""What features cost: jobs with one of them beside jobs without it, in the same run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

from bench.benchmarks.bulk_add import bulk_add
from bench.harness import Benchmark, Goal, Measure
from bench.measure import RATE, Bench, RunOptions, drain
from bench.peers import Gw, Jobs
from gw_core import Client

WITHOUT: Final = "gw without"
NEVER_REACHED: Final = 1_000_000


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """One row for each feature."""

    def drained(*arguments: str, count: int = bench.scale.drain, task: str = "noop", **limit: Any) -> Measure:
        options = RunOptions(prepare=_limiting(limit)) if limit else RunOptions()
        return lambda: drain(bench, Gw(arguments), Jobs(count=count, task=task), options)

    def added(option: str | None, count: int) -> Measure:
        return lambda: bulk_add(bench, Gw(job_option=option), count=count)

    def row(name: str, title: str, sides: tuple[Measure, Measure], at_least: float) -> Benchmark:
        goal = Goal(figure=RATE, beside=WITHOUT, at_least=at_least)
        return Benchmark(name=name, title=title, sides=dict(zip(("gw", WITHOUT), sides, strict=True)), goals=(goal,))

    plain, unique, bulk = drained(), bench.scale.unique, bench.scale.bulk
    rate_limited = drained(per_period=NEVER_REACHED, period=timedelta(seconds=1))
    return (
        row("history", "Drain trivial jobs with history", (drained("--history", "7d"), plain), 0.6),
        row("statistics", "Drain trivial jobs with statistics", (plain, drained("--statistics", "0s")), 0.9),
        row("limit", "Drain trivial jobs below a limit", (drained(running=NEVER_REACHED), plain), 0.6),
        row("rate-limit", "Drain trivial jobs below a rate limit", (rate_limited, plain), 0.6),
        row("steps", "Drain jobs of one step each", (drained(count=bench.scale.steps, task="steps"), plain), 0.1),
        row("unique-for", "Add jobs in bulk with unique_for", (added("unique_for", unique), added(None, unique)), 0.6),
        row("expires-at", "Add jobs in bulk with expires_at", (added("expires_at", bulk), added(None, bulk)), 0.6),
    )


def _limiting(limit: dict[str, Any]) -> Callable[[str], int]:
    def prepare(url: str) -> int:
        with Client(url) as client:
            client.limits.set("noop", **limit)
        return 0

    return prepare
