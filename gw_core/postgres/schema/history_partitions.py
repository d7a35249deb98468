"""The partitions of history: make those of the next days, and drop those whose rows are expired."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Final

from gw_core.postgres.connection.error_mapping import translated
from gw_core.postgres.connection.statement_runner import Store
from gw_core.postgres.connection.statements import query

MAX_DROPS: Final = 100
"""Tables in one call, so that a caller who must stop need not wait for long."""


class HistoryPartitions(Store):
    """Makes and drops partitions over one connection. Raises `LockTimeoutError` while another session uses it."""

    def make(self, periods: Collection[timedelta]) -> int:
        """Make the partitions for rows kept this long; return how many have to wait until their rows expire."""
        seconds = sorted(period.total_seconds() for period in periods)
        missing: int = self._rows("make_history_partitions", period_seconds=seconds, schema=self.schema)[0][0]
        return missing

    def expire(self) -> list[str]:
        """Drop what is expired, and return the names of the tables, at most `MAX_DROPS`."""
        self._rows("expire_actions")
        emptied: list[str] = []
        while len(emptied) < MAX_DROPS and (name := self._rows("expire_history")[0][0]) is not None:
            emptied.append(name)
        return emptied

    def record_others(self, period: timedelta | None) -> None:
        """Record jobs that others end, and keep them this long; None: no longer. Only the owner of the queue may."""
        with translated(self.schema), self.connection.transaction():
            self.connection.execute("set local lock_timeout = '2s'")
            self.connection.execute(query("record_others_off", self.schema))
            if period is not None:
                seconds = f"{period.total_seconds():.0f}"
                self.connection.execute(query("record_others_on", self.schema, SECONDS=seconds))
