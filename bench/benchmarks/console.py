"""The console on a very large queue: the cost of its refreshes in the server, their duration, and a soak under load."""

from __future__ import annotations

import asyncio
import os
import time
from array import array
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from statistics import mean, median
from typing import Any, Final

import psycopg
from textual.pilot import Pilot

from bench.benchmarks.read_commands import OUR_INDEXES, PACE, WORKERS, fill, workers
from bench.harness import Benchmark, Goal, Measured, NotMeasuredError
from bench.instrumented_source import HOT, InstrumentedSource, Tick
from bench.measure import Bench
from bench.resources import memory_kib
from bench.server import ask
from bench.server_time import percentile, with_timing
from gw_tui.app import ConsoleApp
from gw_tui.rules.options import Options

REFRESH: Final = "refresh p95 ms in the server"
SCREEN: Final = "dearest screen, refresh p95 ms in the server"
OPENING: Final = "opening a screen p95 ms in the server"
DUTY: Final = "% of the time in the server"
BACKENDS: Final = "connections"
OPEN: Final = "seen idle in a transaction"
GROWTH: Final = "MiB grown"
LAG: Final = "lag of the screen p95 ms"
LAG_INTERVAL: Final = 0.05
REFRESH_INTERVAL: Final = 0.5
SCREEN_SECONDS: Final = 20.0
WARM: Final = 0.25
"""The first quarter of the time fills caches and rings, and shows every screen once; what comes after it counts."""
TIMEOUT_SECONDS: Final = 60.0
CURVE_SECONDS: Final = 300.0
COSTLY: Final = 0.3
"""A statement that takes this many milliseconds of a screen's tick is named."""

# What is shown in turn: the screen, its filter, and the keys pressed there.
TOUR: Final[Sequence[tuple[str, str, str, str]]] = (
    ("overview", "overview", "", ""),
    ("jobs", "jobs", "", ""),
    ("job", "jobs", "", "enter"),
    ("jobs, failed", "jobs", "state:failed", ""),
    ("jobs, ready", "jobs", "state:ready", ""),
    ("queues", "queues", "", ""),
    ("workers", "workers", "", "down"),
    ("cron", "cron", "", ""),
    ("locks", "locks", "", ""),
    ("events", "events", "", ""),
)
SESSIONS: Final = (
    "select count(*)::int, count(*) filter (where state like 'idle in transaction%')::int from pg_stat_activity "
    "where application_name like 'gw-tui%' and datname = current_database()"
)
DONE: Final = "select pg_stat_get_tuples_deleted('graphile_worker._private_jobs'::regclass)"
# Each with words of its own, for the server sends what is the same only once.
NOTIFY: Final = """
select count(pg_notify('jobs:insert', '{"r":' || random() || ',"count":1}')) from generate_series(1, %s::int)
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What a console is used for and what happens around it."""

    period: float
    """How often it refreshes, in seconds, unless its refreshes take too long for that."""
    announced: int = 0
    """How many jobs others announce in a second."""


USUAL: Final = Load(period=Options().period)
HEAVY: Final = Load(period=0.2, announced=2_000)


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """The console itself, without a terminal, on all its screens in turn."""
    scale = bench.scale
    what = f"on {scale.read_jobs:,} jobs beside {WORKERS} workers at {PACE} jobs/s each at most"
    duration = f"for {scale.console_seconds / 60:g} minutes"
    bounds = (Goal(figure=DUTY, at_most=5), Goal(figure=BACKENDS, at_most=3), Goal(figure=OPEN, at_most=0))
    return (
        Benchmark(
            name="console",
            title=f"The console as it comes {what}, {duration}",
            sides={"gw": partial(watch, bench, USUAL)},
            goals=(Goal(figure=REFRESH, at_most=10), Goal(figure=SCREEN, at_most=10), *bounds),
            rounds=1,
        ),
        Benchmark(
            name="console-soak",
            title=(
                f"The console at {1 / HEAVY.period:g} refreshes a second {what}, "
                f"and {HEAVY.announced:,} announcements a second, {duration}"
            ),
            sides={"gw": partial(watch, bench, HEAVY)},
            goals=(*bounds, Goal(figure=GROWTH, at_most=5), Goal(figure=LAG, at_most=25)),
            rounds=1,
        ),
    )


@dataclass(slots=True)
class _Seen:
    """What was seen while the console ran."""

    ticks: Sequence[Tick] = ()
    lags: array[float] = field(default_factory=lambda: array("d"))
    memory: array[float] = field(default_factory=lambda: array("d"))
    backends: int = 0
    open: int = 0
    seconds: float = 0.0
    processor_time: float = 0.0
    done: int = 0


def watch(bench: Bench, load: Load) -> Measured:
    """Run the console on a full queue while workers run jobs and, optionally, jobs are announced."""
    with bench.place() as (url, folder):
        fill(bench, url, OUR_INDEXES)
        with workers(url, folder):
            seen = asyncio.run(_watch(url, bench.scale.console_seconds, load))
    if not seen.ticks or not seen.memory:
        raise NotMeasuredError("the console saw nothing")
    return Measured(_figures(seen), _curve(seen))


def _figures(seen: _Seen) -> dict[str, float]:
    memory, ticks = seen.memory[int(WARM * len(seen.memory)) :], seen.ticks[int(WARM * len(seen.ticks)) :]
    # A screen opens once and refreshes for as long as it is shown. The tour opens one every few seconds.
    openings = [tick for tick in ticks if tick.opens]
    refreshes = [tick for tick in ticks if not tick.opens] or ticks
    server = [tick.server[HOT] for tick in refreshes]
    screens = _screens([(tick.screen, tick.server[HOT]) for tick in refreshes])
    opened = _screens([(tick.screen, tick.server[HOT]) for tick in openings])
    processor_times = [(tick.screen, tick.processor[HOT]) for tick in refreshes]
    return {
        "refreshes a second": len(seen.ticks) / seen.seconds,
        "jobs/s": seen.done / seen.seconds,
        "refresh p50 ms in the server": median(server),
        REFRESH: percentile(server, 0.95),
        "refresh max ms in the server": max(server),
        **_durations("snapshot", [tick.wall[HOT] for tick in ticks if tick.screen == "events"]),
        **_durations("tick", [tick.wall[HOT] for tick in ticks]),
        **{f"{name}: refresh p95 ms in the server": duration for name, duration in screens.items()},
        SCREEN: max(screens.values()),
        "refresh p95 CPU ms": percentile([each for _, each in processor_times], 0.95),
        **{f"{name}: refresh p95 CPU ms": each for name, each in _screens(processor_times).items()},
        **({OPENING: percentile([tick.server[HOT] for tick in openings], 0.95)} if openings else {}),
        **{f"{name}: opening p95 ms in the server": duration for name, duration in opened.items()},
        **_lanes(ticks),
        **_statements(ticks),
        "processor ms a tick in the server": seen.processor_time / len(seen.ticks),
        DUTY: 100 * sum(sum(tick.server.values()) for tick in seen.ticks) / 1000 / seen.seconds,
        BACKENDS: seen.backends,
        OPEN: seen.open,
        "MiB": memory[-1],
        GROWTH: memory[-1] - memory[0],
        LAG: percentile(seen.lags, 0.95),
        "lag of the screen p99 ms": percentile(seen.lags, 0.99),
    }


def _durations(what: str, durations: Sequence[float]) -> dict[str, float]:
    """Return what the console waited, the way there and back included."""
    if not durations:
        return {}
    return {f"{what} p50 ms in all": median(durations), f"{what} p95 ms in all": percentile(durations, 0.95)}


def _screens(ticks: Sequence[tuple[str, float]]) -> dict[str, float]:
    durations: dict[str, list[float]] = defaultdict(list)
    for screen, duration in ticks:
        durations[screen].append(duration)
    return {name: percentile(each, 0.95) for name, each in durations.items()}


def _lanes(ticks: Sequence[Tick]) -> dict[str, float]:
    """Return what is asked every few seconds only: at its dearest, for there are few of them."""
    names = {lane for tick in ticks for lane in tick.server} - {HOT}
    durations = {name: [tick.server[name] for tick in ticks if tick.server.get(name)] for name in sorted(names)}
    figures: dict[str, float] = {}
    for name, each in durations.items():
        if each:
            figures[f"{name} p50 ms in the server"] = median(each)
            figures[f"{name} p95 ms in the server"] = percentile(each, 0.95)
    return figures


def _statements(ticks: Sequence[Tick]) -> dict[str, float]:
    durations: dict[str, list[float]] = defaultdict(list)
    for tick in ticks:
        for name, duration in tick.statements.items():
            durations[name].append(duration)
    means = {name: mean(each) for name, each in durations.items()}
    return {
        f"{name} mean ms": means[name] for name in sorted(means, key=lambda name: -means[name]) if means[name] > COSTLY
    }


def _curve(seen: _Seen) -> dict[str, str]:
    """Return the memory of long runs from step to step."""
    step = max(1, round(CURVE_SECONDS * len(seen.memory) / seen.seconds))
    points = seen.memory[::step]
    if len(points) < 3:
        return {}
    return {"memory": f"MiB every {CURVE_SECONDS / 60:g} minutes: {', '.join(f'{each:.1f}' for each in points)}"}


async def _watch(url: str, seconds: float, load: Load) -> _Seen:
    seen = _Seen()
    source = InstrumentedSource(with_timing(url))
    app = ConsoleApp(source, Options(period=load.period))
    done, began = int(ask(url, DONE)), time.monotonic()
    async with app.run_test(size=(120, 34)) as pilot:
        with ExitStack() as stack:
            observer = stack.enter_context(psycopg.connect(url, autocommit=True))
            tour = _tour(app, source, pilot, min(SCREEN_SECONDS, WARM * seconds / len(TOUR)))
            others = [_lag(seen), tour, _sessions(observer, seen), _announce(url, load.announced)]
            tasks = [asyncio.create_task(each) for each in others]
            await asyncio.sleep(seconds)
            await _for_something(source, seen)
            for task in tasks:
                task.cancel()
            ends = await asyncio.gather(*tasks, return_exceptions=True)
        seen.ticks, seen.processor_time = source.ticks, source.processor_time
        seen.seconds, seen.done = time.monotonic() - began, int(ask(url, DONE)) - done
        await pilot.pause()
    for end in ends:
        if not isinstance(end, asyncio.CancelledError):
            raise NotMeasuredError(f"the console exited early: {end!r}")
    return seen


async def _for_something(source: InstrumentedSource, seen: _Seen) -> None:
    """Give a machine that stands still the time to see anything."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while (len(source.ticks) < 2 or not seen.memory) and time.monotonic() < deadline:
        await asyncio.sleep(LAG_INTERVAL)


async def _lag(seen: _Seen) -> None:
    """Measure how late the loop of the screen wakes."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(LAG_INTERVAL)
        seen.lags.append(1000 * (time.perf_counter() - began - LAG_INTERVAL))


async def _tour(app: ConsoleApp, source: InstrumentedSource, pilot: Pilot[Any], seconds: float) -> None:
    """Show one screen after the other."""
    while True:
        for name, place, filter_text, key in TOUR:
            until = time.monotonic() + seconds
            source.screen, source.opens = name, True  # first: what a screen asks when it opens is its own
            app.visit(place, filter_text)
            if key:
                await asyncio.sleep(seconds / 4)
                source.opens = True
                await pilot.press(key)
            await asyncio.sleep(max(0.0, until - time.monotonic()))


async def _sessions(connection: psycopg.Connection, seen: _Seen) -> None:
    while True:
        await asyncio.sleep(REFRESH_INTERVAL)
        row = await asyncio.to_thread(lambda: connection.execute(SESSIONS).fetchone())
        assert row is not None
        seen.backends = max(seen.backends, int(row[0]))
        seen.open += int(row[1])
        seen.memory.append(memory_kib(os.getpid()) / 1024)


async def _announce(url: str, a_second: int) -> None:
    """Announce jobs as a busy application does."""
    count = int(a_second * REFRESH_INTERVAL)
    with closing(psycopg.connect(url, autocommit=True)) as connection:
        while True:
            await asyncio.sleep(REFRESH_INTERVAL)
            await asyncio.to_thread(lambda: connection.execute(NOTIFY, (count,)).fetchall())
