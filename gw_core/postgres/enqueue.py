"""Add and remove jobs: ask the plugins, run the statements, emit the events."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, TypeVar

from gw_core.domain.errors import DeadlockError, InvalidInputError
from gw_core.domain.event_bus import Events
from gw_core.domain.events import JobAdded
from gw_core.domain.group import GROUP_FLAG, JobGroup, OnFailure, WaitingGroup, is_member
from gw_core.domain.job import Job, JobSpec, check_payload_text
from gw_core.domain.plugins import Addition, Interceptors, Skip
from gw_core.postgres.add_calls import (
    Call,
    RemovedJob,
    add_call,
    bulk_calls,
    end_members_call,
    group_call,
    is_one_statement,
)
from gw_core.postgres.callers_connection import CallersConnection, OwnConnection, Rows, callers_connection
from gw_core.postgres.connections import ConnectionSource
from gw_core.postgres.steps import Steps, run_steps

MAX_TRIES: Final = 10
"""How often an add runs that the server aborts because of a deadlock."""

T = TypeVar("T")

AddInline = Callable[[JobSpec, str | None, object | None], Job]
"""Runs a job in place of adding it: the spec, JSON text that replaces its payload, and the caller's connection."""

add_inline: Final[ContextVar[AddInline | None]] = ContextVar("add_inline", default=None)
"""Set by `gw_core.testing.inline`."""


class Admission:
    """What happens to a job before and after the statement that adds it, for threads and event loops alike.

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

    def with_decoded(self, spec: JobSpec, payload: str) -> JobSpec:
        """Return the job with its JSON text decoded, as plugins see it; without plugins nothing is decoded."""
        if self._admits_all:
            return spec
        check_payload_text(payload)
        try:
            return spec.with_payload(json.loads(payload))
        except (ValueError, RecursionError):
            return spec  # the server rejects it

    def adding(self, specs: Sequence[JobSpec]) -> AbstractContextManager[Addition]:
        """Return the context in which admitted jobs are inserted; it can replace them."""
        return self._interceptors.adding(specs) if self._interceptors.around_add else Addition(specs)

    def admit(self, spec: JobSpec) -> JobSpec | Skip:
        """Return the job to add, or why a plugin skips it; raises `JobRejectedError`."""
        if self._admits_all:
            return spec
        admitted = self._interceptors.admit(spec)
        if isinstance(admitted, Skip) or self._clock is None or isinstance(admitted.run_at, datetime):
            return admitted
        return replace(admitted, run_at=self._clock() + (admitted.run_at or timedelta(0)))

    def admit_all(self, specs: Iterable[JobSpec]) -> list[JobSpec]:
        """Return the jobs to add, without those that a plugin skips; raises `JobRejectedError`."""
        if self._admits_all:
            return list(specs)
        return [admitted for admitted in map(self.admit, specs) if not isinstance(admitted, Skip)]

    def admit_group(self, specs: Iterable[JobSpec], then: JobSpec) -> tuple[list[JobSpec], JobSpec]:
        """Return the members to add, and the job that waits for them, which must not be skipped."""
        admitted = self.admit_all(map(_as_member, specs))
        last = self.admit(then)
        if isinstance(last, Skip):
            raise InvalidInputError(f"the job that waits for the group was not added: {last.reason}")
        return admitted, last

    def call(self, spec: JobSpec, admitted: JobSpec, payload: str | None) -> Call:
        """Return the statement for an admitted job; `payload` is JSON text in place of the spec's own payload."""
        if payload is None:
            return add_call(admitted)
        check_payload_text(payload)
        # A plugin may have changed other fields; only a payload that it replaced replaces the text.
        return add_call(admitted, payload if admitted.payload is spec.payload else None)

    def added(self, spec: JobSpec, job_id: int | None = None) -> None:
        """Emit the event for a job whose statement has run; a caller's transaction may still be rolled back."""
        if self._events.wants(JobAdded):
            self._events.emit(JobAdded(spec=spec, job_id=job_id))

    def added_all(self, specs: Sequence[JobSpec]) -> None:
        """Emit the event for each job of a bulk."""
        if self._events.wants(JobAdded):
            for spec in specs:
                self._events.emit(JobAdded(spec=spec, job_id=None))


class Enqueuer:
    """Adds and removes jobs for the client, for a task's context and for front ends. Safe from any thread."""

    def __init__(self, connections: ConnectionSource, schema: str, admission: Admission) -> None:
        self._connections = connections
        self._schema = schema
        self._admission = admission

    def add(self, spec: JobSpec, *, payload: str | None = None, conn: object | None = None) -> Job | Skip:
        """Add one job and return it, or why a plugin skipped it.

        `payload` is JSON text that is stored as it is instead of the spec's own payload. With `conn` the job belongs to
        the caller's transaction.
        """
        callers = self._callers(conn)
        if payload is not None:
            spec = self._admission.with_decoded(spec, payload)
        admitted = self._admission.admit(spec)
        if isinstance(admitted, Skip):
            return admitted
        if (run := add_inline.get()) is not None:
            return run(admitted, payload if admitted.payload is spec.payload else None, conn)
        with self._admission.adding([admitted]) as addition:
            call = self._admission.call(spec, addition.specs[0], payload)
            [row] = self._on(callers, lambda connection: connection.fetch(call))
            job = Job(*row)
            addition.ids = [job.id]
        self._admission.added(addition.specs[0], job.id)
        return job

    def add_many(self, specs: Iterable[JobSpec], *, conn: object | None = None) -> list[int]:
        """Add jobs in statements of some thousands, all or none of them, and return their ids in no promised order."""
        callers = self._callers(conn)
        admitted = self._admission.admit_all(specs)
        if not admitted:
            return []
        if (run := add_inline.get()) is not None:
            return [run(spec, None, conn).id for spec in admitted]
        with self._admission.adding(admitted) as addition:
            specs = addition.specs

            def add(connection: CallersConnection) -> list[int]:
                with nullcontext() if is_one_statement(specs) else connection.atomic():
                    return [row[0] for rows in _fetch_all(connection, bulk_calls(specs)) for row in rows]

            ids = self._on(callers, add)
            addition.ids = ids
        self._admission.added_all(specs)
        return ids

    def add_group(
        self, specs: Iterable[JobSpec], *, then: JobSpec, on_failure: OnFailure, conn: object | None = None
    ) -> JobGroup:
        """Add the members of a group and the job that waits for them, all or none."""
        callers = self._callers(conn)
        admitted, last = self._admission.admit_group(specs, then)
        if not admitted or add_inline.get() is not None:
            ids = self.add_many(admitted, conn=conn)
            self.add(then, conn=conn)
            return JobGroup(None, tuple(ids))
        with self._admission.adding(admitted) as addition:
            specs = addition.specs

            def add(connection: CallersConnection) -> JobGroup:
                with connection.atomic():
                    ids = [row[0] for rows in _fetch_all(connection, bulk_calls(specs)) for row in rows]
                    [row] = connection.fetch(group_call(ids, last, on_failure))
                return JobGroup(row[0], tuple(ids))

            group = self._on(callers, add)
            addition.ids = list(group.job_ids)
        self._admission.added_all(specs)
        return group

    def waiting_groups(self, job_id: int | None, job_key: str | None, limit: int) -> list[WaitingGroup]:
        """Return the groups whose last job waits: those of one member, those of a key, or all."""
        return self._run(lambda: waiting_groups(job_id, job_key, limit), None)

    def cancel_groups(self, ids: Sequence[int], *, conn: object | None) -> tuple[int, ...]:
        """Drop the waiting jobs of groups; return the ids of those that waited."""
        return self._run(lambda: cancelling_groups(ids), conn)

    def remove(self, job_key: str, *, conn: object | None = None) -> RemovedJob | None:
        """Remove the job with this key; one that runs is only kept from running again."""
        return self._run(lambda: removing(job_key), conn)

    def _run(self, steps: Callable[[], Steps[T]], conn: object | None) -> T:
        return self._on(self._callers(conn), lambda connection: run_steps(steps(), connection.fetch))

    def _callers(self, conn: object | None) -> CallersConnection | None:
        return None if conn is None else callers_connection(conn, self._schema)

    def _on(self, callers: CallersConnection | None, act: Callable[[CallersConnection], T]) -> T:
        """Run `act` in the caller's transaction or, repeating it after a deadlock, in one of our own.

        Adds of the same new keys in opposite orders wait for each other, and the server aborts one of them.
        """
        if callers is not None:
            return act(callers)
        for tries in range(1, MAX_TRIES + 1):
            try:
                with self._connections.connection() as connection:
                    return act(OwnConnection(connection, self._schema))
            except DeadlockError:
                if tries == MAX_TRIES:
                    raise
                time.sleep(random.uniform(0.01, 0.05) * tries)
        raise AssertionError  # the last try has returned or raised


def removing(job_key: str) -> Steps[RemovedJob | None]:
    """Remove the job with this key, and return it; None: there is none."""
    rows = yield Call("remove_job", {"job_key": job_key})
    removed = RemovedJob(Job(*rows[0])) if rows else None
    if removed is not None and is_member(removed.job):
        yield end_members_call([removed.job.id])
    return removed


def waiting_groups(job_id: int | None, job_key: str | None, limit: int) -> Steps[list[WaitingGroup]]:
    """Return the groups whose last job waits: those of one member, those of a key, or all."""
    rows = yield Call("list_waiting_groups", {"job_id": job_id, "job_key": job_key, "limit": limit})
    return [WaitingGroup(number, task, key, OnFailure(policy), *rest) for number, task, key, policy, *rest in rows]


def cancelling_groups(ids: Sequence[int]) -> Steps[tuple[int, ...]]:
    """Drop the waiting jobs of groups, and return the ids of those that waited."""
    rows = yield Call("cancel_groups", {"ids": list(ids)})
    return tuple(row[0] for row in rows)


def _as_member(spec: JobSpec) -> JobSpec:
    """Return the job as a member of a group."""
    return spec if GROUP_FLAG in spec.flags else replace(spec, flags=(*spec.flags, GROUP_FLAG))


def _fetch_all(connection: CallersConnection, calls: Iterable[Call]) -> Iterable[Rows]:
    """Run statements and return the rows of each; the caller's connection gets one at a time, in its own mode."""
    return connection.fetch_all(calls) if isinstance(connection, OwnConnection) else map(connection.fetch, calls)
