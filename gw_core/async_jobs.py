"""Read and change jobs from an event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any

from gw_core.domain.job import Job, check_ids
from gw_core.postgres.add_calls import Call, get_call
from gw_core.postgres.async_connection import AsyncCallersConnection
from gw_core.postgres.bulk_actions import BATCH, ActionResult, ChangedJob, SkippedJob, SkipReason, reschedule_values

Connect = Callable[[object | None], AbstractAsyncContextManager[AsyncCallersConnection]]
"""Returns what statements run on: the caller's connection, or one of the client's pool."""


class AsyncJobs:
    """Jobs by their ids; `AsyncClient.jobs` is one.

    Actions run in batches of a thousand jobs, each in a transaction of its own or, with `conn`, in a savepoint of
    yours. They do not wait for rows that another session has locked; the result reports those as skipped.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    async def get(
        self, job_id: int | None = None, *, job_key: str | None = None, conn: object | None = None
    ) -> Job | None:
        """Return one job with its payload, by its id or its key, as your transaction sees it; None: no such job."""
        if job_id is None and job_key is None:
            return None
        async with self._connect(conn) as connection:
            rows = await connection.fetch(get_call(job_id, job_key))
        return Job(*rows[0]) if rows else None

    async def complete(self, ids: Sequence[int], *, conn: object | None = None) -> ActionResult:
        """Delete jobs as if they had been completed. A job that runs is skipped."""
        return await self._act("action_complete", ids, {}, conn)

    async def fail(self, ids: Sequence[int], reason: str | None = None, *, conn: object | None = None) -> ActionResult:
        """Fail jobs permanently; `reason` becomes their last error. A job that runs is skipped."""
        return await self._act("action_fail", ids, {"reason": reason}, conn)

    async def reschedule(
        self,
        ids: Sequence[int],
        *,
        run_at: datetime | timedelta | None = None,
        priority: int | None = None,
        attempts: int | None = None,
        max_attempts: int | None = None,
        conn: object | None = None,
    ) -> ActionResult:
        """Change when and how jobs run; None keeps a value, a `timedelta` counts from the database's clock.

        A failed job runs again when `attempts` is set below its `max_attempts`. A job that runs is skipped.
        """
        values = reschedule_values(run_at=run_at, priority=priority, attempts=attempts, max_attempts=max_attempts)
        return await self._act("action_reschedule", ids, values, conn, wakes=True)

    async def _act(
        self, statement: str, ids: Sequence[int], values: Mapping[str, Any], conn: object | None, *, wakes: bool = False
    ) -> ActionResult:
        check_ids(ids)
        ordered = sorted(set(ids))
        results = []
        for start in range(0, len(ordered), BATCH):
            async with self._connect(conn) as connection, connection.atomic():
                results.append(await _one_batch(connection, statement, ordered[start : start + BATCH], values, wakes))
        return ActionResult.combine(results)


async def _one_batch(
    connection: AsyncCallersConnection, statement: str, ids: Sequence[int], values: Mapping[str, Any], wakes: bool
) -> ActionResult:
    locked = await connection.fetch(Call("lock_expected_jobs", {"ids": list(ids), "with_payload": True}))
    jobs = {row[0]: Job(*row[:-1]) for row in locked}
    running = {row[0] for row in locked if row[-1]}
    idle = [each for each in jobs if each not in running]
    done = {row[0] for row in await connection.fetch(Call(statement, {"ids": idle, **values}))}
    absent = [each for each in ids if each not in jobs]
    busy = {row[0]: row for row in await connection.fetch(Call("find_skipped_jobs", {"ids": absent}))}
    if wakes and done:
        await connection.fetch(Call("notify_jobs", {"count": len(done)}))
    skipped = [
        *(_skipped(jobs[each]) for each in jobs if each not in done),
        *(SkippedJob(row[0], row[1], SkipReason.BUSY, row[2]) for row in busy.values()),
        *(SkippedJob(each, None, SkipReason.NOT_FOUND) for each in absent if each not in busy),
    ]
    changed = tuple(ChangedJob(each, jobs[each].task_identifier, jobs[each]) for each in sorted(done))
    return ActionResult(changed, tuple(sorted(skipped, key=lambda each: each.id)))


def _skipped(job: Job) -> SkippedJob:
    return SkippedJob(job.id, job.task_identifier, SkipReason.LOCKED, job.locked_by)
