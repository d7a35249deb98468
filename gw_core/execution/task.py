"""A task: what is called to run the jobs of one identifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from gw_core.domain.job.history import NO_OPTIONS, HistoryOptions
from gw_core.execution.signature import Invoke

Function = Callable[..., object]
Isolation = Literal["process"]


@dataclass(frozen=True, slots=True)
class Task:
    """A function, or an executable file, that runs the jobs of one identifier."""

    identifier: str
    invoke: Invoke = field(repr=False, compare=False)
    source: str
    """Where it is written, for messages: a file and line, or a module."""
    function: Function | None = field(default=None, repr=False, compare=False)
    """What was registered; None for an executable file."""
    timeout: timedelta | None = None
    """How long a run may take before its attempt fails; None: as long as it likes."""
    isolation: Isolation | None = None
    """"process" when it runs in a process of its own."""
    history: HistoryOptions = NO_OPTIONS
    """What history keeps of its jobs."""
