"""What becomes of a worker process that ended: is it started again, when, and when is it no use?"""

from __future__ import annotations

import signal
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """How a process ended: `code` is negative for a signal, as `subprocess` has it."""

    code: int
    was_ready: bool
    lived: timedelta
    quick_ends: int = 0
    """How often it ended soon after its start, this time not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStates:
    """What is known of the processes together when one of them ends."""

    once: bool
    hopeless: Collection[int]
    """Exit codes after which starting again brings nothing: wrong settings, tasks that do not load."""
    passing: Collection[int]
    """Exit codes of temporary failures: the database is unavailable."""
    is_proven: bool
    """Whether any process was ever ready, so that they can run here."""
    failed_starts: int
    """How many ended in a row before they were ready, this one counted."""
    others_work: bool


@dataclass(frozen=True, slots=True)
class Restart:
    """Start the process again after this pause."""

    after: timedelta


@dataclass(frozen=True, slots=True)
class Abandon:
    """Go on without it."""


@dataclass(frozen=True, slots=True)
class StopAll:
    """End the others too, with this exit code."""

    reason: str
    exit_code: int


def what_next(end: ProcessExit, fleet: ProcessStates) -> Restart | Abandon | StopAll:
    """Return what happens after a process that was not asked to stop."""
    code = exit_code_of(end.code)
    if end.code in fleet.hopeless:
        return StopAll(f"it {exit_description(end.code)}, and would exit the same way again", code)
    if fleet.once:
        return Abandon()
    if end.code in fleet.passing and fleet.is_proven:
        return Restart(min(MAX_TRANSIENT_PAUSE, pause_after(end.quick_ends)))
    if not end.was_ready and not fleet.others_work and fleet.failed_starts >= MAX_FAILED_STARTS:
        return StopAll(
            f"{fleet.failed_starts} starts in a row failed; the last one {exit_description(end.code)}", code or 1
        )
    if end.code == 0 and end.was_ready:
        return Restart(timedelta(0))
    return Restart(pause_after(end.quick_ends))


def pause_after(quick_ends: int) -> timedelta:
    """Return how long to wait before starting again what ended soon after its start so many times before."""
    return min(MAX_PAUSE, FIRST_PAUSE * (1 << min(quick_ends, 20)))


def exit_code_of(code: int) -> int:
    """Return the exit code that stands for an end, also for one by a signal."""
    return SIGNALLED - code if code < 0 else code


def exit_description(code: int) -> str:
    """Return in words how a process ended."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = ", perhaps for want of memory" if name == "SIGKILL" else ""
    return f"was ended by {name}{hint}"
