"""What happens in the life of the worker processes that a supervisor looks after."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from gw_core.domain.events import Event


class SupervisorStarted(Event, frozen=True):
    """A supervisor begins to run `processes` worker processes; the first one shows whether they can run at all."""

    name: ClassVar[str] = "supervisor:start"
    processes: int


class ProcessReady(Event, frozen=True):
    """Process `number` begins to look for jobs; the system knows it as `pid`."""

    name: ClassVar[str] = "process:ready"
    number: int
    pid: int


class ProcessEnded(Event, frozen=True):
    """Process `number` ended as `how` says; it is started again after `again_in`, or not at all.

    `in_order` tells an end that was asked for, or came after as many jobs or as long as the process was to run;
    `ends_all` one after which the others are stopped too.
    """

    name: ClassVar[str] = "process:end"
    number: int
    pid: int
    how: str
    in_order: bool
    again_in: timedelta | None
    ends_all: bool = False


class SupervisorGaveUp(Event, frozen=True):
    """Process `number` ended in a way that starting it again cannot mend, and so all are stopped."""

    name: ClassVar[str] = "process:give-up"
    number: int
    reason: str
    exit_code: int


class ProcessesKilled(Event, frozen=True):
    """The grace period is long over: the processes `numbers` were killed, and their jobs are still locked."""

    name: ClassVar[str] = "process:kill"
    numbers: tuple[int, ...]


class SupervisorStopped(Event, frozen=True):
    """All processes have ended."""

    name: ClassVar[str] = "supervisor:stop"
    reason: str
    exit_code: int
