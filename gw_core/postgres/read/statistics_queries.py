"""Read what ran, as workers recorded it for each minute."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import timestamp
from gw_core.domain.reports.job_status import STALE_AFTER
from gw_core.domain.reports.query_results import row_count
from gw_core.domain.reports.run_statistics import RunSeries, RunStatistics, StatisticsStatus, run_series
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.read.read_only import Rows, read
from gw_core.postgres.road.add_calls import Call

MINUTE: Final = timedelta(minutes=1)
TIMEOUT: Final = timedelta(seconds=5)


class StatisticsQueries:
    """Queries about what ran; thread-safe. Without the table, nothing is known."""

    def __init__(self, connections: ConnectionSource, schema: str) -> None:
        self._connections = connections
        self._schema = schema
        self._has_table = False

    def history(self, back: Duration, *, step: Duration, task: str | None) -> RunSeries:
        """Return what ended in each step that is over."""
        back, step = as_duration("back", back), as_duration("step", step)
        if step < MINUTE or step % MINUTE:
            raise InvalidInputError(f"a step is one or more whole minutes, not {step}")
        if not self._exists():
            return RunSeries(at=datetime.now(UTC), step=step)
        values = {"back_seconds": back.total_seconds(), "step_seconds": step.total_seconds(), "task": task}
        rows, workers = self._read(Call("statistics_list", values), Call("statistics_workers", values))
        return run_series(
            timestamp(workers[0][0]),
            back=back,
            step=step,
            steps={int(row[0]): _statistics(row) for row in rows},
            alive=[(begins, ends) for _, begins, ends in workers if begins is not None],
        )

    def by_task(self, back: Duration) -> Mapping[str, RunStatistics]:
        """Return what ended lately of each task."""
        if not self._exists():
            return {}
        values = {"back_seconds": as_duration("back", back).total_seconds(), "step_seconds": None, "task": None}
        (rows,) = self._read(Call("statistics_list", values))
        return {row[0]: _statistics(row) for row in rows}

    def status(self) -> StatisticsStatus | None:
        """Return what the table holds; None without the table."""
        if not self._exists():
            return None
        (found,) = self._read(Call("statistics_status", status_values(self._schema)))
        return statistics_status(found[0])

    def _exists(self) -> bool:
        if not self._has_table:
            (((objects,),),) = self._read(Call("schema_objects", {"schema": self._schema}))
            self._has_table = "_private_gw_statistics" in objects
        return self._has_table

    def _read(self, *calls: Call) -> list[Rows]:
        return read(self._connections, self._schema, calls, timeout=TIMEOUT)


def status_values(schema: str) -> Mapping[str, Any]:
    """Return the values of `statistics_status.sql`."""
    return {"schema": schema, "recent_seconds": STALE_AFTER.total_seconds()}


def statistics_status(row: tuple[Any, ...]) -> StatisticsStatus:
    """Return the answer of `statistics_status.sql`."""
    counted, estimate, size, oldest, latest, now, recording, live = row
    oldest_age, latest_age = (None if each is None else timestamp(now) - timestamp(each) for each in (oldest, latest))
    return StatisticsStatus(row_count(counted, estimate), size, oldest_age, latest_age, recording, live)


def _statistics(row: tuple[Any, ...]) -> RunStatistics:
    _, completed, failed, permanently_failed, run_seconds, durations, waited, wait_seconds = row
    return RunStatistics(completed, failed, permanently_failed, run_seconds, tuple(durations), waited, wait_seconds)
