"""What a second process brings tasks that compute, and what a process of its own costs a task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.harness import Benchmark, Goal, Measured
from bench.measure import RATE, Bench, drain
from bench.peers import HERE, Gw, Jobs

TASKS: Final = ("--tasks", str(HERE / "tasks" / "processes"))
EACH: Final = "ms a job"


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """Two processes beside one, and a task isolated beside the same in a thread."""
    computing = Jobs(count=max(5, bench.scale.drain_slow // 10), task="computes")
    isolated, in_thread = (Jobs(count=bench.scale.drain_slow, task=task) for task in ("in-process", "in-thread"))
    one_by_one = (*TASKS, "-j", "1", "--log-level", "warning")
    return (
        Benchmark(
            name="processes",
            title="Tasks that compute for 10 ms, -j 10",
            sides={
                "gw --processes 2": lambda: drain(bench, Gw((*TASKS, "--processes", "2")), computing),
                "gw": lambda: drain(bench, Gw(TASKS), computing),
            },
            goals=(Goal(figure=RATE, beside="gw", at_least=1.6),),
        ),
        Benchmark(
            name="isolation",
            title="A trivial task, -j 1",
            sides={
                "gw, isolated": lambda: _each(drain(bench, Gw(one_by_one), isolated)),
                "gw, in a thread": lambda: _each(drain(bench, Gw(one_by_one), in_thread)),
            },
        ),
    )


def _each(measured: Measured) -> Measured:
    """Return the duration of one job, which is more useful here than a rate."""
    return Measured({EACH: 1000 / measured.figures[RATE]}, measured.notes)
