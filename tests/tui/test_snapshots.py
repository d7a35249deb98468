"""What the frame's screens look like, as text at three sizes: `GW_RENEW=1 pytest tests/tui/test_snapshots.py` renews.

Colours have their own tests; the pictures of the manual show them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from screens_support import Console, run

from gw_core import DatabaseUnavailableError
from gw_tui.demo import DemoSource, FixedClock

KEPT = Path(__file__).parent / "snapshots"
SIZES = [(80, 24), (120, 34), (160, 45)]
GONE = DatabaseUnavailableError("the database is not available: terminating connection")
STILL = 1_000.0


async def nothing(console: Console) -> None:
    await console.until(lambda: console.app._answer is not None)


async def helped(console: Console) -> None:
    await nothing(console)
    await console.press("?")
    await console.shows("esc closes")


async def paused(console: Console) -> None:
    await nothing(console)
    await console.press("space")
    await console.shows("PAUSED 00:00")


async def refused(console: Console) -> None:
    await nothing(console)
    console.app._poller.listener.stop()
    console.source.go_down(GONE)
    console.app._poller.reader._chance = lambda: 1.0
    console.app._poller.reader._failures = 9
    console.app.look_now()
    await console.shows("r tries now")


@pytest.mark.once
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize(
    ("name", "prepare"),
    [
        pytest.param("overview", nothing, id="overview"),
        pytest.param("help", helped, id="help"),
        pytest.param("paused", paused, id="paused"),
        pytest.param("down", refused, id="down"),
    ],
)
def test_it_looks_as_it_did(name: str, prepare: object, size: tuple[int, int]) -> None:
    file = KEPT / f"{name}-{size[0]}x{size[1]}.txt"
    clock = FixedClock()
    source = DemoSource(clock)
    clock.advance(30)

    async def scenario(console: Console) -> None:
        console.app.clock = lambda: STILL
        console.app.connection = console.app.connection.heard(STILL)
        await prepare(console)
        await console.pilot.pause()
        if os.environ.get("GW_RENEW"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(console.text + "\n", "utf-8")
        assert console.text + "\n" == file.read_text("utf-8")

    run(scenario, source=source, screen="overview", size=size)
