"""The jobs in the database: each method runs the statement of the same name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
import psycopg

from gw_core.domain.cancellation import CancelRequest
from gw_core.domain.claim import QueueLock, claim_number
from gw_core.domain.job import Job, JobSpec, encode_payload
from gw_core.domain.job_key import JobKeyMode
from gw_core.domain.outcome import Completed, Failed, Outcome, Returned
from gw_core.domain.settings import LOCK_EXPIRY
from gw_core.postgres.callers_connection import begin_callers_transaction, tuple_cursor
from gw_core.postgres.claims import Claims
from gw_core.postgres.database import Connection, in_its_settings
from gw_core.postgres.error_mapping import translate, translated
from gw_core.postgres.statements import query
from gw_core.postgres.text_arrays import teach_text_arrays, text_array, text_encoding

_Outcome = TypeVar("_Outcome", bound=Outcome)
_JOB_ID: Final = attrgetter("job.id")


LONGEST_DELAY: Final = timedelta(days=100 * 365)

SETTLE_PLAN: Final = {
    "jit": "off",
    # Rows are locked in the order of their ids, which an index scan over a sorted array keeps and a bitmap does not.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    # Whoever keeps one job's row locked, such as a transaction that adds under its key, must not hold up all results.
    "lock_timeout": "300ms",
    "statement_timeout": "15s",
}
"""Settings of the session that settles."""


@dataclass(frozen=True, slots=True)
class RemovedJob:
    """What became of a job that was to be removed."""

    job: Job

    @property
    def was_running(self) -> bool:
        """True when the job is still running: it lost its key and will not be tried again."""
        return self.job.locked_by is not None


@dataclass(frozen=True, slots=True)
class BulkCall:
    """Jobs that one statement can add, encoded; without `values` they are added one by one."""

    specs: Sequence[JobSpec]
    values: Mapping[str, Any] | None


class JobStore:
    """Adds and settles jobs over one connection; `claims` claims them. One thread at a time uses it.

    Every method raises our errors (`DatabaseUnavailableError`, `SchemaMissingError`, …) and not the driver's.
    """

    def __init__(self, connection: Connection, schema: str) -> None:
        self.connection = connection
        self.schema = schema
        self.claims = Claims(connection, schema)

    @contextmanager
    def transaction(self, *, needed: bool = True) -> Iterator[None]:
        """Make the block all or nothing: a savepoint in the caller's transaction, a transaction in autocommit mode."""
        if not needed:
            yield
            return
        with translated(self.schema):
            begin_callers_transaction(self.connection)
            with self.connection.transaction():
                yield

    # -- add -------------------------------------------------------------------------------------------------------

    def add(self, spec: JobSpec, payload: str | None = None) -> Job:
        """Add one job and return it; `payload` is JSON text that replaces the encoding of the spec's own."""
        run_at, delay = _when(spec.run_at)
        row = self._one(
            "add_job",
            identifier=spec.task,
            payload=encode_payload(spec.payload) if payload is None else payload,
            queue_name=spec.queue_name,
            run_at=run_at,
            delay_seconds=delay,
            max_attempts=spec.max_attempts,
            job_key=spec.job_key,
            priority=spec.priority,
            flags=list(spec.flags) or None,
            job_key_mode=spec.job_key_mode.value,
        )
        return Job(*row)

    def add_many(self, specs: Sequence[JobSpec]) -> list[int]:
        """Add jobs and return their ids; one statement per run of specs that treat their keys alike."""
        return [job_id for call in self.bulk_calls(specs) for job_id in self.add_bulk(call)]

    def bulk_calls(self, specs: Sequence[JobSpec]) -> Iterator[BulkCall]:
        """Encode jobs for `add_bulk`, in one call for each run of specs that treat their keys alike."""
        encoding = text_encoding(self.connection)
        for mode, alike in _calls(specs):
            if mode is JobKeyMode.UNSAFE_DEDUPE:  # which the schema's bulk function does not know
                yield BulkCall(alike, None)
            else:
                preserve_run_at = mode is JobKeyMode.PRESERVE_RUN_AT
                yield BulkCall(alike, {**_columns(alike, encoding), "preserve_run_at": preserve_run_at})

    def add_bulk(self, call: BulkCall) -> list[int]:
        """Add the jobs of one call and return their ids."""
        if call.values is None:
            return [self.add(spec).id for spec in call.specs]
        with translated(self.schema), tuple_cursor(self.connection) as cursor:
            teach_text_arrays(cursor.adapters)
            return [row[0] for row in cursor.execute(query("add_jobs", self.schema), call.values)]

    def remove(self, job_key: str) -> RemovedJob | None:
        """Remove the job with this key; one that runs is only kept from running again."""
        row = self._one_or_none("remove_job", job_key=job_key)
        return None if row is None else RemovedJob(Job(*row))

    # -- claim and settle ------------------------------------------------------------------------------------------

    def register_tasks(self, identifiers: Iterable[str]) -> dict[int, str]:
        """Make the task identifiers known and return them by their ids."""
        wanted = sorted(set(identifiers))
        while True:
            known = {row[0]: row[1] for row in self._rows("register_tasks", identifiers=wanted)}
            # A task that somebody else made at the same moment is neither ours to insert nor in our snapshot.
            if len(known) >= len(wanted):
                return known

    def complete(
        self, outcomes: Sequence[Completed], *, worker_id: str, releases: Sequence[QueueLock] = ()
    ) -> set[int]:
        """Delete the jobs of these claims, release the queues, and return the ids deleted."""
        return self._settle("complete_jobs", _by_id(outcomes), worker_id, releases)

    def fail(self, outcomes: Sequence[Failed], *, worker_id: str, releases: Sequence[QueueLock] = ()) -> set[int]:
        """Record the failures of these claims, release the queues, and return the ids recorded."""
        ordered = _by_id(outcomes)
        return self._settle(
            "fail_jobs",
            ordered,
            worker_id,
            releases,
            messages=[each.message for each in ordered],
            delays=[None if each.delay is None else _delay_seconds(each.delay) for each in ordered],
            finals=[each.permanent for each in ordered],
            payloads=[each.payload for each in ordered],
        )

    def give_back(
        self, outcomes: Sequence[Returned], *, worker_id: str, releases: Sequence[QueueLock] = ()
    ) -> set[int]:
        """Return the jobs of these claims with the attempt not counted, release the queues, and return the ids."""
        ordered = _by_id(outcomes)
        return self._settle(
            "return_jobs",
            ordered,
            worker_id,
            releases,
            attempts=[each.job.attempts for each in ordered],
            keys=[each.job.key for each in ordered],
            delays=[_delay_seconds(each.delay) for each in ordered],
        )

    def _settle(
        self, name: str, ordered: Sequence[Outcome], worker_id: str, releases: Sequence[QueueLock], **values: Any
    ) -> set[int]:
        ids = [outcome.job.id for outcome in ordered]
        rows = self._rows(
            name,
            ids=ids,
            # A few numbers and not one for each job: the ledger sees to it that no job has two of them.
            claims=[claim_number(each) for each in {outcome.job.locked_at_epoch for outcome in ordered}],
            queue_ids=[queue_id for queue_id, _ in releases],
            worker_id=worker_id,
            **values,
        )
        return set(rows[0][0] or ()) if rows else set(ids)

    def blocked(self, ids: Iterable[int]) -> set[int]:
        """Return which of these jobs have a row that somebody else keeps locked at this moment."""
        return self._ids("row_locked_jobs", ids=sorted(ids))

    def give_back_forgotten(self, *, worker_id: str, jobs: Sequence[Job], queues: Sequence[QueueLock]) -> set[int]:
        """Return what the worker claimed without knowing: all jobs and queues it has locked but these."""
        return self._ids("return_unknown_jobs", worker_id=worker_id, **_claims(jobs), **_queue_claims(queues))

    def is_anything_runnable(
        self, *, tasks: Mapping[int, str], forbidden_flags: Sequence[str] | None = None, now: datetime | None = None
    ) -> bool:
        """Tell whether a claim could take a job now, also one whose row somebody locks for a moment."""
        row = self._one(
            "is_anything_runnable",
            task_ids=list(tasks),
            forbidden_flags=list(forbidden_flags) if forbidden_flags else None,
            now=now,
        )
        return bool(row[0])

    def renew_locks(self, jobs: Sequence[Job], *, worker_id: str, queues: Sequence[QueueLock] = ()) -> set[int]:
        """Renew the locks of these claims where they are ten minutes old, and return the ids that are still ours."""
        starts = [job.locked_at_epoch for job in jobs]
        return self._ids("renew_locks", worker_id=worker_id, starts=starts, **_claims(jobs), **_queue_claims(queues))

    def take_cancellations(self, *, worker_id: str) -> list[CancelRequest]:
        """Return which jobs of this pool somebody wants cancelled, once."""
        return [CancelRequest(*row) for row in self._rows("cancel_take", worker_id=worker_id)]

    def reset_stale_locks(self, older_than: timedelta = LOCK_EXPIRY) -> tuple[int, int]:
        """Free every lock older than that, whoever holds it; return how many jobs and queues."""
        row = self._one("release_expired_locks", older_than_seconds=older_than.total_seconds())
        return row[0], row[1]

    # -- the one way to the database -------------------------------------------------------------------------------

    def _rows(self, name: str, **values: Any) -> list[tuple[Any, ...]]:
        try:
            with tuple_cursor(self.connection) as cursor:
                with in_its_settings(self.connection):
                    cursor.execute(query(name, self.schema), values)
                return cursor.fetchall()
        except psycopg.Error as error:
            raise translate(error, schema=self.schema) from error

    def _one(self, name: str, **values: Any) -> tuple[Any, ...]:
        return self._rows(name, **values)[0]

    def _one_or_none(self, name: str, **values: Any) -> tuple[Any, ...] | None:
        rows = self._rows(name, **values)
        return rows[0] if rows else None

    def _ids(self, name: str, **values: Any) -> set[int]:
        return {row[0] for row in self._rows(name, **values)}


def _by_id(outcomes: Sequence[_Outcome]) -> list[_Outcome]:
    """Return outcomes in the order in which everybody locks jobs."""
    return sorted(outcomes, key=_JOB_ID)


def _claims(jobs: Sequence[Job]) -> dict[str, Any]:
    """Return jobs and the numbers of their claims as columns."""
    return {"ids": [job.id for job in jobs], "claims": [claim_number(job.locked_at_epoch) for job in jobs]}


def _queue_claims(queues: Sequence[QueueLock]) -> dict[str, Any]:
    return {
        "queue_ids": [queue_id for queue_id, _ in queues],
        "queue_claims": [claim_number(locked_at) for _, locked_at in queues],
    }


def _when(run_at: datetime | timedelta | None) -> tuple[datetime | None, float | None]:
    """Return a moment, or the seconds to count from the database's clock."""
    if isinstance(run_at, timedelta):
        return None, run_at.total_seconds()
    return run_at, None


def _delay_seconds(delay: timedelta) -> float:
    """Return a delay a task asked for; PostgreSQL's calendar ends, and one bad outcome would hold up all others."""
    return min(delay, LONGEST_DELAY).total_seconds()


def _calls(specs: Sequence[JobSpec]) -> Iterator[tuple[JobKeyMode, list[JobSpec]]]:
    """Split specs into calls of add_jobs: one key mode per call, and no key twice in one."""
    for mode, alike in groupby(specs, key=lambda spec: spec.job_key_mode):
        call: list[JobSpec] = []
        keys: set[str] = set()
        for spec in alike:
            if spec.job_key is not None and spec.job_key in keys:
                yield mode, call
                call, keys = [], set()
            call.append(spec)
            if spec.job_key is not None:
                keys.add(spec.job_key)
        yield mode, call


def _columns(specs: Sequence[JobSpec], encoding: str) -> dict[str, Any]:
    """Return the specs as columns; one that is empty throughout is sent as null, which `unnest` fills up with nulls."""
    moments = [_when(spec.run_at) for spec in specs]
    columns: dict[str, list[Any]] = {
        "queue_names": [spec.queue_name for spec in specs],
        "run_ats": [moment for moment, _ in moments],
        "delays": [delay for _, delay in moments],
        "max_attempts": [spec.max_attempts for spec in specs],
        "job_keys": [spec.job_key for spec in specs],
        "priorities": [spec.priority for spec in specs],
        "flags": [msgspec.json.encode(spec.flags).decode() if spec.flags else None for spec in specs],
    }
    return {
        "identifiers": text_array([spec.task.encode(encoding) for spec in specs]),
        "payloads": text_array([encode_payload(spec.payload).encode(encoding) for spec in specs]),
        **{name: None if values.count(None) == len(values) else values for name, values in columns.items()},
    }
