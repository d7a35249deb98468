"""What becomes of a worker process that ended: is it started again, when, and when is it no use?"""

from __future__ import annotations

import signal
from collections.abc import Collection
from datetime import timedelta
from typing import Final

import msgspec

FIRST_PAUSE: Final = timedelta(seconds=0.25)
MAX_PAUSE: Final = timedelta(seconds=30)
MAX_TRANSIENT_PAUSE: Final = timedelta(seconds=2)
"""What waits for a database must be there soon after it is back."""

SETTLED_AFTER: Final = timedelta(seconds=60)
"""A process that ran this long was healthy: a later exit counts as a new failure."""

MAX_FAILED_STARTS: Final = 5
"""How many processes in a row may end before they were ready, when no other one works, until it counts as no use."""

SIGNALLED: Final = 128
"""A shell shows an end by signal N as this plus N."""


class StopAll(msgspec.Struct, frozen=True):
    """End the others too, with this exit code."""

    reason: str
    exit_code: int


def decide(
    code: int,
    *,
    was_ready: bool,
    quick_ends: int,
    once: bool,
    fatal_codes: Collection[int],
    transient_codes: Collection[int],
    is_proven: bool,
    failed_starts: int,
    others_work: bool,
) -> timedelta | StopAll | None:
    """Return the pause before a process that was not asked to stop is restarted; None: go on without it.

    `code` is negative for a signal. `quick_ends` is how often it ended soon after its start before. A restart does not
    help after `fatal_codes`: wrong settings, tasks that do not load. `transient_codes` are temporary failures: the
    database is unavailable. `is_proven` means that any process was ever ready, so that they can run here.
    `failed_starts` counts processes that ended in a row before they were ready, with this one.
    """
    if code in fatal_codes:
        return StopAll(f"it {exit_description(code)}, and would exit the same way again", exit_code_of(code))
    if once:
        return None
    if code in transient_codes and is_proven:
        return min(MAX_TRANSIENT_PAUSE, pause_after(quick_ends))
    if not was_ready and not others_work and failed_starts >= MAX_FAILED_STARTS:
        reason = f"{failed_starts} starts in a row failed; the last one {exit_description(code)}"
        return StopAll(reason, exit_code_of(code) or 1)
    return timedelta(0) if code == 0 and was_ready else pause_after(quick_ends)


def pause_after(quick_ends: int) -> timedelta:
    """Return how long to wait before starting again what ended soon after its start this many times before."""
    return min(MAX_PAUSE, FIRST_PAUSE * (1 << min(quick_ends, 20)))


def exit_code_of(code: int) -> int:
    """Return the exit code that stands for an end, also for one by a signal."""
    return SIGNALLED - code if code < 0 else code


def exit_description(code: int) -> str:
    """Return in words how a process ended, with the likely reason of a SIGKILL."""
    hint = ", possibly out of memory" if code == -signal.SIGKILL else ""
    return exit_words(code) + hint


def exit_words(code: int) -> str:
    """Return in words how a process ended."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
