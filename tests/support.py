"""Small things every test may lean on: waiting for an event, with a deadline; moments between two others."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import TypeVar

JobVersion = TypeVar("JobVersion")
ROUNDED = timedelta(milliseconds=1)
OF_NO_CONNECTION = range(20_000, 32_000)
"""Ports below those that the kernel gives to connections."""


def wait_until(
    condition: Callable[[], JobVersion],
    *,
    deadline_seconds: float = 60.0,
    what: str = "the condition",
    every: float = 0.01,
) -> JobVersion:
    """Ask `condition` until its answer is true and return that answer; fail with `what` when the deadline passes."""
    deadline = time.monotonic() + deadline_seconds
    while not (seen := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {deadline_seconds:g} s for {what}; the last answer was {seen!r}")
        time.sleep(every)
    return seen


def free_port() -> int:
    """Return a port of loopback where nobody listens, and that no connection is given while a server is down."""
    while True:
        port = random.SystemRandom().choice(OF_NO_CONNECTION)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@dataclass(frozen=True, slots=True)
class Moments:
    """All moments from `earliest` to `latest`, and a hair's breadth more for numbers that were rounded."""

    earliest: datetime
    latest: datetime

    def __contains__(self, moment: object) -> bool:
        return isinstance(moment, datetime) and self.earliest - ROUNDED <= moment <= self.latest + ROUNDED


class Span:
    """The time a block takes by somebody's clock, however long the machine holds it up.

    with Span(now) as span:
        fail(job)
    assert row["run_at"] in span.later(seconds=600)
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._began: datetime | None = None
        self._ended: datetime | None = None

    def __enter__(self) -> Span:
        self._began = self._now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = self._now()

    def later(self, seconds: float = 0.0) -> Moments:
        """The moments that lie so many seconds after one within the block."""
        assert self._began is not None, "the span has not begun"
        assert self._ended is not None, "the span has not ended"
        return Moments(self._began + timedelta(seconds=seconds), self._ended + timedelta(seconds=seconds))
