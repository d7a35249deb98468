"""A paused queue is no worker: sweeps, lists and graphile_worker_rs leave its lock alone."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from support.recovery_fixture import RecoveryFixture
from support.rust_schema import WORKERS

from gw_core import AsyncClient
from gw_core.errors import InvalidInputError

LOCK = "gw-pause:slow"


def rust_workers(ward: RecoveryFixture) -> list[str]:
    return [row["id"] for row in ward.run("select id from _private_workers order by id")]


def test_a_paused_queue_has_a_heartbeat_for_graphile_worker_rs(own_ward: RecoveryFixture) -> None:
    ward = own_ward
    ward.hands.execute(WORKERS)
    ward.client.pauses.pause("queue:slow")
    assert rust_workers(ward) == [LOCK]
    assert ward.client.workers.list() == []

    ward.client.pauses.resume("queue:slow")
    assert rust_workers(ward) == []


def test_a_client_on_an_event_loop_keeps_the_heartbeat_too(own_ward: RecoveryFixture) -> None:
    ward = own_ward
    ward.hands.execute(WORKERS)

    async def pause_and_resume() -> None:
        async with AsyncClient(ward.url, schema=ward.schema) as client:
            await client.pauses.pause("queue:slow", "task:mail")
            assert rust_workers(ward) == [LOCK]
            await client.pauses.resume("queue:slow", "task:mail")
            assert rust_workers(ward) == []

    asyncio.run(pause_and_resume())


def test_a_sweep_leaves_a_paused_queue_locked(ward: RecoveryFixture) -> None:
    ward.locked_by("dead", queue_name="slow")
    ward.dead_worker()
    ward.client.pauses.pause("queue:slow")

    report = ward.sweep(orphans_after=timedelta(0))

    assert [each.id for each in report.workers] == ["dead"]
    assert report.jobs == 1
    assert ward.held() == [LOCK]


def test_a_paused_queue_is_not_unlocked_but_resumed(ward: RecoveryFixture) -> None:
    ward.client.pauses.pause("queue:slow")

    with pytest.raises(InvalidInputError, match="gw resume"):
        ward.client.workers.unlock([LOCK])
    assert ward.client.workers.locks([LOCK])[0].queues == 0
    assert ward.held() == [LOCK]


def test_resuming_releases_a_lock_that_was_left_without_its_pause(ward: RecoveryFixture) -> None:
    ward.client.pauses.pause("queue:slow")
    ward.run("delete from _private_gw_pauses")

    ward.client.pauses.resume("queue:slow")

    assert ward.held() == []
