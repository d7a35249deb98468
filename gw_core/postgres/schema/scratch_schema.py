"""A schema with a random name to try things in, which is gone afterwards."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final, Self

import msgspec
from psycopg import sql

from gw_core.postgres.connection.database import Connection, Database, find_conninfo
from gw_core.postgres.connection.error_mapping import translated

PREFIX: Final = "gw_bench_"
TRIES: Final = 50

# Statements that are sent together are one transaction. Settings of the session would remain for other programs
# behind a pooler, whose commits would then no longer wait for the disk.
_COMMIT_UNFLUSHED: Final = "set local synchronous_commit to off; insert into {schema}.commits values (1)"
_DROP: Final = (
    "set local lock_timeout to '10s'; set local client_min_messages to warning; drop schema if exists {schema} cascade"
)


class ServerTiming(msgspec.Struct, frozen=True, kw_only=True):
    """What the shortest statements cost here, in seconds; the median of many."""

    server: str
    """The server's version."""
    round_trip: float
    """A statement that does nothing."""
    commit: float
    """A transaction that writes one small row, until it is safe on disk."""
    commit_unflushed: float
    """The same without waiting for the disk."""
    settings: dict[str, str]
    """What the server does for safety: `fsync`, `synchronous_commit`, `full_page_writes`."""


class ScratchSchema:
    """A new schema of a random name, empty, for as long as the block lasts; then it is removed with all it holds.

    `name` is its name. Nothing else in the database is touched. Raises `PermissionDeniedError` when the role may not
    make a schema, and what `Client` raises when the database cannot be reached.
    """

    def __init__(self, conninfo: str | None = None, *, pg_bin: Path | None = None) -> None:
        self.name = PREFIX + secrets.token_hex(6)
        self._database = Database(find_conninfo(conninfo), schema=self.name, pg_bin=pg_bin)
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        try:
            self._connection = self._database.connect("bench")
            self._run("create schema {schema}")
            self._run("comment on schema {schema} is 'made by gw bench; if no gw bench is running, drop it'")
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the schema, on a new connection: what was underway on ours may not have ended."""
        self._close()
        try:
            self._connection = self._database.connect("bench")
            self._run(_DROP)
        finally:
            self._close()
            self._database.close()

    def times(self) -> ServerTiming:
        """Measure what the shortest statements cost."""
        self._run("create table {schema}.commits (n integer)")
        round_trip = _median(lambda: self._run("select 1"))
        commit = _median(lambda: self._run("insert into {schema}.commits values (1)"))
        unflushed = _median(lambda: self._run(_COMMIT_UNFLUSHED))
        return ServerTiming(
            server=str(self._ask("show server_version")),
            round_trip=round_trip,
            commit=commit,
            commit_unflushed=unflushed,
            settings={
                name: str(self._ask(f"show {name}")) for name in ("fsync", "synchronous_commit", "full_page_writes")
            },
        )

    def settle_down(self) -> None:
        """Renew what the planner knows of the tables, as a queue in use has it."""
        self._run("analyze {schema}._private_jobs")

    def _run(self, statement: str) -> Any:
        connection = self._connection
        assert connection is not None  # noqa: S101 - within the block
        with translated(self.name):
            composed = sql.SQL(statement).format(schema=sql.Identifier(self.name))
            return connection.execute(composed)

    def _ask(self, statement: str) -> object:
        row = self._run(statement).fetchone()
        return None if row is None else row[0]

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _median(act: Callable[[], object]) -> float:
    intervals = []
    for _ in range(TRIES):
        began = time.perf_counter()
        act()
        intervals.append(time.perf_counter() - began)
    return median(intervals)
