"""Pause, resume and limit from an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta

from gw_core.domain.pause import Pause, PauseResult, PauseTarget
from gw_core.domain.task_limit import TaskLimit
from gw_core.postgres.add_calls import Call
from gw_core.postgres.async_connection import AsyncCallersConnection
from gw_core.postgres.callers_connection import Rows
from gw_core.postgres.limits import limit_of, removing, setting
from gw_core.postgres.pauses import (
    CONFIRM_TIMEOUT,
    POLL_SECONDS,
    RuleChange,
    pause_of,
    pausing,
    resuming,
    unconfirmed,
)
from gw_core.postgres.steps import Steps, await_steps

Connect = Callable[..., AbstractAsyncContextManager[AsyncCallersConnection]]
"""Returns a connection of the client's pool; with `autocommit`, one without a transaction."""


class _Rules:
    """Changes claim rules and waits until live workers have confirmed the change."""

    def __init__(self, connect: Connect, schema: str) -> None:
        self._connect = connect
        self._schema = schema

    async def _fetch(self, call: Call) -> Rows:
        async with self._connect() as connection:
            return await connection.fetch(call)

    async def _change(self, change: RuleChange, timeout: timedelta) -> PauseResult:
        loop = asyncio.get_running_loop()
        await self._outside_transaction(change.before)
        # Committed before the wait: a pool of SQLAlchemy commits when its connection is returned.
        async with self._connect() as connection, connection.atomic():
            revision, changed = await await_steps(change.in_transaction(), connection.fetch)
        deadline = loop.time() + timeout.total_seconds()
        while (missing := await self._fetch(unconfirmed(revision))) and loop.time() < deadline:
            await asyncio.sleep(POLL_SECONDS)
        if changed:
            await self._outside_transaction(change.after)
        return PauseResult(changed=changed, unconfirmed=tuple(name for (name,) in missing))

    async def _outside_transaction(self, steps: Steps[None] | None) -> None:
        if steps is not None:
            async with self._connect(autocommit=True) as connection:
                await await_steps(steps, connection.fetch)


class AsyncPauses(_Rules):
    """What is paused in a queue; `AsyncClient.pauses` is one. See `Client.pauses`."""

    async def list(self) -> Sequence[Pause]:
        """Return what is paused, the oldest pause first."""
        return [pause_of(*row) for row in await self._fetch(Call("pause_list"))]

    async def pause(
        self,
        *targets: str | PauseTarget,
        until: datetime | timedelta | None = None,
        reason: str | None = None,
        by: str | None = None,
        timeout: timedelta = CONFIRM_TIMEOUT,
    ) -> PauseResult:
        """Pause these targets, until a time, for a duration, or until they are resumed; see `Client.pauses`."""
        change = pausing(targets, self._schema, until=until, reason=reason, by=by)
        return await self._change(change, timeout)

    async def resume(self, *targets: str | PauseTarget, timeout: timedelta = CONFIRM_TIMEOUT) -> PauseResult:
        """Resume these targets; workers claim their jobs again immediately. `changed` is 0 if none was paused."""
        return await self._change(resuming(targets, self._schema), timeout)


class AsyncLimits(_Rules):
    """The limits of tasks across all gw workers; `AsyncClient.limits` is one. See `Client.limits`."""

    async def list(self) -> Sequence[TaskLimit]:
        """Return the limits by task, with how many jobs of each are locked."""
        return [limit_of(*row) for row in await self._fetch(Call("limit_list"))]

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
        return await self._change(setting(limit, self._schema, by=by), timeout)

    async def remove(self, task: str, *, timeout: timedelta = CONFIRM_TIMEOUT) -> PauseResult:
        """Remove the limit of a task; `changed` is 0 if it had none."""
        return await self._change(removing(task, self._schema), timeout)
