"""Requests to cancel running jobs: a client writes them, the worker that runs the job takes them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from threading import Event
from time import monotonic

from msgspec.structs import replace

from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.job.cancellation import (
    CANCELLABLE_WORKERS,
    CancelledJob,
    CancelResult,
    message_of,
    result_of,
)
from gw_core.postgres.connection.connections import QueueOperations
from gw_core.postgres.connection.deadlines import ANSWER_GRACE, ending_within
from gw_core.postgres.connection.row_security import visible_rows
from gw_core.postgres.connection.statement_steps import fetch_on, run_steps
from gw_core.postgres.road.action_records import check_by, recording
from gw_core.postgres.schema.schema_state import check

POLL_INTERVAL_SECONDS = 0.1
"""Seconds between two polls of the jobs' status."""


class CancelRequests(QueueOperations, frozen=True):
    """Requests workers to cancel jobs and waits for the results. Safe from any thread."""

    def cancel(
        self, ids: Sequence[int], *, by: str | None, reason: str | None, retry: bool, timeout: Duration
    ) -> list[CancelledJob]:
        """Request the cancellation of all `ids`; return their results when all are final, or after `timeout`."""
        timeout = as_duration("timeout", timeout)
        check_by(by)
        with ending_within(timeout + ANSWER_GRACE):
            return self._cancel(ids, by=by, reason=reason, retry=retry, timeout=timeout)

    def _cancel(
        self, ids: Sequence[int], *, by: str | None, reason: str | None, retry: bool, timeout: timedelta
    ) -> list[CancelledJob]:
        with self._connection() as connection:
            check(connection, self.schema).raise_unless_usable()
            message = message_of(by or connection.info.user, reason)
        requested = self._request(sorted(set(ids)), message, retry=retry, by=by, reason=reason)
        deadline = monotonic() + timeout.total_seconds()
        pause = Event()
        while True:
            requested = self._poll(requested, message)
            if monotonic() >= deadline or not any(_is_open(each) for each in requested):
                return requested
            pause.wait(POLL_INTERVAL_SECONDS)

    def _request(
        self, ids: list[int], message: str, *, retry: bool, by: str | None, reason: str | None
    ) -> list[CancelledJob]:
        values = {"ids": ids, "message": message, "retry": retry, "cancellable_workers": CANCELLABLE_WORKERS}
        with self._connection() as connection, connection.transaction():
            found = {row[0]: row for row in visible_rows(connection, self.schema, "cancel_request", values)}
            idle = [each for each, row in found.items() if row[2] is None]
            waiting = {"ids": idle, "reason": message}
            dropped = {row[0] for row in visible_rows(connection, self.schema, "cancel_waiting", waiting)}
            cancelled = [row for row in found.values() if row[3] or row[0] in dropped]
            record = recording(
                "cancel",
                by,
                self.schema,
                job_ids=[row[0] for row in cancelled],
                targets=[f"task:{row[1]}" for row in cancelled],
                reason=reason,
                retry=retry or None,
            )
            run_steps(record, fetch_on(connection, self.schema))
        return [
            CancelledJob(each, found[each][1], CancelResult.CANCELLED)
            if each in dropped
            else _result(each, found.get(each))
            for each in ids
        ]

    def _poll(self, requested: list[CancelledJob], message: str) -> list[CancelledJob]:
        due = [each.id for each in requested if _is_open(each)]
        if not due:
            return requested
        with self._connection() as connection:
            found = visible_rows(connection, self.schema, "cancel_status", {"ids": due})
        statuses = {row[0]: row[1:] for row in found}
        return [
            replace(each, result=result_of(statuses.get(each.id), worker=each.worker or "", message=message))
            if _is_open(each)
            else each
            for each in requested
        ]


def _result(job_id: int, row: tuple[int, str, str | None, bool] | None) -> CancelledJob:
    if row is None:
        return CancelledJob(job_id, None, CancelResult.NOT_FOUND)
    _, task, locked_by, was_requested = row
    if locked_by is None:
        return CancelledJob(job_id, task, CancelResult.NOT_RUNNING)
    result = CancelResult.NO_RESPONSE if was_requested else CancelResult.UNSUPPORTED_WORKER
    return CancelledJob(job_id, task, result, locked_by)


def _is_open(each: CancelledJob) -> bool:
    return each.result in (CancelResult.NO_RESPONSE, CancelResult.STOPPING)
