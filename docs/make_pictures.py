"""Make the pictures of the documentation from the demo queue: `python docs/make_pictures.py`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from textual.pilot import Pilot

from gw_tui.app import ConsoleApp
from gw_tui.data.demo import DemoSource, FixedClock
from gw_tui.rules.options import Options

QUEUE_SECONDS: Final = 75
"""How long the demo queue has run when the picture is taken."""
MAX_WAIT_SECONDS: Final = 10.0
WEB_FONT: Final = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""Textual refers to a font on another server; the pages load nothing from there."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot: which screen, after which keys."""

    name: str
    screen: str
    keys: Sequence[str] = ()
    options: dict[str, Any] = field(default_factory=dict)
    size: tuple[int, int] = (110, 30)


PICTURES: Final = (
    Picture("overview", "overview"),
    Picture("jobs", "jobs", ("down", "down"), {"filter": "state:failed"}),
    Picture("job", "jobs", ("enter",), {"filter": "state:failed"}),
    Picture("question", "jobs", ("m", "m", "m", "x"), {"filter": "state:failed"}),
    Picture("workers", "workers"),
    Picture("locks", "locks"),
    Picture("overview-light", "overview", (), {"theme": "gw-light"}),
)


async def take(picture: Picture) -> str:
    """Run the demo queue, press the keys and return the screenshot as SVG."""
    clock = FixedClock()
    source = DemoSource(clock)
    options = Options(**{"screen": picture.screen, "period": 60.0, "environment": "production", **picture.options})
    app = ConsoleApp(source, options, clock=lambda: (clock.now - START).total_seconds())
    async with app.run_test(size=picture.size) as pilot:
        for _ in range(QUEUE_SECONDS):
            clock.advance(1)
            app.refresh_now()
            await _until(pilot, lambda: app.snapshot is not None and app.snapshot.at == clock.now)
        for key in picture.keys:
            await pilot.press(key)
            await pilot.pause(0.3)
        await pilot.pause(0.5)
        return WEB_FONT.sub("", app.export_screenshot(title=f"gw tui: {picture.screen}"))


START: Final = FixedClock().now


async def _until(pilot: Pilot[None], condition: Any) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + MAX_WAIT_SECONDS
    while not condition():
        if loop.time() > end:
            raise TimeoutError("the console does not show what it should")
        await pilot.pause(0.01)


def main(folder: Path) -> None:
    """Write every picture."""
    folder.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        (folder / f"{picture.name}.svg").write_text(asyncio.run(take(picture)), "utf-8")


if __name__ == "__main__":
    main(Path(__file__).parent / "pictures")
