"""What `AsyncClient.add` costs a program on an event loop, beside the bare SQL call on the same kind of connection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench import checkout
from bench.harness import Benchmark, Goal, Measured, NotMeasuredError
from bench.measure import Bench
from bench.peers import HERE, Gw
from bench.processes import Command, run_together

CPU: Final = "CPU us/job"


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """Jobs are added one by one in one transaction of the caller's."""
    return (
        Benchmark(
            name="asyncpg-add",
            title="Add a job on a connection of asyncpg",
            sides={"gw": lambda: asyncpg_add(bench, "gw"), "add_job()": lambda: asyncpg_add(bench, "sql")},
            goals=(Goal(figure=CPU, beside="add_job()", at_most=1.3),),
            rounds=5,
        ),
    )


def asyncpg_add(bench: Bench, side: str) -> Measured:
    """Run a process that adds jobs and measures its own CPU time."""
    with bench.place() as (url, folder):
        gw = Gw()
        gw.install(url)
        program = Command(
            argv=(checkout.python(), str(HERE / "programs" / "asyncpg_add.py"), url, str(bench.scale.async_adds), side),
            folder=folder,
            environment=checkout.environment(),
        )
        run_together([program])
        if not gw.jobs_left(url):
            raise NotMeasuredError("no job was added")
        return Measured({CPU: float(program.output.read_text().split()[-1])})
