"""Jobs of all lengths together: how long urgent ones wait, and others in a busy process while another is idle."""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import quantiles
from typing import Final

import psycopg

from bench.contenders import Gw
from bench.frame import Goal, Measured, NotMeasuredError, Row, WrongResultError
from bench.measure import Bench
from bench.processes import running
from bench.server import ask

URGENT: Final = 1_000_000_000
"""The numbers of urgent jobs begin here."""
URGENT_EVERY_SECONDS: Final = 0.05
MIDDLING_MS: Final = 10
URGENT_P99: Final = "urgent p99 ms"
HOARDED: Final = "hoarded ms"
WINDOW_MS: Final = 50

ADD: Final = """
select count(*)
  from graphile_worker.add_jobs(array(
         select row('mixed',
                    json_build_object('n', n, 'ms', case when n = %s then %s when n %% 100 = 0 then %s else 0 end),
                    null, null, null, null, null, null)::graphile_worker.job_spec
           from generate_series(0, %s) as n
       ))
"""
ADD_URGENT: Final = "select from graphile_worker.add_job('mixed', json_build_object('n', %s::int), priority => -10)"


Run = tuple[int, int, int]
"""The number of a job, and when it started and ended."""


def rows(bench: Bench) -> Sequence[Row]:
    """Two processes, many threads in each and one in each."""
    sizes = bench.sizes
    return (
        Row(
            name="mixed",
            title=(
                f"{sizes.mixed:,} jobs, trivial but for each hundredth of {MIDDLING_MS} ms and one of "
                f"{sizes.long_ms / 1000:g} s, two processes, urgent ones coming in"
            ),
            sides={"gw": lambda: mixed(bench, Gw()), "gw, -j 1": lambda: mixed(bench, Gw(("-j", "1")))},
            goals=(
                # The window, and a claim and a settlement of everything in it.
                Goal(figure=URGENT_P99, at_most=2 * WINDOW_MS),
                Goal(figure=HOARDED, at_most=2 * WINDOW_MS),
                Goal(figure=URGENT_P99, at_most=2 * WINDOW_MS, of="gw, -j 1"),
                Goal(figure=HOARDED, at_most=2 * WINDOW_MS, of="gw, -j 1"),
            ),
        ),
    )


def mixed(bench: Bench, contender: Gw) -> Measured:
    """Let two processes empty the queue while urgent jobs come in; then ask each job when it started and where."""
    sizes = bench.sizes
    with bench.place() as (url, folder), ExitStack() as stack:
        contender.install(url)
        ask(url, ADD, sizes.mixed // 2, sizes.long_ms, MIDDLING_MS, sizes.mixed - 1)
        bench.server.settle_down(url)
        for number in range(2):
            part = folder / f"process-{number}"
            part.mkdir()
            stack.enter_context(running(contender.worker(url, part, once=False)))
        added = _add_urgent_ones(url, limit_seconds=20 * sizes.limit_seconds)
        stack.close()
        runs = [run for file in folder.rglob("mixed-*") if (run := _runs(file))]
    if sum(map(len, runs)) != sizes.mixed + len(added):
        raise WrongResultError(f"{sizes.mixed + len(added):,} jobs were added, {sum(map(len, runs)):,} were run")
    return Measured(_figures(runs, added, long_one=sizes.mixed // 2))


def _add_urgent_ones(url: str, *, limit_seconds: float) -> dict[int, int]:
    """Add an urgent job now and then until the queue is empty; return their numbers with the moments."""
    added: dict[int, int] = {}
    deadline = time.monotonic() + limit_seconds
    with psycopg.connect(url, autocommit=True) as connection:
        while True:
            row = connection.execute("select exists (select from graphile_worker._private_jobs)").fetchone()
            if row is not None and not row[0]:
                return added
            if time.monotonic() > deadline:
                raise NotMeasuredError(f"the queue was not empty after {limit_seconds:g} s")
            number = URGENT + len(added)
            added[number] = time.monotonic_ns()
            connection.execute(ADD_URGENT, (number,))
            time.sleep(URGENT_EVERY_SECONDS)


def _runs(file: Path) -> list[Run]:
    numbers = array("q")
    numbers.frombytes(file.read_bytes())
    return [(n, began, ended) for n, began, ended in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)]


def _figures(
    runs: Sequence[Sequence[tuple[int, int, int]]], added: dict[int, int], *, long_one: int
) -> dict[str, float]:
    """An urgent job's delay is from its add to its start. A job was hoarded for as long as the other process was idle.

    The first urgent ones came while the processes started and nobody could run them.
    """
    up = max(min(began for _, began, _ in each) for each in runs)
    delays = [(began - added[n]) / 1e6 for each in runs for n, began, _ in each if n in added and added[n] > up]
    ordinary = [[(began, ended) for n, began, ended in each if n < URGENT and n != long_one] for each in runs]
    idle_since = min(max((ended for _, ended in each), default=up) for each in ordinary)
    hoarded = max(began for each in ordinary for began, _ in each) - idle_since
    cuts = quantiles(delays, n=100, method="inclusive") if len(delays) > 1 else [0.0] * 99
    return {"urgent p50 ms": cuts[49], URGENT_P99: cuts[98], HOARDED: max(0.0, hoarded / 1e6)}
