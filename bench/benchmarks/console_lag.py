"""How late the console's screen is while keys are pressed, beside a database that answers in two seconds."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from bench.benchmarks.read_commands import OUR_INDEXES, fill
from bench.harness import Benchmark, Goal, Measured
from bench.measure import Bench
from bench.peers import HERE
from bench.processes import Command, run_together

P95: Final = "lag p95 ms"
MAX: Final = "lag max ms"
SLOW: Final = "gw, answered in 2 s"
FAST: Final = "gw, answered immediately"
JOBS: Final = 100_000
LONGEST: Final = 60.0
SLOWED_BY: Final = 2.0
IN_MINIATURE: Final = 0.2
CHUNK: Final = 65_536


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """The console in a process of its own, used as fast as a keyboard repeats, at 160 x 45."""
    seconds = min(LONGEST, bench.scale.console_seconds)
    delay = SLOWED_BY if seconds == LONGEST else IN_MINIATURE
    return (
        Benchmark(
            name="console-lag",
            title=f"How late the console's loop is while keys repeat for {seconds:g} s",
            sides={SLOW: partial(use, bench, seconds, delay), FAST: partial(use, bench, seconds, 0.0)},
            goals=(Goal(figure=P95, at_most=25), Goal(figure=MAX, at_most=100)),
            rounds=1,
        ),
    )


def use(bench: Bench, seconds: float, delay: float) -> Measured:
    """Connect a console to a queue through a proxy that delays each answer."""
    with bench.place() as (url, folder):
        fill(bench, url, OUR_INDEXES, min(bench.scale.read_jobs, JOBS))
        with slowed(url, delay) as line:
            program = HERE / "programs" / "console_lag.py"
            where = {"PYTHONPATH": str(HERE.parent)}
            command = Command(argv=[sys.executable, str(program), line, str(seconds)], folder=folder, environment=where)
            run_together([command])
        seen = json.loads(command.output.read_text().splitlines()[-1])
    notes = {"the console was": ", ".join(seen["phases"])}
    return Measured({P95: seen["p95"], "lag p99 ms": seen["p99"], MAX: seen["max"]}, notes)


@contextmanager
def slowed(url: str, delay: float) -> Iterator[str]:
    """Yield an address that leads to the same database, whose answers take this many seconds longer."""
    place = urlsplit(url)
    ready, over = threading.Event(), threading.Event()
    found: list[int] = []

    async def serve() -> None:
        line = partial(_line, place.hostname or "127.0.0.1", place.port or 5432, delay)
        async with await asyncio.start_server(line, "127.0.0.1", 0) as server:
            found.append(server.sockets[0].getsockname()[1])
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="bench-line")
    thread.start()
    ready.wait()
    user = f"{place.username}@" if place.username else ""
    try:
        yield urlunsplit(place._replace(netloc=f"{user}127.0.0.1:{found[0]}"))
    finally:
        over.set()
        thread.join()


async def _line(host: str, port: int, delay: float, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
    """Forward requests immediately, and answers after the delay."""
    far, there = await asyncio.open_connection(host, port)
    asking = asyncio.create_task(_hand_on(near, there, 0.0))
    await _hand_on(far, back, delay)
    asking.cancel()
    for writer in (there, back):
        writer.close()


async def _hand_on(source: asyncio.StreamReader, target: asyncio.StreamWriter, delay: float) -> None:
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]]()

    async def deliver() -> None:
        while True:
            due, data = await waiting.get()
            await asyncio.sleep(due - loop.time())
            target.write(data)
            await target.drain()
            if not data:
                target.write_eof()
                return

    delivering = asyncio.create_task(deliver())
    with suppress(OSError):
        while data := await source.read(CHUNK):
            waiting.put_nowait((loop.time() + delay, data))
    waiting.put_nowait((loop.time() + delay, b""))
    with suppress(OSError):
        await delivering
