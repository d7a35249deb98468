"""Write the rows of the statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from gw_core.postgres.statement_runner import Store


class StatisticsStore(Store):
    """Writes what ran over one connection."""

    def record(self, worker_id: str, rows: Sequence[Mapping[str, Any]], *, keep: timedelta) -> float:
        """Write rows and delete some that are older than `keep`; return the server's time in seconds since 1970."""
        document = msgspec.json.encode(rows).decode()
        values = {"worker_id": worker_id, "rows": document, "keep_seconds": keep.total_seconds()}
        return float(self._rows("record_statistics", **values)[0][0])
