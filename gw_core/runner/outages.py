"""End a run whose database cannot be reached for too long, or whose role lacks a right."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

from gw_core.domain.errors import PermissionDeniedError
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import PoolConnectionLost, PoolConnectionRestored, RunnerStopped


def limit_outages(events: Events, limit: timedelta, give_up: Callable[[PoolConnectionLost], None]) -> None:
    """Call `give_up` when a connection was lost and is not restored within the limit, and for a missing right now."""
    waiting: dict[str, threading.Timer] = {}

    def lost(event: PoolConnectionLost) -> None:
        is_denied = isinstance(event.error, PermissionDeniedError)
        if (timer := waiting.get(event.operation)) is not None:
            if not is_denied:
                return  # the outage goes on for another reason
            timer.cancel()
        # Nothing restores a right within seconds, and a caller waits for the end of the run.
        seconds = 0.0 if is_denied else limit.total_seconds()
        timer = waiting[event.operation] = threading.Timer(seconds, give_up, (event,))
        timer.daemon = True
        timer.start()

    def restored(event: PoolConnectionRestored) -> None:
        waiting.pop(event.operation).cancel()

    def ended(event: RunnerStopped) -> None:
        for timer in list(waiting.values()):
            timer.cancel()

    events.on(PoolConnectionLost, lost)
    events.on(PoolConnectionRestored, restored)
    events.on(RunnerStopped, ended)
