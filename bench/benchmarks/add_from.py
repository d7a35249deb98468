"""Add the jobs of a file: the rate beside one call with the jobs in memory, and the memory used."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from bench import checkout, resources
from bench.benchmarks.bulk_add import bulk_add, check_added
from bench.benchmarks.footprint import MEBIBYTE_IN_KIB, PEAK
from bench.harness import Benchmark, Goal, Measured
from bench.measure import RATE, Bench
from bench.peers import FILL, Gw
from bench.processes import Command, stopping_after
from bench.resources import memory_kib
from bench.server import ask

FROM: Final = "gw add --from"
ONE_CALL: Final = "gw: one add_many"
IN_SQL: Final = "gw: one add_jobs() in SQL"
LIMIT_SECONDS: Final = 600.0

Add = Callable[[str, Path, int], dict[str, float]]
"""Adds this many jobs to a database, and returns figures."""


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """`gw add --from` of a file of JSON lines."""
    count = bench.scale.memory
    return (
        Benchmark(
            name="add-from",
            title=f"Add the {count:,} jobs of a file",
            sides={
                FROM: partial(_measured, bench, _from_file, count),
                ONE_CALL: partial(bulk_add, bench, Gw(), count=count, limit_seconds=LIMIT_SECONDS),
                IN_SQL: partial(_measured, bench, _in_sql, count),
            },
            goals=(Goal(figure=RATE, beside=ONE_CALL, at_least=0.6), Goal(figure=PEAK, at_most=150)),
            rounds=2,
        ),
    )


def _measured(bench: Bench, add: Add, count: int) -> Measured:
    with bench.place() as (url, folder):
        Gw().install(url)
        bench.server.settle_down(url)
        figures = add(url, folder, count)
        check_added(url, count)
    return Measured(figures)


def _from_file(url: str, folder: Path, count: int) -> dict[str, float]:
    """The whole program, its start included; the most memory it had is the system's own count."""
    file = folder / "jobs.jsonl"
    with file.open("w") as lines:
        lines.writelines(f'{{"task":"noop","payload":{{"n":{number}}}}}\n' for number in range(count))
    command = Command(
        argv=(checkout.python(), "-m", "gw_cli", "add", "--connection", url, "--from", str(file)),
        folder=folder,
        environment=checkout.environment(),
    )
    began = time.perf_counter()
    process = command.start()
    most = 0
    with stopping_after(LIMIT_SECONDS, [process]):
        while process.poll() is None:
            most = max(most, memory_kib(process.pid, resources.PEAK))
            time.sleep(0.02)
    seconds = time.perf_counter() - began
    return {RATE: count / seconds} | ({PEAK: most / MEBIBYTE_IN_KIB} if most else {})


def _in_sql(url: str, folder: Path, count: int) -> dict[str, float]:
    """The schema's own function called once, with jobs that the server generates: no client, no network."""
    began = time.perf_counter()
    ask(url, FILL, "noop", 0, "", 1, 0, count - 1)
    return {RATE: count / (time.perf_counter() - began)}
