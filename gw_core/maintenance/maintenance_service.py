"""A service that reports its failures once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.event_bus import Events
from gw_core.domain.events import MaintenanceFailed
from gw_core.service import Service


class MaintenanceService(Service):
    """Emits an event for the first of several failures in a row; a subclass runs again at its next interval."""

    def __init__(
        self, name: str, events: Events, *, on_crash: Callable[[str, BaseException], None] | None = None
    ) -> None:
        super().__init__(name, on_crash=on_crash)
        self._events = events
        self._has_complained = False

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """End the block at an error of gw's, and report it."""
        try:
            yield
            self._has_complained = False
        except GraphileWorkerError as error:
            if not self._has_complained:
                self._events.emit(MaintenanceFailed(service=self.name, error=error))
            self._has_complained = True
