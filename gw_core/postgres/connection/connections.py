"""Connections shared by threads: a pool for callers and tasks, and one that maintenance services take turns on."""

from __future__ import annotations

import os
import socket
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from math import inf
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import tuple_row

from gw_core.domain.errors import DatabaseError
from gw_core.postgres.connection.database import FIRST_RESPONSE_TIMEOUT, Connection, Database, QueueConnection, within
from gw_core.postgres.connection.deadlines import ending_within, holding, time_left
from gw_core.postgres.connection.error_mapping import leads_nowhere, translated
from gw_core.runtime import forks

if TYPE_CHECKING:
    import psycopg_pool

    AnyPool = psycopg_pool.ConnectionPool[Any]

CLOSE_SECONDS: Final = 1.0
"""How long the end of the program waits for connections that are being made."""

CANCEL_SECONDS: Final = 2.0
"""How long to wait until the server has taken note of a cancellation."""


MAX_POOL_SECONDS: Final = 30.0
"""How long a caller with a later deadline waits for a connection of a pool, as one without does."""


class _BasePool:
    """Keeps track of the connections that callers use."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._lent: set[Connection] = set()  # changed by one operation at a time, which the interpreter makes whole

    def cancel(self) -> bool:
        """Cancel what borrowers are running now; True when there were any."""
        cancelled = [cancel(each) for each in tuple(self._lent)]
        return any(cancelled)


class ConnectionPool(_BasePool):
    """A pool of autocommit connections, opened when first asked for one.

    Safe to use from any thread. At most `max_size` connections; a caller waits up to 30 s for one.
    """

    def __init__(self, database: Database, *, max_size: int = 10, role: str = "") -> None:
        super().__init__(database)
        self._max_size = max(1, max_size)
        self._role = role
        self._lock = threading.Lock()  # guards _pool: two threads must not both open it
        self._pool: psycopg_pool.ConnectionPool[Connection] | None = None
        self._closing: weakref.finalize[..., ConnectionPool] | None = None
        forks.abandon_in_children(self)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Provide a connection; what the block leaves open in it is rolled back."""
        pool = self._opened()
        with ExitStack() as stack:
            # What the borrower's own statements raise is the borrower's: a table that a task misses is not one of ours.
            with translated(self.database.schema):
                connection = stack.enter_context(pool.connection(_pool_timeout()))
            self._lent.add(connection)
            stack.callback(self._lent.discard, connection)
            try:
                yield connection
            except (psycopg.Error, DatabaseError) as error:
                if leads_nowhere(error):  # or the next borrower would get the connection to the same standby
                    connection.close()
                raise

    def close(self, *, timeout: timedelta = timedelta(seconds=5)) -> None:
        """Close all connections, waiting at most `timeout` for those being made; a later use opens them again."""
        with self._lock:
            pool, self._pool = self._pool, None
            closing, self._closing = self._closing, None
        if closing is not None:
            closing.detach()
        if pool is not None:
            pool.close(timeout.total_seconds())

    def abandon(self) -> None:
        """In a forked child: leave the parent's connections alone; the next use opens others."""
        self._lock = threading.Lock()
        self._lent = set()
        if self._closing is not None:
            self._closing.detach()
            self._closing = None
        if self._pool is not None:
            # Kept, for its destructor would wait for locks that threads of the parent may have held.
            _ABANDONED.append(self._pool)
            self._pool = None

    def _opened(self) -> psycopg_pool.ConnectionPool[Connection]:
        with holding(self._lock):
            if self._pool is None:
                import psycopg_pool  # a command that needs one connection does not load it

                # The first connection is made here and not by the pool, whose own errors say only that time ran out.
                self.database.connect(self._role).close()
                self._pool = psycopg_pool.ConnectionPool(
                    lambda: self.database.libpq_conninfo(self._role),  # called for each connection: passwords change
                    connection_class=QueueConnection,
                    kwargs={"autocommit": True},
                    min_size=0,
                    max_size=self._max_size,
                    max_idle=60.0,
                    configure=lambda connection: self.database.prepare(connection, self._role),
                    check=_check,
                    open=True,
                    name=f"gw-{self._role or 'client'}",
                )
                # A program that never closes its client still exits: the pool's own destructor runs when daemon
                # threads are frozen already, and waits 5 s for each of four (Python 3.13). This runs before.
                self._closing = weakref.finalize(self, self._pool.close, CLOSE_SECONDS)
            return self._pool


_ABANDONED: Final[list[psycopg_pool.ConnectionPool[Connection]]] = []


class SharedConnection:
    """One connection that threads take in turns; made when first used, and again after it broke.

    `response_timeout` limits the wait for a statement's response; None: no limit. `settings` are session settings.
    """

    def __init__(
        self,
        database: Database,
        *,
        role: str = "",
        settings: Mapping[str, str] | None = None,
        response_timeout: timedelta | None = None,
    ) -> None:
        self._connection: Connection | None = None
        self.database = database
        self._role = role
        self._settings = settings
        self._response_timeout = response_timeout
        self._lock = threading.Lock()  # guards _connection, and is held while it is in use
        self._lent: Connection | None = None
        forks.abandon_in_children(self)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Provide the connection; after an error that broke it the next user gets a new one."""
        with holding(self._lock), translated(self.database.schema):
            if self._connection is None or self._connection.closed:
                self._connection = self.database.connect(
                    self._role, self._settings, response_timeout=self._response_timeout
                )
            lent = self._lent = self._connection
            try:
                yield lent
            except BaseException as error:
                self._leave_clean(lent, error)
                raise
            finally:
                self._lent = None

    def __del__(self) -> None:
        """Close the connection of a client that its program dropped without closing it."""
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()

    def cancel(self) -> bool:
        """Cancel the running statement; True when there was one."""
        lent = self._lent
        return lent is not None and cancel(lent)

    def abort(self) -> None:
        """Break the connection, so that the running statement fails as by a lost connection."""
        lent = self._lent
        if lent is not None:
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(lent.fileno())) as end:
                end.shutdown(socket.SHUT_RDWR)

    def close(self, *, timeout: timedelta | None = None) -> None:
        """Close the connection when it is not in use, waiting at most `timeout`; a later use opens it again."""
        if not self._lock.acquire(timeout=-1 if timeout is None else timeout.total_seconds()):
            return
        try:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
        finally:
            self._lock.release()

    def abandon(self) -> None:
        """In a forked child: leave the parent's connection alone; the next use opens another."""
        self._lock = threading.Lock()
        self._connection = self._lent = None

    def _leave_clean(self, connection: Connection, error: BaseException) -> None:
        """Roll back what a failed block left open; drop a connection that cannot even do that, or leads nowhere."""
        try:
            if leads_nowhere(error):
                raise psycopg.OperationalError("this server is read-only")
            connection.rollback()
        except psycopg.Error:
            with suppress(Exception):
                connection.close()
            self._connection = None


def cancel(connection: Connection) -> bool:
    """Ask the server to cancel the statement a connection is running; True unless the connection is gone."""
    try:
        connection.cancel_safe(timeout=CANCEL_SECONDS)
    except psycopg.Error:
        return False
    return True


_UNCHECKED: Final[ContextVar[bool]] = ContextVar("unchecked", default=False)


@contextmanager
def unchecked() -> Iterator[None]:
    """Borrow connections in the block without a round trip to check them, for statements that can be sent twice."""
    token = _UNCHECKED.set(True)
    try:
        yield
    finally:
        _UNCHECKED.reset(token)


def is_idle(connection: Connection) -> bool:
    """Return whether a connection is open and in no transaction."""
    return connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE


def _check(connection: Connection) -> None:
    """Raise an error if the connection of a pool is gone, also if a dead network swallows the answer."""
    if _UNCHECKED.get():
        return
    with ending_within(FIRST_RESPONSE_TIMEOUT):
        connection.execute("")


class CallersPool(_BasePool):
    """A psycopg pool of the caller's. Its connections get their own settings back after each use."""

    def __init__(self, database: Database, pool: AnyPool) -> None:
        super().__init__(database)
        self._pool = pool

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Provide a connection in autocommit mode; what the block leaves open in it is rolled back."""
        with ExitStack() as stack:
            with translated(self.database.schema):
                connection = stack.enter_context(self._pool.connection(_pool_timeout()))
                stack.enter_context(_as_own(connection))
            self._lent.add(connection)
            stack.callback(self._lent.discard, connection)
            yield connection

    def close(self, *, timeout: timedelta | None = None) -> None:
        """Leave the pool open: it is the caller's."""


@contextmanager
def _as_own(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Give the block a connection as gw opens them, and restore what the caller set."""
    before = connection.autocommit, connection.row_factory, connection.cursor_factory
    with _waiting_in_time(connection):
        connection.autocommit = True
        connection.row_factory, connection.cursor_factory = tuple_row, psycopg.Cursor
        try:
            yield
        finally:
            if not connection.closed:
                connection.rollback()
                connection.autocommit, connection.row_factory, connection.cursor_factory = before


@contextmanager
def _waiting_in_time(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Let a connection of any class wait in the block as a `QueueConnection` does: until the deadline of the call."""
    own = connection.wait

    def wait(work: Any, *arguments: Any, **options: Any) -> Any:
        left = time_left()
        return own(work if left == inf else within(connection, work, left), *arguments, **options)

    vars(connection)["wait"] = wait
    try:
        yield
    finally:
        del vars(connection)["wait"]


def _pool_timeout() -> float | None:
    """Return how many seconds to wait for a connection of a pool; None: the pool's own timeout."""
    left = time_left()
    return None if left == inf else min(left, MAX_POOL_SECONDS)


def conninfo_of(pool: AnyPool) -> str:
    """Return the connection string for connections beside those of a caller's pool."""
    conninfo = pool.conninfo() if callable(pool.conninfo) else pool.conninfo
    options = pool.kwargs() if callable(pool.kwargs) else pool.kwargs or {}
    return make_conninfo(conninfo, **{key: value for key, value in options.items() if key not in _NOT_FOR_LIBPQ})


def password_of(pool: AnyPool | None) -> Callable[[], str] | None:
    """Return what reads the current password of a caller's pool; None if the pool was given fixed values.

    Since psycopg_pool 3.3 both the connection string and the options may be functions, for tokens that expire.
    """
    if pool is None or not (callable(pool.conninfo) or callable(pool.kwargs)):
        return None
    return lambda: str(conninfo_to_dict(conninfo_of(pool)).get("password") or "")


_NOT_FOR_LIBPQ: Final = {"autocommit", "row_factory", "cursor_factory", "prepare_threshold", "context"}

PoolOrConnection = ConnectionPool | SharedConnection | CallersPool
"""What a client opens or is given, and ends."""


class ConnectionSource(Protocol):
    """Provides connections; implementations differ in how many at a time."""

    @property
    def database(self) -> Database:
        """Where the connections lead."""

    def connection(self) -> AbstractContextManager[Connection]:
        """Provide a connection for a block."""


class QueueOperations(msgspec.Struct, frozen=True):
    """What operations on one queue share: where its connections come from, and its schema."""

    connections: ConnectionSource
    schema: str

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Provide a connection; the block raises gw's errors for those of the driver."""
        with self.connections.connection() as connection, translated(self.schema):
            yield connection


def fetch_all(connection: Connection, statement: Any, values: Any = None) -> list[tuple[Any, ...]]:
    """Run any statement and return its rows as tuples, none for a statement that has no result."""
    cursor = connection.execute(statement, values)
    return cursor.fetchall() if cursor.description is not None else []
