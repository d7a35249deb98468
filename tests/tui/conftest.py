"""Every test of the console may show its queue, and a slow machine ends none of its statements and threads early."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from support.console_queue import relax_limits
from support.relax_timeouts import relax_read_timeouts
from textual._wait import SLEEP_GRANULARITY
from textual.css.stylesheet import Stylesheet


@pytest.fixture(autouse=True)
def _console_queue(console_queue: None, monkeypatch: pytest.MonkeyPatch) -> None:
    relax_read_timeouts(monkeypatch)
    relax_limits(monkeypatch)
    # A thread that is left behind would disturb the next test.
    monkeypatch.setattr("gw_tui.data.poller.PARTING", 60.0)


@pytest.fixture(scope="session", autouse=True)
def _styles_parsed_once() -> Iterator[None]:
    """Let all consoles of the process share the parsed rules of a theme: each screen that opens parses all styles."""
    parse, rules_by_theme = Stylesheet.parse, dict[frozenset[Any], dict[Any, Any]]()

    def parse_new(self: Stylesheet) -> None:
        theme = frozenset(self._variables.items())
        self._parse_cache = rules_by_theme.setdefault(theme, {})  # type: ignore[assignment]
        parse(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "parse", parse_new)
        yield


async def _nothing_to_do(*_: float) -> None:
    """Wait for timers of one frame, and until all has run that can run.

    Textual waits for up to a second until the process is almost idle, also for threads that only query the database.
    """
    await asyncio.sleep(SLEEP_GRANULARITY)
    while asyncio.get_running_loop()._ready:  # type: ignore[attr-defined]
        await asyncio.sleep(0)


@pytest.fixture(scope="session", autouse=True)
def _threads_are_not_waited_for() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in ("app", "pilot"):
            patch.setattr(f"textual.{module}.wait_for_idle", _nothing_to_do)
        yield
