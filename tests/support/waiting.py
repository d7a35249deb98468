"""Helpers for every test: waiting for an event with a deadline, and free ports."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

Answer = TypeVar("Answer")
ROUNDED = timedelta(milliseconds=1)
OF_NO_CONNECTION = range(20_000, 32_000)
"""Ports below those that the kernel gives to connections."""


def wait_until(
    condition: Callable[[], Answer],
    *,
    deadline_seconds: float = 60.0,
    what: str = "the condition",
    every: float = 0.01,
) -> Answer:
    """Ask `condition` until its answer is true and return that answer; fail with `what` when the deadline passes."""
    deadline = time.monotonic() + deadline_seconds
    while not (seen := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {deadline_seconds:g} s for {what}; the last answer was {seen!r}")
        time.sleep(every)
    return seen


def free_port() -> int:
    """Return a port of loopback without a listener, and that no connection is given while a server is down."""
    while True:
        port = random.SystemRandom().choice(OF_NO_CONNECTION)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
