"""Wishes to cancel running jobs: written by whoever wishes, taken by the pool that runs the job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from threading import Event
from time import monotonic

from gw_core.domain.cancellation import HEARS, CancelledJob, CancelResult, CancelStatus, message_of, result_of
from gw_core.postgres.connections import ConnectionSource
from gw_core.postgres.database import Connection
from gw_core.postgres.error_mapping import translated
from gw_core.postgres.row_mapping import rows
from gw_core.postgres.schema_state import check
from gw_core.postgres.statements import query

LOOK_EVERY = 0.1
"""Seconds between two looks at what became of the jobs."""


@dataclass(frozen=True, slots=True)
class CancelRequests:
    """Asks pools to cancel jobs and waits for what becomes of it. Safe from any thread."""

    lender: ConnectionSource
    schema: str

    def cancel(
        self, ids: Sequence[int], *, by: str | None, reason: str | None, retry: bool, patience: timedelta
    ) -> list[CancelledJob]:
        """Ask for all of them at once; return each when it has ended, or when patience has."""
        with self._connection() as connection:
            check(connection, self.schema).raise_unless_usable()
            message = message_of(by or connection.info.user, reason)
        asked = self._ask(sorted(set(ids)), message, retry=retry)
        deadline = monotonic() + patience.total_seconds()
        pause = Event()
        while True:
            asked = self._look(asked, message)
            if monotonic() >= deadline or not any(_is_open(each) for each in asked):
                return asked
            pause.wait(LOOK_EVERY)

    def _ask(self, ids: list[int], message: str, *, retry: bool) -> list[CancelledJob]:
        values = {"ids": ids, "message": message, "retry": retry, "hears": HEARS}
        with self._connection() as connection:
            found = {row[0]: row for row in rows(connection, query("cancel_request", self.schema), values)}
        return [_asked(each, found.get(each)) for each in ids]

    def _look(self, asked: list[CancelledJob], message: str) -> list[CancelledJob]:
        due = [each.id for each in asked if _is_open(each)]
        if not due:
            return asked
        with self._connection() as connection:
            found = rows(connection, query("cancel_status", self.schema), {"ids": due})
        looks = {row[0]: CancelStatus(*row[1:]) for row in found}
        return [
            replace(each, result=result_of(looks.get(each.id), worker=each.worker or "", message=message))
            if _is_open(each)
            else each
            for each in asked
        ]

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self.lender.connection() as connection, translated(self.schema):
            yield connection


def _asked(job_id: int, row: tuple[int, str, str | None, bool] | None) -> CancelledJob:
    if row is None:
        return CancelledJob(job_id, None, CancelResult.MISSING)
    _, task, locked_by, was_asked = row
    if locked_by is None:
        return CancelledJob(job_id, task, CancelResult.NOT_RUNNING)
    return CancelledJob(job_id, task, CancelResult.NO_ANSWER if was_asked else CancelResult.CANNOT_HEAR, locked_by)


def _is_open(each: CancelledJob) -> bool:
    return each.result in (CancelResult.NO_ANSWER, CancelResult.STOPPING)
