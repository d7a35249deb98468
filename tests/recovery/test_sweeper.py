"""The sweeping service: when it sweeps, and why it waits after an outage."""

from __future__ import annotations

from typing import Any, cast

import pytest
from support.recovery_fixture import minutes, seconds

from gw_core import Events, RecoverySettings
from gw_core.errors import DatabaseUnavailableError
from gw_core.front_ends import LockTimeoutError, MaintenanceFailed
from gw_core.maintenance.sweeper import Sweep, Sweeper

MINUTE = 60.0


class FakeSweep:
    """Counts the sweeps; out of reach while `is_away`."""

    def __init__(self) -> None:
        self.is_away = False
        self.is_blocked = False
        self.has_locked_queue = False
        self.with_orphans: list[bool] = []
        self.with_queues: list[bool] = []

    def is_any_queue_locked(self) -> bool:
        if self.is_away:
            raise DatabaseUnavailableError("the server is away")
        return self.has_locked_queue

    def run(self, *, with_orphans: bool, with_queues: bool, since_server_start: bool) -> None:
        assert since_server_start
        self.with_queues.append(with_queues)
        if self.is_blocked:
            raise LockTimeoutError("another session is sweeping")
        self.with_orphans.append(with_orphans)


class World:
    """A sweeper with a clock that the test moves."""

    def __init__(self, **settings: Any) -> None:
        self.now = 0.0
        self.sweep = FakeSweep()
        self.failures: list[MaintenanceFailed] = []
        self.held_up_at: float | None = None
        events = Events()
        events.on(MaintenanceFailed, self.failures.append)
        self.sweeper = Sweeper(
            cast(Sweep, self.sweep),
            RecoverySettings(**settings),
            events=events,
            every=seconds(60),
            held_up_at=lambda: self.held_up_at,
            clock=lambda: self.now,
        )

    def that_has_begun(self) -> World:
        self.sweeper.step()
        self.now += 3 * MINUTE
        return self

    def turn_for(self, duration: float) -> int:
        """Turn every minute for so long; return how many sweeps there were."""
        before = len(self.sweep.with_orphans)
        end = self.now + duration
        while self.now < end:
            rest = self.sweeper.step()
            assert seconds(54) <= rest <= seconds(66)
            self.now += MINUTE
        return len(self.sweep.with_orphans) - before


@pytest.fixture
def fresh() -> World:
    return World()


@pytest.fixture
def world() -> World:
    """A world in which the sweeper has been there for long enough to sweep."""
    return World().that_has_begun()


def test_a_sweeper_that_has_just_started_first_waits_for_heartbeats_of_all_workers(fresh: World) -> None:
    assert fresh.turn_for(2.5 * MINUTE) == 0
    assert fresh.turn_for(MINUTE) == 1


def test_queues_are_checked_only_while_one_is_locked(world: World) -> None:

    world.sweeper.step()
    world.sweep.has_locked_queue = True
    world.sweeper.step()

    assert world.sweep.with_queues == [False, True]


def test_the_time_to_send_a_heartbeat_begins_with_the_first_contact(fresh: World) -> None:
    fresh.sweep.is_away = True
    fresh.turn_for(10 * MINUTE)
    fresh.sweep.is_away = False

    assert fresh.turn_for(2.5 * MINUTE) == 0
    assert fresh.turn_for(MINUTE) == 1


def test_it_sweeps_every_interval(world: World) -> None:
    assert world.turn_for(5 * MINUTE) == 5


def test_locks_without_a_heartbeat_are_swept_every_ten_minutes(world: World) -> None:
    world.turn_for(21 * MINUTE)

    assert [at for at, searched in enumerate(world.sweep.with_orphans) if searched] == [0, 10, 20]


def test_a_short_orphan_threshold_sweeps_more_often() -> None:
    world = World(orphans_after=minutes(4)).that_has_begun()
    world.turn_for(3 * MINUTE)

    assert world.sweep.with_orphans == [True, True, True]


def test_after_an_outage_it_waits_for_the_others_to_come_back(world: World) -> None:
    world.turn_for(2 * MINUTE)
    world.sweep.is_away = True
    assert world.turn_for(10 * MINUTE) == 0
    world.sweep.is_away = False

    assert world.turn_for(5 * MINUTE) == 0
    assert world.turn_for(3 * MINUTE) == 3
    assert len(world.failures) == 1


def test_after_a_short_outage_it_goes_on_immediately(world: World) -> None:
    world.turn_for(2 * MINUTE)
    world.sweep.is_away = True
    world.turn_for(2 * MINUTE)
    world.sweep.is_away = False

    assert world.turn_for(2 * MINUTE) == 2


def test_after_being_frozen_itself_it_waits_too(world: World) -> None:
    world.turn_for(2 * MINUTE)
    world.now += 60 * MINUTE

    assert world.turn_for(5 * MINUTE) == 0
    assert world.turn_for(MINUTE) == 1


def test_a_sweeper_whose_own_heartbeats_came_too_late_first_waits_for_heartbeats_of_all_workers(world: World) -> None:
    world.turn_for(2 * MINUTE)
    world.held_up_at = world.now

    assert world.turn_for(5 * MINUTE) == 0
    assert world.turn_for(2 * MINUTE) == 2


def test_a_sweeper_that_another_session_blocks_reports_it_once_for_each_time_it_is_blocked(world: World) -> None:
    for _ in range(2):
        world.sweep.is_blocked = True
        world.turn_for(3 * MINUTE)
        world.sweep.is_blocked = False
        assert world.turn_for(2 * MINUTE) == 2

    assert [str(failure.error) for failure in world.failures] == ["another session is sweeping"] * 2
