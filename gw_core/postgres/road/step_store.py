"""The steps of jobs in the database: a task reads what is kept, and saves while its claim holds the job."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from gw_core.domain.errors import DatabaseError, DatabaseUnavailableError, PermissionDeniedError, TransientDatabaseError
from gw_core.domain.job.job import Job, timestamp
from gw_core.domain.job.step import JobStep, KeptStep, StepLostError
from gw_core.domain.rules.roles import RoleKind
from gw_core.postgres.connection.connections import ConnectionSource, is_idle, unchecked
from gw_core.postgres.connection.row_security import raise_if_hidden, uses_of, values_of_uses
from gw_core.postgres.connection.statement_runner import statements_over
from gw_core.postgres.connection.statement_steps import Steps
from gw_core.postgres.road.add_calls import Call

SAVE_TIMEOUT: Final = timedelta(minutes=5)
"""How long a step that has ended waits for the database: afterwards it would run again."""

MAX_DELAY: Final = 1.5

PASSING: Final = (DatabaseUnavailableError, TransientDatabaseError)
"""Errors after which a statement is sent again."""


class StepStore(msgspec.Struct, frozen=True):
    """Reads and saves steps for the contexts of tasks. Safe from any thread."""

    connections: ConnectionSource

    @property
    def schema(self) -> str:
        """The schema of the queue."""
        return self.connections.database.schema

    def read(self, job: Job) -> dict[str, KeptStep]:
        """Return what earlier attempts of the job have kept, by the names of the steps."""
        values = {"job_id": job.id, "created_at": timestamp(job._created_at), "schema": self.schema}
        rows = self._lasting("step_begin", values)
        if any(row[0] is None for row in rows):
            self._require_visible_steps()
            rows = self._lasting("step_begin", values, CHECKED="true")
        return {name: KeptStep(value, finished) for name, value, finished in rows if name is not None}

    def _require_visible_steps(self) -> None:
        """Raise `PermissionDeniedError` if row security hides what is kept: each of these steps would run again."""
        uses = values_of_uses(uses_of("step_begin"), self.schema)
        raise_if_hidden(self._lasting("hidden_rows", uses), self.schema, RoleKind.WORKER)

    def save(self, job: Job, worker_id: str, name: str, step: KeptStep, gives_up: Callable[[], bool]) -> None:
        """Keep a step, and wait for a database that is away until `gives_up`; raises `StepLostError`.

        A right that was there when the step began is awaited too, because the step has run already.
        """
        values = save_values(job, worker_id, name, step)
        _check_saved(name, self._lasting("step_save", values, gives_up, (*PASSING, PermissionDeniedError)))

    def save_with(self, conn: object, job: Job, worker_id: str, name: str, step: KeptStep) -> None:
        """Keep a step in the caller's transaction; raises `StepLostError`."""
        from gw_core.postgres.connection.callers_connection import callers_connection

        call = Call("step_save", save_values(job, worker_id, name, step))
        _check_saved(name, callers_connection(conn, self.schema).fetch(call))

    async def save_on_loop(self, conn: object, job: Job, worker_id: str, name: str, step: KeptStep) -> None:
        """As `save_with`, on the connection of an asynchronous caller."""
        from gw_core.postgres.connection.async_connection import async_callers_connection

        call = Call("step_save", save_values(job, worker_id, name, step))
        _check_saved(name, await async_callers_connection(conn, self.schema).fetch(call))

    def _lasting(
        self,
        name: str,
        values: dict[str, Any],
        gives_up: Callable[[], bool] = lambda: False,
        passing: tuple[type[DatabaseError], ...] = PASSING,
        **names: str,
    ) -> list[tuple[Any, ...]]:
        """Run a statement that can be sent twice; repeat it after `passing` errors, but not in the caller's session."""
        ends_at, delay, is_own = time.monotonic() + SAVE_TIMEOUT.total_seconds(), 0.05, True
        while True:
            try:
                with unchecked(), self.connections.connection() as connection:
                    is_own = is_idle(connection)
                    return statements_over(connection, self.schema).rows(name, values, **names)
            except passing:
                if not is_own or gives_up() or time.monotonic() > ends_at:
                    raise
            time.sleep(delay)
            delay = min(MAX_DELAY, 2 * delay)


def save_values(job: Job, worker_id: str, name: str, step: KeptStep) -> dict[str, Any]:
    """Return the values of `step_save.sql`."""
    return {
        "job_id": job.id,
        "worker_id": worker_id,
        "claimed_at": timestamp(job._locked_at or 0.0),
        "name": name,
        "value": step.value,
        "finished": step.finished,
        "attempt": job.attempts,
    }


def listing_steps(job_id: int, *, with_value: bool) -> Steps[Sequence[JobStep]]:
    """Return the steps of a job in the queue or in history, in the order in which they were saved."""
    rows = yield Call("step_list", {"job_id": job_id, "with_value": with_value})
    return [JobStep(name, value, finished, attempt, timestamp(saved)) for name, value, finished, attempt, saved in rows]


def _check_saved(name: str, rows: Sequence[object]) -> None:
    if not rows:
        raise StepLostError(name)
