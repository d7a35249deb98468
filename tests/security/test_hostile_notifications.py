"""What a role that can only connect may send to listeners: anything, and it changes nothing."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from support.queue_fixture import NEVER, QueueFixture, RunningWorker, RunRecord, ms
from support.waiting import wait_until

from gw_core import Client
from gw_core.events import JobCompleted
from gw_core.front_ends import BreakingMigrationDetected, FrontEnd, HeartbeatFailed, PoolListening
from gw_core.postgres.connection import notifications

COUNT = 1_000
JOB_INTERVAL = 25
LONGEST = 7_900
"""Bytes: PostgreSQL rejects a notification of 8,000."""

UNPRIVILEGED = "heartbeat_unprivileged"

HOSTILE: tuple[Callable[[random.Random], str], ...] = (
    lambda r: "[" * r.randint(1, LONGEST),
    lambda r: "[" * 1_100 + "]" * 1_100,
    lambda r: '{"a":' * r.randint(1, LONGEST // 5),
    lambda r: '{"count":' + "9" * r.randint(1, LONGEST - 20) + "}",
    lambda r: '{"count":' + r.choice(["-1", "1e999", "true", "null", "[]", "{}", '"9"', "0.5", "-0", "NaN"]) + "}",
    lambda r: json.dumps({"migrationNumber": r.choice([21, 10**30, -1, "21", None, [21]]), "breaking": True}),
    lambda r: '{"breaking":true,"migrationNumber":' + "9" * r.randint(1, LONGEST - 50) + "}",
    lambda r: "".join(chr(r.randrange(1, 0xD800)) for _ in range(r.randint(0, 999))),
    lambda r: r.choice(
        ["", " ", "cancel", "cancel ", "null", "0", '"', "\\ud800", '"\\ud800"', "\x7f", "{}", "[]", "'"]
    ),
    lambda r: r.choice("x\\\"'{[\u202e") * r.randint(1, LONGEST // 4),
)


@pytest.fixture
def site(database_url: str) -> Iterator[QueueFixture]:
    site = QueueFixture(database_url)
    yield site
    site.close()


@pytest.fixture
def unprivileged(site: QueueFixture) -> Iterator[psycopg.Connection[Any]]:
    """A session of a role that may do nothing but connect."""
    with psycopg.connect(site.url, autocommit=True) as session:
        session.execute(
            f"do $$begin create role {UNPRIVILEGED};"
            " exception when duplicate_object or unique_violation then null; end$$"
        )
        session.execute(f"set role {UNPRIVILEGED}")
        yield session


@contextmanager
def listening(client: Client) -> Iterator[list[int | BaseException]]:
    """Wait on `FrontEnd(client).listen()` while the block runs; what it yields, and what it raises."""
    recorded: list[int | BaseException] = []
    is_over = threading.Event()
    listener = FrontEnd(client).listen()

    def listen() -> None:
        try:
            while not is_over.is_set():
                recorded.append(listener.wait(timedelta(seconds=1)))
        except BaseException as error:
            recorded.append(error)

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield recorded
    finally:
        is_over.set()
        listener.close()
        thread.join()


def test_a_thousand_hostile_notifications_end_no_worker_and_delay_no_job(
    site: QueueFixture, unprivileged: psycopg.Connection[Any]
) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    dice = random.Random(seed)

    with (
        site.running({"work": RunRecord()}, poll_interval=NEVER) as running,
        listening(site.client) as recorded,
    ):
        running.recorded.wait_for(PoolListening)
        channels = notifications.worker_channels(running.worker_id)
        for number in range(COUNT):
            payload = dice.choice(HOSTILE)(dice).encode()[:LONGEST].decode("utf-8", "ignore")
            unprivileged.execute(
                "select pg_notify(%s, %s)", (channels[number % len(channels)], payload.replace("\x00", ""))
            )
            if number % JOB_INTERVAL == 0:
                site.add(payload={"n": number})
        running.recorded.wait_for(JobCompleted, count=COUNT // JOB_INTERVAL)

        assert running.result is None
    assert running.result is not None
    assert running.result.reason == "the test is over"
    assert running.log.of("error") == []
    assert [each for each in recorded if isinstance(each, BaseException)] == []
    assert len(running.recorded.of(PoolListening)) == 1


@pytest.mark.parametrize(
    ("payload", "count"),
    [
        pytest.param(b"", 1, id="nothing"),
        pytest.param(b'{"count":7}', 7, id="a number"),
        pytest.param(b'{"count":-1}', 0, id="a removal"),
        pytest.param(b'{"count":' + b"9" * 100 + b"}", notifications.MAX_NOTIFIED, id="an enormous number"),
        pytest.param(b'{"count":' + b"9" * 5_000 + b"}", 1, id="a number that is too long to be read"),
        pytest.param(b'{"count":1e999}', 1, id="infinity"),
        pytest.param(b'{"count":"7"}', 1, id="a text"),
        pytest.param(b"[" * 7_990, 1, id="brackets"),
        pytest.param(b"[" * 3_900 + b"]" * 3_900, 1, id="deep brackets"),
        pytest.param(b'{"a":' * 1_500, 1, id="deep objects"),
        pytest.param(b"\xff\xfe", 1, id="no UTF-8"),
        pytest.param("\ud800".encode("utf-8", "surrogatepass"), 1, id="half a character"),
    ],
)
def test_what_a_notification_announces(payload: bytes, count: int) -> None:
    assert notifications.announced_jobs(payload) == count
    assert notifications.announced_jobs(payload.decode("utf-8", "replace")) == count


def test_metadata_of_a_worker_that_is_nested_too_deeply_is_left_out(site: QueueFixture) -> None:
    deep = "[" * 3_000 + "]" * 3_000
    columns = "id, started_at, last_heartbeat_at, metadata"
    site.run(f"insert into _private_gw_workers ({columns}) values ('deep', now(), now(), %s)", deep)

    assert [(worker.id, worker.metadata) for worker in site.client.workers.list()] == [("deep", {})]


# -- migrations -------------------------------------------------------------------------------------------------------

BREAKING = '{"breaking":true,"migrationNumber":21}'
NOTIFY = "select pg_notify('worker:migrate', %s)"
INSTALLED = "insert into migrations (id, ts, breaking) values (21, now(), %s)"


def works_on(site: QueueFixture, running: RunningWorker, announce: Callable[[], object]) -> bool:
    """Return whether a worker still runs a job after it has queried what was announced."""
    last_heartbeat = "select max(last_heartbeat_at) from _private_gw_workers"
    before = site.value(last_heartbeat)
    announce()
    wait_until(lambda: site.value(last_heartbeat) > before, what="the worker to look up the revision")
    site.fill(1)
    running.recorded.wait_for(JobCompleted)
    return running.result is None and not running.recorded.of(BreakingMigrationDetected)


def test_a_forged_migration_is_found_and_ignored(site: QueueFixture, unprivileged: psycopg.Connection[Any]) -> None:
    with site.running({"work": RunRecord()}, heartbeat_interval=timedelta(minutes=1)) as running:
        running.recorded.wait_for(PoolListening)

        assert works_on(site, running, lambda: unprivileged.execute(NOTIFY, (BREAKING,)))


def test_a_migration_of_another_schema_is_ignored(site: QueueFixture) -> None:
    site.run("create schema other create table migrations (id int primary key, breaking boolean)")
    with site.running({"work": RunRecord()}, heartbeat_interval=timedelta(minutes=1)) as running:
        running.recorded.wait_for(PoolListening)
        site.run("insert into other.migrations values (21, true)")

        assert works_on(site, running, lambda: site.run(NOTIFY, BREAKING))


def test_a_later_migration_that_breaks_nothing_is_ignored(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, heartbeat_interval=timedelta(minutes=1)) as running:
        running.recorded.wait_for(PoolListening)
        site.run(INSTALLED, False)

        assert works_on(site, running, lambda: site.run(NOTIFY, '{"breaking":false,"migrationNumber":21}'))


def ends_for_migration(running: RunningWorker) -> bool:
    (seen,) = running.recorded.wait_for(BreakingMigrationDetected)
    return (seen.revision, running.end().exit_code) == (21, 57)


def test_a_breaking_migration_is_noticed_by_its_notification(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, heartbeat_interval=timedelta(minutes=1)) as running:
        running.recorded.wait_for(PoolListening)
        site.run(INSTALLED, True)
        site.run(NOTIFY, BREAKING)

        assert ends_for_migration(running)


def test_a_breaking_migration_is_noticed_with_the_next_heartbeat_by_who_does_not_listen(site: QueueFixture) -> None:
    with site.running({"work": RunRecord()}, listen=False, heartbeat_interval=ms(100)) as running:
        site.run(INSTALLED, True)

        assert ends_for_migration(running)


@pytest.mark.parametrize("listen", [True, False], ids=["listening", "polling"])
def test_a_breaking_migration_is_noticed_after_a_reconnect(site: QueueFixture, listen: bool) -> None:
    with site.running({"work": RunRecord()}, listen=listen, heartbeat_interval=timedelta(minutes=1)) as running:
        wait_until(lambda: "gw:claim" in site.connections())
        site.run(INSTALLED, True)
        site.kill_connections("gw:claim")

        assert ends_for_migration(running)


def test_a_heartbeat_that_failed_queries_the_revision_when_it_is_tried_again(
    site: QueueFixture, unprivileged: psycopg.Connection[Any]
) -> None:
    with site.running({"work": RunRecord()}, heartbeat_interval=timedelta(minutes=1)) as running:
        running.recorded.wait_for(PoolListening)
        site.run("alter table _private_gw_workers rename to elsewhere")
        unprivileged.execute(NOTIFY, (BREAKING,))
        running.recorded.wait_for(HeartbeatFailed)
        site.run(INSTALLED, True)
        site.run("alter table elsewhere rename to _private_gw_workers")

        assert ends_for_migration(running)
