"""Real servers: a primary that dies, its standby that takes over, and one that comes back as a standby."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from support.databases import install_schema
from support.postgres_server import Server
from support.queue_fixture import NEVER, Gate, QueueFixture, RunRecord, ms
from support.stall_clock import StallClock
from support.waiting import wait_until

from gw_core.errors import PermissionDeniedError
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


def test_a_command_that_watches_goes_on_after_a_restart(primary: Server) -> None:
    command = [sys.executable, "-m", "gw_cli", "stats", "--watch", "--interval", "200ms", "--json"]
    with subprocess.Popen(
        [*command, "--connection", primary.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert '"total"' in watching.stdout.readline()
        primary.stop()
        assert "trying again until it is back" in watching.stderr.readline()
        primary.start()
        site = QueueFixture(primary.url)
        site.fill(3)
        site.close()
        lines = iter(watching.stdout.readline, "")
        assert next(line for line in lines if json.loads(line)["total"]["count"] == 3)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == -signal.SIGINT
        assert watching.stderr.read().count("trying again") == 0


def _wait_for_rejections(server: Server, count: int) -> None:
    """Wait until the server has rejected this many connections that a role opened without the right to."""
    log = server.folder / "log"
    wait_until(lambda: log.read_text().count("permission denied for database") >= count, what="rejections")


def test_a_new_reason_of_an_outage_is_reported_once(primary: Server) -> None:
    site = QueueFixture(primary.url)
    site.run("create role app login")
    site.client.grants.grant("worker", "app")
    site.run("revoke connect on database postgres from public")
    site.run("grant connect on database postgres to app")
    url = primary.url.replace("postgres@", "app@")
    with site.running({"work": RunRecord()}, url=url, poll_interval=ms(50)) as running:
        running.recorded.wait_for(PoolListening)
        site.run("revoke connect on database postgres from app")
        put_on_disk(site)
        site.close()
        primary.stop()
        running.recorded.wait_for(PoolConnectionLost)
        primary.start()
        running.recorded.wait_for(PoolConnectionLost, lambda event: isinstance(event.error, PermissionDeniedError))
        _wait_for_rejections(primary, 5)
        primary.run("grant connect on database postgres to app")
        running.recorded.wait_for(PoolConnectionRestored)

    first, second = running.recorded.of(PoolConnectionLost)
    assert (first.attempts, second.attempts > 0) == (0, True)
    reasons = [each for each in running.log.of("warning") if "claim jobs" in each]
    assert [each for each in reasons if "lacks the right to connect" in each] == reasons[1:]
    assert reasons[1].startswith("Still cannot claim jobs after")


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

    # Each service reports its own failure. The connection of claims has two reasons: the server ends, then it is gone.
    reported = [
        (event.name, getattr(event, "service", None), getattr(event, "operation", None))
        for event in running.recorded.all
        if "connection" in event.name or event.name.endswith("error")
    ]
    assert all(reported.count(each) <= 2 for each in reported), reported
