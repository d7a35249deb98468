"""Add jobs: past the interceptors, into the store, and tell who listens."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, TypeVar

from gw_core.domain.errors import DeadlockError
from gw_core.domain.events import Events, JobAdded
from gw_core.domain.job import Job, JobSpec, check_payload_text
from gw_core.domain.plugins import Interceptors
from gw_core.postgres.callers_connection import BorrowedConnection, borrowed
from gw_core.postgres.connections import ConnectionSource
from gw_core.postgres.database import Connection
from gw_core.postgres.job_store import JobStore
from gw_core.postgres.pipelining import overlapped

BULK: Final = 5_000
"""Jobs in one statement of a bulk: past this a statement gains nothing and only grows in memory."""

FIRST_BATCH: Final = 1_000
"""Jobs in the first statement of a longer bulk: until it is encoded the server has nothing to do."""

MAX_TRIES: Final = 10
"""How often an add is tried that the server undoes because of a deadlock."""

T = TypeVar("T")


def _in_parts(store: JobStore, specs: Sequence[JobSpec]) -> Iterator[list[int]]:
    """Add jobs part by part; while the server works on one, the next is encoded."""
    ends = [*range(FIRST_BATCH, len(specs), BULK), len(specs)]
    parts = (specs[start:end] for start, end in pairwise([0, *ends]))
    calls = (call for part in parts for call in store.bulk_calls(part))
    return overlapped(calls, store.add_bulk, cancel=store.connection.cancel)


class Enqueuer:
    """The one way into the queue for the client, for a task's context and for front ends. Safe from any thread.

    `clock` is asked for the moment of jobs without a `run_at`, or with one counted from now, when a worker goes by its
    own clock; otherwise the database's counts.
    """

    def __init__(
        self,
        connections: ConnectionSource,
        schema: str,
        interceptors: Interceptors,
        events: Events,
        *,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._connections = connections
        self._schema = schema
        self._interceptors = interceptors
        self._events = events
        self._clock = clock

    def add(self, spec: JobSpec, *, payload: str | None = None, conn: BorrowedConnection | None = None) -> Job | None:
        """Add one job and return it, or None when a plugin skipped it.

        `payload` is JSON text that is stored as it is instead of the spec's own payload. With `conn` the job belongs to
        the caller's transaction.
        """
        callers = None if conn is None else borrowed(conn)
        admitted = self._admit(spec)
        if admitted is None:
            return None
        if payload is not None:
            check_payload_text(payload)
        # A plugin may have changed other fields; only a payload it put in place of ours replaces the text.
        text = payload if admitted.payload is spec.payload else None
        job = self._stored(callers, lambda store: store.add(admitted, text))
        if self._events.wants(JobAdded):
            self._events.emit(JobAdded(spec=admitted, job_id=job.id))
        return job

    def add_many(self, specs: Iterable[JobSpec], *, conn: BorrowedConnection | None = None) -> list[int]:
        """Add jobs in statements of some thousands, all or none of them, and return their ids in no promised order."""
        callers = None if conn is None else borrowed(conn)
        admitted = [kept for kept in map(self._admit, specs) if kept is not None]
        if not admitted:
            return []
        # Keys may part a bulk into several statements, as its size does.
        is_parted = len(admitted) > BULK or any(spec.job_key is not None for spec in admitted)

        def add(store: JobStore) -> list[int]:
            with store.transaction(needed=is_parted):
                if len(admitted) <= BULK:
                    return store.add_many(admitted)
                return [number for ids in _in_parts(store, admitted) for number in ids]

        ids = self._stored(callers, add)
        if self._events.wants(JobAdded):
            for spec in admitted:
                self._events.emit(JobAdded(spec=spec, job_id=None))
        return ids

    def _admit(self, spec: JobSpec) -> JobSpec | None:
        admitted = self._interceptors.admit(spec)
        if admitted is None or self._clock is None or isinstance(admitted.run_at, datetime):
            return admitted
        return replace(admitted, run_at=self._clock() + (admitted.run_at or timedelta(0)))

    def _stored(self, callers: Connection | None, add: Callable[[JobStore], T]) -> T:
        """Run `add`, in the caller's transaction or, repeating it after a deadlock, in one of our own.

        Adds of the same new keys in opposite orders wait for each other, and the server undoes one of them.
        """
        if callers is not None:
            return add(JobStore(callers, self._schema))
        for tries in range(1, MAX_TRIES + 1):
            try:
                with self._connections.connection() as connection:
                    return add(JobStore(connection, self._schema))
            except DeadlockError:
                if tries == MAX_TRIES:
                    raise
                time.sleep(random.uniform(0.01, 0.05) * tries)
        raise AssertionError  # the last try has returned or raised
