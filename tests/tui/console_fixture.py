"""Run the console on a scripted queue, press keys, and read the screen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import pytest
from support.console_source import QueueSource
from support.profiles import IS_NIGHTLY
from textual._compositor import Compositor
from textual.pilot import Pilot

from gw_core import Client, SessionLimits
from gw_core.front_ends import described
from gw_core.selection import parse
from gw_tui.app import ConsoleApp as ConsoleApp
from gw_tui.data.source import ClientSource as ClientSource, DataSource as DataSource
from gw_tui.rules.options import Options, QueueInfo
from gw_tui.rules.preferences import Preferences as Preferences

T = TypeVar("T")
DEADLINE = 90.0
POLL = 0.02
STILL = 1_000.0
"""Where the console's own clock stands."""


class Console:
    """A running console with what tests want of it."""

    def __init__(self, app: ConsoleApp, pilot: Pilot[Any], source: QueueSource) -> None:
        self.app = app
        self.pilot = pilot
        self.source = source
        self.notices: list[str] = []
        """Every notice so far; the screen shows each for a few seconds only."""
        original = app.notify

        def notify(message: str, **more: Any) -> None:
            self.notices.append(message)
            original(message, **more)

        app.notify = notify  # type: ignore[method-assign]

    @property
    def state(self) -> Any:
        return self.app.state

    @property
    def poller(self) -> Any:
        return self.app.poller

    @property
    def reader(self) -> Any:
        return self.poller.reader

    @property
    def strips(self) -> list[Any]:
        """The lines of the screen as Textual renders them."""
        return self.app.screen._compositor.render_strips()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until something is so, and then until the widgets have received what was sent to them."""
        if condition():
            return
        end = time.monotonic() + DEADLINE
        while not condition():
            assert self.app.failure is None, f"the console ended: {self.app.failure!r}"
            assert time.monotonic() < end, f"it did not come to be; the screen says:\n{self.text}"
            await asyncio.sleep(POLL)  # a pause of the pilot wakes every widget
        await self.pilot.pause(0)

    async def answered(self) -> None:
        """Wait until the screen's query, if it has one, is answered or has failed."""
        await self.until(lambda: self._is_answered)
        await self.pilot.pause()

    @property
    def _is_answered(self) -> bool:
        app, front = self.app, self.app.front
        if front is None:
            return False
        has_begun = hasattr(front, "search") and search_of(front).asks  # a search asks again with each answer
        has_failed = any(each.kind == "error" for each in app.state.journal)
        return bool(app.answer or front.current_query() is None or has_begun or has_failed)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str) -> None:
        """Type a text as one paste would."""
        from textual.widgets import Input

        assert isinstance(self.app.focused, Input)
        self.app.focused.insert_text_at_cursor(text)
        await self.pilot.pause()

    async def shows(self, words: str) -> None:
        """Wait until the screen shows these words."""
        await self.until(lambda: words in self.text)

    async def notified(self, words: str) -> None:
        """Wait until a notice contains these words."""
        await self.until(lambda: any(words in each for each in self.notices))

    def is_on(self, kind: str) -> bool:
        """Return whether this screen is in front: one that `--screen` names, `job`, or a dialog as styles name it."""
        screen = self.app.screen
        return kind in (getattr(screen, "SCREEN_ID", None), type(screen).__name__)

    def screen(self, kind: str) -> Any:
        """Return the screen in front, which is of this kind."""
        assert self.is_on(kind), self.app.screen
        return self.app.screen

    async def reach(self, kind: str) -> Any:
        """Wait until a screen of this kind is in front."""
        await self.until(lambda: self.is_on(kind))
        await self.pilot.pause()
        return self.screen(kind)

    async def choices(self) -> Any:
        """Wait until a list of choices is in front."""
        return await self.reach("Choose")

    def table(self, selector: str = "KeyedTable") -> Any:
        return self.app.screen.query(selector).first()

    @property
    def text(self) -> str:
        """What stands on the screen."""
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in self.strips)

    async def acted(self, count: int = 1) -> Any:
        """Wait until this many actions ended, and return all of them."""
        runner, actions = self.app.action_runner, self.source.actions
        await self.until(lambda: len(actions) >= count and runner.last and runner.last.action is actions[-1])
        await self.until(lambda: not runner.is_busy)
        await self.pilot.pause()
        return actions

    async def searched(self, text: str) -> Any:
        """Wait until the list in front shows what the filter of this text finds."""
        screen, wanted = self.app.screen, parse(text)
        await self.until(lambda: search_of(screen).wanted == wanted and search_of(screen).asks)
        await self.until(lambda: not search_of(screen).is_searching)
        await self.pilot.pause()
        return screen

    async def rows(self) -> None:
        """Wait until the list in front has rows."""
        await self.until(lambda: self.table().keys)
        await self.pilot.pause()

    async def jobs(self) -> Any:
        """Wait until the list of jobs is in front and has rows."""
        await self.until(lambda: self.is_on("jobs") and self.table("#jobs").keys)
        await self.pilot.pause()
        return self.screen("jobs")

    async def listening(self) -> None:
        """Wait until announcements of new jobs arrive."""
        await self.until(lambda: self.source.subscriptions)

    def tick(self) -> None:
        """Draw what the time has changed, as the console does twice a second."""
        self.app._tick()

    async def refresh(self) -> None:
        """Query again, and wait until the screen has received the answer."""
        taken, shown = self.source.snapshots, self.state.snapshot
        self.reader.refresh_now()
        await self.until(lambda: self.source.snapshots > taken and self.state.snapshot is not shown)
        await self.pilot.pause()


Scenario = Callable[[Console], Awaitable[None]]


def of_all(*some: T, others: Sequence[T]) -> list[T]:
    """Return representatives of what one function of the console is for; in `nightly` all."""
    return [*some, *others] if IS_NIGHTLY else list(some)


def search_of(screen: Any) -> Any:
    """Return the search that fills a list."""
    return screen.search


def queue_source(
    url: str,
    *,
    schema: str = "graphile_worker",
    crontab: Callable[[], Any] | None = None,
    limits: SessionLimits | None = None,
    **more: Any,
) -> ClientSource:
    """Return the source that reads the queue of a database, with these limits in place of the console's own."""
    info = QueueInfo(where=described(url), schema=schema, **more)
    connect = partial(Client, url, schema=schema)
    if limits is None:
        return ClientSource(connect, info, crontab)
    return ClientSource(lambda **options: connect(**{**options, "session_limits": limits}), info, crontab)


def stands_still() -> float:
    """Be a clock by which no age and no countdown goes on, however long the machine stands still."""
    return STILL


def _undrawn(self: Compositor, *_: Any, **__: Any) -> None:
    """Compose nothing for the terminal that a test does not have: `Console.text` renders what it reads."""
    self._dirty_regions.clear()


def play(
    scenario: Scenario,
    source: Any,
    *,
    size: tuple[int, int] = (120, 34),
    clock: Callable[[], float] = time.monotonic,
    is_drawn: bool = False,
    **options: Any,
) -> None:
    """Play a scenario on a console that refreshes often, from before its first answer.

    What is behind a dialog is on the screen only if the console `is_drawn`.
    """

    async def inside() -> None:
        app = ConsoleApp(source, Options(**{"period": 0.2, **options}), clock=clock)
        async with app.run_test(size=size, notifications=True) as pilot:
            await scenario(Console(app, pilot, source))

    with pytest.MonkeyPatch.context() as patch:
        if not is_drawn:
            patch.setattr(Compositor, "render_update", _undrawn)
        asyncio.run(inside())


def run(
    scenario: Scenario,
    *,
    source: QueueSource | None = None,
    screen: str = "jobs",
    size: tuple[int, int] = (80, 24),
    clock: Callable[[], float] = stands_still,
    **options: Any,
) -> None:
    """Play a scenario on a console whose clock stands still; its first answers have arrived."""

    async def begun(console: Console) -> None:
        console.app.NOTIFICATION_TIMEOUT = 3_600.0  # type: ignore[misc]
        await console.until(lambda: console.state.snapshot is not None)
        await console.answered()
        await scenario(console)

    play(begun, source or QueueSource(), screen=screen, size=size, clock=clock, period=30.0, **options)
