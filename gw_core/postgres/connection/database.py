"""How to reach the database, and the connections this process holds to it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from datetime import timedelta
from math import ceil, inf
from pathlib import Path
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from gw_core.domain.durations import as_duration
from gw_core.domain.errors import (
    DatabaseUnavailableError,
    GraphileWorkerError,
    InvalidSettingError,
    NoConnectionError,
)
from gw_core.domain.rules.session_limits import NO_LIMITS, SessionLimits
from gw_core.domain.rules.settings import PoolerMode
from gw_core.domain.safe_text import check_schema_name
from gw_core.embedded.address import EMBEDDED_PREFIX
from gw_core.postgres.connection.deadlines import not_counting, time_left
from gw_core.postgres.connection.error_mapping import STATEMENT_MODE, translated
from gw_core.runtime import forks

if TYPE_CHECKING:
    from psycopg.abc import PQGen

    from gw_core.embedded import EmbeddedServer

_A_TURN: Final = timedelta(seconds=5)
"""How long a pooler may take to serve a connection that is only there to be compared."""

_POOLER_CHECKS: Final = 5
"""How often two connections are compared: a quiet pooler serves both from one process, a busy one soon does."""

DEFAULT_SCHEMA: Final = "graphile_worker"

# A dead network is noticed in seconds and not after the kernel's two hours. The user's string takes precedence.
CONNECTION_TIMEOUTS: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}

ENCODING: Final = "UTF8"
"""What every connection speaks, whatever the environment or the connection string asks for: payloads are JSON."""

FIRST_RESPONSE_TIMEOUT: Final = timedelta(seconds=15)
"""How long a new connection may take over the first statement: a proxy may accept us with no server behind it."""

FAILOVER_CONNECT_TIMEOUT: Final = 4
"""Seconds for a connection attempt when there is another host to try: a dead former primary may come first."""

RESPONSE_TIMEOUT: Final = timedelta(seconds=20)
"""How long the server may say nothing to those who claim and settle: it ends their statements after 15 s itself."""

MAX_TICK: Final = 1.0
"""Seconds between two checks of a socket while a statement runs; more, and this process did not run."""

READS_NULLS: Final = {"array_nulls": "on"}
"""Off, as a database may have it, nulls in the columns of outcomes would be read as the text "NULL"."""

TASK_ROLE: Final = "task"
"""The role of sessions that tasks borrow: they stay as the server and the user set them."""

SEARCH_PATH: Final = "pg_catalog, pg_temp"
"""The search path of our sessions: roles that can create objects in `public` must not act with a worker's rights."""

Connection = psycopg.Connection[tuple[Any, ...]]


class QueueConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection that does not wait for ever, and knows what stands between it and the server.

    The kernel cannot notice a proxy that takes our packets and passes none on, so a statement has a deadline. One that
    the server itself would end sooner (`statement_timeout`) loses nothing by that.
    """

    response_timeout: timedelta | None = None
    """How long a statement may take, whatever else arrives in that time; then the connection is closed."""
    pooling: PoolerMode = PoolerMode.NONE
    local_settings: Mapping[str, str] = MappingProxyType({})
    """Settings that each transaction begins with, where the session is not ours to set; see `in_its_settings`."""

    def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
        """Wait for the server, at most `response_timeout`, and at most until the deadline of the current call."""
        timeout, seconds = self.response_timeout, time_left()
        if timeout is not None:
            seconds = min(seconds, timeout.total_seconds())
        work = gen if seconds == inf else within(self, gen, seconds)
        try:  # for each statement, so without a context manager
            return super().wait(work, *arguments, **options)
        except OSError as error:
            raise _as_the_drivers(error) from error


def within(connection: Connection, work: Any, seconds: float) -> Generator[Any, Any, Any]:
    """Do what the driver's generator does on the connection, and close it if that takes longer than these seconds."""
    checked_at = monotonic()
    deadline = checked_at + seconds
    try:
        wanted = next(work)
        while True:
            ready = yield wanted
            now = monotonic()
            # The driver polls several times a second: time in which this process was frozen does not count.
            deadline += max(0.0, now - checked_at - MAX_TICK)
            checked_at = now
            # What has arrived comes first, for it may be the answer. If not, it is notifications, which say nothing
            # about the statement: they go on arriving when its answer was lost.
            wanted = work.send(ready)
            if now > deadline:
                connection.pgconn.finish()
                raise psycopg.OperationalError(f"the server has not answered for {seconds:.3g} s")
    except StopIteration as end:
        return end.value


@contextmanager
def _system_errors_as_the_drivers() -> Iterator[None]:
    """Make an error of the system one of the driver's: it passes, as a database does that is away for a while.

    To connect, and to wait for the server, takes descriptors, and a task may have used them all up.
    """
    try:
        yield
    except OSError as error:
        raise _as_the_drivers(error) from error


def _as_the_drivers(error: OSError) -> psycopg.OperationalError:
    return psycopg.OperationalError(f"the operating system denied what a connection needs: {error}")


def in_its_settings(connection: Connection) -> AbstractContextManager[None]:
    """Send the block's statements with the connection's settings; fetch their rows after the block.

    On a session of our own that has been done long ago. Behind a pooler in transaction mode it takes one transaction:
    settings of the session would remain for the next client of the server's side.
    """
    settings = getattr(connection, "local_settings", None)
    return _with_local_settings(connection, settings) if settings else _NO_TRANSACTION


_NO_TRANSACTION: Final = nullcontext()


@contextmanager
def _with_local_settings(connection: Connection, settings: Mapping[str, str]) -> Iterator[None]:
    with in_one_trip(connection):
        _set(connection, settings, local=True)
        yield


class _Pipeline(psycopg.Pipeline):
    """A pipeline that sends nothing after the Sync at its end.

    The driver asks for the answer to it with a Flush. PgBouncer may receive that after it has passed the answer on. It
    then keeps a connection to the server for us until our next statement. With a driver whose pipelines are made
    otherwise, pipelines are the driver's own.
    """

    is_usable = all(hasattr(psycopg.Pipeline, each) for each in ("_enqueue_sync", "_communicate_gen", "_fetch_gen"))

    def _exit_gen(self) -> PQGen[None]:
        try:
            self._enqueue_sync()
            yield from self._communicate_gen()
        finally:
            yield from self._fetch_gen(flush=False)


@contextmanager
def sent_together(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Send the block's statements without waiting for answers, which have arrived after the block."""
    with connection.pipeline() as pipeline:
        if _Pipeline.is_usable:
            pipeline.__class__ = _Pipeline
        yield


@contextmanager
def in_one_trip(connection: Connection) -> Iterator[None]:
    """Send the block's statements together, as one transaction; when one fails, all do.

    After one has failed the server skips the others, and the driver takes those for prepared that it wanted prepared by
    the way: from then on they would fail for ever, as prepared statements that do not exist. So all are forgotten.
    """
    try:
        with sent_together(connection):
            yield
    except psycopg.Error:
        if connection.prepare_threshold is not None and not connection.closed:
            # Which the driver does when it rolls back, inside a caller's transaction at its end.
            with suppress(psycopg.Error), connection.transaction(force_rollback=True):
                pass
        raise


_SET_IF_DIRECT: Final = (
    "select pg_catalog.set_config(wanted.name, wanted.value, false)"
    " from rows from (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::text[])) as wanted (name, value)"
    " where pg_catalog.pg_backend_pid() = %s::int"
)
"""Applies settings to a session that leads straight to the server, in one round trip, and returns a row for each.

A pooler invents the number of the server's process, and would hand the settings on to its other clients.
"""

_SET_CONFIG: Final = (
    "select set_config(wanted.name, wanted.value, %s) from unnest(%s::text[], %s::text[]) as wanted (name, value)"
)


def _set(connection: Connection, settings: Mapping[str, str], *, local: bool) -> None:
    connection.execute(_SET_CONFIG, (local, list(settings), list(settings.values())))


NAMING_PG_VARIABLES: Final = ("PGDATABASE", "PGSERVICE")
"""The variables of libpq that name a database; with the others alone, it would take the user's name for one."""


def find_conninfo(given: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the connection string to use: the given one, `DATABASE_URL`, or libpq's own variables.

    Raises `NoConnectionError` when nothing names a database: there is no hidden default.
    """
    named = given or environment.get("DATABASE_URL")
    if named:
        return expand_conninfo(named)
    if any(environment.get(name) for name in NAMING_PG_VARIABLES):
        return ""
    server = " (PGHOST names only a server)" if environment.get("PGHOST") else ""
    raise NoConnectionError(
        f"no database was named{server}; give --connection postgres://…, set DATABASE_URL or PGDATABASE, "
        "or use --connection embedded: for a PostgreSQL run for you in .gw/postgres"
    )


def expand_conninfo(conninfo: str) -> str:
    """Return a connection string; a text without `=`, `/` and `:` is the name of a database, as for psql."""
    is_name = conninfo.strip() and not set("=/:") & set(conninfo)
    return make_conninfo(dbname=conninfo) if is_name else conninfo


def is_ambiguous(conninfo: str) -> bool:
    """Return whether a URL has a raw `@` or `/` in its user or password: libpq takes the rest for the host or database.

    Used as it is, it would show a part of the password wherever the host is named.
    """
    scheme, separator, rest = conninfo.partition("://")
    if not separator or scheme not in ("postgres", "postgresql"):
        return False
    authority, _, path = rest.partition("/")
    _, at, host = authority.partition("@")
    return "@" in (host if at else path).partition("?")[0]


def described(conninfo: str) -> str:
    """Return where a connection string leads, without its password, for messages and logs."""
    if conninfo.startswith(EMBEDDED_PREFIX):
        names_host = conninfo.startswith(f"{EMBEDDED_PREFIX}//") and not conninfo.startswith(f"{EMBEDDED_PREFIX}///")
        return "(an embedded: string that names a host)" if names_host else conninfo
    if is_ambiguous(conninfo):
        return "(a URL with a raw @ or / in its user or password)"
    try:
        parts = conninfo_to_dict(conninfo) or _libpq_defaults()
    except psycopg.ProgrammingError:
        return "(a connection string libpq cannot read)"
    shown = {key: parts[key] for key in ("user", "host", "port", "dbname") if parts.get(key)}
    return " ".join(f"{key}={value}" for key, value in shown.items()) or "libpq's defaults"


def _libpq_defaults() -> Mapping[str, Any]:
    """Return what libpq takes from its environment variables and its service file."""
    found = psycopg.pq.Conninfo.get_defaults()
    return {each.keyword.decode(): each.val.decode(errors="replace") for each in found if each.val is not None}


class Database:
    """One database and schema; opens connections, starts the embedded server when the string asks for it.

    Behind a pooler, nothing is prepared; `prepared_statements=False` is for one that cannot be recognized. With
    `notice_pooler` it also finds out the pooler's mode. `limits` apply where the session is ours. Safe to use from
    several threads. `password` is called for each new connection. Raises `InvalidSettingError` for a name that no
    schema can have.
    """

    def __init__(
        self,
        conninfo: str,
        *,
        schema: str = DEFAULT_SCHEMA,
        application_name: str = "gw",
        prepared_statements: bool = True,
        pg_bin: Path | None = None,
        limits: SessionLimits = NO_LIMITS,
        notice_pooler: bool = False,
        password: Callable[[], str] | None = None,
    ) -> None:
        check_schema_name(schema)
        self.conninfo = conninfo
        self.password = password
        self.schema = schema
        self.prepared_statements = prepared_statements
        self.limits = limits
        self.pooling = PoolerMode.NONE
        """The pooler between us and the server, once checked."""
        self._notice_pooler = notice_pooler or bool(limits.settings())
        self._application_name = application_name
        self._pg_bin = pg_bin
        self._lock = threading.Lock()  # guards _server: two threads must not both start it
        self._server: EmbeddedServer | None = None

    def __repr__(self) -> str:
        return f"Database({described(self.conninfo)}, schema={self.schema!r})"

    def connect(
        self,
        role: str = "",
        settings: Mapping[str, str] | None = None,
        *,
        response_timeout: timedelta | None = None,
        listens: bool = False,
    ) -> QueueConnection:
        """Open a connection in autocommit mode; `role` is appended to its application name.

        `settings` are set for the session, or for each transaction behind a pooler. `response_timeout` limits the wait
        for a statement's response. With `listens`, the pooler's mode is found out. Raises `DatabaseUnavailableError`,
        also when the server accepts the connection and then answers nothing for 15 s, `AuthenticationError`, or
        `InvalidSettingError` for a database whose encoding is SQL_ASCII.
        """
        with translated(self.schema):
            with _system_errors_as_the_drivers():
                connection = QueueConnection.connect(self.libpq_conninfo(role), autocommit=True)
            connection.response_timeout = min(response_timeout or FIRST_RESPONSE_TIMEOUT, FIRST_RESPONSE_TIMEOUT)
            try:
                self._reject_unknown_encoding(connection)
                self._set_up(connection, role, {**READS_NULLS, **settings} if settings else {}, listens=listens)
                connection.response_timeout = response_timeout
            except BaseException:
                connection.close()
                raise
        return connection

    def _reject_unknown_encoding(self, connection: QueueConnection) -> None:
        if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
            raise InvalidSettingError(
                f"the database at {described(self.conninfo)} has the encoding SQL_ASCII, which cannot store "
                "payloads reliably; use a database that was created with encoding 'UTF8'"
            )

    def _set_up(self, connection: QueueConnection, role: str, settings: Mapping[str, str], *, listens: bool) -> None:
        # Disabling prepared statements means that there is a pooler.
        if self.prepared_statements and self._set_if_direct(connection, role, settings):
            self.pooling = PoolerMode.NONE
            self.configure(connection)
            return
        if self._notice_pooler or listens:
            self._check_for_pooler(connection, role)
        elif role == TASK_ROLE:
            # At least one statement is answered, or the connection is worth nothing; else `prepare` has one.
            connection.execute("select 1", prepare=False)
        self.prepare(connection, role)
        self._apply(connection, settings)

    def _set_if_direct(self, connection: QueueConnection, role: str, settings: Mapping[str, str]) -> bool:
        """Set up the session in one round trip, if it leads straight to the server and there is something to set."""
        path = {} if role == TASK_ROLE else {"search_path": SEARCH_PATH}
        wanted = {**path, **self.limits.settings(), **settings}
        values = (list(wanted), list(wanted.values()), connection.info.backend_pid)
        return bool(wanted) and connection.execute(_SET_IF_DIRECT, values, prepare=False).rowcount > 0

    def _apply(self, connection: QueueConnection, settings: Mapping[str, str]) -> None:
        if self.pooling is PoolerMode.TRANSACTION or not self.prepared_statements:
            connection.local_settings = {"search_path": SEARCH_PATH, **settings} if settings else settings
        elif settings:
            _set(connection, settings, local=False)

    def _check_for_pooler(self, connection: QueueConnection, role: str) -> None:
        """Notice a pooler by the number of the server's process, which it invents: it serves us from many."""
        if _server_process(connection) == connection.info.backend_pid:
            self.pooling = PoolerMode.NONE
        elif self.pooling is PoolerMode.NONE:
            with _system_errors_as_the_drivers():
                other = QueueConnection.connect(self.libpq_conninfo(role), autocommit=True)
            with closing(other):
                mode = _mode(connection, other)
                if mode is PoolerMode.TRANSACTION and not allows_transactions(other):
                    raise InvalidSettingError(STATEMENT_MODE.format(f"the pooler at {described(self.conninfo)}"))
                self.pooling = mode
        connection.pooling = self.pooling
        if self.pooling is PoolerMode.TRANSACTION:
            self.prepared_statements = False

    def prepare(self, connection: Connection, role: str = "") -> None:
        """Apply the session's limits to a fresh connection, and gw's search path unless tasks borrow it.

        A forked child must not share it.
        """
        setup = self.session_setup(connection.info.backend_pid, role)
        counts = [connection.execute(statement, values, prepare=False).rowcount for statement, values in setup]
        self.configure(connection, is_direct=all(counts))

    def configure(self, connection: Connection | psycopg.AsyncConnection[Any], *, is_direct: bool = True) -> None:
        """Apply what concerns this side of a fresh connection; it prepares statements only on a session of its own.

        A pooler would give them to its other clients, and the names that the driver chooses may be taken.
        """
        forks.close_in_children(connection)
        has_session = is_direct or self.pooling is PoolerMode.SESSION
        if not self.prepared_statements or not has_session:
            connection.prepare_threshold = None

    def session_setup(self, backend_pid: int, role: str = "") -> Iterator[tuple[LiteralString, Sequence[Any]]]:
        """Yield the statements, with their values, that apply what concerns the server's side.

        One without rows means that there is a pooler in between.
        """
        # Behind such a pooler settings would stay behind for its other clients: workers that may no longer write.
        if self.pooling is PoolerMode.TRANSACTION:
            return
        if role != TASK_ROLE:
            yield _SET_IF_DIRECT, (["search_path"], [SEARCH_PATH], backend_pid)
        if settings := self.limits.settings():
            yield _SET_CONFIG, (False, list(settings), list(settings.values()))

    @property
    def is_embedded(self) -> bool:
        """True when the server is one that gw runs."""
        return self.conninfo.startswith(EMBEDDED_PREFIX)

    def libpq_conninfo(self, role: str = "") -> str:
        """Return the string for libpq, with timeouts, an application name and the current password.

        Starts the embedded server.
        """
        conninfo = self.conninfo_without_password(role)
        if self.password is None:
            return conninfo
        with translated(self.schema):
            return make_conninfo(conninfo, password=self.read_password() or None)

    def read_password(self) -> str:
        """Return the current password, or `""`; a failure counts as transient, like that of a database that is down."""
        try:
            return str((self.password and self.password()) or "")
        except GraphileWorkerError:
            raise
        except Exception as error:
            raise DatabaseUnavailableError(f"the password could not be read: {error}") from error

    def conninfo_without_password(self, role: str = "") -> str:
        """Return the string for libpq without the password that is read for each connection."""
        conninfo = self._server_conninfo()
        if is_ambiguous(conninfo):
            raise InvalidSettingError(
                "the connection URL has a raw @ or / in its user or password; write @ as %40 and / as %2F"
            )
        try:
            given = conninfo_to_dict(conninfo)
        except psycopg.ProgrammingError:
            # libpq quotes the string in its complaint, password included, so not even the cause is kept.
            raise InvalidSettingError(
                "the connection string cannot be read; write it like postgres://user@host/database or host=… dbname=…"
            ) from None
        with translated(self.schema):
            name = f"{self._application_name}:{role}" if role else self._application_name
            defaults: dict[str, Any] = {**CONNECTION_TIMEOUTS, "application_name": name}
            if "," in str(given.get("host") or given.get("hostaddr") or ""):
                defaults["connect_timeout"] = FAILOVER_CONNECT_TIMEOUT
            if self.limits.connect_timeout is not None:
                defaults["connect_timeout"] = max(
                    2, round(as_duration("connect_timeout", self.limits.connect_timeout).total_seconds())
                )
            settings = {key: value for key, value in defaults.items() if key not in given}
            with suppress(ValueError):  # the driver rejects it better
                settings["connect_timeout"] = _connect_timeout({**defaults, **given}["connect_timeout"])
            return make_conninfo(conninfo, **settings, client_encoding=ENCODING)

    def close(self) -> None:
        """Leave the embedded server, if one was started; the last process to leave stops it."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.close()

    def _server_conninfo(self) -> str:
        if not self.is_embedded:
            return self.conninfo
        from gw_core.embedded import start_or_attach  # imported late: most programs bring their own server

        with not_counting(), self._lock:
            if self._server is None:
                self._server = start_or_attach(self.conninfo, pg_bin=self._pg_bin)
            return self._server.conninfo


def _connect_timeout(configured: Any) -> int:
    """Return how many seconds a connection attempt may take, which ends with the current call; 0 is no limit."""
    configured, left = int(configured), time_left()
    # The driver does not take less than two.
    return configured if left == inf or 0 < configured < left else max(2, ceil(left))


def allows_transactions(connection: Connection) -> bool:
    """Return whether a pooler supports transactions; one that does not closes the connection."""
    try:
        with connection.transaction():
            connection.execute("select 1", prepare=False)
    except psycopg.errors.ProtocolViolation:
        return False
    return True


def _server_process(connection: Connection) -> int:
    row = connection.execute("select pg_backend_pid()", prepare=False).fetchone()
    return 0 if row is None else int(row[0])


def _mode(one: Connection, other: QueueConnection) -> PoolerMode:
    """Return the pooler's mode: two sessions never share one server process, two transactions do."""
    own = _server_process(one)
    other.response_timeout = _A_TURN
    try:
        for number in range(_POOLER_CHECKS):
            # More often each time: a pooler that takes its connections in turn would otherwise repeat itself.
            others = [_server_process(other) for _ in range(number + 1)]
            if own in others or _server_process(one) != own:
                return PoolerMode.TRANSACTION
    except psycopg.OperationalError:  # it lets the second one wait for as long as the first is there
        return PoolerMode.SESSION
    return PoolerMode.SESSION
