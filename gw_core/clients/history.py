"""What became of jobs that have ended."""

from __future__ import annotations

from collections.abc import Sequence

from gw_core.clients.verbs import Part, R, Request, blocking, verb
from gw_core.domain.durations import Duration
from gw_core.domain.job.history import EndedAttempt, HistoryPage, HistoryState, HistoryStatus
from gw_core.postgres.read.history import COUNT_TIMEOUT, SEARCH_TIMEOUT, HistoryQueries, attempts_of


class History(Part[R]):
    """What became of jobs that have ended, where history is kept; `client.history` is one."""

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
        return self._queries.list(
            which, after=after, limit=limit, with_result=with_result, with_payload=with_payload, timeout=timeout
        )

    @blocking
    def count(
        self, which: str | int | Sequence[int] = "", *, timeout: Duration = COUNT_TIMEOUT
    ) -> dict[HistoryState, int]:
        """Return how many attempts match, by the state in which they ended."""
        return self._queries.count(which, timeout=timeout)

    @verb
    def attempts(self, job_id: int, *, conn: object | None = None) -> Request[tuple[EndedAttempt, ...]]:
        """Return the ended attempts of one job, the first one first, with result and payload if those are kept.

        `conn` is your own connection, as in `Client.add`: the attempts are those that its transaction sees.
        """
        return Request(attempts_of(job_id), conn)

    @blocking
    def status(self) -> HistoryStatus:
        """Return what history holds, by estimates."""
        return self._queries.status()

    @blocking
    def expire(self) -> Sequence[str]:
        """Drop the partitions whose rows are all expired, and return the names of the tables.

        Workers that keep history do it themselves. Raises `LockTimeoutError` while another session reads the history.
        """
        return self._queries.expire()

    @blocking
    def record_others(self, period: Duration | None) -> None:
        """Record jobs that other programs end, and keep them this long; None: no longer.

        This creates or drops a trigger on the jobs table, which only the owner of the queue may do. Raises
        `LockTimeoutError` when other sessions keep the table in use for two seconds.
        """
        self._queries.record_others(period)

    @property
    def _queries(self) -> HistoryQueries:
        return HistoryQueries(self._connections, self._schema)
