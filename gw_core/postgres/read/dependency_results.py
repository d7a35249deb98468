"""The results of the jobs that a job waited for."""

from __future__ import annotations

from typing import Any

import msgspec

from gw_core.domain.errors import ResultUnavailableError
from gw_core.domain.job.history import ENDED_BY_OTHERS, HistoryState
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.connection.statement_runner import statements_over


def results_of_dependencies(connections: ConnectionSource, job_id: int) -> list[Any]:
    """Return what these jobs returned, in order; raises `ResultUnavailableError` for a result that is not kept."""
    with connections.connection() as connection:
        runner = statements_over(connection, connections.database.schema)
        rows = runner.rows("results_of_dependencies", {"job_id": job_id})
    return [_result(*row) for row in rows]


def _result(job_id: int, state: str | None, error: str | None, result: str | None, has_failed: bool) -> Any:
    if result is not None:
        return msgspec.json.decode(result)
    if has_failed or state in (HistoryState.FAILED, HistoryState.REMOVED):
        return None
    why = "its task keeps no results, or history no longer has them; declare it with result=True"
    if state == HistoryState.COMPLETED and error is not None:
        why = error
    elif state == HistoryState.RETRIED:
        why = ENDED_BY_OTHERS
    raise ResultUnavailableError(job_id, "not kept", f"job {job_id} has no result: {why}")
