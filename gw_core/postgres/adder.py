"""Add jobs: past the interceptors, into the store, and tell who listens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from gw_core.domain.events import Events, JobAdded
from gw_core.domain.job import Job, JobSpec, check_payload_text
from gw_core.domain.plugins import Interceptors
from gw_core.postgres.connections import Lender
from gw_core.postgres.database import Connection
from gw_core.postgres.store import JobStore

BULK: Final = 5_000
"""Jobs in one statement of a bulk: past this a statement gains nothing and only grows in memory."""


class JobAdder:
    """The one way into the queue for the client, for a task's context and for front ends. Safe from any thread."""

    def __init__(self, lender: Lender, schema: str, interceptors: Interceptors, events: Events) -> None:
        self._lender = lender
        self._schema = schema
        self._interceptors = interceptors
        self._events = events

    def add(self, spec: JobSpec, *, payload: str | None = None, conn: Connection | None = None) -> Job | None:
        """Add one job and return it, or None when a plugin skipped it.

        `payload` is JSON text that is stored as it is instead of the spec's own payload. With `conn` the job belongs to
        the caller's transaction.
        """
        admitted = self._interceptors.admit(spec)
        if admitted is None:
            return None
        if payload is not None:
            check_payload_text(payload)
        with self._store(conn) as store:
            # A plugin may have changed other fields; only a payload it put in place of ours replaces the text.
            job = store.add(admitted, payload if admitted.payload is spec.payload else None)
        if self._events.wants(JobAdded):
            self._events.emit(JobAdded(spec=admitted, job_id=job.id))
        return job

    def add_many(self, specs: Iterable[JobSpec], *, conn: Connection | None = None) -> list[int]:
        """Add jobs in statements of some thousands, all or none of them, and return their ids in no promised order."""
        admitted = [kept for kept in map(self._interceptors.admit, specs) if kept is not None]
        if not admitted:
            return []
        # Keys may part a bulk into several statements, as its size does.
        is_parted = len(admitted) > BULK or any(spec.job_key is not None for spec in admitted)
        with self._store(conn) as store, store.transaction(needed=is_parted):
            ids = [
                number
                for start in range(0, len(admitted), BULK)
                for number in store.add_many(admitted[start : start + BULK])
            ]
        if self._events.wants(JobAdded):
            for spec in admitted:
                self._events.emit(JobAdded(spec=spec, job_id=None))
        return ids

    @contextmanager
    def _store(self, conn: Connection | None) -> Iterator[JobStore]:
        if conn is not None:
            yield JobStore(conn, self._schema)
            return
        with self._lender.connection() as connection:
            yield JobStore(connection, self._schema)
