"""Jobs of all lengths together: how long urgent ones wait, and others in a busy process while another is idle."""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import Final

import psycopg

from bench.harness import Benchmark, Goal, Measure, Measured, NotMeasuredError, WrongResultError
from bench.measure import Bench
from bench.peers import Gw
from bench.processes import new_folders, running
from bench.server import ask

URGENT_FROM: Final = 1_000_000_000
"""The numbers of urgent jobs begin here."""
URGENT_EVERY_SECONDS: Final = 0.05
MIDDLING_MS: Final = 10
URGENT: Final = "urgent p99 ms, less a claim"
HOARDED: Final = "hoarded ms, less a claim"
WINDOW_MS: Final = 50
"""The prefetch of a worker at its defaults."""
LATE: Final = 100
"""How many jobs stand behind the long one where it comes late."""
ONE_THREAD: Final = Gw(("-j", "1"))

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
# What a session did last took from the start of its statement until it became idle; the sessions that
# claim do little else.
LAST_CLAIMS: Final = """
select pid, query_start, 1000 * extract(epoch from state_change - query_start)::float8
  from pg_stat_activity
 where datname = current_database() and application_name like '%:claim' and state = 'idle'
   and state_change >= query_start
"""


Run = tuple[int, int, int]
"""The number of a job, and when it started and ended."""


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """Two processes: many threads in each, one in each, and one in each with the long job near the end."""
    scale = bench.scale
    late = max(0, scale.mixed - LATE)
    sides: dict[str, Measure] = {
        "gw": lambda: mixed(bench, Gw(), long_one=scale.mixed // 2),
        "gw, -j 1": lambda: mixed(bench, ONE_THREAD, long_one=scale.mixed // 2),
        "gw, -j 1, the long one late": lambda: mixed(bench, ONE_THREAD, long_one=late),
    }
    goals = [Goal(figure=figure, at_most=WINDOW_MS, of=side) for side in sides for figure in (URGENT, HOARDED)]
    return (
        Benchmark(
            name="mixed",
            title=(
                f"{scale.mixed:,} jobs, trivial but for each hundredth of {MIDDLING_MS} ms and one of "
                f"{scale.long_ms / 1000:g} s, two processes, urgent ones coming in"
            ),
            sides=sides,
            goals=goals,
            rounds=1,
        ),
    )


def mixed(bench: Bench, peer: Gw, *, long_one: int) -> Measured:
    """Let two processes empty the queue while urgent jobs come in; then ask each job when it started and where."""
    scale = bench.scale
    with bench.place() as (url, folder), ExitStack() as stack:
        peer.install(url)
        ask(url, ADD, long_one, scale.long_ms, MIDDLING_MS, scale.mixed - 1)
        bench.server.settle_down(url)
        for part in new_folders(folder, 2):
            stack.enter_context(running(peer.worker(url, part, once=False)))
        added, claims = _add_urgent_ones(url, limit_seconds=20 * scale.limit_seconds + scale.long_ms / 1000)
        stack.close()
        runs = [run for file in folder.rglob("mixed-*") if (run := _runs(file))]
    if sum(map(len, runs)) != scale.mixed + len(added):
        raise WrongResultError(f"{scale.mixed + len(added):,} jobs were added, {sum(map(len, runs)):,} were run")
    return Measured(figures(runs, added, _p99(claims)))


def _add_urgent_ones(url: str, *, limit_seconds: float) -> tuple[dict[int, int], list[float]]:
    """Add an urgent job now and then until the queue is empty.

    Returns their numbers with the times from which they waited, and the milliseconds of the claims in that period.
    """
    added: dict[int, int] = {}
    claims: dict[tuple[int, object], float] = {}
    deadline = time.monotonic() + limit_seconds
    with psycopg.connect(url, autocommit=True) as connection:
        while True:
            row = connection.execute("select exists (select from graphile_worker._private_jobs)").fetchone()
            if row is not None and not row[0]:
                return added, list(claims.values())
            if time.monotonic() > deadline:
                raise NotMeasuredError(f"the queue was not empty after {limit_seconds:g} s")
            number = URGENT_FROM + len(added)
            connection.execute(ADD_URGENT, (number,))
            added[number] = time.monotonic_ns()
            time.sleep(URGENT_EVERY_SECONDS)
            claims |= {(pid, began): duration for pid, began, duration in connection.execute(LAST_CLAIMS.encode())}


def _runs(file: Path) -> list[Run]:
    numbers = array("q")
    numbers.frombytes(file.read_bytes())
    return [(n, began, ended) for n, began, ended in zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True)]


def figures(runs: Sequence[Sequence[Run]], added: dict[int, int], claim: float) -> dict[str, float]:
    """An urgent job's delay begins when it has been added. Jobs were hoarded while a process had nothing to run.

    Only urgent jobs added while others waited count: the first came before the processes had started, the last when
    only the long job was left.
    """
    up = max(min(began for _, began, _ in each) for each in runs)
    last = max(began for each in runs for n, began, _ in each if n < URGENT_FROM)
    delays = [max(0, began - added[n]) / 1e6 for each in runs for n, began, _ in each if up < added.get(n, up) < last]
    hoarded = max(_longest_idle(each, up, last) for each in runs) / 1e6
    return {
        "urgent p50 ms": median(delays) if delays else 0.0,
        "urgent p99 ms": _p99(delays),
        "hoarded ms": hoarded,
        "claim p99 ms": claim,
        URGENT: max(0.0, _p99(delays) - claim),
        HOARDED: max(0.0, hoarded - claim),
    }


def _longest_idle(runs: Sequence[Run], since: int, last: int) -> int:
    """Return for how long one process ran nothing at most, from when both were up until the last ordinary job began."""
    longest, busy_until = 0, since
    for began, ended in sorted((began, ended) for _, began, ended in runs):
        longest = max(longest, min(began, last) - busy_until)
        busy_until = max(busy_until, ended)
    return max(longest, last - busy_until)


def _p99(durations: Sequence[float]) -> float:
    return quantiles(durations, n=100, method="inclusive")[98] if len(durations) > 1 else sum(durations)
