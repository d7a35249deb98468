"""Bulk actions on jobs, and releasing locks: the statements of an operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.group import is_member
from gw_core.domain.job.job import Job, JobSpec, check_count
from gw_core.domain.job.job_changes import changes_of
from gw_core.domain.job.job_state import JobState
from gw_core.domain.rules.pause import PAUSE_LOCK
from gw_core.domain.rules.session_limits import milliseconds
from gw_core.domain.rules.sweep_rules import WorkerInfo, merged
from gw_core.postgres.connection.callers_connection import Rows, callers_connection
from gw_core.postgres.connection.connections import QueueOperations
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.row_security import visible_rows
from gw_core.postgres.connection.statement_steps import Steps, fetch_on, run_steps
from gw_core.postgres.read.selection_names import resolve
from gw_core.postgres.road.add_calls import Call, RemovedJob, get_call, run_at_or_delay
from gw_core.postgres.road.enqueue import removing
from gw_core.postgres.road.worker_store import list_heartbeats, list_worker_locks
from gw_core.selection.parser import Which, selection_of, selection_to_change
from gw_core.selection.selection import Fragment, Selection

if TYPE_CHECKING:
    from gw_core.domain.job.cancellation import CancelledJob
    from gw_core.domain.reports.query_results import JobPage, JobReport, PageCursor
    from gw_core.postgres.read.job_queries import JobQueries

T = TypeVar("T")
Result = TypeVar("Result")

BATCH: Final = 1_000
"""Jobs in one transaction: few enough that a worker waiting for one of the rows does not notice."""

LOCK_TIMEOUT: Final = timedelta(seconds=10)
"""How long a batch waits for a row that another session has locked."""

SEARCH_TIMEOUT: Final = timedelta(milliseconds=120)
CANCEL_TIMEOUT: Final = timedelta(seconds=10)


class SkipReason(StrEnum):
    """Why a job was left as it is."""

    LOCKED = "locked"
    """A worker runs it."""
    NOT_FOUND = "not_found"
    """There is no such job, or no longer."""
    NOT_FAILED = "not_failed"
    """It has not failed yet, so there is nothing to retry."""
    CHANGED = "changed"
    """It changed after it was read."""
    BUSY = "busy"
    """Another session is changing it now."""


class SelectionCount(msgspec.Struct, frozen=True, kw_only=True):
    """What a selection means at the server's current time."""

    jobs: int
    highest_id: int
    running: int
    """Jobs that a worker runs; they will be skipped."""
    locked: int
    """Jobs with any lock, also one older than four hours."""
    unfailed: int
    """Jobs that wait for their first attempt; `retry` skips them."""


class ChangedJob(msgspec.Struct, frozen=True):
    """A job that was changed; `job` is its former state if an expected version was given: `restore` needs it."""

    id: int
    task: str
    job: Job | None = None


class SkippedJob(msgspec.Struct, frozen=True):
    """A job that was left as it is, and why; `locked_by` is the worker that runs it, `changes` what is different."""

    id: int
    task: str | None
    reason: SkipReason
    locked_by: str | None = None
    changes: str | None = None


class ActionResult(msgspec.Struct, frozen=True):
    """What an action did: the jobs it changed, and those it skipped, with the reason."""

    changed: tuple[ChangedJob, ...] = ()
    skipped: tuple[SkippedJob, ...] = ()

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids of the changed jobs."""
        return tuple(each.id for each in self.changed)

    @property
    def skipped_by_reason(self) -> dict[SkipReason, int]:
        """How many jobs were skipped for each reason that occurred."""
        return dict(Counter(each.reason for each in self.skipped))

    @classmethod
    def combine(cls, batches: Iterable[ActionResult]) -> ActionResult:
        """Run through batches and return them as one result."""
        changed: list[ChangedJob] = []
        skipped: list[SkippedJob] = []
        for batch in batches:
            changed += batch.changed
            skipped += batch.skipped
        return cls(tuple(changed), tuple(skipped))


class _LockedJob(msgspec.Struct, frozen=True):
    """A job whose row we hold."""

    job: Job
    is_running: bool
    """True when the shared functions would leave it alone: a lock of more than four hours counts as none."""

    @property
    def id(self) -> int:
        """The id of the job."""
        return self.job.id

    def skipped(self, reason: SkipReason, changes: str | None = None) -> SkippedJob:
        """Report that the job is left as it is."""
        return SkippedJob(self.job.id, self.job.task, reason, self.job.locked_by, changes)


def reschedule_values(
    *, run_at: datetime | timedelta | None, priority: int | None, attempts: int | None, max_attempts: int | None
) -> dict[str, Any]:
    """Return the values of action_reschedule.sql; raises `InvalidJobError` for those that no job can have."""
    check_count("attempts", attempts, 0)
    check_count("max attempts", max_attempts, 1)
    JobSpec(task="reschedule", run_at=run_at, priority=priority)  # the same limits as for a new job
    time, delay = run_at_or_delay(run_at)
    return {
        "run_at": time,
        "delay_seconds": delay,
        "priority": priority,
        "attempts": attempts,
        "max_attempts": max_attempts,
    }


Act = Callable[[Sequence[_LockedJob]], Steps[tuple[set[int], dict[int, SkipReason]]]]
"""Changes locked jobs; returns the ids of those that it changed, and why others were left."""


def on_idle(
    statement: str, *, names: Mapping[str, str] = MappingProxyType({}), announces: bool = False, **values: Any
) -> Act:
    """Return what runs a statement on those jobs that are not running; with `announces`, idle workers are woken."""

    def act(held: Sequence[_LockedJob]) -> Steps[tuple[set[int], dict[int, SkipReason]]]:
        done = yield from _run(statement, [each for each in held if not each.is_running], names, **values)
        if members := [each.id for each in held if is_member(each.job) and each.id in done]:
            yield Call("end_group_members", {"ids": members})
        if announces:
            yield from _announce(len(done))
        return done, {}

    return act


def completing(schema: str) -> Act:
    """Return what deletes jobs that are not running, and records them where history keeps them."""

    def act(held: Sequence[_LockedJob]) -> Steps[tuple[set[int], dict[int, SkipReason]]]:
        [[records]] = yield Call("records_ends", {"schema": schema})
        return (yield from on_idle("action_complete", names={"RECORDS": str(bool(records)).lower()})(held))

    return act


def _retry(held: Sequence[_LockedJob]) -> Steps[tuple[set[int], dict[int, SkipReason]]]:
    # A lock of any age keeps a job from running, so a retry that ignored it would not be one.
    free = [each for each in held if each.job.locked_by is None]
    nothing: dict[str, Any] = {
        "run_at": None,
        "delay_seconds": 0.0,
        "priority": None,
        "attempts": None,
        "max_attempts": None,
    }
    ended = [each for each in free if each.job.is_last_attempt]
    waiting = [each for each in free if each.job.last_error is not None and not each.job.is_last_attempt]
    done = yield from _run("action_reschedule", ended, **{**nothing, "attempts": 0})
    done |= yield from _run("action_reschedule", waiting, **nothing)
    yield from _announce(len(done))
    return done, {each.id: SkipReason.NOT_FAILED for each in free if each.id not in done}


def change_by_id(
    ids: Sequence[int], act: Act, *, with_payload: bool, expected: Mapping[int, Job] | None = None
) -> Steps[ActionResult]:
    """Lock jobs, without waiting for other sessions, and act on those that are as `expected`."""
    held = _held((yield Call("lock_expected_jobs", {"ids": list(ids), "with_payload": with_payload})))
    skipped = {each.id: gone for each in held if expected and (gone := _gone(expected[each.id], each))}
    result = yield from _act_on([each for each in held if each.id not in skipped], act, with_jobs=True)
    passed = yield from _passed(sorted(set(ids) - {each.id for each in held}))
    return ActionResult(result.changed, _by_id([*skipped.values(), *result.skipped, *passed]))


def _act_on(held: Sequence[_LockedJob], act: Act, *, with_jobs: bool) -> Steps[ActionResult]:
    """Act on locked jobs; the result has the former state of those that were changed only `with_jobs`."""
    done, reasons = yield from act(held)
    changed = (each.job for each in held if each.id in done)
    return ActionResult(
        tuple(ChangedJob(job.id, job.task, job if with_jobs else None) for job in changed),
        tuple(each.skipped(reasons.get(each.id, SkipReason.LOCKED)) for each in held if each.id not in done),
    )


def _run(
    statement: str, jobs: Sequence[_LockedJob], names: Mapping[str, str] = MappingProxyType({}), **values: Any
) -> Steps[set[int]]:
    found = (yield Call(statement, {"ids": [each.id for each in jobs], **values}, names)) if jobs else ()
    return {row[0] for row in found}


def _announce(count: int) -> Steps[None]:
    if count:
        yield Call("notify_jobs", {"count": count})


def _passed(ids: Sequence[int]) -> Steps[list[SkippedJob]]:
    """Report why rows could not be locked: they are gone, or another session has locked them."""
    found = (yield Call("find_skipped_jobs", {"ids": list(ids)})) if ids else ()
    there = {row[0]: SkippedJob(row[0], row[1], SkipReason.BUSY, row[2]) for row in found}
    return [there.get(each) or SkippedJob(each, None, SkipReason.NOT_FOUND) for each in ids]


def _by_id(skipped: Iterable[SkippedJob]) -> tuple[SkippedJob, ...]:
    return tuple(sorted(skipped, key=lambda each: each.id))


class _Actions(QueueOperations, frozen=True):
    """What all actions share: transactions that wait for no lock for long."""

    def _count(self, selection: Selection) -> tuple[Fragment, SelectionCount]:
        """Count the jobs of a selection, and return it as SQL; its times count from now, and not from later batches."""
        with self._connection() as connection:
            database = resolve(connection, self.schema, selection)
            fragment = selection.sql(database)
            if selection.cannot_match(database):
                return fragment, SelectionCount(jobs=0, highest_id=0, running=0, locked=0, unfailed=0)
            is_running = str(selection.states == {JobState.RUNNING}).lower()
            names = {"SELECTION": fragment.text, "RUNNING": is_running}
            [row] = visible_rows(connection, self.schema, "count_selected_jobs", fragment.values, **names)
            count, highest, running, locked, unfailed = row
        found = SelectionCount(jobs=count, highest_id=highest, running=running, locked=locked, unfailed=unfailed)
        return fragment, found

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._connection() as connection, connection.transaction():
            timeout = milliseconds(self.connections.database.limits.cap_lock_timeout(LOCK_TIMEOUT))
            connection.execute("select set_config('lock_timeout', %s, true)", (timeout,))
            yield connection

    def _in_transaction(self, steps: Steps[T]) -> T:
        with self._transaction() as connection:
            return run_steps(steps, fetch_on(connection, self.schema))


class _JobActions(_Actions, Generic[Result], frozen=True):
    """The actions on jobs; a subclass decides how their batches are delivered."""

    size: int = BATCH

    def _deliver(self, batches: Iterator[ActionResult]) -> Result:
        raise NotImplementedError

    def complete(self, which: Which | None = None, *, expected: Sequence[Job] | None = None) -> Result:
        """Delete jobs as if they had been completed; those that were seen come back in the result with everything."""
        return self._deliver(self._walk(which, expected, completing(self.schema), deletes=True))

    def fail(
        self, which: Which | None = None, reason: str | None = None, *, expected: Sequence[Job] | None = None
    ) -> Result:
        """Fail jobs permanently; `reason` becomes their last error."""
        return self._deliver(self._walk(which, expected, on_idle("action_fail", reason=reason)))

    def reschedule(
        self,
        which: Which | None = None,
        *,
        expected: Sequence[Job] | None = None,
        run_at: datetime | timedelta | None = None,
        priority: int | None = None,
        attempts: int | None = None,
        max_attempts: int | None = None,
    ) -> Result:
        """Change when and how jobs run; None keeps a value, a `timedelta` counts from the database's clock.

        A failed job runs again when `attempts` is set below its `max_attempts`.
        """
        values = reschedule_values(run_at=run_at, priority=priority, attempts=attempts, max_attempts=max_attempts)
        return self._deliver(self._walk(which, expected, on_idle("action_reschedule", announces=True, **values)))

    def retry(self, which: Which | None = None, *, expected: Sequence[Job] | None = None) -> Result:
        """Run failed jobs again now: those that wait for their next attempt, and those that failed permanently.

        The latter get all their attempts again. Idle workers are woken.
        """
        return self._deliver(self._walk(which, expected, _retry))

    # -- inside -----------------------------------------------------------------------------------------------------

    def _walk(
        self, which: Which | None, expected: Sequence[Job] | None, act: Act, *, deletes: bool = False
    ) -> Iterator[ActionResult]:
        if (which is None) == (expected is None):
            raise InvalidInputError("select jobs by a selection, by ids or by expected versions, not by a combination")
        if which is None:
            return self._walk_expected(expected or (), act, deletes=deletes)
        return self._walk_selected(selection_to_change(which), act)

    def _walk_expected(self, expected: Sequence[Job], act: Act, *, deletes: bool) -> Iterator[ActionResult]:
        by_id = {each.id: each for each in expected}
        ids = sorted(by_id)
        for start in range(0, len(ids), self.size):
            some = ids[start : start + self.size]
            yield self._in_transaction(change_by_id(some, act, with_payload=deletes, expected=by_id))

    def _walk_selected(self, selection: Selection, act: Act) -> Iterator[ActionResult]:
        if selection.ids is not None and len(selection.conditions) == 1:
            yield from self._walk_ids(selection.ids, act)
            return
        fragment, found = self._count(selection)
        after = 0
        while after < found.highest_id:
            batch, last = self._one_batch(fragment, act, after=after, through=found.highest_id)
            if last is None:
                return
            yield batch
            after = last

    def _walk_ids(self, ids: Sequence[int], act: Act) -> Iterator[ActionResult]:
        """Go through jobs given by id, and report those that do not exist."""
        for start in range(0, len(ids), self.size):
            some = ids[start : start + self.size]
            fragment = Fragment("jobs.id = any(%(ids)s::bigint[])", {"ids": list(some)})
            batch, _ = self._one_batch(fragment, act, after=0, through=some[-1])
            missing = set(some) - set(batch.ids) - {each.id for each in batch.skipped}
            gone = (SkippedJob(each, None, SkipReason.NOT_FOUND) for each in missing)
            yield ActionResult(batch.changed, _by_id([*batch.skipped, *gone]))

    def _one_batch(self, fragment: Fragment, act: Act, *, after: int, through: int) -> tuple[ActionResult, int | None]:
        values = {**fragment.values, "after": after, "through": through, "limit": self.size, "with_payload": False}

        def steps() -> Steps[tuple[ActionResult, int | None]]:
            held = _held((yield Call("lock_selected_jobs", values, {"SELECTION": fragment.text})))
            result = yield from _act_on(held, act, with_jobs=False)
            return result, held[-1].id if held else None

        return self._in_transaction(steps())


class JobBatches(_JobActions[Iterator[ActionResult]], frozen=True):
    """The actions of `Jobs` as iterators: `complete`, `fail`, `reschedule` and `retry`.

    Each step runs one batch of at most `size` jobs, a transaction of its own. Nothing happens until the iterator is
    asked for its first batch, and no batch is begun after it is dropped.
    """

    def _deliver(self, batches: Iterator[ActionResult]) -> Iterator[ActionResult]:
        return batches


class Jobs(_JobActions[ActionResult], frozen=True):
    """Acts on any number of jobs; `client.jobs` is one. Safe to use from any thread.

    Name the jobs by a selection, as text or as a `Selection`, by their ids, or by their `expected` versions: then only
    those that have not changed since are acted on. Actions run in batches of a thousand jobs, each in a transaction of
    its own, and return one `ActionResult`: if a call raises, the batches before it stay done. `in_batches` yields the
    result of each, in bounded memory.
    """

    def _deliver(self, batches: Iterator[ActionResult]) -> ActionResult:
        return ActionResult.combine(batches)

    def in_batches(self, size: int = BATCH) -> JobBatches:
        """Return the same actions as iterators over batches of at most `size` jobs; raises `InvalidInputError`."""
        if size < 1:
            raise InvalidInputError(f"a batch cannot have {size} jobs; give at least 1")
        return JobBatches(self.connections, self.schema, size)

    def count(self, which: Which = "") -> SelectionCount:
        """Count the jobs of a selection, and change nothing."""
        return self._count(selection_of(which))[1]

    def at_server_time(self, which: Which) -> Selection:
        """Return a selection whose times no longer count from now, so that a count and an action mean the same jobs."""
        selection = selection_of(which)
        if not selection.is_relative:
            return selection
        with self._connection() as connection:
            return selection.at(resolve(connection, self.schema, selection).now)

    def list(
        self,
        which: Which = "",
        *,
        after: PageCursor | str | int | None = None,
        limit: int = 50,
        with_payload: bool = False,
        timeout: timedelta = SEARCH_TIMEOUT,
    ) -> JobPage:
        """Return the jobs of a selection, up to `limit`, and where the next page begins; payloads only if requested.

        They come in order of their ids, waiting ones in the order in which they will run. A search that no index
        serves ends after `timeout`; the page shows how far it came.
        """
        return self._queries.list_jobs(
            selection_of(which), after=after, limit=limit, with_payload=with_payload, timeout=timeout
        )

    def get(self, job_id: int | None = None, *, job_key: str | None = None, conn: object | None = None) -> Job | None:
        """Return one job with its payload, by its id or its key; None when it does not exist.

        `conn` is your own connection, as in `Client.add`: the job is as its transaction sees it.
        """
        if job_id is None and job_key is None:
            return None
        if conn is None:
            return self._queries.get(job_id, job_key=job_key)
        rows = callers_connection(conn, self.schema).fetch(get_call(job_id, job_key))
        return Job(*rows[0][:-1]) if rows else None

    def show(
        self, job_id: int | None = None, *, job_key: str | None = None, with_payload: bool = True
    ) -> JobReport | None:
        """Return everything about one job, by its id or its key, with the reasons for its state; None: no such job.

        Without `with_payload` the payload is not even read, and is an empty text in the answer.
        """
        return self._queries.job(job_id, job_key=job_key, with_payload=with_payload)

    def cancel(
        self,
        which: Which,
        *,
        reason: str | None = None,
        by: str | None = None,
        retry: bool = False,
        timeout: timedelta = CANCEL_TIMEOUT,
    ) -> Sequence[CancelledJob]:
        """Cancel running jobs: their tasks are asked to stop, and their attempts fail.

        They are not retried, unless `retry` leaves them their other attempts. `by` names who cancels, by default the
        database user. Waits until the jobs have ended, at most `timeout`; an unanswered request stays for an hour.
        Jobs given by id or key are reported in any state; of other selections, only running jobs count.
        """
        from gw_core.postgres.road.cancel_requests import CancelRequests

        ids = self._ids_of(selection_to_change(which))
        requests = CancelRequests(self.connections, self.schema)
        return requests.cancel(ids, by=by, reason=reason, retry=retry, timeout=timeout)

    def restore(self, job: Job) -> int | None:
        """Add a deleted job again as it was, under a new id, and return that; None when another job has its key now.

        The workers are notified. Its age starts again.
        """
        if not job.payload_json:
            raise InvalidInputError(f"job {job.id} was read without its payload, so it cannot be restored")
        values = {
            "task": job.task,
            "queue": job.queue_name,
            "payload": job.payload_json,
            "priority": job.priority,
            "run_at": job._run_at,
            "attempts": job.attempts,
            "max_attempts": job.max_attempts,
            "last_error": job.last_error,
            "key": job.job_key,
            "flags": job._flags,
        }
        return self._in_transaction(_restore(values))

    def remove_expected(self, key: str, expected: Job) -> RemovedJob | SkippedJob:
        """As `Client.remove` with a version."""
        return self._in_transaction(_remove_expected(key, expected, self.schema))

    @property
    def _queries(self) -> JobQueries:
        from gw_core.postgres.read.job_queries import JobQueries

        return JobQueries(self.connections, self.schema)

    def _ids_of(self, selection: Selection) -> Sequence[int]:
        """Return the ids of the jobs of a selection; those that it names by id need not exist."""
        if selection.ids is not None and len(selection.conditions) == 1:
            return selection.ids
        wanted = self.at_server_time(selection if selection.is_by_name else selection & Selection.of(state="running"))
        found: list[int] = []
        after: PageCursor | None = None
        while True:
            page = self.list(wanted, after=after, limit=BATCH)
            found += [each.job.id for each in page.jobs]
            if (after := page.after) is None:
                return found


class WorkerActions(_Actions, frozen=True):
    """The locks of workers, and their release."""

    def locks(self, worker_ids: Sequence[str]) -> list[WorkerInfo]:
        """Return how many jobs and queues each of these workers has locked, and the age of its last heartbeat."""
        with self._connection() as connection:
            return self._locks(connection, worker_ids)

    def unlock(self, worker_ids: Sequence[str]) -> list[WorkerInfo]:
        """Release every lock of these workers, notify the others, and return what was released.

        Only for workers that are dead: what a live one still runs may run twice.
        """
        for each in worker_ids:
            if each.startswith(PAUSE_LOCK):
                raise InvalidInputError(f"{each!r} is a paused queue, not a worker; use gw resume")
        with self._transaction() as connection:
            names = {"worker_ids": list(worker_ids)}
            visible_rows(connection, self.schema, "lock_jobs_of_workers", names)
            freed = self._locks(connection, worker_ids)
            visible_rows(connection, self.schema, "force_unlock_workers", names)
            count = sum(each.jobs + each.queues for each in freed)
            run_steps(_announce(count), fetch_on(connection, self.schema))
        return freed

    def _locks(self, connection: Connection, worker_ids: Sequence[str]) -> list[WorkerInfo]:
        workers = merged(list_heartbeats(connection, self.schema), list_worker_locks(connection, self.schema))
        known = {each.id: each for each in workers}
        return [known.get(each) or WorkerInfo(id=each) for each in worker_ids]


def _restore(values: Mapping[str, Any]) -> Steps[int | None]:
    yield Call("restore_names", values)
    restored = yield Call("restore_job", values)
    yield from _announce(len(restored))
    return restored[0][0] if restored else None


def _remove_expected(key: str, expected: Job, schema: str) -> Steps[RemovedJob | SkippedJob]:
    held = _held((yield Call("lock_expected_jobs", {"ids": [expected.id], "with_payload": False})))
    if not held:
        return (yield from _passed([expected.id]))[0]
    job = held[0].job
    if changes := changes_of(expected, job) or ("has another key" if job.job_key != key else None):
        return held[0].skipped(SkipReason.CHANGED, changes)
    removed = yield from removing(key, schema)
    assert removed is not None  # noqa: S101 - its row is locked
    return removed


def _held(found: Rows) -> list[_LockedJob]:
    return [_LockedJob(Job(*row[:-1]), is_running=bool(row[-1])) for row in found]


def _gone(seen: Job, held: _LockedJob) -> SkippedJob | None:
    """Return why a job must not be changed: a worker runs it, or it changed after it was read."""
    changes = changes_of(seen, held.job)
    if held.is_running:
        return held.skipped(SkipReason.LOCKED, changes)
    return held.skipped(SkipReason.CHANGED, changes) if changes else None
