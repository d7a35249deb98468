"""The record of jobs that have ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gw_core.clients.verbs import Part, R, Request, blocking, verb
from gw_core.domain.durations import Duration, as_optional_duration
from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.history import MAX_KEEP, EndedAttempt, HistoryPage, HistoryState
from gw_core.domain.job.recorded_action import RecordedAction
from gw_core.domain.reports.query_results import HistoryStatus
from gw_core.postgres.read.history import SEARCH_TIMEOUT, attempt_of, attempts_of, chosen, read_history, status_of
from gw_core.postgres.read.read_only import Rows
from gw_core.postgres.road.action_records import listing_actions
from gw_core.postgres.schema.history_partitions import HistoryPartitions

COUNT_TIMEOUT: Final = timedelta(seconds=30)
MAX_PAGE: Final = 100_000

_LATEST: Final = ("infinity", 2**63 - 1, 2**31 - 1)


class History(Part[R]):
    """The record of jobs that have ended, for tasks with history; `client.history` is one."""

    @blocking
    def list(
        self,
        which: str | int | Sequence[int] = "",
        *,
        after: str | None = None,
        limit: int = 50,
        with_result: bool = False,
        with_payload: bool = False,
        timeout: Duration = SEARCH_TIMEOUT,
    ) -> HistoryPage:
        """Return ended attempts that match, the latest first; `after` is where the previous page ended.

        `which` is a selection such as `task:send_email state:failed finished_at:-1d..now`, or ids of jobs. Results and
        payloads are read only when asked for. Raises `StatementTimeoutError` when the search takes longer.
        """
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidInputError(f"a page has from 1 to {MAX_PAGE:,} rows, not {limit}")
        finished_at, job_id, attempt = _place(after)
        values = {
            "finished_at": finished_at,
            "job_id": job_id,
            "attempt": attempt,
            "limit": limit + 1,
            "with_result": with_result,
            "with_payload": with_payload,
        }
        rows = self._search("list_history", values, which, timeout)
        attempts = tuple(attempt_of(row) for row in rows[:limit])
        return HistoryPage(attempts=attempts, after=_cursor(attempts[-1]) if len(rows) > limit else None)

    @blocking
    def count(
        self, which: str | int | Sequence[int] = "", *, timeout: Duration = COUNT_TIMEOUT
    ) -> dict[HistoryState, int]:
        """Return how many attempts match, by the state in which they ended."""
        rows: dict[str, int] = dict(self._search("count_history", {}, which, timeout))
        return {state: rows[state] for state in HistoryState if state in rows}

    @verb
    def attempts(self, job_id: int, *, conn: object | None = None) -> Request[tuple[EndedAttempt, ...]]:
        """Return the ended attempts of one job, the first one first, with result and payload if those are kept.

        `conn` is your own connection, as in `Client.add`: the attempts are those that its transaction sees.
        """
        return Request(attempts_of(job_id), conn)

    @verb
    def actions(
        self, job_id: int | None = None, *, after: int | None = None, limit: int = 50, conn: object | None = None
    ) -> Request[Sequence[RecordedAction]]:
        """Return what operators did in the last 90 days, the latest first: to one job, or to anything.

        gw's commands, console and admin record their actions, and so does a call that names an operator with `by`.
        `after` is the id of the last action of the page before.
        """
        return Request(listing_actions(job_id, after=after, limit=limit), conn)

    @blocking
    def status(self) -> HistoryStatus:
        """Return what history holds, by estimates."""
        return status_of(self._connections, self._schema)

    @blocking
    def expire(self) -> Sequence[str]:
        """Drop the partitions whose rows are all expired, and return the names of the tables.

        Workers that keep history do it themselves. Raises `LockTimeoutError` while another session reads the history.
        """
        with self._connections.connection() as connection:
            return HistoryPartitions(connection, self._schema).expire()

    @blocking
    def record_others(self, period: Duration | None) -> None:
        """Record jobs that other programs end, and keep them this long; None: no longer.

        This creates or drops a trigger on the jobs table, which only the owner of the queue may do. Raises
        `LockTimeoutError` when other sessions keep the table in use for two seconds.
        """
        period = as_optional_duration("the period", period)
        if period is not None and not timedelta(0) < period <= MAX_KEEP:
            raise InvalidInputError(f"the period must be positive and at most {MAX_KEEP.days} days, not {period}")
        with self._connections.connection() as connection:
            HistoryPartitions(connection, self._schema).record_others(period)

    def _search(
        self, name: str, values: Mapping[str, Any], which: str | int | Sequence[int], timeout: Duration
    ) -> Rows:
        fragment = chosen(self._connections, self._schema, which)
        return read_history(self._connections, self._schema, name, values, timeout=timeout, fragment=fragment)


def _cursor(attempt: EndedAttempt) -> str:
    """Return the place after an attempt, as text for `after`."""
    return f"{attempt.finished_at.astimezone(UTC).isoformat()}/{attempt.job_id}/{attempt.attempt}"


def _place(after: str | None) -> tuple[str | datetime, int, int]:
    if after is None:
        return _LATEST
    try:
        finished_at, job_id, attempt = after.split("/")
        return datetime.fromisoformat(finished_at), int(job_id), int(attempt)
    except ValueError:
        raise InvalidInputError(f"{after!r} is not the end of a page of history") from None
