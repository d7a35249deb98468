"""Add the jobs of a file: the rate beside one call with the jobs in memory, and the memory used."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from bench import checkout
from bench.benchmarks.footprint import MEBIBYTE_IN_KIB, PEAK
from bench.harness import Benchmark, Goal, Measured, WrongResultError
from bench.measure import RATE, Bench
from bench.peers import FILL, Gw
from bench.processes import Command, run_together, stopping_after
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
    sides: dict[str, Add] = {FROM: _from_file, ONE_CALL: _one_call, IN_SQL: _in_sql}
    return (
        Benchmark(
            name="add-from",
            title=f"Add the {count:,} jobs of a file",
            sides={name: partial(_measured, bench, add, count) for name, add in sides.items()},
            goals=(Goal(figure=RATE, beside=ONE_CALL, at_least=0.6), Goal(figure=PEAK, at_most=150)),
            rounds=2,
        ),
    )


def _measured(bench: Bench, add: Add, count: int) -> Measured:
    with bench.place() as (url, folder):
        Gw().install(url)
        bench.server.settle_down(url)
        figures = add(url, folder, count)
        there = int(ask(url, "select count(distinct (payload->>'n')::int) from graphile_worker._private_jobs"))
    if there != count:
        raise WrongResultError(f"{count:,} jobs were added, {there:,} different ones are there")
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
            most = max(most, _peak(process.pid))
            time.sleep(0.02)
    seconds = time.perf_counter() - began
    return {RATE: count / seconds} | ({PEAK: most / MEBIBYTE_IN_KIB} if most else {})


def _peak(pid: int) -> int:
    """Return the peak resident KiB of a process; 0 where the system does not report it."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _one_call(url: str, folder: Path, count: int) -> dict[str, float]:
    """From plain values in memory to committed jobs, in one call of the client."""
    program = Gw().bulk_add(url, folder, count, 0)
    run_together([program], limit_seconds=LIMIT_SECONDS)
    return {RATE: count / float(program.output.read_text().split()[-1])}


def _in_sql(url: str, folder: Path, count: int) -> dict[str, float]:
    """The schema's own function called once, with jobs that the server generates: no client, no network."""
    began = time.perf_counter()
    ask(url, FILL, "noop", 0, "", 1, 0, count - 1)
    return {RATE: count / (time.perf_counter() - began)}
