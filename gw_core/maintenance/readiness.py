"""Whether this process takes jobs, derived from its pool's events."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from gw_core.domain.reports.health import PoolHealth, problem, why_not_ready
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import (
    BreakingMigrationDetected,
    PoolConnectionLost,
    PoolConnectionRestored,
    PoolStopping,
    RunnerStarted,
    RunnerStopped,
    TasksReloaded,
)


class Readiness:
    """Listens to the pool's events; `why_not()` may be asked from any thread.

    `_problems` and `is_stopping` are written by the threads that emit and only ever replaced, so readers need no lock.
    """

    def __init__(self, events: Events, *, vitals: Callable[[], PoolHealth | None], poll: timedelta) -> None:
        self.vitals = vitals
        self.is_stopping = False
        self._poll = poll
        self._problems: dict[str, str] = {}
        self._load_errors = 0
        events.on(RunnerStarted, self._started)
        events.on(TasksReloaded, self._reloaded)
        events.on(PoolConnectionLost, self._lost)
        events.on(PoolConnectionRestored, self._restored)
        for kind in (PoolStopping, BreakingMigrationDetected, RunnerStopped):
            events.on(kind, self._stopping)

    @property
    def is_connected(self) -> bool:
        """True when the last claim and the last settling went well."""
        vitals = self.vitals()
        return not self._problems and vitals is not None and vitals.since_poll is not None

    def why_not(self) -> str | None:
        """Return in a line why no jobs are taken; None when they are."""
        return why_not_ready(
            self.vitals(), problems=self._problems.values(), stopping=self.is_stopping, poll=self._poll
        )

    def note(self) -> str:
        """Return what a ready process should report all the same; usually nothing."""
        return f"; task files not loaded: {self._load_errors}" if self._load_errors else ""

    def _started(self, event: RunnerStarted) -> None:
        self._load_errors = event.load_errors

    def _reloaded(self, event: TasksReloaded) -> None:
        self._load_errors = len(event.errors)

    def _lost(self, event: PoolConnectionLost) -> None:
        self._problems = {**self._problems, event.operation: problem(event.operation, event.error)}

    def _restored(self, event: PoolConnectionRestored) -> None:
        self._problems = {name: text for name, text in self._problems.items() if name != event.operation}

    def _stopping(self, event: object) -> None:
        self.is_stopping = True
