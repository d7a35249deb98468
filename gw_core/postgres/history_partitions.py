"""The partitions of history: make those of the next days, and drop those whose rows are expired."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

import psycopg

from gw_core.postgres.callers_connection import tuple_cursor
from gw_core.postgres.database import Connection
from gw_core.postgres.error_mapping import translate, translated
from gw_core.postgres.statements import query

MAX_DROPS: Final = 100
"""Tables in one call, so that a caller who must stop need not wait for long."""


class HistoryPartitions:
    """Makes and drops partitions over one connection. Raises `LockTimeoutError` while another session uses it."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def make(self, periods: Collection[timedelta]) -> int:
        """Make the partitions for rows kept this long; return how many have to wait until their rows expire."""
        seconds = sorted(period.total_seconds() for period in periods)
        missing: int = self._value("make_history_partitions", period_seconds=seconds, schema=self._schema)
        return missing

    def expire(self) -> list[str]:
        """Drop what is expired, and return the names of the tables, at most `MAX_DROPS`."""
        emptied: list[str] = []
        while len(emptied) < MAX_DROPS and (name := self._value("expire_history")) is not None:
            emptied.append(name)
        return emptied

    def record_others(self, period: timedelta | None) -> None:
        """Record jobs that others end, and keep them this long; None: no longer. Only the owner of the queue may."""
        with translated(self._schema), self._connection.transaction():
            self._connection.execute("set local lock_timeout = '2s'")
            self._connection.execute(query("record_others_off", self._schema))
            if period is not None:
                seconds = f"{period.total_seconds():.0f}"
                self._connection.execute(query("record_others_on", self._schema, SECONDS=seconds))

    def _value(self, name: str, **values: Any) -> Any:
        try:
            with tuple_cursor(self._connection) as cursor:
                row = cursor.execute(query(name, self._schema), values).fetchone()
        except psycopg.Error as error:
            raise translate(error, schema=self._schema) from error
        return None if row is None else row[0]
