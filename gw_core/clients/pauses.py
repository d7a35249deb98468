"""Pause and resume tasks, named queues, flags, recurring tasks or everything."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from gw_core.clients.verbs import Part, R, Request, verb
from gw_core.domain.durations import Duration, as_duration
from gw_core.domain.rules.pause import Pause, PauseResult, PauseTarget
from gw_core.postgres.road.pauses import CONFIRM_TIMEOUT, listing, pausing, resuming

NO_WAIT = timedelta(0)


class Pauses(Part[R]):
    """The pauses of a queue; `client.pauses` is one.

    A target is `task:NAME`, `queue:NAME`, `flag:NAME`, `cron:IDENTIFIER` or `all`. No further job of it starts in any
    gw worker; running jobs finish. A paused named queue stays locked for workers in every language. Other pauses bind
    gw workers only. A paused cron item adds no jobs, and the runs that it skips are not backfilled.
    """

    @verb
    def list(self, *, conn: object | None = None) -> Request[Sequence[Pause]]:
        """Return what is paused, the oldest pause first; nothing in a schema without gw's tables."""
        return Request(listing(self._schema), conn)

    @verb
    def pause(
        self,
        *targets: str | PauseTarget,
        until: datetime | timedelta | None = None,
        reason: str | None = None,
        by: str | None = None,
        timeout: Duration = CONFIRM_TIMEOUT,
        conn: object | None = None,
    ) -> Request[PauseResult]:
        """Pause these targets, until a time, for a duration, or until they are resumed.

        Returns when all live gw workers have confirmed it; after `timeout`, with those that have not. A target that is
        paused already gets the new end, reason and author. With `by`, the action is recorded. With `conn` the
        pause belongs to your transaction, and it does not wait. Raises `InvalidInputError` before anything is changed.
        """
        wait = as_duration("timeout", timeout) if conn is None else NO_WAIT
        return Request(pausing(targets, self._schema, wait, until=until, reason=reason, by=by), conn)

    @verb
    def resume(
        self,
        *targets: str | PauseTarget,
        by: str | None = None,
        timeout: Duration = CONFIRM_TIMEOUT,
        conn: object | None = None,
    ) -> Request[PauseResult]:
        """Resume these targets; workers claim their jobs again immediately. `targets` are the ones that were paused.

        `by`, `timeout` and `conn` are those of `pause`.
        """
        wait = as_duration("timeout", timeout) if conn is None else NO_WAIT
        return Request(resuming(targets, self._schema, wait, by=by), conn)
