"""Pause, resume and limit from an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any

from gw_core.domain.pause import PAUSE_LOCK, Pause, PauseKind, PauseResult, PauseTarget, check_pause_text
from gw_core.domain.recovery import RecoverySettings
from gw_core.domain.task_limit import TaskLimit
from gw_core.postgres.add_calls import Call
from gw_core.postgres.async_connection import AsyncCallersConnection
from gw_core.postgres.limits import limit_columns, limit_of
from gw_core.postgres.pauses import (
    CONFIRM_TIMEOUT,
    POLL_SECONDS,
    checked_targets,
    end_columns,
    pause_of,
    target_columns,
)

Connect = Callable[[object | None], AbstractAsyncContextManager[AsyncCallersConnection]]
Then = Callable[[AsyncCallersConnection], Awaitable[None]]


class _Rules:
    """Changes claim rules and waits until live workers have confirmed the change."""

    def __init__(self, connect: Connect, schema: str) -> None:
        self._connect = connect
        self._schema = schema

    async def _list(self, statement: str) -> Sequence[tuple[Any, ...]]:
        async with self._connect(None) as connection:
            return await connection.fetch(Call(statement, {}))

    async def _change(self, change: Call, timeout: timedelta, then: Then | None = None) -> PauseResult:
        """Run `change`, which returns a row for each rule that it changes, in one transaction with what follows it."""
        # Committed before the wait: a pool of SQLAlchemy commits when its connection is returned.
        async with self._connect(None) as connection, connection.atomic():
            [(revision, _)] = await connection.fetch(Call("claim_rules_change", {}))
            changed = await connection.fetch(change)
            if then is not None:
                await then(connection)
        unconfirmed = await self._unconfirmed(revision, timeout)
        return PauseResult(changed=len(changed), unconfirmed=unconfirmed)

    async def _unconfirmed(self, revision: int, timeout: timedelta) -> tuple[str, ...]:
        """Wait until all live workers have confirmed a revision; return those that have not after the timeout."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout.total_seconds()
        values = {"revision": revision, "recent_seconds": RecoverySettings().threshold.total_seconds()}
        while True:
            async with self._connect(None) as connection:
                missing = tuple(row[0] for row in await connection.fetch(Call("claim_rules_unconfirmed", values)))
            if not missing or loop.time() >= deadline:
                return missing
            await asyncio.sleep(POLL_SECONDS)


class AsyncPauses(_Rules):
    """What is paused in a queue; `AsyncClient.pauses` is one. See `Client.pauses`."""

    async def list(self) -> Sequence[Pause]:
        """Return what is paused, the oldest pause first."""
        return [pause_of(*row) for row in await self._list("pause_list")]

    async def pause(
        self,
        *targets: str | PauseTarget,
        until: datetime | timedelta | None = None,
        reason: str | None = None,
        by: str | None = None,
        timeout: timedelta = CONFIRM_TIMEOUT,
    ) -> PauseResult:
        """Pause these targets, until a time, for a duration, or until they are resumed; see `Client.pauses`."""
        wanted = checked_targets(targets)
        check_pause_text("reason", reason)
        check_pause_text("by", by)
        values: Mapping[str, Any] = {**target_columns(wanted), **end_columns(until), "reason": reason, "by": by}
        return await self._change(Call("pause_set", values), timeout, self._lock_queues)

    async def resume(self, *targets: str | PauseTarget, timeout: timedelta = CONFIRM_TIMEOUT) -> PauseResult:
        """Resume these targets; workers claim their jobs again immediately. `changed` is 0 if none was paused."""
        wanted = checked_targets(targets)
        names = [each.name for each in wanted if each.kind is PauseKind.QUEUE]

        async def release(connection: AsyncCallersConnection) -> None:
            await connection.fetch(Call("pause_release_queues", {"names": names, "prefix": PAUSE_LOCK}))
            [(_, has_rust_workers, _)] = await connection.fetch(Call("sweep_preconditions", {"schema": self._schema}))
            for name in names if has_rust_workers else ():
                await connection.fetch(Call("delete_rust_heartbeat", {"worker_id": PAUSE_LOCK + name}))

        return await self._change(Call("pause_delete", target_columns(wanted)), timeout, release)

    async def _lock_queues(self, connection: AsyncCallersConnection) -> None:
        locked = await connection.fetch(Call("pause_lock_queues", {"prefix": PAUSE_LOCK, "schema": self._schema}))
        for name, has_rust_workers in locked:
            if has_rust_workers:
                values = {"worker_id": PAUSE_LOCK + name, "metadata": "{}"}
                await connection.fetch(Call("rust_heartbeat", values))


class AsyncLimits(_Rules):
    """The limits of tasks across all gw workers; `AsyncClient.limits` is one. See `Client.limits`.

    A limit by field has an index, which is built and dropped outside of a transaction: set and remove such a limit with
    `Client.limits` or `gw limit`. Removed here, it leaves the index, until the next limit of the task is set there.
    """

    async def list(self) -> Sequence[TaskLimit]:
        """Return the limits by task, with how many jobs of each are locked."""
        return [limit_of(*row) for row in await self._list("limit_list")]

    async def set(
        self,
        task: str,
        *,
        running: int | None = None,
        per_period: int | None = None,
        period: timedelta | None = None,
        burst: int | None = None,
        by: str | None = None,
        timeout: timedelta = CONFIRM_TIMEOUT,
    ) -> PauseResult:
        """Set the limit of a task, in place of the one that it has; see `Client.limits`."""
        limit = TaskLimit(task=task, running=running, per_period=per_period, period=period, burst=burst)
        check_pause_text("by", by)
        return await self._change(Call("limit_set", {**limit_columns(limit), "by": by}), timeout)

    async def remove(self, task: str, *, timeout: timedelta = CONFIRM_TIMEOUT) -> PauseResult:
        """Remove the limit of a task; `changed` is 0 if it had none."""
        return await self._change(Call("limit_delete", {"task": task}), timeout)
