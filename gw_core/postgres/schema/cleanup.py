"""Delete what is no longer needed: permanently failed jobs, unused queues and unused task identifiers."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from gw_core.domain.durations import check_from_now
from gw_core.domain.errors import InvalidInputError, TransientDatabaseError
from gw_core.postgres.connection.connections import QueueOperations
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.row_security import visible_rows
from gw_core.postgres.connection.statement_steps import carry_out, fetch_on, run_steps
from gw_core.postgres.connection.statements import query
from gw_core.postgres.road.action_records import check_by, recording
from gw_core.postgres.road.bulk_actions import BATCH, counting
from gw_core.postgres.road.limits import list_limits
from gw_core.postgres.road.worker_store import list_heartbeats
from gw_core.postgres.schema.schema_state import INDEXES_STEP, WAITING_STEP, SchemaState, check
from gw_core.selection.parser import selection_of

LOCK_TIMEOUT: Final = "250ms"
"""The timeout for a table's lock: later sessions queue behind ours, so it must be short."""

TRIES: Final = 20
PAUSE_SECONDS: Final = 0.25

LIVE: Final = timedelta(minutes=10)
"""A worker with a heartbeat within this time may still use the ids it has cached."""


class CleanupTarget(StrEnum):
    """What can be deleted, in the order it is done: a deleted job may have been the last of its queue."""

    FAILED_JOBS = "failed-jobs"
    UNUSED_TASKS = "unused-tasks"
    UNUSED_QUEUES = "unused-queues"


QUEUES: Final = {
    "TABLE": "_private_job_queues",
    "REFERENCE": "job_queue_id",
    "UNUSED": "unused.locked_at is null",
}
"""The variables of the `cleanup_*` statements for queues; the files have those for tasks."""

BY_ID: Final = {"PLACE": "jobs.id", "AFTER": "%(after)s::bigint"}
"""The variables of cleanup_failed_jobs.sql for a schema without gw's index of failed jobs."""


RUNS: Final[Sequence[Mapping[str, str]]] = ({}, {"RUN": "= 'infinity'"})
"""The variables for failed jobs by their `run_at`: those that have one, and those that waited for others."""


class Deletion(QueueOperations, frozen=True):
    """Deletes in batches, each a transaction. Safe from any thread."""

    batch: int = BATCH

    def count(
        self,
        target: CleanupTarget,
        keep: Collection[str] = (),
        *,
        after: Collection[CleanupTarget] = (),
        older_than: timedelta | None = None,
    ) -> int:
        """Return how many rows `delete` would delete, after it has deleted what `after` names."""
        if (older := _older(target, older_than)) is not None:
            return self._count_older(older)
        if target is CleanupTarget.FAILED_JOBS:
            return carry_out(counting(selection_of("state:failed"), self.schema), self.connections, self.schema).jobs
        without = {"without_failed_jobs": CleanupTarget.FAILED_JOBS in after}
        with self._connection() as connection:
            if target is CleanupTarget.UNUSED_QUEUES:
                return len(visible_rows(connection, self.schema, "cleanup_find", without, **QUEUES))
            values = {"keep": sorted(self._kept(connection, keep)), **without}
            return len(visible_rows(connection, self.schema, "cleanup_find", values))

    def _count_older(self, older: Mapping[str, float]) -> int:
        with self._connection() as connection:
            names = _holds(check(connection, self.schema))
            found = [
                visible_rows(connection, self.schema, "cleanup_count_failed", older, **names, **run) for run in RUNS
            ]
        return sum(count for [(count,)] in found)

    def delete(
        self,
        target: CleanupTarget,
        keep: Collection[str] = (),
        *,
        older_than: timedelta | None = None,
        by: str | None = None,
    ) -> Iterator[int]:
        """Delete it, and yield after each batch how much that was; of failed jobs those that failed so long ago.

        `by` is who is recorded as having done it, with the number of each batch: those of millions of jobs have no ids.
        """
        check_by(by)
        older = _older(target, older_than)
        if target is CleanupTarget.FAILED_JOBS:
            return self._clear_failed_jobs(older, by)
        return self._clear_unused(target, keep, by)

    def _record(self, connection: Connection, target: CleanupTarget, count: int, by: str | None, **more: Any) -> None:
        """Record what a batch deleted, in its transaction."""
        steps = recording("cleanup", by, self.schema, targets=[target.value] if count else [], count=count, **more)
        run_steps(steps, fetch_on(connection, self.schema))

    def _clear_failed_jobs(self, older: Mapping[str, float] | None, by: str | None) -> Iterator[int]:
        with self._connection() as connection:
            state = check(connection, self.schema)
            [(records,)] = visible_rows(connection, self.schema, "records_ends", {"schema": self.schema})
        by_id = {} if INDEXES_STEP in state.own_present else BY_ID
        names = {"RECORDS": str(records).lower(), **_holds(state), **by_id}
        if older is None:
            yield from self._clear_failed_between(names, {}, by)
            return
        for run in RUNS:
            yield from self._clear_failed_between({**names, "OLDER": "true", **run}, older, by)

    def _clear_failed_between(
        self, names: Mapping[str, str], older: Mapping[str, float], by: str | None
    ) -> Iterator[int]:
        after, run_at, count = 0, "-infinity", 0
        while after is not None:
            values = {"after": after, "after_run_at": run_at, "limit": self.batch, **older}
            with self._connection() as connection, connection.transaction():
                after, run_at, count = visible_rows(connection, self.schema, "cleanup_failed_jobs", values, **names)[0]
                self._record(connection, CleanupTarget.FAILED_JOBS, count, by, **older)
            if count:
                yield count

    def _clear_unused(self, target: CleanupTarget, keep: Collection[str], by: str | None) -> Iterator[int]:
        names = QUEUES if target is CleanupTarget.UNUSED_QUEUES else {}
        with self._connection() as connection:
            # The horizon comes first: a job added between the two statements is later than it, and found below.
            highest, since = visible_rows(connection, self.schema, "cleanup_high_water_mark")[0]
            values: dict[str, Any] = {"keep": sorted(self._kept(connection, keep)), "without_failed_jobs": False}
            ids = [row[0] for row in visible_rows(connection, self.schema, "cleanup_find", values, **names)]
        for start in range(0, len(ids), self.batch):
            some = {"ids": ids[start : start + self.batch], "highest_id": highest, "since": since}
            yield self._delete_unused(target, some, keep, by)

    def _delete_unused(
        self, target: CleanupTarget, values: dict[str, Any], keep: Collection[str], by: str | None
    ) -> int:
        names = QUEUES if target is CleanupTarget.UNUSED_QUEUES else {}
        for _ in range(TRIES):
            try:
                with self._connection() as connection, connection.transaction():
                    connection.execute("select set_config('lock_timeout', %s, true)", (LOCK_TIMEOUT,))
                    connection.execute(query("cleanup_lock", self.schema, **names))
                    # Read again under the lock: a worker that started in the meantime has reported its tasks.
                    kept = {"keep": sorted(self._kept(connection, keep))}
                    deleted = visible_rows(connection, self.schema, "cleanup_delete", {**values, **kept}, **names)
                    self._record(connection, target, len(deleted), by)
                    return len(deleted)
            except TransientDatabaseError:
                time.sleep(PAUSE_SECONDS)
        raise TransientDatabaseError(
            f"open transactions kept the {target.value.replace('-', ' ')} locked, so cleanup stopped; try again later"
        )

    def _kept(self, connection: Connection, keep: Collection[str]) -> set[str]:
        live = [each for each in list_heartbeats(connection, self.schema) if each.inactive_for < LIVE]
        # The index of a limit by field belongs to the id of its task.
        limited = (each.task for each in list_limits(connection, self.schema) if each.field is not None)
        return {*keep, *limited, *(task for worker in live for task in worker.tasks or ())}


def _holds(state: SchemaState) -> Mapping[str, str]:
    """Return the variable of both statements for failed jobs: whether the schema knows which jobs wait for which."""
    return {"HOLDS": str(WAITING_STEP in state.own_present).lower()}


def _older(target: CleanupTarget, older_than: timedelta | None) -> Mapping[str, float] | None:
    """Return the age as a value of the statements. Raises `InvalidInputError`."""
    if older_than is None:
        return None
    if target is not CleanupTarget.FAILED_JOBS:
        raise InvalidInputError(f"older_than is for failed-jobs, not for {target.value}")
    if older_than < timedelta(0):
        raise InvalidInputError("older_than is negative; give a duration such as timedelta(days=30)")
    return {"older_seconds": check_from_now("older_than", older_than).total_seconds()}
