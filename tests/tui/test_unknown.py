"""Unknown is never worded as none: each reading function of the console is late in turn, and every screen is read.

A late function asks a second queue, all tables of which a session of its own has locked, until the server ends the
statement. All other functions answer.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from console_fixture import Console, ConsoleApp, DataSource, run
from late_source import LateSource, locked_queue, nones_in

from gw_core import JobState

pytestmark = pytest.mark.once

JOB = "job"
PLACES = (*ConsoleApp.MODES, JOB)
READERS = sorted(
    name
    for name, function in vars(DataSource).items()
    if inspect.isfunction(function) and name != "answer" and "answer" in function.__code__.co_names
)
"""The reading functions: those that `answer` answers."""

ASKED: dict[str, set[str]] = {
    "overview": {"crontabs", "findings", "page", "queue_sizes", "queues", "runs", "statistics"},
    "jobs": {"names", "page"},
    "queues": {"queue_sizes", "queues", "ranked_queues"},
    "workers": {"page"},
    "cron": {"crontabs"},
    "locks": {"blockages", "findings"},
    "tasks": {"runs", "statistics"},
    "errors": {"history", "page"},
    "history": {"history"},
    "job": {"attempts", "job", "relations"},
}
"""What each screen asks beside the snapshot."""

BENEATH = {JOB: {"page"}}
"""What a screen beneath may have asked before another opened over it."""

SAYS_SO = ("unknown", "could not")
FRAME = 2
"""The lines above a screen."""
SETTLED = 0.4
"""Seconds after which a screen has asked about its first row."""


class Seen:
    """What a screen shows, also while its filter is typed, and what it asked for."""

    def __init__(self, asked: set[str]) -> None:
        self.asked = asked
        self.asked_first: set[str] = set()
        """What was asked before a filter was typed."""
        self.text = ""
        self.nones: set[str] = set()
        self.filled: set[str] = set()

    def add(self, console: Console) -> None:
        lines = console.text.splitlines()[FRAME:-1]
        self.text += re.sub(r"\d\d:\d\d:\d\dZ", "", "\n".join([*lines, ""]))
        self.nones |= nones_in(lines)
        self.filled |= {str(each.id) for each in console.app.screen.query("KeyedTable") if getattr(each, "keys", ())}


@pytest.fixture
def stuck(database_url: str) -> Iterator[str]:
    with locked_queue(database_url) as url:
        yield url


def see(stuck: str, place: str, late: str | None = None, whole: Seen | None = None) -> Seen:
    """Open a screen while a function is late, and return what it shows when all is answered.

    `whole` is what it shows while no function is late.
    """
    source = LateSource(stuck)
    source.late = late
    job = next(each.job.id for each in source.queue.states() if each.state is JobState.FAILED)
    seen = Seen(source.asked)

    async def scenario(console: Console) -> None:
        await console.reach(place)
        await console.answered()
        # What is asked about the first row is asked after the cursor has rested on it, if its list is not late.
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLED):
                await console.until(lambda: whole is not None and whole.asked_first <= source.asked)
        await console.until(lambda: whole is None or late not in whole.asked_first or late in source.asked)
        await console.answered()
        seen.add(console)
        seen.asked_first = set(source.asked)
        if hasattr(console.screen(place), "action_filter"):
            await console.press("slash")
            await console.until(lambda: late is None or late in source.asked)
            await console.answered()
            seen.add(console)

    options: dict[str, Any] = {"open": f"job/{job}"} if place == JOB else {"screen": place}
    run(scenario, source=source, size=(120, 34), **options)
    return seen


@pytest.mark.parametrize("place", PLACES)
def test_a_screen_keeps_what_was_read_and_words_nothing_unknown_as_none(stuck: str, place: str) -> None:
    whole = see(stuck, place)
    assert ASKED.get(place, set()) <= whole.asked
    problems = []
    for late in sorted(whole.asked - BENEATH.get(place, set())):
        part = see(stuck, place, late, whole)
        if nones := part.nones - whole.nones:
            problems.append(f"without {late} it says {nones}")
        if part.text != whole.text and not any(each in part.text for each in SAYS_SO):
            problems.append(f"without {late} nothing is unknown")
        if late != "snapshot" and len(lost := whole.filled - part.filled) > 1:
            problems.append(f"without {late} the rows of {lost} are missing")
    assert not problems


def test_the_screens_ask_every_reading_function() -> None:
    assert set().union(*ASKED.values()) == {*READERS} - {"snapshot"}
