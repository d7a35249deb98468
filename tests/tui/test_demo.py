"""The recording that `gw tui --demo` plays has an answer for every screen, and shows what an operator meets."""

from __future__ import annotations

import asyncio

import pytest
from console_fixture import console_on

from gw_core import JobState, Selection
from gw_tui.data.recording import DEMO, ReplaySource
from gw_tui.rules.commands import SCREENS


@pytest.fixture(scope="module")
def demo() -> ReplaySource:
    return ReplaySource(DEMO)


@pytest.mark.parametrize("screen", [each.id for each in SCREENS])
def test_every_screen_has_an_answer(screen: str) -> None:
    async def inside() -> None:
        app = console_on(ReplaySource(DEMO), screen=screen, period=60.0)
        async with app.run_test(size=(120, 34)) as pilot:
            while app.snapshot is None or app.front is None:
                await pilot.pause(0.01)
            query = app.front.current_query()
            if query is not None:
                query.ask(app.source)

    asyncio.run(inside())


def test_all_states_are_there_and_the_numbers_agree(demo: ReplaySource) -> None:
    snapshot, statistics = demo.snapshot(), demo.statistics()

    assert all(count.value for count in statistics.states.values())
    assert statistics.states[JobState.READY].value == snapshot.ready.value
    assert statistics.states[JobState.RUNNING] == snapshot.running
    assert any(worker.is_stale for worker in snapshot.workers)


@pytest.mark.parametrize("state", JobState)
def test_the_jobs_of_each_state_can_be_opened(demo: ReplaySource, state: JobState) -> None:
    jobs = demo.page(Selection.of(state=state)).jobs

    assert jobs
    assert all(demo.job(each.job.id) is not None for each in jobs)
