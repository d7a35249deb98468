"""The time until which a call waits for the database, whatever it waits for: a connection, a lock or an answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from math import inf
from time import monotonic
from typing import Any, Final, TypeVar

from gw_core.domain.errors import DatabaseUnavailableError

T = TypeVar("T")

ANSWER_GRACE: Final = timedelta(seconds=5)
"""How long an answer may take beyond the timeout of a call: one that is slow is better than an unknown outcome."""


MAX_SECONDS: Final = threading.TIMEOUT_MAX / 2
"""A lock rejects a longer wait."""


class _Deadline:
    __slots__ = ("at",)

    def __init__(self, at: float) -> None:
        self.at = at


_CURRENT: Final[ContextVar[_Deadline]] = ContextVar("gw_deadline")


@contextmanager
def ending_within(duration: timedelta | float) -> Iterator[None]:
    """Let each wait of the block for the database end within this time of now; a number is seconds.

    Then `DatabaseUnavailableError` is raised, and the connection is closed if it was in use. Inside another such block,
    the earlier end counts.
    """
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    deadline = _Deadline(monotonic() + min(seconds, time_left(), MAX_SECONDS))
    token = _CURRENT.set(deadline)
    try:
        yield
    finally:
        deadline.at = inf  # for threads and tasks that began in the block, and go on with its context
        _CURRENT.reset(token)


@contextmanager
def without_deadline() -> Iterator[None]:
    """Let the block wait as long as it takes, on a connection that gw must not close."""
    token = _CURRENT.set(_Deadline(inf))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def time_left() -> float:
    """Return how many seconds the current call may still wait for the database; infinity if it has no timeout."""
    deadline = _CURRENT.get(None)
    return inf if deadline is None or deadline.at == inf else max(0.0, deadline.at - monotonic())


@contextmanager
def not_counting() -> Iterator[None]:
    """Move the deadline by the time that the block takes, because it does not wait for the database."""
    deadline, began = _CURRENT.get(None), monotonic()
    try:
        yield
    finally:
        if deadline is not None:
            deadline.at += monotonic() - began


@contextmanager
def holding(lock: threading.Lock) -> Iterator[None]:
    """Hold a lock that others hold while they wait for the database. Raises `DatabaseUnavailableError`."""
    left = time_left()
    if not lock.acquire(timeout=-1 if left == inf else left):
        raise DatabaseUnavailableError("the database cannot be reached: another thread still waits for its answer")
    try:
        yield
    finally:
        lock.release()


async def in_time(work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` returns. Raises `DatabaseUnavailableError` at the deadline, and leaves the rest to itself.

    A driver that is cancelled sends the server another request, and waits for its answer.
    """
    left = seconds = time_left()
    if left == inf:
        return await work
    task = asyncio.ensure_future(work)
    try:
        while left > 0 and not task.done():
            await asyncio.wait({task}, timeout=left)
            left = time_left()
    finally:
        if not task.done():
            _abandon(task)
    if not task.done():
        raise DatabaseUnavailableError(f"the database cannot be reached: it has not answered for {seconds:.3g} s")
    return task.result()


_ABANDONED: Final[set[asyncio.Task[Any]]] = set()
"""Tasks that nothing waits for; the event loop alone would not keep them."""


def _abandon(task: asyncio.Task[Any]) -> None:
    task.cancel()
    _ABANDONED.add(task)
    task.add_done_callback(_ended)


def _ended(task: asyncio.Task[Any]) -> None:
    _ABANDONED.discard(task)
    if not task.cancelled():
        task.exception()  # which asyncio would report as never retrieved
