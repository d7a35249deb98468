"""Count calls: a cost that is the same on every machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType


def calls_in(function: Callable[[], object]) -> int:
    """Return how many functions are called while `function` runs, those written in C included."""
    found: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            found.append(event)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return len(found)
