"""History: what became of jobs that have ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from gw_core.domain.durations import Duration, as_duration, as_optional_duration
from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.history import MAX_KEEP, EndedAttempt, HistoryPage, HistoryState, HistoryStatus, JobEnd
from gw_core.postgres.connection.connections import QueueOperations
from gw_core.postgres.connection.deadlines import ANSWER_GRACE, ending_within
from gw_core.postgres.connection.row_mapping import optional_timestamp
from gw_core.postgres.connection.statement_steps import Steps
from gw_core.postgres.read.read_only import Rows, read
from gw_core.postgres.read.selection_names import values_of
from gw_core.postgres.road.add_calls import Call
from gw_core.postgres.schema.history_partitions import HistoryPartitions
from gw_core.selection.history_terms import HISTORY_TERMS
from gw_core.selection.kinds import Resolved
from gw_core.selection.parser import parse
from gw_core.selection.selection import EVERY_ROW, Fragment, Selection

SEARCH_TIMEOUT: Final = timedelta(seconds=5)
COUNT_TIMEOUT: Final = timedelta(seconds=30)
MAX_PAGE: Final = 100_000

_LATEST: Final = ("infinity", 2**63 - 1, 2**31 - 1)


class HistoryQueries(QueueOperations, frozen=True):
    """Queries about jobs that have ended. Thread-safe. Raises gw's errors."""

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
        rows = self._read("list_history", values, timeout, self._fragment(which))
        attempts = tuple(_attempt(row) for row in rows[:limit])
        return HistoryPage(attempts=attempts, after=_cursor(attempts[-1]) if len(rows) > limit else None)

    def count(
        self, which: str | int | Sequence[int] = "", *, timeout: Duration = COUNT_TIMEOUT
    ) -> dict[HistoryState, int]:
        """Return how many attempts match, by the state in which they ended."""
        rows: dict[str, int] = dict(self._read("count_history", {}, timeout, self._fragment(which)))
        return {state: rows[state] for state in HistoryState if state in rows}

    def status(self) -> HistoryStatus:
        """Return what history holds, by estimates."""
        row = self._read("history_status", {"schema": self.schema}, SEARCH_TIMEOUT)[0]
        return history_status(row)

    def expire(self) -> Sequence[str]:
        """Drop the partitions whose rows are all expired, and return the names of the tables.

        Workers that keep history do it themselves. Raises `LockTimeoutError` while another session reads the history.
        """
        with self.connections.connection() as connection:
            return HistoryPartitions(connection, self.schema).expire()

    def record_others(self, period: Duration | None) -> None:
        """Record jobs that other programs end, and keep them this long; None: no longer.

        This creates or drops a trigger on the jobs table, which only the owner of the queue may do. Raises
        `LockTimeoutError` when other sessions keep the table in use for two seconds.
        """
        period = as_optional_duration("the period", period)
        if period is not None and not timedelta(0) < period <= MAX_KEEP:
            raise InvalidInputError(f"the period must be positive and at most {MAX_KEEP.days} days, not {period}")
        with self.connections.connection() as connection:
            HistoryPartitions(connection, self.schema).record_others(period)

    def end_of(self, job_id: int) -> JobEnd:
        """Return what is known of how a job ended, in the queue and in history."""
        [row] = self._read("job_end", {"job_id": job_id, "schema": self.schema}, SEARCH_TIMEOUT)
        return job_end(row)

    def _fragment(self, which: str | int | Sequence[int]) -> Fragment:
        selection = parse(which, HISTORY_TERMS) if isinstance(which, str) else _of_ids(which)
        now = datetime.now(UTC)
        if selection.is_relative:
            now = self._read("selection_names", values_of(selection, self.schema), SEARCH_TIMEOUT)[0][0]
        return selection.sql(Resolved(now=now))

    def _read(self, name: str, values: dict[str, Any], timeout: Duration, fragment: Fragment = EVERY_ROW) -> Rows:
        call = Call(name, {**values, **fragment.values}, {"SELECTION": fragment.text})
        timeout = as_duration("timeout", timeout)
        with ending_within(timeout + ANSWER_GRACE):
            return read(self.connections, self.schema, [call], timeout=timeout)[0]


def attempts_of(job_id: int) -> Steps[tuple[EndedAttempt, ...]]:
    """Return the ended attempts of one job, the first one first."""
    return tuple(map(_attempt, (yield Call("job_history", {"job_id": job_id}))))


def job_end(row: Sequence[Any]) -> JobEnd:
    """Return the answer of `job_end.sql`."""
    is_queued, has_failed, attempts, error, is_known, *last = row
    attempt = None if last[0] is None else _attempt(last)
    return JobEnd(is_queued, has_failed, attempts, error, is_known, attempt)


def history_status(row: Sequence[Any]) -> HistoryStatus:
    """Return the answer of `history_status.sql`."""
    *counts, latest, arguments = row
    seconds = None if arguments is None else float(bytes(arguments).rstrip(b"\0"))
    values = [*counts, optional_timestamp(latest), None if seconds is None else timedelta(seconds=seconds)]
    return HistoryStatus(*values)


def _of_ids(which: int | Sequence[int]) -> Selection:
    ids = [which] if isinstance(which, int) else which
    return parse(f"id:{','.join(map(str, ids))}", HISTORY_TERMS)


def _attempt(row: Sequence[Any]) -> EndedAttempt:
    job_id, attempt, max_attempts, task, queue_name, key, state, *others = row
    others[3:7] = map(optional_timestamp, others[3:7])
    return EndedAttempt(job_id, attempt, max_attempts, task, queue_name, key, HistoryState(state), *others)


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
