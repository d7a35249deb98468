"""Write the rows of the statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import psycopg

from gw_core.postgres.callers_connection import tuple_cursor
from gw_core.postgres.database import Connection, in_its_settings
from gw_core.postgres.error_mapping import translate
from gw_core.postgres.statements import query


class StatisticsStore:
    """Writes what ran over one connection."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self._connection = connection
        self._schema = schema

    def record(self, worker_id: str, rows: Sequence[Mapping[str, Any]], *, keep: timedelta) -> float:
        """Write rows and delete some that are older than `keep`; return the server's time in seconds since 1970."""
        values = {
            "worker_id": worker_id,
            "rows": msgspec.json.encode(rows).decode(),
            "keep_seconds": keep.total_seconds(),
        }
        try:
            with tuple_cursor(self._connection) as cursor:
                with in_its_settings(self._connection):
                    cursor.execute(query("record_statistics", self._schema), values)
                row = cursor.fetchone()
        except psycopg.Error as error:
            raise translate(error, schema=self._schema) from error
        return float(row[0]) if row is not None else 0.0
