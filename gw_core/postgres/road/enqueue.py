"""Add and remove jobs: ask the plugins, run the statements, emit the events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import structs

from gw_core.domain.errors import InvalidInputError, JobSkipped
from gw_core.domain.job.cancellation import message_of
from gw_core.domain.job.group import GROUP_FLAG, JobGroup, WaitingGroup, is_member, waiting_of
from gw_core.domain.job.job import (
    Job,
    JobSpec,
    OnFailure,
    check_one_named,
    check_payload_text,
    encode_payload,
    job_specs,
    named,
)
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import JobAdded
from gw_core.domain.rules.plugins import Addition, Interceptors, Skip
from gw_core.postgres.connection.connections import QueueOperations
from gw_core.postgres.connection.statement_steps import BulkSteps, Operation, Steps, Unit, carry_out
from gw_core.postgres.road.action_records import check_by, recording
from gw_core.postgres.road.add_calls import (
    Call,
    RemovedJob,
    add_call,
    bulk_calls,
    end_members_call,
    get_call,
    is_one_statement,
    removed_call,
)

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

T = TypeVar("T")

AddInline = Callable[[JobSpec, str | None, object | None], Job]
"""Runs a job in place of adding it: the spec, JSON text that replaces its payload, and the caller's connection."""

Rows = Sequence[Sequence[Any]]
"""The rows of the jobs that were added; the first column is the id."""

add_inline: Final[ContextVar[AddInline | None]] = ContextVar("add_inline", default=None)
"""Set by `gw_core.testing.inline`."""


inline_loop: ContextVar[AbstractEventLoop | None] = ContextVar("gw_inline_loop", default=None)
"""The event loop of the client that adds, for jobs that run where they are added."""


class AddOperations:
    """Adds jobs, for threads and event loops alike: asks the plugins, yields the statements, emits the events.

    `clock` returns the time for jobs without a `run_at`, or with one counted from now, when a worker uses its own
    clock; otherwise the database's clock counts.
    """

    def __init__(
        self, interceptors: Interceptors, events: Events, *, clock: Callable[[], datetime] | None = None
    ) -> None:
        self._interceptors = interceptors
        self._events = events
        self._clock = clock
        self._admits_all = not interceptors.see_payloads and clock is None

    def add(self, spec: JobSpec, payload: str | None = None) -> Operation[Job | Skip]:
        """Add one job and return it, or why a plugin skipped it; `payload` is JSON text in place of the spec's own."""
        spec = self._as_plugins_see(spec, payload)
        admitted = self._admit(spec)
        if isinstance(admitted, Skip):
            return admitted
        if (run := add_inline.get()) is not None:
            ran: Job = yield partial(run, admitted, payload if admitted.payload is spec.payload else None)
            return ran
        with self._adding([admitted]) as addition:
            [row] = yield _call(spec, addition.specs[0], payload)
            is_unique = addition.specs[0].unique_for is not None
            job = Job(*(row[:-2] if is_unique else row))
            addition.ids = [job.id]
        if not is_unique or row[-1]:
            self._added(addition.specs, job.id)
        return job

    def add_or_raise(self, spec: JobSpec, payload: str | None = None) -> Operation[Job]:
        """As `add`; raises `JobSkipped` if a plugin skipped the job."""
        added = yield from self.add(spec, payload)
        if isinstance(added, Skip):
            raise JobSkipped(added.reason)
        return added

    def add_many(self, specs: Iterable[JobSpec]) -> Operation[list[int]]:
        """Add jobs, all or none of them, and return their ids in no promised order."""
        admitted = self._admit_all(specs)
        if not admitted:
            return []
        if (run := add_inline.get()) is not None:
            ran: list[int] = []
            for spec in admitted:
                job = yield partial(run, spec, None)
                ran.append(job.id)
            return ran
        with self._adding(admitted) as addition:
            specs = addition.specs
            rows: Rows = yield Unit(partial(_inserting, specs), is_atomic=not is_one_statement(specs))
            addition.ids = ids = _ids(rows)
        self._added(_new(specs, rows))
        return ids

    def add_group(self, specs: Iterable[JobSpec], then: JobSpec, on_failure: OnFailure | str) -> Operation[JobGroup]:
        """Add the members of a group and the job that waits for them, which must not be skipped."""
        policy = named(OnFailure, on_failure, "a value of on_failure")
        admitted = self._admit_all(map(_as_member, job_specs(specs)))
        last = self._admit(*map(self._as_plugins_see, job_specs([then])))
        if isinstance(last, Skip):
            raise InvalidInputError(f"the job that waits for the group was not added: {last.reason}")
        if last.after is not None:
            raise InvalidInputError("the last job of a group waits for its members; leave out after")
        if not admitted or add_inline.get() is not None:
            ids = yield from self.add_many(admitted)
            added = yield from self.add_or_raise(then)
            return JobGroup(added.id, tuple(ids))
        with self._adding(admitted) as addition:
            specs = addition.specs
            [waiting], *rows = yield Unit(partial(_inserting_group, specs, last, policy), is_atomic=True)
            addition.ids = _ids(rows)
        self._added(_new(specs, rows))
        return JobGroup(waiting, tuple(addition.ids))

    def _as_plugins_see(self, spec: JobSpec, payload: str | None = None) -> JobSpec:
        """Return the job with plain JSON values as its payload; without plugins nothing is converted."""
        if not self._interceptors.see_payloads or (payload is None and spec.payload is None):
            return spec
        if payload is not None:
            check_payload_text(payload)
        try:
            plain = json.loads(encode_payload(spec.payload) if payload is None else payload)
        except (ValueError, RecursionError):
            return spec  # the insert, which plugins see, rejects it
        return spec if plain is None else spec.with_payload(plain)

    def _adding(self, specs: Sequence[JobSpec]) -> AbstractContextManager[Addition]:
        """Return the context in which admitted jobs are inserted; it can replace them."""
        return self._interceptors.adding(specs) if self._interceptors.around_add else Addition(specs)

    def _admit(self, spec: JobSpec) -> JobSpec | Skip:
        """Return the job to add, or why a plugin skips it; raises `JobRejectedError`."""
        if self._admits_all:
            return spec
        admitted = self._interceptors.admit(spec)
        if isinstance(admitted, Skip) or self._clock is None or isinstance(admitted.run_at, datetime):
            return admitted
        return replace(admitted, run_at=self._clock() + (admitted.run_at or timedelta(0)))

    def _admit_all(self, specs: Iterable[JobSpec]) -> list[JobSpec]:
        """Return the jobs to add, without those that a plugin skips; raises `JobRejectedError`."""
        listed = job_specs(specs)
        if self._admits_all:
            return listed
        return [
            admitted
            for admitted in map(self._admit, map(self._as_plugins_see, listed))
            if not isinstance(admitted, Skip)
        ]

    def _added(self, specs: Sequence[JobSpec], job_id: int | None = None) -> None:
        """Emit the events for jobs whose statement has run; a caller's transaction may still be rolled back."""
        if self._events.wants(JobAdded):
            for spec in specs:
                self._events.emit(JobAdded(spec=spec, job_id=job_id))


def _call(spec: JobSpec, admitted: JobSpec, payload: str | None) -> Call:
    """Return the statement for an admitted job; `payload` is JSON text in place of the spec's own payload."""
    if payload is None:
        return add_call(admitted)
    check_payload_text(payload)
    # A plugin may have changed other fields; only a payload that it replaced replaces the text.
    return add_call(admitted, payload if admitted.payload is spec.payload else None)


def _inserting(specs: Sequence[JobSpec]) -> BulkSteps[Rows]:
    return (yield bulk_calls(specs))


def _inserting_group(specs: Sequence[JobSpec], last: JobSpec, on_failure: OnFailure) -> BulkSteps[Rows]:
    rows = yield from _inserting(specs)
    [waiting] = yield add_call(last._waiting_for(_ids(rows), on_failure))
    return [waiting[:1], *rows]


def _ids(rows: Rows) -> list[int]:
    return [row[0] for row in rows]


def _new(specs: Sequence[JobSpec], rows: Rows) -> Sequence[JobSpec]:
    """Return the jobs that were added, without those that are unique for a time and were there already."""
    if all(spec.unique_for is None for spec in specs):
        return specs
    # Only their rows end with a boolean, and they are in the order of their jobs.
    are_new = iter([row[-1] for row in rows if isinstance(row[-1], bool)])
    return [spec for spec in specs if spec.unique_for is None or next(are_new)]


class Enqueuer(QueueOperations, frozen=True):
    """Adds jobs for the context of a task; with `conn` in the caller's transaction. Safe from any thread."""

    adds: AddOperations

    def add(self, spec: JobSpec, *, conn: object | None = None) -> Job:
        """Add one job and return it; raises `JobSkipped`."""
        return self._carry_out(self.adds.add_or_raise(spec), conn)

    def try_add(self, spec: JobSpec, *, conn: object | None = None) -> Job | Skip:
        """Add one job and return it, or why a plugin skipped it."""
        return self._carry_out(self.adds.add(spec), conn)

    def add_many(self, specs: Iterable[JobSpec], *, conn: object | None = None) -> list[int]:
        """Add jobs in statements of some thousands, all or none of them, and return their ids in no promised order."""
        return self._carry_out(self.adds.add_many(specs), conn)

    def _carry_out(self, operation: Operation[T], conn: object | None) -> T:
        return carry_out(operation, self.connections, self.schema, conn)


def getting(job_id: int | None, job_key: str | None, schema: str) -> Operation[Job | None]:
    """Return one job with its payload, by its id or its key; None: there is no such job."""
    check_one_named(job_id, job_key)
    rows = yield get_call(job_id, job_key)
    if not rows:
        return None
    job = Job(*rows[0][:-1])
    return job if job._locked_at is None else (yield from _with_start(job, schema))


def _with_start(job: Job, schema: str) -> Steps[Job]:
    """Return a running job with the start of its attempt, which differs from its lock once that was renewed."""
    [[objects]] = yield Call("schema_objects", {"schema": schema})
    if "_private_gw_renewed_locks" not in objects:
        return job
    for _, lock, start in (yield Call("renewed_lock_list", {"ids": [job.id]})):
        if lock == job._locked_at:
            return structs.replace(job, _started_at=start)
    return job


def removing_by_key(job_key: str, schema: str, by: str | None) -> Operation[RemovedJob | None]:
    """Remove the job with this key, and return it; None: there is none. `by` is who is recorded as having done it."""
    check_by(by)
    if by is None:
        return (yield from removing(job_key, schema, None))
    removed: RemovedJob | None = yield Unit(partial(removing, job_key, schema, by), is_atomic=True)
    return removed


def removing(job_key: str, schema: str, by: str | None) -> Steps[RemovedJob | None]:
    """Remove the job with this key, and return it; None: there is none.

    A job with a failed attempt is recorded where history keeps it, and so is one that others wait for, as they read its
    result. Others are usually removed by programs, in numbers.
    """
    rows = yield Call("remove_job", {"job_key": job_key})
    removed = RemovedJob(Job(*rows[0])) if rows else None
    has_waiters = removed is not None and is_member(removed.job)
    if removed is not None and removed.was_deleted and (removed.job.last_error is not None or has_waiters):
        [[records]] = yield Call("records_ends", {"schema": schema})
        if records:
            yield removed_call(removed.job)
    if removed is not None and has_waiters:
        yield end_members_call([removed.job.id])
    if removed is not None:
        yield from recording("remove", by, schema, job_ids=[removed.job.id], targets=[f"task:{removed.job.task}"])
    return removed


def waiting_groups(job_id: int | None, job_key: str | None, limit: int) -> Operation[list[WaitingGroup]]:
    """Return the jobs that wait for others: one, and those that wait for it; the one of a key; or all."""
    if limit < 1:
        raise InvalidInputError(f"a list of {limit} jobs is empty; ask for at least 1")
    call = Call("list_waiting", {"job_id": job_id, "job_key": job_key, "limit": limit})
    rows = yield call
    return [waiting_of(row) for row in rows]


def cancelling_groups(ids: Sequence[int], schema: str, by: str | None) -> Operation[tuple[int, ...]]:
    """Drop waiting jobs with those that wait for them, and return the ids of those that waited."""
    check_by(by)
    cancelled: tuple[int, ...] = yield Unit(partial(_cancel_groups, ids, schema, by), is_atomic=True)
    return cancelled


def _cancel_groups(ids: Sequence[int], schema: str, by: str | None) -> Steps[tuple[int, ...]]:
    reason = "cancelled" if by is None else message_of(by, None)
    rows = yield Call("cancel_waiting", {"ids": list(ids), "reason": reason})
    cancelled = tuple(row[0] for row in rows)
    yield from recording("cancel", by, schema, job_ids=cancelled)
    return cancelled


def _as_member(spec: JobSpec) -> JobSpec:
    """Return the job as a member of a group."""
    return spec if GROUP_FLAG in spec.flags else spec._with(flags=(*spec.flags, GROUP_FLAG))
