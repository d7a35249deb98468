"""What a second process brings tasks that compute, and what a process of its own costs a task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bench.harness import Benchmark, Goal, Measured
from bench.measure import RATE, Bench, drain
from bench.peers import CHUNK, FILL, HERE, Gw, Jobs
from bench.server import ask

TASKS: Final = ("--tasks", str(HERE / "tasks" / "processes"))
EACH: Final = "ms a job"


@dataclass(frozen=True, slots=True)
class GwWith(Gw):
    """Our worker, and which task its jobs are for."""

    task: str = "computes"

    def fill(self, url: str, jobs: Jobs) -> None:
        """Add jobs of the task."""
        for first in range(0, jobs.count, CHUNK):
            ask(url, FILL, self.task, 0, "", 1, first, min(first + CHUNK, jobs.count) - 1)


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """Two processes beside one, and a task isolated beside the same in a thread."""
    computing = Jobs(count=max(5, bench.scale.drain_slow // 10))
    remembering = Jobs(count=bench.scale.drain_slow)
    one_by_one = (*TASKS, "-j", "1", "--log-level", "warning")
    return (
        Benchmark(
            name="processes",
            title="Tasks that compute for 10 ms, -j 10",
            sides={
                "gw --processes 2": lambda: drain(bench, GwWith((*TASKS, "--processes", "2")), computing),
                "gw": lambda: drain(bench, GwWith(TASKS), computing),
            },
            goals=(Goal(figure=RATE, beside="gw", at_least=1.6),),
        ),
        Benchmark(
            name="isolation",
            title="A trivial task, -j 1",
            sides={
                "gw, isolated": lambda: _each(drain(bench, GwWith(one_by_one, task="in-process"), remembering)),
                "gw, in a thread": lambda: _each(drain(bench, GwWith(one_by_one, task="in-thread"), remembering)),
            },
        ),
    )


def _each(measured: Measured) -> Measured:
    """Return the duration of one job, which is more useful here than a rate."""
    return Measured({EACH: 1000 / measured.figures[RATE]}, measured.notes)
