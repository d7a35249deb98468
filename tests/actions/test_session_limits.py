"""Guarded sessions: bounded by the server, read-only where asked for, cancelled and woken from other threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest
from support.jobs_in_states import Queue
from support.waiting import wait_until

from gw_core import Client, Selection, SessionLimits
from gw_core.errors import DatabaseUnavailableError, InvalidSettingError
from gw_core.front_ends import Database, FrontEnd, LockTimeoutError, ReadOnlyError, StatementTimeoutError

A_LONG_WAIT = timedelta(minutes=5)


def slow(queue: Queue, *, seconds: float = 600) -> None:
    """Make every query of the tasks take longer than a test may."""
    queue.rows("alter table graphile_worker._private_tasks rename to slow_tasks")
    queue.rows(
        "create view graphile_worker._private_tasks as select tasks.* from graphile_worker.slow_tasks as tasks, "
        f"(select pg_sleep({seconds}) offset 0) as nap"
    )
    queue.rows("insert into graphile_worker.slow_tasks (identifier) values ('mail')")


# -- limits -----------------------------------------------------------------------------------------------------------


def test_a_read_only_session_can_read_and_not_act(queue: Queue) -> None:
    job = queue.ready()
    with Client(queue.url, max_pool_size=1, session_limits=SessionLimits(read_only=True)) as client:
        assert client.jobs.get(job) is not None
        with pytest.raises(ReadOnlyError):
            client.add("mail")
        with pytest.raises(ReadOnlyError):
            client.jobs.complete(Selection.of(id=[job]))

    assert queue.ids() == [job]


@pytest.mark.parametrize("connections", [1, 2])
def test_the_server_applies_the_limits_of_a_session(queue: Queue, connections: int) -> None:
    limits = SessionLimits(
        statement_timeout=timedelta(milliseconds=90_700),
        lock_timeout=timedelta(milliseconds=90_080),
        idle_in_transaction_session_timeout=timedelta(seconds=94),
        read_only=True,
    )
    names = (
        "statement_timeout",
        "lock_timeout",
        "idle_in_transaction_session_timeout",
        "default_transaction_read_only",
    )
    with (
        Client(queue.url, max_pool_size=connections, application_name="gw-tui/1", session_limits=limits) as client,
        FrontEnd(client).connection() as connection,
    ):
        shown = [connection.execute(f"show {name}".encode()).fetchall()[0][0] for name in names]
        ((who,),) = connection.execute("show application_name").fetchall()

    assert (shown, who) == (["90700ms", "90080ms", "94s", "on"], "gw-tui/1")


def test_a_query_that_takes_too_long_ends(queue: Queue) -> None:
    slow(queue)
    limits = SessionLimits(statement_timeout=timedelta(milliseconds=200))
    with Client(queue.url, max_pool_size=1, session_limits=limits) as client, pytest.raises(StatementTimeoutError):
        client.tasks.list()


def test_an_act_waits_no_longer_for_a_row_than_it_may(queue: Queue) -> None:
    job = queue.ready()
    limits = SessionLimits(lock_timeout=timedelta(milliseconds=100))
    with psycopg.connect(queue.url) as theirs, Client(queue.url, max_pool_size=1, session_limits=limits) as client:
        theirs.execute("select from graphile_worker._private_jobs for update")
        with pytest.raises(LockTimeoutError):
            client.jobs.complete(Selection.of(id=[job]))


def test_a_duration_that_is_not_positive_is_rejected() -> None:
    with pytest.raises(InvalidSettingError, match="lock_timeout"):
        SessionLimits(lock_timeout=timedelta(0))


def test_a_client_gives_up_connecting_when_it_may(queue: Queue) -> None:
    slow = Database(queue.url, limits=SessionLimits(connect_timeout=timedelta(seconds=3)))
    fast = Database(queue.url, limits=SessionLimits(connect_timeout=timedelta(milliseconds=5)))

    assert "connect_timeout=3" in slow.libpq_conninfo()
    assert "connect_timeout=2" in fast.libpq_conninfo()


# -- cancelling -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("connections", [1, 2])
def test_a_statement_under_way_is_cancelled_from_another_thread(queue: Queue, connections: int) -> None:
    slow(queue)
    with Client(queue.url, max_pool_size=connections) as client, ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(client.tasks.list)
        asleep = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
        wait_until(lambda: queue.value(asleep), what="the look to be under way", deadline_seconds=60)

        assert FrontEnd(client).cancel_statements()
        with pytest.raises(StatementTimeoutError):
            waiting.result(timeout=60)


def test_there_is_nothing_to_cancel_while_nothing_runs(queue: Queue) -> None:
    with Client(queue.url, max_pool_size=1) as client:
        client.jobs.list()

        assert not FrontEnd(client).cancel_statements()


# -- listening --------------------------------------------------------------------------------------------------------


def test_jobs_are_announced_as_they_are_added(queue: Queue) -> None:
    with Client(queue.url, max_pool_size=1) as client, FrontEnd(client).listen() as listener:
        for _ in range(3):
            queue.ready()
        received = 0
        while received < 3:
            count = listener.wait(A_LONG_WAIT)
            assert count > 0
            received += count

    assert received == 3


def test_what_others_announce_counts_for_one_job_or_none(queue: Queue) -> None:
    with Client(queue.url, max_pool_size=1) as client, FrontEnd(client).listen() as listener:
        for payload in ("", "no JSON", "[]", '{"count": "many"}', '{"r": 1, "count": -1}', '{"count": 5}'):
            queue.rows("select pg_notify('jobs:insert', %s)", payload)
        received = 0
        while received < 9:
            count = listener.wait(A_LONG_WAIT)
            assert count > 0
            received += count

    assert received == 9


def test_a_wait_ends_when_its_time_has_passed(queue: Queue) -> None:
    with Client(queue.url, max_pool_size=1) as client, FrontEnd(client).listen() as listener:
        assert listener.wait(timedelta(milliseconds=20)) == 0


def test_a_wait_ends_when_the_listener_is_closed(queue: Queue) -> None:
    with Client(queue.url, max_pool_size=1) as client, ThreadPoolExecutor(1) as thread:
        listener = FrontEnd(client).listen()
        waiting = thread.submit(listener.wait, A_LONG_WAIT)
        closing = threading.Thread(target=listener.close)
        closing.start()

        assert waiting.result(timeout=60) == 0
        closing.join(60)
        listener.close()
        assert listener.wait(A_LONG_WAIT) == 0


def test_a_listener_whose_connection_is_gone_says_so(queue: Queue) -> None:
    with Client(queue.url, max_pool_size=1) as client, FrontEnd(client).listen() as listener:
        queue.rows(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and application_name = 'gw:listen'"
        )

        with pytest.raises(DatabaseUnavailableError):
            listener.wait(A_LONG_WAIT)
