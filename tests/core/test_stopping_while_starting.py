"""A worker that is asked to stop while it starts exits gracefully, whatever its start waits for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import DEADLINE, RunRecord, a_registry, in_time
from support.stall_clock import StallClock
from support.waiting import wait_until

from gw_core import Runner, RunResult

WAITING = (
    "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    " and application_name = 'gw:migrate'"
)
INSTALLED = "select to_regclass('graphile_worker.migrations')"


@pytest.fixture
def watching(empty_database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(empty_database_url, autocommit=True, prepare_threshold=None) as watching:
        yield watching


@pytest.fixture
def in_the_way(empty_database_url: str) -> Iterator[psycopg.Connection]:
    """Another session that creates the same schema, and does not finish."""
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("create schema graphile_worker")
        yield connection
        connection.rollback()


class Starting:
    """A runner whose `run` is under way in a thread."""

    def __init__(self, url: str, *, once: bool = False) -> None:
        self.runner = Runner(url, tasks=a_registry({"work": RunRecord()}), handle_signals=False)
        self.result: RunResult | None = None
        self._once = once
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self.result = self.runner.run_once() if self._once else self.runner.run()

    def seconds_to_end(self) -> float:
        with StallClock() as watch:
            self.runner.stop("the test asked")
            self._thread.join(DEADLINE)
        return watch.seconds


@pytest.mark.parametrize("once", [False, True], ids=["lasting", "once"])
def test_a_migration_that_is_under_way_is_cancelled_and_undone(
    empty_database_url: str, in_the_way: psycopg.Connection, watching: psycopg.Connection, once: bool
) -> None:
    starting = Starting(empty_database_url, once=once)
    wait_until(lambda: watching.execute(WAITING).fetchone() is not None, deadline_seconds=DEADLINE)

    assert starting.seconds_to_end() < 30  # the other session keeps its lock for as long as the test runs

    assert starting.result is not None
    assert (starting.result.reason, starting.result.exit_code) == ("the test asked", 0)
    wait_until(lambda: watching.execute(WAITING).fetchone() is None, deadline_seconds=DEADLINE)
    in_the_way.rollback()
    assert watching.execute(INSTALLED).fetchone() == (None,)


@pytest.mark.parametrize("once", [False, True], ids=["lasting", "once"])
def test_a_connection_without_an_answer_is_not_waited_for(empty_database_url: str, once: bool) -> None:
    proxy = DatabaseProxy(empty_database_url)
    proxy.hold()
    starting = Starting(f"{proxy.url} connect_timeout=600", once=once)
    wait_until(lambda: len(_named("proxy")) == 2, what="it to connect")

    assert starting.seconds_to_end() < 30

    assert starting.result is not None
    assert (starting.result.reason, starting.result.exit_code) == ("the test asked", 0)
    late = _named("gw-prepare")
    proxy.heal()
    for each in late:
        each.join(DEADLINE)
    with psycopg.connect(empty_database_url) as hands:
        assert hands.execute(INSTALLED).fetchone() == (None,), "what comes late changes nothing"
    proxy.close()


def _named(name: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == name]


def test_a_run_that_was_asked_to_stop_before_it_began_does_not_begin(empty_database_url: str) -> None:
    runner = Runner(empty_database_url, tasks=a_registry({"work": RunRecord()}), handle_signals=False)
    runner.stop("too early")

    assert in_time(runner.run).reason == "too early"
    with psycopg.connect(empty_database_url) as hands:
        assert hands.execute(INSTALLED).fetchone() == (None,)
