"""Connections that are dead, receive nothing or lead to the wrong server, and how a worker notices."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from support.packet_drop_proxy import PacketDropProxy
from support.queue_fixture import NEVER, QueueFixture, RunRecord, ms
from support.waiting import wait_until

from gw_core import Events
from gw_core.errors import DatabaseError, DatabaseUnavailableError
from gw_core.events import JobCompleted, PoolConnectionLost, PoolConnectionRestored
from gw_core.front_ends import (
    Database,
    DeadlockError,
    HeartbeatFailed,
    HeartbeatRestored,
    LockTimeoutError,
    PoolListening,
    PoolListenLost,
    PoolListenRestored,
    ReadOnlyError,
    StatementTimeoutError,
)
from gw_core.postgres.connection import database, notifications
from gw_core.postgres.connection.connections import ConnectionPool, SharedConnection
from gw_core.postgres.connection.error_mapping import needs_connection, rejects_a_row, translate
from gw_core.worker import listener


@pytest.fixture
def hole(site: QueueFixture) -> Iterator[PacketDropProxy]:
    hole = PacketDropProxy(site.url)
    yield hole
    hole.close()


# -- no answers -------------------------------------------------------------------------------------------------------


def test_every_connection_is_set_to_notice_a_dead_network_in_seconds(site: QueueFixture) -> None:
    given = conninfo_to_dict(Database(site.url).libpq_conninfo("claim"))
    of_several = conninfo_to_dict(Database("host=one,other dbname=queue").libpq_conninfo("claim"))

    assert (given["tcp_user_timeout"], given["keepalives_idle"], given["connect_timeout"]) == ("10000", "10", "10")
    assert of_several["connect_timeout"] == "4"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[database.QueueConnection]:
    """Every connection that this process opens from now on."""
    connections: list[database.QueueConnection] = []
    connect = Database.connect

    def recorded(*args: Any, **options: Any) -> database.QueueConnection:
        connections.append(connect(*args, **options))
        return connections[-1]

    monkeypatch.setattr(Database, "connect", recorded)
    return connections


def test_a_network_that_swallows_everything_is_noticed_and_nothing_is_lost(
    site: QueueFixture, hole: PacketDropProxy, opened: list[database.QueueConnection]
) -> None:
    gate = site.gate()
    site.fill(1, task="quick")
    with site.running({"work": gate, "quick": RunRecord()}, url=hole.url, poll_interval=ms(100)) as running:
        running.recorded.wait_for(JobCompleted)
        site.fill(3)
        gate.wait_for(3)
        hole.swallow()
        # From here on, half a second without a response counts as twenty seconds do otherwise.
        for connection in opened:
            connection.response_timeout = ms(500)
        gate.open()
        running.recorded.wait_for(PoolConnectionLost, count=2)
        site.fill(2)
        hole.let_through()
        running.recorded.wait_for(JobCompleted, count=6)
        running.recorded.wait_for(PoolConnectionRestored, count=2)
        assert len(running.recorded.of(PoolConnectionLost)) == 2

    assert site.held() == []
    assert any("has not answered for" in str(event.error) for event in running.recorded.of(PoolConnectionLost))


def test_the_servers_own_limit_ends_a_claim_before_our_timeout_does() -> None:
    from gw_core.postgres.road.claims import CLAIM_PLAN
    from gw_core.postgres.road.job_store import SETTLE_PLAN

    for plan in (CLAIM_PLAN, SETTLE_PLAN):
        limit = timedelta(seconds=float(plan["statement_timeout"].removesuffix("s")))
        assert limit < database.RESPONSE_TIMEOUT


@pytest.mark.parametrize("is_noisy", [True, False], ids=["notifications arrive", "nothing arrives"])
def test_the_deadline_of_a_statement_counts_from_its_start(
    site: QueueFixture, hole: PacketDropProxy, monkeypatch: pytest.MonkeyPatch, is_noisy: bool
) -> None:
    checks = count()
    # Half a second passes with each reading of the clock: when something arrived, or a tenth of a real second later.
    monkeypatch.setattr(database, "monotonic", lambda: next(checks) / 2)
    connection = Database(hole.url).connect("test", response_timeout=timedelta(seconds=10))
    connection.execute("listen noise")
    hole.swallow_requests()  # the server idles, and so sends its notifications
    with noise(site.url if is_noisy else None):
        before = next(checks)
        with pytest.raises(psycopg.OperationalError, match="has not answered for 10 s"):
            connection.execute("select 1")
        asked = next(checks) - before

    assert connection.closed
    assert asked <= 2 * 10 + 5


@contextmanager
def noise(url: str | None) -> Iterator[None]:
    """Notify all the time while the block runs; with no `url` not at all."""
    is_over = threading.Event()

    def make() -> None:
        if url is None:
            return
        with psycopg.connect(url, autocommit=True) as other:
            while not is_over.wait(0.01):
                other.execute("select pg_notify('noise', random()::text)")

    thread = threading.Thread(target=make)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_time_in_which_this_process_stood_still_does_not_count_as_waiting(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = count()
    with Database(site.url).connect("test", response_timeout=timedelta(seconds=30)) as connection:
        # An hour passes between the second and the third reading of the clock.
        monkeypatch.setattr(database, "monotonic", lambda: time.monotonic() + (3600.0 if next(checks) > 1 else 0.0))
        row = connection.execute("select repeat('x', 4000000) from pg_sleep(0.3)").fetchone()

    assert row is not None
    assert len(row[0]) == 4_000_000


# -- deafness ---------------------------------------------------------------------------------------------------------


def test_an_unresponsive_listener_notices_it_by_a_ping_and_listens_again(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_channel, echo = notifications.own_channel, notifications.PING
    listened: list[str] = []

    def channel(worker_id: str) -> str:
        if listened:  # this one receives notifications, however late its ping is on a machine that stands still
            monkeypatch.setattr(listener, "PING_TIMEOUT", 600.0)
        monkeypatch.setattr(notifications, "PING", echo)
        listened.append(worker_id)
        return own_channel(worker_id)

    monkeypatch.setattr(notifications, "PING", "gw:somewhere else")
    monkeypatch.setattr(notifications, "own_channel", channel)
    monkeypatch.setattr(listener, "PING_TIMEOUT", 0.3)
    with site.running({"work": RunRecord()}, poll_interval=NEVER, heartbeat_interval=ms(200)) as running:
        running.recorded.wait_for(PoolListenLost)
        running.recorded.wait_for(PoolListening, count=2)
        running.recorded.wait_for(PoolListenRestored)
        site.fill(1)
        running.recorded.wait_for(JobCompleted)

    assert len(running.recorded.of(PoolListenLost)) == 1
    assert len([each for each in running.log.of("warning") if "LISTEN" in each]) == 1


def test_a_pool_that_receives_notifications_needs_no_ping() -> None:
    recorded = listener.NotificationHealth(
        worker_id="gw-1",
        events=Events(),
        on_jobs=lambda count: None,
        on_migration=lambda: None,
        on_cancel_request=lambda: None,
        on_claim_rules=lambda: None,
    )

    assert recorded.needs_ping()  # unknown at first
    assert recorded.needs_ping()
    recorded.on_notification(notifications.Notification(notifications.PING, "", 1))
    assert not recorded.needs_ping()
    assert recorded.needs_ping()


def test_a_pool_that_receives_a_ping_of_another_needs_none_of_its_own(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, heartbeat_interval=timedelta(minutes=2)) as running:
        running.recorded.wait_for(PoolListening)
        pool = running.pool
        assert pool is not None
        wait_until(pool.notifications.needs_ping)
        with site.running({"work": RunRecord()}, heartbeat_interval=timedelta(minutes=2)):
            wait_until(lambda: not pool.notifications.needs_ping())


# -- servers that take no writes --------------------------------------------------------------------------------------


def test_a_server_that_takes_no_writes_is_left_for_another(site: QueueFixture) -> None:
    name = conninfo_to_dict(site.url)["dbname"]
    with site.running({"work": RunRecord()}, poll_interval=ms(50), heartbeat_interval=ms(100)) as running:
        running.recorded.wait_for(PoolListening)
        site.run(f'alter database "{name}" set default_transaction_read_only = on')
        site.kill_connections("gw:claim")
        site.kill_connections("gw:heartbeat")
        running.recorded.wait_for(PoolConnectionLost)
        running.recorded.wait_for(HeartbeatFailed, lambda event: type(event.error) is ReadOnlyError)
        site.run(f'alter database "{name}" reset default_transaction_read_only')
        # Connections made until then would stay read-only.
        running.recorded.wait_for(PoolConnectionRestored)
        running.recorded.wait_for(HeartbeatRestored)
        site.fill(1)
        running.recorded.wait_for(JobCompleted)


@pytest.mark.parametrize("kind", [SharedConnection, ConnectionPool])
def test_a_connection_that_leads_to_a_standby_is_not_lent_again(site: QueueFixture, kind: type) -> None:
    connections = kind(Database(site.url))

    def write() -> int:
        with connections.connection() as connection:
            pid = int(connection.info.backend_pid)
            connection.execute("create table if not exists public.written ()")
            return pid

    first = write()
    with connections.connection() as connection:
        connection.execute("set default_transaction_read_only = on")
    with pytest.raises((psycopg.Error, ReadOnlyError)):
        write()

    assert write() != first
    connections.close()


# -- what passes ------------------------------------------------------------------------------------------------------


FAILURES: list[tuple[str, type[DatabaseError], bool, str]] = [
    ("25006", ReadOnlyError, True, "a standby"),
    ("40001", DeadlockError, False, "serialization"),
    ("40P01", DeadlockError, False, "deadlock"),
    ("55P03", LockTimeoutError, False, "lock timeout"),
    ("57014", StatementTimeoutError, False, "statement timeout"),
    ("53100", DatabaseUnavailableError, True, "full disk"),
    ("53200", DatabaseUnavailableError, True, "out of memory"),
    ("53300", DatabaseUnavailableError, True, "too many connections"),
    ("57P01", DatabaseUnavailableError, True, "shutdown"),
    ("57P02", DatabaseUnavailableError, True, "crash of another backend"),
    ("57P03", DatabaseUnavailableError, True, "starting up"),
    ("08006", DatabaseUnavailableError, True, "connection failure"),
    ("XX000", DatabaseError, True, "internal error"),
]


def test_each_failure_that_passes_is_known(site: QueueFixture) -> None:
    for code, kind, reconnects, what in FAILURES:
        with pytest.raises(psycopg.Error) as caught:
            site.run(f"do $$begin raise sqlstate '{code}' using message = 'trouble'; end$$")
        error = translate(caught.value)
        error.__cause__ = caught.value

        assert type(error) is kind, what
        assert needs_connection(error) is reconnects, what
        assert not rejects_a_row(error) or kind is DatabaseError, what


@pytest.mark.parametrize("code", ["53100", "40P01", "XX000"])
def test_a_worker_outlives_it_says_so_once_and_loses_nothing(own_site: QueueFixture, code: str) -> None:
    own_site.run("create table public.trouble (is_on boolean)")
    own_site.run("insert into public.trouble values (false)")
    own_site.run(
        "create function public.trouble() returns trigger language plpgsql as $$begin "
        "if (select is_on from public.trouble) then "
        f"raise sqlstate '{code}' using message = 'could not extend file'; end if; return null; end$$"
    )
    for change in ("update", "delete"):
        own_site.run(
            f"create trigger trouble_{change} before {change} on graphile_worker._private_jobs "
            "for each statement execute function public.trouble()"
        )
    own_site.fill(3)
    own_site.run("update public.trouble set is_on = true")
    with own_site.running({"work": RunRecord()}, poll_interval=ms(30)) as running:
        running.recorded.wait_for(PoolConnectionLost)
        own_site.run("update public.trouble set is_on = false")
        running.recorded.wait_for(JobCompleted, count=3)
        running.recorded.wait_for(PoolConnectionRestored)

    assert len([each for each in running.log.of("warning") if each.startswith("Cannot claim jobs")]) == 1
    assert own_site.held() == []


def test_the_kernel_limits_every_connection_of_a_worker(
    site: QueueFixture, hole: PacketDropProxy, opened: list[database.QueueConnection]
) -> None:
    gate = site.gate()
    site.fill(2)
    with site.running({"work": gate}, url=make_conninfo(hole.url, connect_timeout=60)) as running:
        running.recorded.wait_for(PoolListening)
        gate.wait_for(2)
        gate.open()
        running.recorded.wait_for(JobCompleted, count=2)
        limits = [_user_timeout(each) for each in opened if not each.closed]

    assert limits == [10_000, 10_000, 10_000, 10_000]


def _user_timeout(connection: psycopg.Connection[Any]) -> int:
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        return end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
