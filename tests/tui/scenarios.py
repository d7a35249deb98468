"""The scenes of the snapshot tests: every screen, the main dialogs, and the states of the connection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from console_fixture import STILL, Console, stands_still
from support.console_source import QueueSource
from textual.widgets import Input

from gw_core.errors import DatabaseUnavailableError, SchemaMissingError
from gw_core.front_ends import AuthenticationError, StatementTimeoutError
from gw_tui.rules.journal import EntryKind, Journal

GONE = DatabaseUnavailableError("the database is not available: terminating connection")
LEAST = (60, 20)
"""The smallest size is kept as text alone."""
EVERY_SIZE = ((80, 24), (120, 34), (160, 45), LEAST)
LIVED = 30
"""How many seconds the queue has lived."""

CHARTED = 12
"""How many seconds the charts show."""

Prepare = Callable[[Console], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene: its screen, and the steps that lead to it."""

    name: str
    screen: str
    prepare: Prepare
    options: dict[str, Any] = field(default_factory=dict)
    sizes: tuple[tuple[int, int], ...] = ((80, 24),)


def a_queue() -> QueueSource:
    """Return a queue that is the same each time, and stands still."""
    source = QueueSource()
    source.clock.advance(LIVED)
    return source


async def _press(console: Console, *keys: str, until: str | None = None) -> None:
    for key in keys:
        await console.press(key)
    if until is not None:
        await console.until(lambda: console.is_on(until))
    await console.pilot.pause()


def pressing(*keys: str, until: str | None = None, words: str = "") -> Prepare:
    """Press keys, and wait for a dialog or for words."""

    async def prepare(console: Console) -> None:
        await _press(console, *keys, until=until)
        if words:
            await console.shows(words)

    return prepare


async def nothing(console: Console) -> None:
    pass


async def charted(console: Console) -> None:
    await console.shows("attempts ended")


async def lived(console: Console) -> None:
    """Let the charts have something to show."""
    clock, app = console.source.clock, console.app
    for _ in range(CHARTED):
        clock.advance(1)
        app.refresh_now()
        await console.until(lambda: app.state.snapshot is not None and app.state.snapshot.at == clock.now)
    await console.until(lambda: app.answer is not None and app.answer.answer.statistics.at == clock.now)  # type: ignore[attr-defined]


async def events(console: Console) -> None:
    app = console.app
    app.state.journal = Journal()
    app.state.note(EntryKind.CONSOLE, "console started on app@demo/shop")
    app.state.note(EntryKind.CONNECTION, "connection live")
    app.state.note(EntryKind.JOBS, "31 jobs announced")
    app.state.note(EntryKind.CONNECTION, "the database is not available: terminating connection", is_bad=True)
    app.state.note(EntryKind.ACTION, "job 99189 retried")
    console.tick()
    await console.shows("31 jobs announced")
    await console.press("g")  # what there was before may have had the cursor


async def job(console: Console) -> None:
    await _press(console, "down", "enter", until="job")
    await console.shows("attempt")
    await console.answered()


async def filtering(console: Console) -> None:
    await _press(console, "/")
    await console.type("state:failed ta")
    await console.shows("tab completes")


async def misspelt(console: Console) -> None:
    await _press(console, "/")
    await console.type("state:failed attempts:many")
    await console.shows("^")


async def commands(console: Console) -> None:
    await _press(console, "ctrl+p", until="CommandLine")
    await console.type("cle")
    await console.shows("cleanup_unused_tasks")


async def result(console: Console) -> None:
    await _press(console, "m", "m", "m")
    changed = console.screen("jobs").targets()[1].job.id
    await _press(console, "f", until="Confirm")
    console.source.queue.change(changed, attempts=1)
    await _press(console, "tab", "enter", until="ResultDialog")
    # The list behind it and the line above it, which learns of it later, count the row that is gone.
    await console.until(lambda: console.text.count("1 change (") == 2)


async def down(console: Console) -> None:
    await _fail(console, GONE)
    await console.shows("r retries now")


async def denied(console: Console) -> None:
    await _fail(console, AuthenticationError('the server denied access: password of user "app"'))
    await console.shows("DENIED")


async def no_schema(console: Console) -> None:
    await _fail(console, SchemaMissingError("schema 'q' is not installed; install it with: gw migrate --schema q"))
    await console.shows("NO SCHEMA")


async def stale(console: Console) -> None:
    await _fail(console, StatementTimeoutError("canceling statement due to statement timeout"))
    # Its list is late as well.
    await console.until(lambda: sum(each.kind == "error" for each in console.state.journal) == 2)
    console.state.clock = lambda: STILL + 120
    console.tick()
    await console.shows("STALE: no answer for 120 s")


async def asking_while_down(console: Console) -> None:
    await _press(console, "m", "m", "x", until="Confirm")
    await down(console)
    await console.shows("Waiting for the database")


async def _fail(console: Console, error: Exception) -> None:
    console.poller.listener.stop()
    console.source.go_down(error)
    console.reader.chance = lambda: 1.0
    console.reader._clock = stands_still  # it never comes to the next try
    console.reader.failures = 9
    console.app.refresh_now()


async def added(console: Console) -> None:
    await _press(console, "a", until="AddDialog")
    entry = console.app.screen.query(Input).first()
    entry.value = "send_email"
    await console.pilot.pause()


FAILED = {"filter": "state:failed"}

SCENES = (
    Scene("overview", "overview", lived, sizes=EVERY_SIZE),
    Scene("jobs", "jobs", pressing("down", "m", "m", "down", words="2 marked"), FAILED, sizes=EVERY_SIZE),
    Scene("filter", "jobs", filtering),
    Scene("misspelt", "jobs", misspelt),
    Scene("job", "jobs", job, FAILED, sizes=EVERY_SIZE),
    Scene("queues", "queues", nothing),
    Scene("workers", "workers", nothing),
    Scene("cron", "cron", nothing),
    Scene("locks", "locks", nothing),
    Scene("events", "events", events),
    Scene("tasks", "tasks", charted),
    Scene("errors", "errors", nothing),
    Scene("help", "jobs", pressing("?", until="HelpScreen")),
    Scene("commands", "jobs", commands),
    Scene("question", "jobs", pressing("m", "m", "m", "x", until="Confirm"), {**FAILED, "environment": "production"}),
    Scene("reason", "jobs", pressing("f", until="Confirm"), FAILED),
    Scene("typed", "workers", pressing("end", "u", until="Confirm")),
    Scene("sweep", "workers", pressing("S", until="Confirm")),
    Scene("time", "jobs", pressing("t", until="RescheduleDialog"), FAILED),
    Scene("add", "jobs", added),
    Scene("result", "jobs", result, FAILED),
    Scene("choice", "locks", pressing("C", until="Choose")),
    Scene("frozen", "overview", pressing("space", words="FROZEN 00:00")),
    Scene("down", "overview", down),
    Scene("asking-while-down", "jobs", asking_while_down, FAILED),
    Scene("denied", "overview", denied),
    Scene("no-schema", "overview", no_schema),
    Scene("stale", "jobs", stale, FAILED),
)
