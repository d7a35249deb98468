"""The console on a very large queue under load: how long its looks take, what it takes of the server, and of memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import psycopg

from bench.frame import Goal, Measured, NotMeasuredError, Row
from bench.measure import Bench
from bench.rows.looking import OUR_INDEXES, fill, workers
from gw_tui.app import ConsoleApp
from gw_tui.options import Options
from gw_tui.source import ClientSource, Place

TICK: Final = "tick p95 ms"
BACKENDS: Final = "connections"
OPEN: Final = "seen idle in a transaction"
GROWTH: Final = "MiB grown"
LAG: Final = "lag of the screen p95 ms"
PERIOD: Final = 0.2
LAG_EVERY: Final = 0.05
LOOK_EVERY: Final = 0.5
NOTIFIES_A_SECOND: Final = 2_000
SCREENS: Final = ("overview", "jobs", "queues", "workers", "cron", "locks", "events")
SCREEN_SECONDS: Final = 20.0
WARM: Final = 0.25
"""The first quarter of the time fills caches and rings; figures count from then on."""
SESSIONS: Final = (
    "select count(*)::int, count(*) filter (where state like 'idle in transaction%')::int from pg_stat_activity "
    "where application_name like 'gw-tui%' and datname = current_database()"
)
# Each with words of its own, for the server sends what is the same only once.
NOTIFY: Final = """
select count(pg_notify('jobs:insert', '{"r":' || random() || ',"count":1}')) from generate_series(1, %s::int)
"""


def rows(bench: Bench) -> Sequence[Row]:
    """The console itself, without a terminal, on all its screens in turn."""
    sizes = bench.sizes
    return (
        Row(
            name="console",
            title=f"The console on {sizes.looked_at:,} jobs for {sizes.console_seconds / 60:g} minutes",
            sides={"gw": partial(watch, bench)},
            goals=(
                Goal(figure=TICK, at_most=10),
                Goal(figure=BACKENDS, at_most=3),
                Goal(figure=OPEN, at_most=0),
                Goal(figure=GROWTH, at_most=5),
                Goal(figure=LAG, at_most=25),
            ),
            rounds=1,
        ),
    )


@dataclass(slots=True)
class _Seen:
    """What was seen while the console ran."""

    ticks: list[float] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    backends: int = 0
    open: int = 0


def watch(bench: Bench) -> Measured:
    """Let the console look at a full queue while workers work and jobs are announced."""
    with bench.place() as (url, folder):
        fill(bench, url, OUR_INDEXES)
        with workers(url, folder):
            seen = asyncio.run(_watch(url, bench.sizes.console_seconds))
    if not seen.ticks or not seen.memory:
        raise NotMeasuredError("the console saw nothing")
    warm, ticks = _warm(seen.memory), _warm(seen.ticks)
    return Measured(
        {
            "ticks": len(ticks),
            "tick p50 ms": median(ticks),
            TICK: _p95(ticks),
            BACKENDS: seen.backends,
            OPEN: seen.open,
            "MiB": seen.memory[-1],
            GROWTH: warm[-1] - warm[0],
            LAG: _p95(seen.lags),
        }
    )


def _warm(figures: Sequence[float]) -> Sequence[float]:
    return figures[int(WARM * len(figures)) :]


def _p95(spans: Sequence[float]) -> float:
    return sorted(spans)[int(0.95 * (len(spans) - 1))]


async def _watch(url: str, seconds: float) -> _Seen:
    seen = _Seen()
    app = ConsoleApp(ClientSource(Place(conninfo=url, schema="graphile_worker")), Options(period=PERIOD))
    async with app.run_test(size=(120, 34)) as pilot:
        with ExitStack() as stack:
            looking = stack.enter_context(psycopg.connect(url, autocommit=True))
            others = [_lag(seen), _ticks(app, seen), _tour(app), _sessions(looking, seen), _announce(url)]
            tasks = [asyncio.create_task(each) for each in others]
            await asyncio.sleep(seconds)
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        await pilot.pause()
    for end in ends:
        if not isinstance(end, asyncio.CancelledError):
            raise NotMeasuredError(f"watching ended by itself: {end!r}")
    return seen


async def _lag(seen: _Seen) -> None:
    """Measure how late the loop of the screen wakes."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(LAG_EVERY)
        seen.lags.append(1000 * (time.perf_counter() - began - LAG_EVERY))


async def _ticks(app: ConsoleApp, seen: _Seen) -> None:
    """Note what every look took."""
    before = None
    while True:
        await asyncio.sleep(PERIOD / 4)
        if (glance := app.glance) is not None and glance is not before:
            before = glance
            seen.ticks.append(1000 * glance.took.total_seconds())


async def _tour(app: ConsoleApp) -> None:
    """Show one screen after the other."""
    while True:
        for place in SCREENS:
            app.visit(place)
            await asyncio.sleep(SCREEN_SECONDS)


async def _sessions(connection: psycopg.Connection, seen: _Seen) -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY)
        row = await asyncio.to_thread(lambda: connection.execute(SESSIONS).fetchone())
        assert row is not None
        seen.backends = max(seen.backends, int(row[0]))
        seen.open += int(row[1])
        seen.memory.append(_resident())


async def _announce(url: str) -> None:
    """Announce jobs as a busy application does."""
    count = int(NOTIFIES_A_SECOND * LOOK_EVERY)
    with _connected(url) as connection:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            await asyncio.to_thread(lambda: connection.execute(NOTIFY, (count,)).fetchall())


@contextmanager
def _connected(url: str) -> Iterator[psycopg.Connection]:
    connection = psycopg.connect(url, autocommit=True)
    try:
        yield connection
    finally:
        with suppress(psycopg.Error):
            connection.close()


def _resident() -> float:
    """Return how many MiB this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1024 / 1024
