"""Pause, resume and limit from an event loop."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from gw_core.domain.rules.pause import Pause, PauseResult, PauseTarget
from gw_core.domain.rules.task_limit import TaskLimit
from gw_core.postgres.connection.async_connection import CarryOut
from gw_core.postgres.connection.statement_steps import fetched
from gw_core.postgres.road.add_calls import Call
from gw_core.postgres.road.limits import limit_of, removing, setting
from gw_core.postgres.road.pauses import CONFIRM_TIMEOUT, pause_of, pausing, resuming


class AsyncPauses:
    """What is paused in a queue; `AsyncClient.pauses` is one. See `Client.pauses`."""

    def __init__(self, carry_out: CarryOut, schema: str) -> None:
        self._carry_out = carry_out
        self._schema = schema

    async def list(self) -> Sequence[Pause]:
        """Return what is paused, the oldest pause first."""
        return [pause_of(*row) for row in await self._carry_out(fetched(Call("pause_list")))]

    async def pause(
        self,
        *targets: str | PauseTarget,
        until: datetime | timedelta | None = None,
        reason: str | None = None,
        by: str | None = None,
        timeout: timedelta = CONFIRM_TIMEOUT,
    ) -> PauseResult:
        """Pause these targets, until a time, for a duration, or until they are resumed; see `Client.pauses`."""
        return await self._carry_out(pausing(targets, self._schema, timeout, until=until, reason=reason, by=by))

    async def resume(self, *targets: str | PauseTarget, timeout: timedelta = CONFIRM_TIMEOUT) -> PauseResult:
        """Resume these targets; workers claim their jobs again immediately. `changed` is 0 if none was paused."""
        return await self._carry_out(resuming(targets, self._schema, timeout))


class AsyncLimits:
    """The limits of tasks across all gw workers; `AsyncClient.limits` is one. See `Client.limits`."""

    def __init__(self, carry_out: CarryOut, schema: str) -> None:
        self._carry_out = carry_out
        self._schema = schema

    async def list(self) -> Sequence[TaskLimit]:
        """Return the limits by task, with how many jobs of each are locked."""
        return [limit_of(row) for row in await self._carry_out(fetched(Call("limit_list")))]

    async def set(
        self,
        task: str,
        *,
        running: int | None = None,
        per_period: int | None = None,
        period: timedelta | None = None,
        burst: int | None = None,
        field: str | None = None,
        by: str | None = None,
        timeout: timedelta = CONFIRM_TIMEOUT,
    ) -> PauseResult:
        """Set the limit of a task, in place of the one that it has; see `Client.limits`."""
        limit = TaskLimit(task=task, running=running, per_period=per_period, period=period, burst=burst, field=field)
        return await self._carry_out(setting(limit, self._schema, timeout, by=by))

    async def remove(self, task: str, *, timeout: timedelta = CONFIRM_TIMEOUT) -> PauseResult:
        """Remove the limit of a task; `changed` is 0 if it had none."""
        return await self._carry_out(removing(task, self._schema, timeout))
