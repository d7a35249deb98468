"""Bulk actions on jobs, and releasing locks: the statements of an operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from gw_core.domain.errors import InvalidInputError, LockTimeoutError, NotRecordedError
from gw_core.domain.job.group import is_member
from gw_core.domain.job.job import Job, JobSpec, check_count
from gw_core.domain.job.job_changes import changes_of
from gw_core.domain.job.job_state import JobState
from gw_core.domain.reports.lock_waits import BackendSession
from gw_core.domain.rules.pause import PAUSE_LOCK
from gw_core.domain.rules.sweep_rules import WorkerInfo, merged
from gw_core.postgres.connection.callers_connection import Rows
from gw_core.postgres.connection.row_mapping import heartbeat
from gw_core.postgres.connection.statement_steps import Operation, Steps, Unit
from gw_core.postgres.read.selection_names import resolved, values_of
from gw_core.postgres.road.action_records import check_by, recording
from gw_core.postgres.road.add_calls import EXPIRES, Call, RemovedJob, end_members_call, run_at_or_delay
from gw_core.postgres.road.enqueue import removing
from gw_core.postgres.road.worker_store import lock_holder
from gw_core.postgres.schema.schema_state import TABLES_STEP, checked
from gw_core.selection.parser import Which, selection_to_change
from gw_core.selection.selection import Fragment, Selection

T = TypeVar("T")

BATCH: Final = 1_000
"""Jobs in one transaction: few enough that a worker waiting for one of the rows does not notice."""

LOCK_TIMEOUT: Final = timedelta(seconds=10)
"""How long a batch waits for a row that another session has locked."""


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
    """What a selection means at the server's current time; false when it has no jobs.

    Example: docs/api/parts.md
    """

    jobs: int
    highest_id: int
    running: int
    """Jobs that a worker runs; they will be skipped."""
    locked: int
    """Jobs with any lock, also one older than four hours."""
    unfailed: int
    """Jobs that wait for their first attempt; `retry` skips them."""

    def __bool__(self) -> bool:
        return self.jobs > 0


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
    """The result of an action: the jobs it changed, and the jobs it skipped, with the reason.

    Example: docs/api/parts.md
    """

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

    def act(locked: Sequence[_LockedJob]) -> Steps[tuple[set[int], dict[int, SkipReason]]]:
        done = yield from _run(statement, [each for each in locked if not each.is_running], names, **values)
        if members := [each.id for each in locked if is_member(each.job) and each.id in done]:
            yield end_members_call(members)
        if announces:
            yield from _announce(len(done))
        return done, {}

    return act


def completing(schema: str) -> Act:
    """Return what deletes jobs that are not running, and records them where history keeps them."""

    def act(locked: Sequence[_LockedJob]) -> Steps[tuple[set[int], dict[int, SkipReason]]]:
        [[records]] = yield Call("records_ends", {"schema": schema})
        return (yield from on_idle("action_complete", names={"RECORDS": str(bool(records)).lower()})(locked))

    return act


def recorded(act: Act, action: str, by: str | None, schema: str, **details: Any) -> Act:
    """Return what acts, and records the action if `by` names who does it. Raises `InvalidInputError`."""
    check_by(by)
    if by is None:
        return act

    def act_and_record(locked: Sequence[_LockedJob]) -> Steps[tuple[set[int], dict[int, SkipReason]]]:
        done, reasons = yield from act(locked)
        targets = (f"task:{each.job.task}" for each in locked if each.id in done)
        yield from recording(action, by, schema, job_ids=done, targets=targets, **details)
        return done, reasons

    return act_and_record


def retrying(locked: Sequence[_LockedJob]) -> Steps[tuple[set[int], dict[int, SkipReason]]]:
    # A lock of any age keeps a job from running, so a retry that ignored it would not be one.
    free = [each for each in locked if each.job.locked_by is None]
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
    locked = _locked_jobs((yield Call("lock_expected_jobs", {"ids": list(ids), "with_payload": with_payload})))
    skipped = {each.id: change for each in locked if expected and (change := _changed_since(expected[each.id], each))}
    result = yield from _act_on([each for each in locked if each.id not in skipped], act, with_jobs=True)
    passed = yield from _passed(sorted(set(ids) - {each.id for each in locked}))
    return ActionResult(result.changed, _by_id([*skipped.values(), *result.skipped, *passed]))


def _act_on(locked: Sequence[_LockedJob], act: Act, *, with_jobs: bool) -> Steps[ActionResult]:
    """Act on locked jobs; the result has the former state of those that were changed only `with_jobs`."""
    done, reasons = yield from act(locked)
    changed = (each.job for each in locked if each.id in done)
    return ActionResult(
        tuple(ChangedJob(job.id, job.task, job if with_jobs else None) for job in changed),
        tuple(each.skipped(reasons.get(each.id, SkipReason.LOCKED)) for each in locked if each.id not in done),
    )


def _run(
    statement: str, jobs: Sequence[_LockedJob], names: Mapping[str, str] = MappingProxyType({}), **values: Any
) -> Steps[set[int]]:
    waiting = [each.id for each in jobs if each.job._run_at == inf] if statement == "action_reschedule" else []
    others = [each.id for each in jobs if each.id not in set(waiting)] if waiting else [each.id for each in jobs]
    found = list((yield Call(statement, {"ids": others, **values}, names)) if others else ())
    if waiting:
        found += yield Call("action_reschedule_waiting", {"ids": waiting, **values})
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


# -- batches ---------------------------------------------------------------------------------------------------------


class Batches:
    """The batches of one action. `following` is an operation on the next one, and returns None behind the last."""

    def following(self) -> Operation[ActionResult | None]:
        """Act on the next batch."""
        raise NotImplementedError

    def combined(self) -> Operation[ActionResult]:
        """Act on all of them."""
        results: list[ActionResult] = []
        while (result := (yield from self.following())) is not None:
            results.append(result)
        return ActionResult.combine(results)


class _GivenJobs(Batches):
    """Batches of jobs whose ids are known."""

    def __init__(self, ids: Sequence[int], size: int, act: Callable[[Sequence[int]], Steps[ActionResult]]) -> None:
        self._parts = iter([ids[start : start + size] for start in range(0, len(ids), size)])
        self._act = act

    def following(self) -> Operation[ActionResult | None]:
        part = next(self._parts, None)
        if part is None:
            return None
        result: ActionResult = yield _batch(partial(self._act, part))
        return result


class _SelectedJobs(Batches):
    """Batches of the jobs that match a selection when the first one begins, in order of their ids."""

    def __init__(self, selection: Selection, size: int, act: Act, schema: str) -> None:
        self._selection = selection
        self._size = size
        self._act = act
        self._schema = schema
        self._place: tuple[Fragment, int, int] | None = None
        """The jobs as SQL, the id of the last one done, and the highest one."""

    def following(self) -> Operation[ActionResult | None]:
        if self._place is None:
            fragment, found = yield from _counting(self._selection, self._schema)
            self._place = fragment, 0, found.highest_id
        fragment, after, through = self._place
        if after >= through:
            return None
        steps = partial(_one_batch, fragment, self._act, after=after, through=through, size=self._size)
        result, last = yield _batch(steps)
        self._place = fragment, through if last is None else last, through
        return None if last is None else result


def batches(
    which: Which | None, expected: Sequence[Job] | None, act: Act, schema: str, *, size: int, deletes: bool = False
) -> Batches:
    """Return the batches of an action on jobs that are selected, named by their ids, or as they were read.

    Jobs that are deleted come back in the result with their payloads, if they were given as read.
    """
    if (which is None) == (expected is None):
        raise InvalidInputError("select jobs by a selection, by ids or by expected versions, not by a combination")
    if which is None:
        by_id = {each.id: each for each in expected or ()}
        return _GivenJobs(sorted(by_id), size, partial(change_by_id, act=act, with_payload=deletes, expected=by_id))
    selection = selection_to_change(which)
    if selection.ids is not None and len(selection.conditions) == 1:
        return _GivenJobs(selection.ids, size, partial(_change_named, act=act))
    return _SelectedJobs(selection, size, act, schema)


def counting(selection: Selection, schema: str) -> Operation[SelectionCount]:
    """Count the jobs of a selection."""
    return (yield from _counting(selection, schema))[1]


def counting_tasks(selection: Selection, schema: str, most: int) -> Operation[list[tuple[str, int]]]:
    """Return the tasks of the jobs of a selection with their numbers, the largest first."""
    [names] = yield Call("selection_names", values_of(selection, schema))
    fragment = selection.sql(resolved(names))
    rows = yield Call("count_selected_by_task", {**fragment.values, "most": most}, {"SELECTION": fragment.text})
    return [(task, count) for task, count in rows]


def _counting(selection: Selection, schema: str) -> Operation[tuple[Fragment, SelectionCount]]:
    """Count the jobs of a selection, and return it as SQL; its times count from now, and not from later batches."""
    [names] = yield Call("selection_names", values_of(selection, schema))
    database = resolved(names)
    fragment = selection.sql(database)
    if selection.cannot_match(database):
        return fragment, SelectionCount(jobs=0, highest_id=0, running=0, locked=0, unfailed=0)
    is_running = str(selection.states == {JobState.RUNNING}).lower()
    variables = {"SELECTION": fragment.text, "RUNNING": is_running}
    [(count, highest, running, locked, unfailed)] = yield Call("count_selected_jobs", fragment.values, variables)
    found = SelectionCount(jobs=count, highest_id=highest, running=running, locked=locked, unfailed=unfailed)
    return fragment, found


def _batch(steps: Callable[[], Steps[T]]) -> Unit:
    return Unit(steps, is_atomic=True, lock_timeout=LOCK_TIMEOUT)


def _one_batch(
    fragment: Fragment, act: Act, *, after: int, through: int, size: int
) -> Steps[tuple[ActionResult, int | None]]:
    values = {**fragment.values, "after": after, "through": through, "limit": size, "with_payload": False}
    locked = _locked_jobs((yield Call("lock_selected_jobs", values, {"SELECTION": fragment.text})))
    result = yield from _act_on(locked, act, with_jobs=False)
    return result, locked[-1].id if locked else None


def _change_named(ids: Sequence[int], *, act: Act) -> Steps[ActionResult]:
    """Act on jobs given by id, and report those that do not exist."""
    fragment = Fragment("jobs.id = any(%(ids)s::bigint[])", {"ids": list(ids)})
    result, _ = yield from _one_batch(fragment, act, after=0, through=max(ids), size=len(ids))
    missing = set(ids) - set(result.ids) - {each.id for each in result.skipped}
    gone = (SkippedJob(each, None, SkipReason.NOT_FOUND) for each in missing)
    return ActionResult(result.changed, _by_id([*result.skipped, *gone]))


# -- the locks of workers --------------------------------------------------------------------------------------------


def locks_of(worker_ids: Sequence[str], schema: str) -> Steps[list[WorkerInfo]]:
    """Return how many jobs and queues each of these workers has locked, and the age of its last heartbeat."""
    state = yield from checked(schema)
    found = (yield Call("heartbeat_list", {"limit": None})) if TABLES_STEP in state.own_present else ()
    holders = yield Call("list_worker_locks", {"resilient_flags": []})
    known = {each.id: each for each in merged([heartbeat(row) for row in found], [lock_holder(row) for row in holders])}
    return [known.get(each) or WorkerInfo(id=each) for each in worker_ids]


def unlocking(worker_ids: Sequence[str], schema: str, by: str | None) -> Operation[list[WorkerInfo]]:
    """Release every lock of these workers, notify the others, and return what was released."""
    check_by(by)
    for each in worker_ids:
        if each.startswith(PAUSE_LOCK):
            raise InvalidInputError(f"{each!r} is a paused queue, not a worker; use gw resume")
    freed: list[WorkerInfo] = yield _batch(partial(_unlocking, worker_ids, schema, by))
    return freed


def _unlocking(worker_ids: Sequence[str], schema: str, by: str | None) -> Steps[list[WorkerInfo]]:
    names = {"worker_ids": list(worker_ids)}
    yield Call("lock_jobs_of_workers", names)
    freed = yield from locks_of(worker_ids, schema)
    yield Call("force_unlock_workers", names)
    yield from recording("unlock", by, schema, targets=[each.id for each in freed if each.jobs + each.queues])
    yield from _announce(sum(each.jobs + each.queues for each in freed))
    return freed


class _SessionGoneError(Exception):
    """Takes back the record of an action that changed nothing."""


def ending_session(session: BackendSession, schema: str, by: str | None) -> Operation[bool]:
    """End a session of the database, if its number still belongs to it; return whether it did.

    A locked table delays the record. The session may hold that lock, so it is ended before the record is tried again.
    """
    check_by(by)
    ending = partial(_end_session, session)
    record = partial(_record_end, session, schema, by)
    try:
        # The record comes first: no rollback brings a session back.
        yield _batch(partial(_in_turn, record, ending))
    except _SessionGoneError:
        return False
    except LockTimeoutError:
        try:
            yield _batch(ending)
        except _SessionGoneError:
            return False
        try:
            yield _batch(record)
        except LockTimeoutError as error:
            raise NotRecordedError(f"session {session.pid} was ended, but this is not recorded: {error}") from error
    return True


def _in_turn(*parts: Callable[[], Steps[None]]) -> Steps[None]:
    for part in parts:
        yield from part()


def _record_end(session: BackendSession, schema: str, by: str | None) -> Steps[None]:
    yield from recording(
        "end_session",
        by,
        schema,
        targets=[f"session:{session.pid}"],
        role=session.user,
        application=session.application,
        statement=session.statement,
    )


def _end_session(session: BackendSession) -> Steps[None]:
    values = {"pid": session.pid, "role": session.user, "application": session.application}
    ended = yield Call("terminate_session", values)
    if not ended or not ended[0][0]:
        raise _SessionGoneError


# -- one job ---------------------------------------------------------------------------------------------------------


def restoring(job: Job, schema: str, by: str | None) -> Operation[int | None]:
    """Add a deleted job again as it was, and return its new id; None when another job has its key now."""
    check_by(by)
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
    restored: int | None = yield _batch(partial(_restore_once, values, job, schema, by))
    return restored


def removing_expected(key: str, expected: Job, schema: str, by: str | None) -> Operation[RemovedJob | SkippedJob]:
    """Remove the job with this key if it is still as it was read."""
    check_by(by)
    removed: RemovedJob | SkippedJob = yield _batch(partial(_remove_expected, key, expected, schema, by))
    return removed


def _restore_once(values: Mapping[str, Any], job: Job, schema: str, by: str | None) -> Steps[int | None]:
    """Restore a job, or return the one that was added for it: the answer to that may have been lost."""
    [[is_noted]] = yield Call("has_table", {"schema": schema, "table": "_private_gw_unique"})
    if not is_noted:
        return (yield from _restore(values, job, schema, by))
    # Ids begin again after the table was emptied.
    once = {"once": f"restored {job.id} of {job._created_at!r}"}
    [[earlier]] = yield Call("restore_once", once)
    if earlier:
        return int(earlier)
    restored = yield from _restore(values, job, schema, by)
    if restored is not None:
        yield Call("restore_note", {**once, "id": restored})
    return restored


def _restore(values: Mapping[str, Any], job: Job, schema: str, by: str | None) -> Steps[int | None]:
    yield Call("restore_names", values)
    restored = yield Call("restore_job", values, {} if job.expires_at is None else EXPIRES)
    ids = [row[0] for row in restored]
    yield from recording(
        "restore", by, schema, job_ids=ids, targets=[f"task:{job.task}" for _ in ids], former_id=job.id
    )
    yield from _announce(len(restored))
    return restored[0][0] if restored else None


def _remove_expected(key: str, expected: Job, schema: str, by: str | None) -> Steps[RemovedJob | SkippedJob]:
    locked = _locked_jobs((yield Call("lock_expected_jobs", {"ids": [expected.id], "with_payload": False})))
    if not locked:
        return (yield from _passed([expected.id]))[0]
    job = locked[0].job
    if changes := changes_of(expected, job) or ("has another key" if job.job_key != key else None):
        return locked[0].skipped(SkipReason.CHANGED, changes)
    removed = yield from removing(key, schema, by)
    assert removed is not None  # noqa: S101 - its row is locked
    return removed


def _locked_jobs(found: Rows) -> list[_LockedJob]:
    return [_LockedJob(Job(*row[:-1]), is_running=bool(row[-1])) for row in found]


def _changed_since(expected: Job, job: _LockedJob) -> SkippedJob | None:
    """Return why a job must not be changed: a worker runs it, or it changed after it was read."""
    changes = changes_of(expected, job.job)
    if job.is_running:
        return job.skipped(SkipReason.LOCKED, changes)
    return job.skipped(SkipReason.CHANGED, changes) if changes else None
