"""How `Client` carries out what its parts ask for: in the calling thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, wraps
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from gw_core.clients.verbs import DefaultConn, OnThreads, default_conn
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Interceptors
from gw_core.postgres.connection.connections import PoolOrConnection
from gw_core.postgres.connection.database import Database
from gw_core.postgres.connection.statement_steps import Operation, carry_out

if TYPE_CHECKING:
    from gw_core.clients.verbs import Acting, Part, Request
    from gw_core.postgres.read.job_results import ResultListener
    from gw_core.postgres.road.bulk_actions import ActionResult
    from gw_core.postgres.road.enqueue import AddOperations

T = TypeVar("T")


class ThreadRuntime(OnThreads):
    """The connections of a client, shared by its parts. Safe to use from any thread."""

    def __init__(
        self,
        database: Database,
        connections: PoolOrConnection,
        *,
        events: Events,
        interceptors: Interceptors,
        conn: DefaultConn | None = None,
    ) -> None:
        self.database = database
        self.connections = connections
        self.events = events
        self.interceptors = interceptors
        self._default_conn = conn

    @property
    def schema(self) -> str:
        """The schema the queue lives in."""
        return self.database.schema

    @cached_property
    def adds(self) -> AddOperations:
        """Adds jobs: asks the plugins and emits the events."""
        from gw_core.postgres.road.enqueue import AddOperations

        return AddOperations(self.interceptors, self.events)

    @cached_property
    def result_listener(self) -> ResultListener:
        """Wakes threads that wait for the results of jobs."""
        from gw_core.postgres.read.job_results import ResultListener

        return ResultListener(self.database)

    def carry_out(self, operation: Operation[T], conn: object | None = None) -> T:
        """Carry out an operation in the caller's transaction, or in our own."""
        conn = default_conn(self._default_conn, conn)
        return carry_out(operation, self.connections, self.schema, conn)

    def verb(self, function: Callable[..., Request[T]], part: Part[Any]) -> Callable[..., T]:
        """Return the method that carries out the requests of this function."""

        @wraps(function)
        def method(*args: Any, conn: object | None = None, **kwargs: Any) -> T:
            request = function(part, *args, conn=default_conn(self._default_conn, conn), **kwargs)
            return self.carry_out(request.operation, request.conn)

        method.__wrapped__ = MethodType(function, part)
        return method

    def blocking(self, function: Callable[..., T], part: Part[Any]) -> Callable[..., T]:
        """Return the method."""
        return MethodType(function, part)

    iterating = blocking

    def in_batches(self, function: Callable[..., Acting], part: Part[Any]) -> Callable[..., Iterator[ActionResult]]:
        """Return the method that yields the result of each batch."""

        @wraps(function)
        def method(*args: Any, conn: object | None = None, **kwargs: Any) -> Iterator[ActionResult]:
            acting = function(part, *args, conn=default_conn(self._default_conn, conn), **kwargs)
            return iter(lambda: self.carry_out(acting.batches.following(), acting.conn), None)

        return method

    def close(self) -> None:
        """Close the connections, and leave the embedded server, if one was started."""
        if "result_listener" in self.__dict__:
            self.result_listener.close()
        self.connections.close()
        self.database.close()
