"""Small things every test may lean on: waiting for an event, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Seen = TypeVar("Seen")


def wait_until(
    condition: Callable[[], Seen], *, deadline_seconds: float = 60.0, what: str = "the condition", every: float = 0.01
) -> Seen:
    """Ask `condition` until its answer is true and return that answer; fail with `what` when the deadline passes."""
    deadline = time.monotonic() + deadline_seconds
    while not (seen := condition()):
        if time.monotonic() >= deadline:
            raise AssertionError(f"waited {deadline_seconds:g} s for {what}; the last answer was {seen!r}")
        time.sleep(every)
    return seen
