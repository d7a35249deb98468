"""The connection of a test, synchronous or on an event loop: claims and tasks run in its transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from gw_core.postgres.connection.callers_connection import is_instance
from gw_core.postgres.connection.callers_transaction import (
    ClaimPlan,
    Savepoint,
    SingleConnection,
    kept_open,
    psycopg_connection,
)
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.road.enqueue import AddOperations, Enqueuer

if TYPE_CHECKING:
    from gw_core.postgres.connection.loop_session import LoopSession


class CallersSession(Protocol):
    """The connection of a test: claims and tasks run in its transaction. `LoopSession` is one on an event loop."""

    @property
    def store_connection(self) -> Connection:
        """What statements of the store run on."""

    @property
    def connections(self) -> ConnectionSource:
        """What tasks get from their context."""

    def adder(self, adds: AddOperations) -> Enqueuer:
        """Return what adds jobs for tasks."""

    def claim_plan(self) -> AbstractContextManager[None]:
        """Plan the claim in the block as a worker's session does."""

    def savepoint(self) -> AbstractContextManager[None]:
        """Undo what a task has written if an SQL error aborted the transaction."""

    def flush(self) -> None:
        """Write the changes that a task left in the caller's session."""


class PsycopgSession:
    """A connection of psycopg, or what leads to one; unwritten changes of a session are flushed."""

    def __init__(self, conn: object, schema: str) -> None:
        self._conn = conn
        self._schema = schema
        self.store_connection = psycopg_connection(conn, schema)
        self.connections: ConnectionSource = SingleConnection(self.store_connection, schema)
        self._plan: ClaimPlan | None = None

    def adder(self, adds: AddOperations) -> Enqueuer:
        """Return what adds jobs on the connection."""
        return Enqueuer(self.connections, self._schema, adds)

    def claim_plan(self) -> AbstractContextManager[None]:
        """Plan the claim in the block as a worker's session does."""
        if self._plan is None:
            self._plan = ClaimPlan(self.store_connection)
        return self._plan.in_use()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo what a task has written if an SQL error aborted the transaction."""
        savepoint = Savepoint(self.store_connection, self._conn)
        with kept_open(self._conn):
            yield
        savepoint.end()

    def flush(self) -> None:
        """Write the changes that a task left in the caller's session."""
        psycopg_connection(self._conn, self._schema)


def session_of(conn: object | None, schema: str) -> CallersSession | None:
    """Return the session of what a caller passes as `conn`, or None without it."""
    if is_instance(conn, "gw_core.postgres.connection.loop_session", "LoopSession"):
        session: CallersSession = conn
        return session
    return None if conn is None else PsycopgSession(conn, schema)


async def async_session_of(conn: object | None, schema: str) -> CallersSession | None:
    """Return the session of an asynchronous connection, or None without one."""
    return None if conn is None else await loop_session(conn, schema)


async def loop_session(conn: object, schema: str) -> LoopSession:
    """Return what runs statements on an asynchronous connection for a thread."""
    from gw_core.postgres.connection.loop_session import LoopSession  # asyncio is loaded for those who use it

    return await LoopSession.of(conn, schema)
