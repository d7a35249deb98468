"""Limit how many jobs of a task run, over all workers."""

from __future__ import annotations

from collections.abc import Sequence

from gw_core.clients.pauses import NO_WAIT
from gw_core.clients.verbs import Part, R, Request, verb
from gw_core.domain.durations import Duration, as_duration, as_optional_duration
from gw_core.domain.rules.pause import PauseResult
from gw_core.domain.rules.task_limit import TaskLimit
from gw_core.postgres.road.limits import listing, removing, setting
from gw_core.postgres.road.pauses import CONFIRM_TIMEOUT


class Limits(Part[R]):
    """The limits of tasks across all gw workers; `client.limits` is one. Workers in other languages ignore them."""

    @verb
    def list(self, *, conn: object | None = None) -> Request[Sequence[TaskLimit]]:
        """Return the limits by task, with how many jobs of each are locked."""
        return Request(listing(self._schema), conn)

    @verb
    def set(
        self,
        task: str,
        *,
        running: int | None = None,
        per_period: int | None = None,
        period: Duration | None = None,
        burst: int | None = None,
        field: str | None = None,
        by: str | None = None,
        timeout: Duration = CONFIRM_TIMEOUT,
        conn: object | None = None,
    ) -> Request[PauseResult]:
        """Set the limit of a task: at most `running` jobs at a time, at most `per_period` starts per `period`.

        With `field`, a place in the payload such as `tenant_id` or `customer.id`, it counts for each value there. That
        needs an index, which only the owner of the queue may build: some seconds for a million waiting jobs.

        It replaces the limit that the task has. Returns when all live gw workers have confirmed it; after `timeout`,
        with those that have not. With `conn` it belongs to your transaction, and it does not wait. With `by`, the name
        of an operator, the action is recorded. Raises `InvalidInputError` before anything is changed.
        """
        limit = TaskLimit(
            task=task,
            running=running,
            per_period=per_period,
            period=as_optional_duration("period", period),
            burst=burst,
            field=field,
        )
        wait = as_duration("timeout", timeout) if conn is None else NO_WAIT
        return Request(setting(limit, self._schema, wait, by=by, in_transaction=conn is not None), conn)

    @verb
    def remove(
        self,
        task: str,
        *,
        by: str | None = None,
        timeout: Duration = CONFIRM_TIMEOUT,
        conn: object | None = None,
    ) -> Request[PauseResult]:
        """Remove the limit of a task; `changed` is 0 if it had none. `by`, `timeout` and `conn` are those of `set`."""
        wait = as_duration("timeout", timeout) if conn is None else NO_WAIT
        return Request(removing(task, self._schema, wait, by=by, in_transaction=conn is not None), conn)
