"""Real servers: a primary that dies, its standby that takes over, and one that comes back as a standby."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import psycopg
import pytest
from support.databases import install_schema
from support.postgres_server import Server
from support.queue_fixture import NEVER, Gate, QueueFixture, RunRecord, ms
from support.stall_clock import StallClock
from support.waiting import wait_until

from gw_core.events import JobCompleted, JobLockLost, PoolConnectionLost, PoolConnectionRestored
from gw_core.front_ends import HeartbeatRestored, PoolListening

pytestmark = pytest.mark.once


@pytest.fixture
def primary() -> Iterator[Server]:
    with Server() as server:
        install_schema(server.url)
        yield server


@pytest.fixture
def standby(primary: Server) -> Iterator[Server]:
    with Server(copy_of=primary) as server:
        primary.run("alter system set synchronous_standby_names = '*'")
        primary.run("select pg_reload_conf()")
        wait_until(
            lambda: primary.run("select 1 from pg_stat_replication where sync_state = 'sync'"),
            what="the standby to follow",
        )
        yield server


def put_on_disk(site: QueueFixture) -> None:
    """Commit something durably, and so all that was committed before: a claim that a crash undoes is another story."""
    site.run("create table public.on_disk ()")


def both(primary: Server, standby: Server) -> str:
    return (
        f"postgres://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
        "?target_session_attrs=read-write"
    )


def test_a_failover_costs_no_job_and_no_result(primary: Server, standby: Server) -> None:
    site = QueueFixture(primary.url)
    gate = site.gate()
    site.fill(5)
    with site.running({"work": gate}, url=both(primary, standby), poll_interval=NEVER) as running:
        gate.wait_for(5)
        put_on_disk(site)
        site.close()
        primary.stop(signal.SIGKILL)
        gate.open()
        running.recorded.wait_for(PoolConnectionLost, count=2)
        standby.run("alter system set synchronous_standby_names = ''")
        standby.promote()
        running.recorded.wait_for(PoolConnectionRestored, count=2)
        after = QueueFixture(standby.url)
        after.fill(2)
        running.recorded.wait_for(JobCompleted, count=7)
        # Two states, each reported once when it begins and once when it ends.
        assert len(running.recorded.of(PoolConnectionLost)) == len(running.recorded.of(PoolConnectionRestored)) == 2

    assert running.recorded.of(JobLockLost) == []
    assert (after.jobs(), after.held()) == ([], [])
    after.close()


def test_a_worker_that_was_led_to_the_standby_does_not_stay_there(primary: Server, standby: Server) -> None:
    primary.run("alter system reset synchronous_standby_names")
    primary.run("select pg_reload_conf()")
    anywhere = f"postgres://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres"
    site = QueueFixture(primary.url)
    options = {"url": anywhere, "poll_interval": ms(50), "heartbeat_interval": ms(100)}
    with site.running({"work": RunRecord()}, **options) as running:
        running.recorded.wait_for(PoolListening)
        site.close()
        # Without target_session_attrs the first server that answers is taken: now the standby, which works for looks.
        primary.stop()
        running.recorded.wait_for(PoolConnectionLost)
        wait_until(lambda: _is_visited(standby), what="the worker to come to the standby")
        primary.start()
        running.recorded.wait_for(PoolConnectionRestored)
        after = QueueFixture(primary.url)
        heartbeat = (
            "select 1 from _private_gw_workers where last_heartbeat_at > clock_timestamp() - interval '1 second'"
        )
        wait_until(lambda: after.run(heartbeat), what="a heartbeat at the primary")
        after.fill(3)
        running.recorded.wait_for(JobCompleted, count=3)
        assert len(running.recorded.of(PoolConnectionLost)) <= 2
        after.close()


def test_a_crash_and_restart_needs_no_hand(primary: Server) -> None:
    site = QueueFixture(primary.url)
    gate: Gate = site.gate()
    site.fill(3)
    with site.running({"work": gate}, poll_interval=NEVER) as running:
        gate.wait_for(3)
        put_on_disk(site)
        site.close()
        primary.stop(signal.SIGKILL)
        gate.open()
        running.recorded.wait_for(PoolConnectionLost, count=2)
        primary.start()
        after = QueueFixture(primary.url)
        after.fill(1)
        running.recorded.wait_for(JobCompleted, count=4)
        assert running.recorded.of(JobLockLost) == []
        after.close()


def test_a_full_server_is_waited_for(primary: Server) -> None:
    site = QueueFixture(primary.url)
    with site.running({"work": RunRecord()}, poll_interval=ms(50)) as running:
        running.recorded.wait_for(PoolListening)
        others = _take_all_connections(primary)
        site.kill_connections("gw:claim")
        running.recorded.wait_for(PoolConnectionLost)
        others += _take_all_connections(primary)
        site.fill(1)
        for other in others:
            other.close()
        running.recorded.wait_for(JobCompleted)
        running.recorded.wait_for(PoolConnectionRestored)

    assert len(running.recorded.of(PoolConnectionLost)) == 1
    site.close()


def _take_all_connections(server: Server) -> list[psycopg.Connection[tuple[object, ...]]]:
    taken = []
    while True:
        try:
            taken.append(psycopg.connect(server.url, connect_timeout=60))
        except psycopg.OperationalError:
            return taken


def _is_visited(standby: Server) -> bool:
    log = (standby.folder / "log").read_text()
    return "in a read-only transaction" in log or "during recovery" in log


def test_an_idle_worker_takes_its_first_job_soon_after_an_outage_and_has_said_little(primary: Server) -> None:
    site = QueueFixture(primary.url)
    with site.running({"work": RunRecord()}, poll_interval=NEVER, heartbeat_interval=ms(200)) as running:
        running.recorded.wait_for(PoolListening)
        site.close()
        primary.stop()
        running.recorded.wait_for(PoolConnectionLost)
        # Long enough for the pauses between the tries to have grown to their longest.
        wait_until(lambda: running.claimer.tries >= 7)  # type: ignore[union-attr]
        primary.start()
        with StallClock() as watch:
            after = QueueFixture(primary.url)
            after.fill(1)
            running.recorded.wait_for(JobCompleted)
        assert watch.seconds < 30  # the pauses between its tries do not grow without end
        running.recorded.wait_for(HeartbeatRestored)
        after.close()

    said = [type(event) for event in running.recorded.all if "connection" in event.name or event.name.endswith("error")]
    assert all(said.count(kind) <= 2 for kind in said), said
