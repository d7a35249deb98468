"""The cron items of a runner: those of its crontab, and those that tasks declare with `@cron`."""

from __future__ import annotations

from pathlib import Path

from gw_core.domain.cron.cron_item import CronItem, reject_duplicates
from gw_core.maintenance.cron_scheduler import ItemSource
from gw_core.runner.run_inputs import Crontab, items_of
from gw_core.tasks.registry import TaskRegistry


class CronItems:
    """With `reloads`, the items are read again and again, because reloaded files can declare other ones."""

    def __init__(self, crontab: Crontab, *, is_scheduled: bool, reloads: bool) -> None:
        self.known: tuple[CronItem, ...] = ()
        """All items at the start, unless a function returns them."""
        self.is_scheduled = is_scheduled
        self._crontab = crontab
        self._reloads = reloads
        self._declared: tuple[CronItem, ...] = ()

    @property
    def file(self) -> str | None:
        """The file with the crontab."""
        return str(self._crontab) if isinstance(self._crontab, Path) else None

    def use(self, registry: TaskRegistry) -> None:
        """Take over the items that the tasks declare."""
        self._declared = registry.cron_items

    def source(self, registry: TaskRegistry) -> ItemSource | None:
        """Return the items to schedule, or a function that returns them; None: there are none."""
        self.use(registry)
        given = self._crontab
        if not self.is_scheduled:
            return None
        if callable(given):
            source = given
            return lambda: (*source(), *self._declared)
        written = items_of(given)
        self.known = reject_duplicates((*written, *self._declared))
        return (lambda: (*written, *self._declared)) if self._reloads else (self.known or None)
