"""The demo plays back what was recorded, when it was recorded, and takes no actions."""

from __future__ import annotations

from typing import Any, cast

import pytest
from console_fixture import Console, play

from gw_core.errors import GraphileWorkerError
from gw_tui.data.recording import ReplaySource


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_answers_come_when_they_came_and_the_last_one_stays() -> None:
    clock = Clock()
    replay = ReplaySource(clock=clock)
    first = replay.snapshot().at
    clock.now += 5
    later = replay.snapshot().at
    clock.now += replay.playback.length
    last = replay.snapshot().at
    clock.now += 60

    assert (later - first).total_seconds() == 5
    assert later < last == replay.snapshot().at


def test_the_demo_says_what_it_does_not_hold_and_takes_no_acts() -> None:
    replay = ReplaySource()

    with pytest.raises(GraphileWorkerError, match="the demo does not hold this"):
        replay.job(7)
    with pytest.raises(GraphileWorkerError, match="actions are unavailable"):
        replay.run(cast(Any, None))
    assert replay.info.is_read_only
    assert replay.info.where == "app@demo/shop (demo)"


def test_the_demo_is_paused_moved_and_marks_its_end() -> None:
    clock = Clock()
    replay = ReplaySource(clock=clock)
    playback, first = replay.playback, replay.snapshot().at

    clock.now += 3
    playback.toggle()
    clock.now += 100
    assert (playback.is_paused, playback.position) == (True, 3.0)
    assert (replay.snapshot().at - first).total_seconds() == 3
    playback.seek(1_000)
    assert (playback.is_over, playback.position) == (True, playback.length)
    playback.seek(1 - playback.length)
    assert (playback.is_over, playback.position) == (False, 1.0)
    playback.toggle()
    clock.now += 1_000
    assert (playback.is_over, playback.position) == (True, playback.length)
    playback.toggle()
    assert (playback.is_over, playback.is_paused, playback.position) == (False, False, 0.0)


def test_the_console_says_that_it_replays_and_where_it_is() -> None:
    clock = Clock()

    async def scenario(console: Console) -> None:
        await console.shows("REPLAY 00:00 of 02:00")
        assert "LIVE" not in console.text
        assert console.state.is_listening
        await console.press("space")
        await console.shows("REPLAY PAUSED 00:00 of 02:00")
        await console.press(*["greater_than_sign"] * 4)
        await console.shows("REPLAY ENDED 02:00 of 02:00")
        await console.press("less_than_sign")
        await console.shows("REPLAY PAUSED 01:30 of 02:00")

    play(scenario, ReplaySource(clock=clock), size=(120, 24), period=30.0)


def test_the_console_shows_the_demo_read_only() -> None:
    async def scenario(console: Console) -> None:
        await console.shows("READ-ONLY")
        await console.until(lambda: console.state.snapshot is not None)
        assert console.app.check_action("sweep_now", ()) is False
        assert console.app.check_action("run_doctor", ()) is True

    play(scenario, ReplaySource(), period=30.0, screen="jobs")
