"""The cron of a runner: the items of its crontab, those that tasks declare with `@cron`, and what schedules them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Interceptors
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.runner.run_inputs import Crontab, items_of
from gw_core.tasks.registry import TaskRegistry

# Modules about recurring tasks are imported where there are some: they are a twentieth of a start.
if TYPE_CHECKING:
    from gw_core.domain.cron.cron_item import CronItem
    from gw_core.maintenance.cron_scheduler import ItemSource, Scheduler


class CronItems:
    """With `reloads`, the items are read again and again, because reloaded files can declare other ones."""

    def __init__(
        self, crontab: Crontab, events: Events, logger: logging.Logger, *, is_scheduled: bool, reloads: bool
    ) -> None:
        self.known: tuple[CronItem, ...] = ()
        """All items at the start, unless a function returns them."""
        self.is_scheduled = is_scheduled
        self._crontab = crontab
        self._events = events
        self._logger = logger
        self._reloads = reloads
        self._declared: tuple[CronItem, ...] = ()
        self._source: ItemSource | None = None
        self._scheduler: Scheduler | None = None

    @property
    def file(self) -> str | None:
        """The file with the crontab."""
        return str(self._crontab) if isinstance(self._crontab, Path) else None

    def read(self, registry: TaskRegistry) -> None:
        """Read the crontab, and take over the items that the tasks declare."""
        self._declared = registry.cron_items
        given = self._crontab
        if not self.is_scheduled:
            return
        if callable(given):
            source = given
            self._source = lambda: (*source(), *self._declared)
            return
        written = items_of(given)
        if written or self._declared:
            from gw_core.domain.cron.cron_item import reject_duplicates

            self.known = reject_duplicates((*written, *self._declared))
        self._source = (lambda: (*written, *self._declared)) if self._reloads else (self.known or None)

    def scheduler(self, connections: ConnectionSource, interceptors: Interceptors) -> Scheduler | None:
        """Return the service that adds the items' jobs; None if there are none."""
        if self._source is not None:
            from gw_core.maintenance.cron_scheduler import Scheduler
            from gw_core.runtime.cron_log import CronLog

            CronLog(self._logger).attach(self._events)
            self._scheduler = Scheduler(connections, self._source, events=self._events, admit=interceptors.admit)
        return self._scheduler

    def reload(self, registry: TaskRegistry) -> None:
        """Take over the items that reloaded tasks declare; wrong ones are reported, and the former ones stay."""
        try:
            self._declared = registry.cron_items
        except GraphileWorkerError as error:
            from gw_core.domain.cron.schedule_events import CronItemsRejected

            self._events.emit(CronItemsRejected(error=error))
        if self._scheduler is not None:
            self._scheduler.wake()
