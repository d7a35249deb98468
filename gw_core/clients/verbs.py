"""One declaration of what a client does serves both: `Client` returns the result, `AsyncClient` an awaitable of it.

A part of a client, such as `client.pauses`, is a class whose methods have one of three decorators. Type checkers and
`inspect.signature` see plain methods on threads, and coroutine functions on event loops.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

import msgspec

from gw_core.clients.arguments import checked
from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.statement_steps import Operation

if TYPE_CHECKING:
    from gw_core.execution.context import Adds, AddsBatch
    from gw_core.postgres.connection.connections import ConnectionSource
    from gw_core.postgres.connection.database import Connection
    from gw_core.postgres.read.job_queries import JobQueries
    from gw_core.postgres.road.bulk_actions import Batches

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


DefaultConn = Callable[[], object]
"""Returns the connection of calls that name none."""


def default_conn(default: DefaultConn | None, conn: object | None) -> object | None:
    """Return the caller's connection, or the one that stands in for it."""
    return default() if conn is None and default is not None else conn


class OnThreads:
    """Marks parts whose methods return results."""


class OnLoop:
    """Marks parts whose methods return awaitables of results."""


class Request(msgspec.Struct, Generic[T], frozen=True):
    """An operation, and the caller's connection in whose transaction it runs; None: a connection of the client."""

    operation: Operation[T]
    conn: object | None = None


class Acting(msgspec.Struct, frozen=True):
    """The batches of an action on jobs, and the caller's connection in whose transaction they run."""

    batches: Batches
    conn: object | None = None


class Part(Generic[R]):
    """A part of a client; `R` is `OnThreads` or `OnLoop`, which carries out what the methods ask for."""

    _is_on_loop: ClassVar[bool] = False
    """Whether all objects of the class are on event loops; the classes of parts serve both."""

    def __init__(self, runtime: R) -> None:
        self._runtime: Any = runtime

    def _on(self, runtime: Any) -> Self:
        """Return the same part with another runtime."""
        other = object.__new__(type(self))  # a client's own constructor takes what makes a runtime
        Part.__init__(other, runtime)
        return other

    @property
    def _schema(self) -> str:
        """The schema the queue lives in."""
        schema: str = self._runtime.schema
        return schema

    @property
    def _connections(self) -> ConnectionSource:
        """Connections for methods that block."""
        source: ConnectionSource = self._runtime.connections
        return source

    @property
    def _queries(self) -> JobQueries:
        """Read-only queries, for methods that block."""
        from gw_core.postgres.read.job_queries import JobQueries  # adding a job waits for none of it

        return JobQueries(self._connections, self._schema)

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """Provide a connection to a method that blocks; the block raises gw's errors for those of the driver."""
        with self._connections.connection() as connection, translated(self._schema):
            yield connection


class _Method(Generic[P, T]):
    """What the decorators share; on a class that serves threads, a method is the function itself."""

    is_checked: ClassVar[bool] = True
    """Whether the arguments are checked by their annotations; what adds a job checks its own, each time for less."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = checked(function) if self.is_checked else function
        self.__doc__ = function.__doc__


class _Returning(_Method[P, T]):
    """Returns a result on threads, and an awaitable of it on event loops."""

    kind: ClassVar[str]
    """The method of the runtime that binds the function."""

    @overload
    def __get__(self, part: None, owner: object = None) -> Callable[..., Any]: ...
    @overload
    def __get__(self, part: Part[OnThreads], owner: object = None) -> Callable[P, T]: ...
    @overload
    def __get__(self, part: Part[OnLoop], owner: object = None) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, part: Part[Any] | None, owner: object = None) -> Any:
        if part is not None:
            return getattr(part._runtime, self.kind)(self.function, part)
        # `mock.create_autospec(AsyncClient)` reads the class.
        return _coroutine_function(self.function) if getattr(owner, "_is_on_loop", False) else self.function


@cache
def _coroutine_function(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return what calls the method of this name of its first argument, and awaits the result."""

    @wraps(function)
    async def method(part: Part[Any], /, *args: Any, **kwargs: Any) -> Any:
        return await getattr(part, function.__name__)(*args, **kwargs)

    return method


class verb(_Returning[P, T]):  # noqa: N801 - a decorator
    """Returns a request; the caller gets its result."""

    kind = "verb"

    def __init__(self, function: Callable[Concatenate[Any, P], Request[T]]) -> None:
        super().__init__(function)
        # Help and signatures show what the caller gets.
        returned = str(function.__annotations__["return"])
        function.__annotations__["return"] = returned.removeprefix("Request[").removesuffix("]")


class add_verb(verb[..., T]):  # noqa: N801 - a decorator
    """A verb that adds a job; type checkers compare the payload with what the task takes."""

    is_checked = False

    if TYPE_CHECKING:

        @overload
        def __get__(self, part: None, owner: object = None) -> Callable[..., Any]: ...
        @overload
        def __get__(self, part: Part[OnThreads], owner: object = None) -> Adds[T]: ...
        @overload
        def __get__(self, part: Part[OnLoop], owner: object = None) -> Adds[Coroutine[Any, Any, T]]: ...
        def __get__(self, part: Part[Any] | None, owner: object = None) -> Any: ...


class batch_verb(verb[..., T]):  # noqa: N801 - a decorator
    """As `add_verb`, for the items of a batch job."""

    is_checked = False

    if TYPE_CHECKING:

        @overload
        def __get__(self, part: None, owner: object = None) -> Callable[..., Any]: ...
        @overload
        def __get__(self, part: Part[OnThreads], owner: object = None) -> AddsBatch[T]: ...
        @overload
        def __get__(self, part: Part[OnLoop], owner: object = None) -> AddsBatch[Coroutine[Any, Any, T]]: ...
        def __get__(self, part: Part[Any] | None, owner: object = None) -> Any: ...


class blocking(_Returning[P, T]):  # noqa: N801 - a decorator
    """Uses connections of the client and may take long: an event loop runs it in a thread."""

    kind = "blocking"

    def __init__(self, function: Callable[Concatenate[Any, P], T]) -> None:
        super().__init__(function)


class iterating(_Method[P, T]):  # noqa: N801 - a decorator
    """As `blocking`, for an iterator: an event loop runs each of its steps in a thread."""

    def __init__(self, function: Callable[Concatenate[Any, P], Iterator[T]]) -> None:
        super().__init__(function)

    @overload
    def __get__(self, part: None, owner: object = None) -> Callable[..., Any]: ...
    @overload
    def __get__(self, part: Part[OnThreads], owner: object = None) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, part: Part[OnLoop], owner: object = None) -> Callable[P, AsyncIterator[T]]: ...
    def __get__(self, part: Part[Any] | None, owner: object = None) -> Any:
        return self.function if part is None else part._runtime.iterating(self.function, part)
