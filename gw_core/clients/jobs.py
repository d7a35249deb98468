"""List, count and change jobs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from datetime import datetime, timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, overload

from gw_core.clients.arguments import checked
from gw_core.clients.verbs import Acting, OnLoop, OnThreads, P, Part, R, Request, blocking, verb
from gw_core.domain.durations import Duration
from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import Job
from gw_core.postgres.road.bulk_actions import (
    BATCH,
    ActionResult,
    SelectionCount,
    batches,
    completing,
    counting,
    on_idle,
    recorded,
    reschedule_values,
    restoring,
    retrying,
)
from gw_core.postgres.road.enqueue import getting
from gw_core.postgres.road.step_store import listing_steps
from gw_core.selection.parser import Which, selection_of, selection_to_change
from gw_core.selection.selection import Selection, cancellable

if TYPE_CHECKING:
    from gw_core.domain.job.cancellation import CancelledJob
    from gw_core.domain.job.step import JobStep
    from gw_core.domain.reports.query_results import JobPage, JobReport, PageCursor
    from gw_core.postgres.read.job_queries import JobQueries

SEARCH_TIMEOUT: Final = timedelta(milliseconds=120)
CANCEL_TIMEOUT: Final = timedelta(seconds=10)


class action(Generic[P]):  # noqa: N801 - a decorator
    """A method that acts on jobs: `Jobs` returns one result, `JobBatches` yields the result of each batch."""

    def __init__(self, function: Callable[Concatenate[Any, P], Acting]) -> None:
        self.function = checked(function)
        function.__annotations__["return"] = "ActionResult"

    @overload
    def __get__(self, part: None, owner: object = None) -> Callable[..., Any]: ...
    @overload
    def __get__(self, part: Jobs[OnThreads], owner: object = None) -> Callable[P, ActionResult]: ...
    @overload
    def __get__(self, part: Jobs[OnLoop], owner: object = None) -> Callable[P, Coroutine[Any, Any, ActionResult]]: ...
    @overload
    def __get__(self, part: JobBatches[OnThreads], owner: object = None) -> Callable[P, Iterator[ActionResult]]: ...
    @overload
    def __get__(self, part: JobBatches[OnLoop], owner: object = None) -> Callable[P, AsyncIterator[ActionResult]]: ...
    def __get__(self, part: _JobActions[Any] | None, owner: object = None) -> Any:
        return self.function if part is None else part._bound(self.function)


class _JobActions(Part[R]):
    """The actions on jobs; a subclass decides how their batches are delivered.

    `which` is a selection, as text or as a `Selection`, or ids; `expected` are jobs as they were read. With `by`, the
    name of an operator, the action is recorded: `client.history.actions` lists it.
    """

    _size: int = BATCH

    def _bound(self, function: Callable[..., Acting]) -> Any:
        raise NotImplementedError

    @action
    def complete(
        self,
        which: Which | None = None,
        *,
        expected: Sequence[Job] | None = None,
        by: str | None = None,
        conn: object | None = None,
    ) -> Acting:
        """Delete jobs as if they had been completed; jobs that were read before return with all fields."""
        act = recorded(completing(self._schema), "complete", by, self._schema)
        return Acting(batches(which, expected, act, self._schema, size=self._size, deletes=True), conn)

    @action
    def fail(
        self,
        which: Which | None = None,
        reason: str | None = None,
        *,
        expected: Sequence[Job] | None = None,
        by: str | None = None,
        conn: object | None = None,
    ) -> Acting:
        """Fail jobs permanently; `reason` becomes their last error."""
        act = recorded(on_idle("action_fail", reason=reason), "fail", by, self._schema, reason=reason)
        return Acting(batches(which, expected, act, self._schema, size=self._size), conn)

    @action
    def reschedule(
        self,
        which: Which | None = None,
        *,
        expected: Sequence[Job] | None = None,
        run_at: datetime | timedelta | None = None,
        priority: int | None = None,
        attempts: int | None = None,
        max_attempts: int | None = None,
        by: str | None = None,
        conn: object | None = None,
    ) -> Acting:
        """Change when and how jobs run; None keeps a value, a `timedelta` counts from the database's clock.

        A failed job runs again when `attempts` is set below its `max_attempts`.
        """
        values = reschedule_values(run_at=run_at, priority=priority, attempts=attempts, max_attempts=max_attempts)
        act = recorded(on_idle("action_reschedule", announces=True, **values), "reschedule", by, self._schema, **values)
        return Acting(batches(which, expected, act, self._schema, size=self._size), conn)

    @action
    def retry(
        self,
        which: Which | None = None,
        *,
        expected: Sequence[Job] | None = None,
        by: str | None = None,
        conn: object | None = None,
    ) -> Acting:
        """Run failed jobs again now: jobs that wait for their next attempt, and permanently failed ones.

        The latter get all their attempts again. Idle workers are woken.
        """
        act = recorded(retrying, "retry", by, self._schema)
        return Acting(batches(which, expected, act, self._schema, size=self._size), conn)


class JobBatches(_JobActions[R]):
    """The actions of `Jobs` as iterators: `complete`, `fail`, `reschedule` and `retry`.

    Each step runs one batch, a transaction of its own. Nothing happens until the iterator is asked for its first batch,
    and no batch is begun after it is dropped.
    """

    def __init__(self, runtime: R, size: int) -> None:
        super().__init__(runtime)
        self._size = size

    def _bound(self, function: Callable[..., Acting]) -> Any:
        return self._runtime.in_batches(function, self)


class Jobs(_JobActions[R]):
    """Any number of jobs; `client.jobs` is one.

    Name the jobs by a selection, as text or as a `Selection`, by their ids, or by their `expected` versions: then only
    those that have not changed since are acted on. Actions run in batches of a thousand jobs, each in a transaction of
    its own, and return one `ActionResult`: if a call raises, the batches before it stay done. With `conn` they are
    savepoints in your transaction. `in_batches` yields the result of each, in bounded memory.
    """

    def _bound(self, function: Callable[..., Acting]) -> Any:
        return self._runtime.verb(_combined(function), self)

    @checked
    def in_batches(self, size: int = BATCH) -> JobBatches[R]:
        """Return the same actions as iterators over batches of at most `size` jobs; raises `InvalidInputError`."""
        if size < 1:
            raise InvalidInputError(f"a batch cannot have {size} jobs; give at least 1")
        return JobBatches(self._runtime, size)

    @verb
    def get(
        self, job_id: int | None = None, *, job_key: str | None = None, conn: object | None = None
    ) -> Request[Job | None]:
        """Return one job with its payload, by its id or its key; None when it does not exist.

        `conn` is your own connection, as in `Client.add`: the job is as its transaction sees it.
        """
        return Request(getting(job_id, job_key, self._schema), conn)

    @blocking
    def show(
        self, job_id: int | None = None, *, job_key: str | None = None, with_payload: bool = True
    ) -> JobReport | None:
        """Return everything about one job, by its id or its key, with the reasons for its state; None: no such job.

        Without `with_payload` the payload is not even read, and is an empty text in the answer.
        """
        return self._queries.job(job_id, job_key=job_key, with_payload=with_payload)

    @verb
    def steps(self, job_id: int, *, with_value: bool = True, conn: object | None = None) -> Request[Sequence[JobStep]]:
        """Return the steps of a job, in the order in which they were saved; for an ended job, while history has it.

        Without `with_value` their results and cursors are not even read.
        """
        return Request(listing_steps(job_id, with_value=with_value), conn)

    @blocking
    def list(
        self,
        which: Which = "",
        *,
        after: PageCursor | str | int | None = None,
        limit: int = 50,
        with_payload: bool = False,
        timeout: Duration = SEARCH_TIMEOUT,
    ) -> JobPage:
        """Return the jobs of a selection, up to `limit`, and where the next page begins; payloads only if requested.

        They come in order of their ids, waiting ones in the order in which they will run. A search that no index
        serves ends after `timeout`; the page shows how far it came.
        """
        return self._queries.list_jobs(
            selection_of(which), after=after, limit=limit, with_payload=with_payload, timeout=timeout
        )

    @verb
    def count(self, which: Which = "", *, conn: object | None = None) -> Request[SelectionCount]:
        """Count the jobs of a selection, and change nothing."""
        return Request(counting(selection_of(which), self._schema), conn)

    @blocking
    def cancel(
        self,
        which: Which,
        *,
        reason: str | None = None,
        by: str | None = None,
        retry: bool = False,
        timeout: Duration = CANCEL_TIMEOUT,
    ) -> Sequence[CancelledJob]:
        """Cancel running jobs: their tasks are asked to stop, and their attempts fail. A job that waits is dropped.

        They are not retried, unless `retry` leaves them their other attempts. `by` names who cancels, by default the
        database user; with it, the action is recorded. Waits until the jobs have ended, at most `timeout`; an
        unanswered request stays for an hour. It takes no `conn`: workers see a request after its commit only, so it
        could not end in your transaction. Jobs given by id or key are reported in any state. Other selections count
        running jobs only, and with `state:waiting` jobs that wait for others; with them, the jobs that wait for them
        are dropped.
        """
        from gw_core.postgres.road.cancel_requests import CancelRequests

        ids = _ids_of(selection_to_change(which), self._queries)
        requests = CancelRequests(self._connections, self._schema)
        return requests.cancel(ids, by=by, reason=reason, retry=retry, timeout=timeout)

    @verb
    def restore(self, job: Job, *, by: str | None = None, conn: object | None = None) -> Request[int | None]:
        """Add a deleted job again as it was, under a new id, and return that; None when another job has its key now.

        It is added once: the same call within 90 days, such as after a lost answer, returns the same id. The workers
        are notified. Its age starts again. A job that waited for others no longer does: its `run_at` is infinite, and
        it starts only when you reschedule it. With `by`, the name of an operator, the action is recorded.
        """
        return Request(restoring(job, self._schema, by), conn)


def _combined(function: Callable[..., Acting]) -> Callable[..., Request[ActionResult]]:
    """Return the function as one whose request acts on all batches."""

    @wraps(function)
    def requested(*args: Any, **kwargs: Any) -> Request[ActionResult]:
        acting = function(*args, **kwargs)
        return Request(acting.batches.combined(), acting.conn)

    return requested


def _ids_of(selection: Selection, queries: JobQueries) -> Sequence[int]:
    """Return the ids of the jobs of a selection; jobs that it names by id need not exist."""
    if selection.ids is not None and len(selection.conditions) == 1:
        return selection.ids
    wanted = queries.at_server_time(cancellable(selection))
    found: list[int] = []
    after: PageCursor | None = None
    while True:
        page = queries.list_jobs(wanted, after=after, limit=BATCH)
        found += [each.job.id for each in page.jobs]
        if (after := page.after) is None:
            return found
