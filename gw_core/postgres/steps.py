"""Statements of which each depends on rows of those before it, written once for threads and event loops."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import TypeVar

from psycopg.rows import tuple_row

from gw_core.postgres.add_calls import Call
from gw_core.postgres.callers_connection import Rows
from gw_core.postgres.database import Connection
from gw_core.postgres.statements import query

T = TypeVar("T")

Steps = Generator[Call, Rows, T]
"""Yields statements, is sent the rows of each, and returns a result."""


def run_steps(steps: Steps[T], fetch: Callable[[Call], Rows]) -> T:
    """Run the statements one after the other, and return the result; raises what `fetch` raises."""
    try:
        call = next(steps)
        while True:
            call = steps.send(fetch(call))
    except StopIteration as end:
        result: T = end.value
        return result


async def await_steps(steps: Steps[T], fetch: Callable[[Call], Awaitable[Rows]]) -> T:
    """As `run_steps`, on an event loop."""
    try:
        call = next(steps)
        while True:
            call = steps.send(await fetch(call))
    except StopIteration as end:
        result: T = end.value
        return result


def fetch_on(connection: Connection, schema: str) -> Callable[[Call], Rows]:
    """Return what runs statements on one of gw's own connections, without preparing them."""

    def fetch(call: Call) -> Rows:
        with connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(query(call.statement, schema, **call.names), call.values, prepare=False)
            return cursor.fetchall() if cursor.description is not None else []

    return fetch
