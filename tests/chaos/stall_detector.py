"""Time for which the whole machine stood still: delays within it are no defect."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

TICK: Final = 0.05
STALL_THRESHOLD: Final = 0.25
"""Seconds: a check that comes so much later was held up with everything else."""

Stall = tuple[int, int]
"""From when to when, as in the ledger."""


class Stalls:
    """Notes, from `watch` on, when the machine stood still."""

    def __init__(self) -> None:
        self.seen: list[Stall] = []

    def watch(self) -> None:
        threading.Thread(target=self._watch, name="stalls", daemon=True).start()

    def _watch(self) -> None:
        while True:
            before = time.monotonic_ns()
            time.sleep(TICK)
            now = time.monotonic_ns()
            if now - before > (TICK + STALL_THRESHOLD) * 1e9:
                self.seen.append((before, now))


def held_up(stalls: Iterable[Stall], since: int, until: int) -> int:
    """Return for how many nanoseconds of a duration the machine stood still."""
    return sum(max(0, min(ended, until) - max(began, since)) for began, ended in stalls)


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for so long, not counting stalls; True when the condition came true."""
    left = seconds
    while not condition():
        if left <= 0:
            return False
        before = time.monotonic()
        time.sleep(TICK)
        left -= min(time.monotonic() - before, TICK + STALL_THRESHOLD)
    return True
