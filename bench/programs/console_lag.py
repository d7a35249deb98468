"""Use the console without a terminal and print how late its loop was, as JSON: console_lag.py URL SECONDS [--profile].

Keys arrive as from a keyboard that repeats, filters are typed quickly, and screens change. With --profile it prints to
stderr which callbacks held the loop for more than ten milliseconds, the worst first.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from statistics import median
from typing import Any, Final

from textual import events
from textual.keys import _character_to_key
from textual.message_pump import MessagePump

from gw_core import Client
from gw_core.operations import described
from gw_tui.app import ConsoleApp
from gw_tui.data.source import ClientSource
from gw_tui.rules.connection_state import ConnectionPhase
from gw_tui.rules.options import Options, QueueInfo

SIZE: Final = (160, 45)
PERIOD: Final = 0.5
SAMPLE: Final = 0.01
REPEAT: Final = 0.033
"""How often a key that is held down repeats, in seconds."""
TO_BEGIN: Final = 120.0
LONG: Final = 0.010
SHOWN: Final = 12

MOVING: Final = ["j"] * 30 + ["k"] * 15 + ["pagedown", "pageup"] * 3 + ["G", "g"]
TYPING: Final = ["/", *"state:failed task:task_7 error:timeout", "ctrl+u", *"state:ready", "enter"]
ROUND: Final = (
    *("2", *MOVING, *TYPING, *MOVING, "/", "ctrl+u", "enter"),
    *("3", *MOVING, "4", *MOVING, "6", *MOVING, "7", *MOVING, "1", *MOVING, "space", "space", "?", "escape"),
)


def main(url: str, seconds: float, *, profiles: bool) -> None:
    """Use the console for so long and print what was seen."""
    lags, phases = asyncio.run(_use(url, seconds, profiles=profiles))
    lags.sort()
    print(
        json.dumps(
            {
                "p50": median(lags),
                "p95": lags[int(0.95 * (len(lags) - 1))],
                "p99": lags[int(0.99 * (len(lags) - 1))],
                "max": lags[-1],
                "samples": len(lags),
                "phases": phases,
            }
        )
    )


async def _use(url: str, seconds: float, *, profiles: bool) -> tuple[list[float], list[str]]:
    source = ClientSource(partial(Client, url), QueueInfo(where=described(url), schema="graphile_worker"))
    app = ConsoleApp(source, Options(period=PERIOD))
    async with app.run_test(size=SIZE) as pilot:
        end = time.monotonic() + TO_BEGIN
        while app.snapshot is None and time.monotonic() < end:
            await pilot.pause(0.05)
        lags: list[float] = []
        phases: set[ConnectionPhase] = set()
        watching = asyncio.create_task(_watch(app, lags, phases))
        with _profile() if profiles else nullcontext():
            await _type(app, time.monotonic() + seconds)
        watching.cancel()
    return lags, sorted(phases)


async def _watch(app: ConsoleApp, lags: list[float], phases: set[ConnectionPhase]) -> None:
    """Note how late the loop wakes, in milliseconds."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(SAMPLE)
        lags.append(1000 * (time.perf_counter() - began - SAMPLE))
        phases.add(app.phase)


async def _type(app: ConsoleApp, until: float) -> None:
    """Press keys round after round; nothing waits for what they do."""
    while time.monotonic() < until:
        for key in ROUND:
            character = key if len(key) == 1 else None
            app.post_message(events.Key(_character_to_key(key) if character else key, character))
            await asyncio.sleep(REPEAT)
            if time.monotonic() > until:
                return


@contextmanager
def _profile() -> Iterator[None]:
    """Note how long each message was handled, and print the longest."""
    took: dict[str, list[float]] = defaultdict(list)
    usual = MessagePump._dispatch_message

    async def timed(self: MessagePump, message: Any) -> None:
        began = time.thread_time()
        await usual(self, message)
        took[f"{type(self).__name__} {type(message).__name__}"].append(1000 * (time.thread_time() - began))

    MessagePump._dispatch_message = timed  # type: ignore[method-assign] # only while it is profiled
    try:
        yield
    finally:
        MessagePump._dispatch_message = usual  # type: ignore[method-assign]
        worst = sorted(took.items(), key=lambda each: -max(each[1]))
        for name, durations in [each for each in worst if max(each[1]) > 1000 * LONG][:SHOWN]:
            print(
                f"{name:50} max {max(durations):6.1f} ms  median {median(durations):6.2f}  x{len(durations)}",
                file=sys.stderr,
            )


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), profiles="--profile" in sys.argv)
