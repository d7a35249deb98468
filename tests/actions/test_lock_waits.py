"""Who waits for whom: what the console's screen of locks shows."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from support.jobs_in_states import Queue
from support.waiting import wait_until

from gw_core import Client, SessionLimits
from gw_core.front_ends import FrontEnd, LockWaits


@pytest.fixture
def client(queue: Queue) -> Iterator[Client]:
    with Client(queue.url, max_pool_size=1, session_limits=SessionLimits(read_only=True)) as client:
        yield client


def test_nothing_stands_still_in_a_quiet_database(client: Client) -> None:
    assert client.doctor.lock_waits() == LockWaits()


def test_a_session_that_waits_is_shown_with_the_one_it_waits_for(client: Client, queue: Queue) -> None:
    job = queue.ready()
    with (
        psycopg.connect(queue.url, application_name="culprit") as culprit,
        psycopg.connect(queue.url, application_name="victim") as victim,
    ):
        theirs, ours = culprit.info.backend_pid, victim.info.backend_pid
        culprit.execute("select from graphile_worker._private_jobs where id = %s for update", (job,))
        waits = threading.Thread(target=lambda: victim.execute("delete from graphile_worker._private_jobs"))
        waits.start()
        found = wait_until(lambda: (seen := client.doctor.lock_waits()).blocked and seen, what="a session that waits")
        culprit.rollback()
        waits.join(60)
        victim.rollback()

    assert found
    (blocked,) = found.blocked
    assert (blocked.session.pid, blocked.session.application) == (ours, "victim")
    assert blocked.session.statement == "delete from graphile_worker._private_jobs"
    assert blocked.blocked_by == (theirs,)
    assert "ShareLock on transactionid" in blocked.waits_for
    assert [(each.pid, each.state) for each in found.blockers] == [(theirs, "idle in transaction")]


def test_a_lock_on_a_table_is_named_by_the_table(client: Client, queue: Queue) -> None:
    with psycopg.connect(queue.url) as culprit, psycopg.connect(queue.url) as victim:
        culprit.execute("lock table graphile_worker._private_tasks")
        waits = threading.Thread(target=lambda: victim.execute("delete from graphile_worker._private_tasks"))
        waits.start()
        found = wait_until(lambda: client.doctor.lock_waits().blocked, what="a session that waits")
        culprit.rollback()
        waits.join(60)
        victim.rollback()

    assert found[0].waits_for == "RowExclusiveLock on _private_tasks"


def test_the_oldest_transactions_come_first(client: Client, queue: Queue) -> None:
    with psycopg.connect(queue.url) as first, psycopg.connect(queue.url) as second:
        first.execute("select 1")
        second.execute("select 1")
        pids = [first.info.backend_pid, second.info.backend_pid]
        found = client.doctor.lock_waits().oldest_transactions

    assert [each.pid for each in found] == pids
    assert all(each.transaction_age is not None and each.transaction_age >= timedelta() for each in found)


def test_the_doctor_names_the_oldest_transaction_alone(client: Client, queue: Queue) -> None:
    with psycopg.connect(queue.url) as first, psycopg.connect(queue.url) as second:
        first.execute("select 1")
        second.execute("select 1")
        oldest = FrontEnd(client).examine().oldest_transaction
        pid, user = first.info.backend_pid, first.info.user

    assert oldest is not None
    assert oldest[0] == f"process {pid} of {user} (idle in transaction)"
    assert timedelta() <= oldest[1] < timedelta(minutes=5)


def test_a_sweep_under_way_is_seen_by_its_lock(client: Client, queue: Queue) -> None:
    with psycopg.connect(queue.url) as sweeper:
        sweeper.execute("select pg_advisory_xact_lock(1196905043, 1398228304)")
        (lock,) = client.doctor.lock_waits().advisory
        holder = sweeper.info.backend_pid

    assert (lock.name, lock.granted, lock.session.pid) == ("sweep", True, holder)
