"""Log records for the events of recurring tasks; imported where there are some."""

from __future__ import annotations

import logging
from datetime import datetime

from gw_core.domain.counted import counted
from gw_core.domain.cron import schedule_events as e
from gw_core.runtime.log_messages import EventLog
from gw_core.runtime.loggers import get_logger


class CronLog(EventLog):
    """Logs the events of the scheduler; subscribe it with `attach`."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        super().__init__(get_logger("cron", logger))

    def _failed(self, event: e.CronFailed) -> None:
        seconds = event.delay.total_seconds()
        self._core.warning("Cannot schedule recurring tasks: %s; retrying, first in %.2f s", event.error, seconds)

    def _restored(self, event: e.CronRestored) -> None:
        self._core.info("Scheduling of recurring tasks restored after %s", counted(event.attempts, "failed attempt"))

    def _item_failed(self, event: e.CronItemFailed) -> None:
        self._core.warning(
            "The run of '%s' at %s was not scheduled: %s",
            event.item.identifier,
            _minute(event.timestamp),
            event.error,
            extra={"task": event.item.task},
        )

    def _items_rejected(self, event: e.CronItemsRejected) -> None:
        self._core.warning("New cron items rejected; the previous ones stay in use: %s", event.error)

    def _runs_skipped(self, event: e.CronRunsSkipped) -> None:
        self._core.warning(
            "Runs from %s to %s were missed; only items with a long enough fill are backfilled",
            _minute(event.first),
            _minute(event.last),
        )

    def _premature(self, event: e.CronPrematureTimer) -> None:
        self._core.debug("Clock set back to %s; waiting for %s", event.current, event.expected)

    def _overdue(self, event: e.CronOverdueTimer) -> None:
        self._core.debug("Scheduler is late: at %s, %s is not scheduled yet", event.current, event.expected)

    def _scheduled(self, event: e.CronScheduled) -> None:
        if not event.jobs:
            return
        names, minute = ", ".join(event.jobs), _minute(event.timestamp)
        self._core.debug("Scheduled %s for %s", names, minute, extra={"backfilled": event.backfilled})

    def _backfilled(self, event: e.CronBackfilled) -> None:
        runs = counted(event.runs, "missed run")
        self._core.info(
            "Backfilled %s of %s, from %s to %s", runs, event.identifier, _minute(event.first), _minute(event.last)
        )


def _minute(timestamp: datetime) -> str:
    return f"{timestamp:%Y-%m-%d %H:%M} UTC"
