"""Read and change jobs from an event loop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from gw_core.domain.job.job import Job, check_ids
from gw_core.postgres.connection.async_connection import CarryOut
from gw_core.postgres.connection.statement_steps import Operation, Unit, fetched
from gw_core.postgres.road.add_calls import get_call
from gw_core.postgres.road.bulk_actions import (
    BATCH,
    Act,
    ActionResult,
    change_by_id,
    completing,
    on_idle,
    reschedule_values,
)


class AsyncJobs:
    """Jobs by their ids; `AsyncClient.jobs` is one.

    Actions run in batches of a thousand jobs, each in a transaction of its own or, with `conn`, in a savepoint of
    yours. They do not wait for rows that another session has locked; the result reports those as skipped.
    """

    def __init__(self, carry_out: CarryOut, schema: str) -> None:
        self._carry_out = carry_out
        self._schema = schema

    async def get(
        self, job_id: int | None = None, *, job_key: str | None = None, conn: object | None = None
    ) -> Job | None:
        """Return one job with its payload, by its id or its key, as your transaction sees it; None: no such job."""
        if job_id is None and job_key is None:
            return None
        rows = await self._carry_out(fetched(get_call(job_id, job_key)), conn)
        return Job(*rows[0][:-1]) if rows else None

    async def complete(self, ids: Sequence[int], *, conn: object | None = None) -> ActionResult:
        """Delete jobs as if they had been completed. A job that runs is skipped."""
        return await self._act(completing(self._schema), ids, conn)

    async def fail(self, ids: Sequence[int], reason: str | None = None, *, conn: object | None = None) -> ActionResult:
        """Fail jobs permanently; `reason` becomes their last error. A job that runs is skipped."""
        return await self._act(on_idle("action_fail", reason=reason), ids, conn)

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
        return await self._act(on_idle("action_reschedule", announces=True, **values), ids, conn)

    async def _act(self, act: Act, ids: Sequence[int], conn: object | None) -> ActionResult:
        check_ids(ids)
        return await self._carry_out(_acting(sorted(set(ids)), act), conn)


def _acting(ids: Sequence[int], act: Act) -> Operation[ActionResult]:
    results: list[ActionResult] = []
    for start in range(0, len(ids), BATCH):
        batch = yield Unit(partial(change_by_id, ids[start : start + BATCH], act, with_payload=True), is_atomic=True)
        results.append(batch)
    return ActionResult.combine(results)
