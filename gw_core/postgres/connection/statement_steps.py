"""What clients do on a database, written once for threads and event loops."""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import nullcontext
from datetime import timedelta
from typing import Any, Final, TypeVar

import msgspec

from gw_core.domain.errors import DeadlockError
from gw_core.domain.rules.session_limits import SessionLimits, milliseconds
from gw_core.postgres.connection.callers_connection import CallersConnection, OwnConnection, Rows, callers_connection
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.deadlines import without_deadline
from gw_core.postgres.connection.row_security import visible_rows
from gw_core.postgres.road.add_calls import Call

MAX_TRIES: Final = 10
"""How often statements run that the server aborts because of a deadlock."""

T = TypeVar("T")
Step = TypeVar("Step")
Answer = TypeVar("Answer")

Steps = Generator[Call, Rows, T]
"""Yields statements, is sent the rows of each, and returns a result."""

BulkSteps = Generator[Call | Iterator[Call], Rows, T]
"""As `Steps`; it may also yield several statements that do not depend on each other, and is sent the rows of all."""


class Unit(msgspec.Struct, frozen=True):
    """Statements for one connection; its answer is the result of the steps.

    With `is_atomic` all statements count or none. Otherwise, on a connection of ours, each is committed alone.
    """

    steps: Callable[[], BulkSteps[Any]]
    is_atomic: bool = False
    lock_timeout: timedelta | None = None
    """How long an atomic unit waits for a row on a connection of ours; a caller's keeps its own setting."""


Operation = Generator[Call | Unit | Callable[[object | None], Any], Any, T]
"""Yields statements, units, and functions of the caller's connection; is sent the answer of each."""


def run_steps(steps: Generator[Step, Answer, T], act: Callable[[Step], Answer]) -> T:
    """Take the steps one after the other, and return the result. What `act` raises is raised in the generator."""
    try:
        step = next(steps)
        while True:
            try:
                answer = act(step)
            except BaseException as error:  # noqa: BLE001 - the generator raises it
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


async def await_steps(steps: Generator[Step, Answer, T], act: Callable[[Step], Awaitable[Answer]]) -> T:
    """As `run_steps`, on an event loop."""
    try:
        step = next(steps)
        while True:
            try:
                answer = await act(step)
            except BaseException as error:  # noqa: BLE001 - the generator raises it
                step = steps.throw(error)
            else:
                step = steps.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


def fetched(call: Call) -> Steps[Rows]:
    """Run one statement, and return its rows."""
    return (yield call)


def carry_out(operation: Operation[T], connections: ConnectionSource, schema: str, conn: object | None = None) -> T:
    """Carry an operation out on the caller's connection, or each unit on one of our own."""
    callers = None if conn is None else callers_connection(conn, schema)

    def act(step: Call | Unit | Callable[[object | None], Any]) -> Any:
        if callable(step):
            return step(conn)
        if callers is None:
            return _run_on_own(connections, schema, step)
        with without_deadline():
            return _run_on(callers, step)

    return run_steps(operation, act)


def _run_on(connection: CallersConnection, step: Call | Unit) -> Any:
    if isinstance(step, Call):
        return connection.fetch(step)
    with connection.atomic() if step.is_atomic else nullcontext():
        return run_steps(step.steps(), connection.run)


def with_limit(step: Call | Unit, limits: SessionLimits) -> Call | Unit:
    """Return the step for a connection of ours: its transaction waits for locks no longer than `lock_timeout`."""
    if isinstance(step, Call) or step.lock_timeout is None:
        return step
    timeout = milliseconds(limits.cap_lock_timeout(step.lock_timeout))

    def steps() -> BulkSteps[Any]:
        yield Call("set_lock_timeout", {"timeout": timeout})
        return (yield from step.steps())

    return Unit(steps, is_atomic=True)


def _run_on_own(connections: ConnectionSource, schema: str, step: Call | Unit) -> Any:
    """Run statements on a connection of our own, and repeat them after a deadlock."""
    pauses = deadlock_pauses()
    while True:
        try:
            with connections.connection() as connection:
                return _run_on(OwnConnection(connection, schema), with_limit(step, connections.database.limits))
        except DeadlockError:
            if (pause := next(pauses, None)) is None:
                raise
            time.sleep(pause)


def deadlock_pauses() -> Iterator[float]:
    """Yield the seconds to wait after each deadlock before statements on a connection of ours are repeated.

    Adds of the same new keys in opposite orders wait for each other, and the server aborts one of them.
    """
    return (random.uniform(0.01, 0.05) * tries for tries in range(1, MAX_TRIES))


def fetch_on(connection: Connection, schema: str) -> Callable[[Call], Rows]:
    """Return what runs statements on one of gw's own connections, without preparing them."""
    return lambda call: visible_rows(connection, schema, call.statement, call.values, **call.names)
