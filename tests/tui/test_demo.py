"""The recording that `gw tui --demo` plays has an answer for every screen, and shows what an operator meets."""

from __future__ import annotations

import pytest
from console_fixture import Console, play

from gw_core import JobState, Selection
from gw_tui.data.recording import ReplaySource


@pytest.fixture(scope="module")
def demo() -> ReplaySource:
    """The recording where it begins: its answers agree when no time passes between them."""
    return ReplaySource(clock=lambda: 0.0)


def test_every_screen_has_an_answer() -> None:
    async def scenario(console: Console) -> None:
        await console.until(lambda: console.state.snapshot is not None)
        for screen in console.app.MODES:
            console.app.visit(screen)
            await console.reach(screen)
            await console.answered()

    play(scenario, ReplaySource(), period=60.0)


def test_all_states_are_there_and_the_numbers_agree(demo: ReplaySource) -> None:
    snapshot, statistics = demo.snapshot(), demo.statistics()

    assert all(count.value for count in statistics.states.values())
    assert statistics.states[JobState.READY].value == snapshot.ready.value
    assert statistics.states[JobState.RUNNING] == snapshot.running
    assert any(worker.is_stale for worker in snapshot.workers)


@pytest.mark.parametrize("state", [each for each in JobState if each is not JobState.WAITING])
def test_the_jobs_of_each_state_can_be_opened(demo: ReplaySource, state: JobState) -> None:
    jobs = demo.page(Selection.of(state=state)).jobs

    assert jobs
    assert all(demo.job(each.job.id) is not None for each in jobs)
