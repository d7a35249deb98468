"""The client for threads."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from gw_core.clients.queue_client import QueueClient
from gw_core.clients.threads import ThreadRuntime
from gw_core.clients.verbs import OnThreads
from gw_core.domain.durations import Duration
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Interceptors, Plugin
from gw_core.domain.rules.session_limits import NO_LIMITS, SessionLimits
from gw_core.postgres.connection.connections import (
    CallersPool,
    ConnectionPool,
    PoolOrConnection,
    SharedConnection,
    conninfo_of,
    password_of,
)
from gw_core.postgres.connection.database import DEFAULT_SCHEMA, Database, find_conninfo

if TYPE_CHECKING:
    from gw_core.clients.sharding import ShardedClient, ShardKey
    from gw_core.postgres.connection.connections import AnyPool

T = TypeVar("T")


class Client(QueueClient[OnThreads]):
    """One queue: a database and a schema in it. Safe to share between threads; make one and keep it.

    `conninfo` is anything libpq takes, or `embedded:`; without one `DATABASE_URL` and libpq's variables are used.
    Connections are opened when first needed, at most `max_pool_size`; the server shows them as `application_name` and
    limits each by `session_limits`. `password` is called for each new connection, for passwords that change. With
    `pool`, a psycopg pool of yours, its connections are used instead, and get their settings back afterwards.
    `conn` is called for each call without `conn=`, and returns the connection that it uses: `conn=lambda: db.session`.

    Every method raises `DatabaseUnavailableError`, `PermissionDeniedError`, `SchemaMissingError` and the like.

    Example: docs/api/index.md
    """

    def __init__(
        self,
        conninfo: str | None = None,
        *,
        schema: str = DEFAULT_SCHEMA,
        prepared_statements: bool = True,
        max_pool_size: int = 10,
        events: Events | None = None,
        plugins: Sequence[Plugin] = (),
        pg_bin: Path | None = None,
        application_name: str = "gw",
        session_limits: SessionLimits = NO_LIMITS,
        password: Callable[[], str] | None = None,
        pool: AnyPool | None = None,
        conn: Callable[[], object] | None = None,
    ) -> None:
        events = events or Events()
        interceptors = Interceptors.attached(plugins, events)
        database = Database(
            conninfo_of(pool) if conninfo is None and pool is not None else find_conninfo(conninfo),
            schema=schema,
            application_name=application_name,
            prepared_statements=prepared_statements,
            pg_bin=pg_bin,
            limits=session_limits,
            password=password or password_of(pool),
        )
        connections: PoolOrConnection
        if pool is not None:
            connections = CallersPool(database, pool)
        elif max_pool_size == 1:  # one caller at a time needs no pool and none of its threads
            connections = SharedConnection(database)
        else:
            connections = ConnectionPool(database, max_size=max_pool_size)
        super().__init__(ThreadRuntime(database, connections, events=events, interceptors=interceptors, conn=conn))

    @classmethod
    def sharded(cls, connections: Mapping[str, str], *, by: ShardKey, **options: Any) -> ShardedClient[Self]:
        """Return a client for queues on several databases, by name; `options` are those of each `Client`.

        `by` returns the key of a job, such as its tenant: jobs with equal keys go to the same database.
        """
        from gw_core.clients.sharding import ShardedClient

        return ShardedClient({name: cls(each, **options) for name, each in connections.items()}, by=by)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and leave the embedded server, if one was started."""
        self._runtime.close()

    @overload
    def result(
        self, job_id: int, task: Callable[..., Coroutine[Any, Any, T]], *, timeout: Duration | None = None
    ) -> T: ...
    @overload
    def result(self, job_id: int, task: Callable[..., T], *, timeout: Duration | None = None) -> T: ...
    @overload
    def result(self, job_id: int, task: None = None, *, timeout: Duration | None = None) -> Any: ...
    def result(self, job_id: int, task: Callable[..., object] | None = None, *, timeout: Duration | None = None) -> Any:
        """Wait until a job has ended, and return what its task returned. Its task needs `result=True`.

        With `task`, the result is of the type that its function is annotated to return, otherwise plain values.
        `timeout` is a `timedelta` or seconds; 0 does not wait, None waits forever. Raises `JobFailedError` when the job
        failed permanently, `ResultTimeoutError` when it does not end in time, and `ResultUnavailableError` when there
        is no result and none will come. Waiting threads share one connection, which listens.
        """
        from gw_core.postgres.read.history import end_of
        from gw_core.postgres.read.job_results import wait_for_result

        read_end = partial(end_of, self._connections, self._schema, job_id)
        return wait_for_result(read_end, self._runtime.result_listener, job_id, timeout, task)
