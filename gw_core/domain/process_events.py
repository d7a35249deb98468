"""The events of a supervisor and its worker processes."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from gw_core.domain.event_bus import Event


class SupervisorStarted(Event, frozen=True):
    """A supervisor starts `processes` worker processes, one first to check that they can run."""

    name: ClassVar[str] = "supervisor:start"
    processes: int


class ProcessReady(Event, frozen=True):
    """Process `number`, with the process id `pid`, starts to claim jobs."""

    name: ClassVar[str] = "process:ready"
    number: int
    pid: int


class ProcessEnded(Event, frozen=True):
    """Process `number` exited for `exit_reason`. It restarts after `restart_in`, or not if that is None.

    `graceful` means that the exit was requested, or that the process reached one of its recycling limits.
    `stops_all` means that the supervisor stops the other processes too.
    """

    name: ClassVar[str] = "process:end"
    number: int
    pid: int
    exit_reason: str
    graceful: bool
    restart_in: timedelta | None
    stops_all: bool = False


class SupervisorGaveUp(Event, frozen=True):
    """Process `number` exited in a way that a restart cannot fix; the supervisor stops all processes."""

    name: ClassVar[str] = "supervisor:gaveUp"
    number: int
    reason: str
    exit_code: int


class ProcessesKilled(Event, frozen=True):
    """The processes `numbers` ran on after the grace period and were killed; their jobs are still locked."""

    name: ClassVar[str] = "process:kill"
    numbers: tuple[int, ...]


class SupervisorStopped(Event, frozen=True):
    """All processes have exited."""

    name: ClassVar[str] = "supervisor:stop"
    reason: str
    exit_code: int
