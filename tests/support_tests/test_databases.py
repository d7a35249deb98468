"""The fixtures that hand out databases keep their promises."""

from __future__ import annotations

import os
import time

import psycopg
import pytest
from support import spare_sessions
from support.databases import HOST, Databases, is_orphan, with_database

NOW = 1_800_000_000
AN_UNUSED_PID = 2**22 + 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(f"gw_test_{HOST}_{os.getpid()}_{NOW}_main_1", False, id="of a run that goes on"),
        pytest.param(f"gw_test_{HOST}_{AN_UNUSED_PID}_{NOW}_main_1", True, id="of a run that is gone"),
        pytest.param(f"gw_test_000000_{AN_UNUSED_PID}_{NOW}_main_1", False, id="of another machine"),
        pytest.param(f"gw_test_000000_1_{NOW - 90_000}_main_1", True, id="of another machine, older than a day"),
        pytest.param("gw_test_mine", False, id="of somebody else"),
        pytest.param("customers", False, id="of the trade"),
    ],
)
def test_only_our_own_leftovers_are_orphans(name: str, expected: bool) -> None:
    assert is_orphan(name, now=NOW) is expected


@pytest.mark.parametrize(
    ("conninfo", "expected"),
    [
        pytest.param("postgres://me:x@host:1/a", "postgres://me:x@host:1/b", id="a URL"),
        pytest.param("postgresql://host", "postgresql://host/b", id="a URL without a database"),
        pytest.param("postgresql://me@/a?host=%2Ftmp", "postgresql://me@/b?host=%2Ftmp", id="a socket"),
        pytest.param("host=/tmp dbname=a", "dbname=b host=/tmp", id="words"),
    ],
)
def test_another_database_of_the_same_server_is_named(conninfo: str, expected: str) -> None:
    assert with_database(conninfo, "b") == expected


def test_a_test_gets_a_database_of_its_own_with_the_schema(database_url: str, databases: Databases) -> None:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("select current_database(), count(*) from graphile_worker.jobs").fetchone()

    assert row is not None
    assert row[0] in databases.names()
    assert row[1] == 0


def test_an_empty_database_has_no_schema_of_ours(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("select to_regnamespace('graphile_worker')").fetchone() == (None,)


def test_a_database_in_use_can_be_dropped(databases: Databases) -> None:
    name = f"{databases.run.prefix}in_use_{time.monotonic_ns()}"
    databases.create(name)
    connection = psycopg.connect(databases.url(name))

    databases.drop(name)

    assert name not in databases.names()
    connection.close()


def test_a_session_that_a_test_leaves_is_like_new(database_url: str) -> None:
    first = spare_sessions.take(database_url)
    first.execute("set search_path to graphile_worker")
    first.execute("listen news")
    process = first.info.backend_pid
    spare_sessions.leave(database_url, first)

    with spare_sessions.borrowed(database_url) as second:
        row = second.execute("select current_setting('search_path'), array(select pg_listening_channels())").fetchone()
        assert row == ('"$user", public', [])
        assert second.info.backend_pid == process or second.info.server_version < 150_000


def test_a_session_in_a_transaction_is_closed(database_url: str) -> None:
    session = spare_sessions.take(database_url)
    session.execute("begin")

    spare_sessions.leave(database_url, session)

    assert session.closed
