"""Workers in the database: their heartbeats, their locks, and how both are recovered from dead workers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec
import psycopg

from gw_core.domain.errors import DatabaseUnavailableError, GraphileWorkerError, LockTimeoutError
from gw_core.domain.job.job import Job
from gw_core.domain.rules.session_limits import milliseconds
from gw_core.domain.rules.sweep_rules import (
    RECOVERED_MESSAGE,
    WORKER_CRASHED,
    Decision,
    FailWithBackoff,
    OrphanedQueue,
    Reschedule,
    SkipRecovery,
    WorkerInfo,
    merged,
)
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.error_mapping import translate, translated
from gw_core.postgres.connection.row_mapping import RUST_WORKERS, heartbeat
from gw_core.postgres.connection.row_security import visible_rows
from gw_core.postgres.connection.statement_runner import Store
from gw_core.postgres.connection.statement_steps import fetch_on, run_steps
from gw_core.postgres.connection.statements import query
from gw_core.postgres.read.lock_waits import MOST, sweep_locks
from gw_core.postgres.road.action_records import recording
from gw_core.postgres.schema.schema_state import REVISION, TABLES_STEP, check

LOCK_TIMEOUT: Final = timedelta(seconds=5)
"""The lock timeout of a sweep; it retries later, and the heartbeats it has read age in the meantime."""

SWEEP_TIMEOUT: Final = timedelta(seconds=1)
"""How long a sweep waits for another one, which usually takes milliseconds."""

POLL_SECONDS: Final = 0.02

QUERY_TIMEOUT: Final = timedelta(seconds=10)
"""How long a person waits for the list of workers at most."""

Answer = TypeVar("Answer")
DeadWorkers = Mapping[str, timedelta]
"""Ids of workers that are presumed dead, each with its timeout."""


class HeartbeatResult(msgspec.Struct, frozen=True):
    """What a heartbeat returned."""

    inactive_for: timedelta | None
    """How long the former heartbeat is ago; None when there is none: the first, or the worker was presumed dead."""
    has_rust_workers: bool
    """Whether graphile_worker_rs keeps its workers in this schema as well."""
    has_cancel_requests: bool
    """Whether cancel requests wait for this worker."""
    breaking_revision: int | None
    """The newest breaking revision of the schema that this version does not know; None when there is none."""
    has_new_claim_rules: bool
    """Whether the claim rules have another revision than the worker has confirmed, or may have one."""
    unread: GraphileWorkerError | None
    """Why the heartbeat was written, but read nothing else."""


class SweepPreconditions(msgspec.Struct, frozen=True):
    """What a sweep needs to know besides the workers."""

    has_heartbeats: bool
    has_rust_workers: bool
    server_up_for: timedelta


class RecoveredJobs(msgspec.Struct, frozen=True, kw_only=True):
    """What a sweep recovered: the jobs as they were locked, and the number of queues released."""

    jobs: list[Job]
    queues: int


class WorkerStore(Store):
    """The workers in the database, over one connection."""

    @contextmanager
    def transaction(self, *, statement_timeout: timedelta | None = None) -> Iterator[None]:
        """Make the block all or nothing, and let no statement of it take longer than this, or else wait for a lock."""
        name = "lock_timeout" if statement_timeout is None else "statement_timeout"
        limit = milliseconds(statement_timeout or LOCK_TIMEOUT)
        with translated(self.schema), self.connection.transaction():
            self.connection.execute("select set_config(%s, %s, true)", (name, limit))
            yield

    # -- heartbeats ------------------------------------------------------------------------------------------------

    def heartbeat(
        self,
        worker_id: str,
        *,
        alive_for: timedelta,
        host: str,
        pid: int,
        version: str,
        metadata: Mapping[str, Any],
        ping: bool = False,
    ) -> HeartbeatResult:
        """Write a pool's heartbeat, also in graphile_worker_rs's table if it exists; with `ping` ping all listeners."""
        about = msgspec.json.encode(metadata).decode()
        [(inactive_seconds, has_rust_workers, *read, _)], unread = self._rows_or_fewer(
            "READS",
            "heartbeat",
            worker_id=worker_id,
            alive_seconds=alive_for.total_seconds(),
            host=host,
            pid=pid,
            version=version,
            metadata=about,
            schema=self.schema,
            ping=ping,
            revision=REVISION,
        )
        if has_rust_workers:
            self._rows("rust_heartbeat", worker_id=worker_id, metadata=about)
        inactive_for = None if inactive_seconds is None else timedelta(seconds=inactive_seconds)
        has_cancel_requests, breaking_revision, has_new_claim_rules = read or (False, None, True)
        return HeartbeatResult(
            inactive_for,
            has_rust_workers,
            has_cancel_requests,
            breaking_revision,
            has_new_claim_rules,
            unread,
        )

    def delete_heartbeat(self, worker_id: str, *, has_rust_workers: bool) -> None:
        """Delete the heartbeat of a worker that shut down gracefully."""
        self._rows("delete_heartbeat", worker_id=worker_id)
        if has_rust_workers:
            self._rows("delete_rust_heartbeat", worker_id=worker_id)

    def record_statistics(self, worker_id: str, rows: Sequence[Mapping[str, Any]], *, keep: timedelta) -> float:
        """Write what a worker ran and delete some rows older than `keep`; return the server's time, since 1970."""
        values = {"rows": msgspec.json.encode(rows).decode(), "keep_seconds": keep.total_seconds()}
        return float(self._rows("record_statistics", worker_id=worker_id, **values)[0][0])

    # -- looking ---------------------------------------------------------------------------------------------------

    def sweep_preconditions(self) -> SweepPreconditions:
        """Return what a sweep needs to know of the server and the schema."""
        has_heartbeats, has_rust_workers, seconds = self._rows("sweep_preconditions", schema=self.schema)[0]
        return SweepPreconditions(has_heartbeats, has_rust_workers, timedelta(seconds=seconds))

    def list_heartbeats(self, *, has_rust_workers: bool) -> list[WorkerInfo]:
        """Return the workers that send heartbeats, in order of their start, once for each table they are in."""
        found = self._visible_rows("heartbeat_list", limit=None)
        if has_rust_workers:
            found += self._visible_rows("heartbeat_list", RUST_WORKERS, limit=None)
        return sorted((heartbeat(row) for row in found), key=attrgetter("started_at", "id"))

    def list_with_locks(self, *, resilient_flags: Sequence[str]) -> list[WorkerInfo]:
        """Return the workers that lock jobs or queues, with how many of each and the age of the latest lock."""
        found = self._visible_rows("list_worker_locks", resilient_flags=list(resilient_flags))
        return [lock_holder(row) for row in found if row[0] is not None]

    def list_workers(
        self, *, has_rust_workers: bool, resilient_flags: Sequence[str], has_heartbeats: bool = True
    ) -> list[WorkerInfo]:
        """Return every worker known by a heartbeat or by locks; on a schema without our line by locks alone."""
        heartbeats = self.list_heartbeats(has_rust_workers=has_rust_workers) if has_heartbeats else []
        return merged(heartbeats, self.list_with_locks(resilient_flags=resilient_flags))

    def orphaned_queues(self) -> list[OrphanedQueue]:
        """Return the queues that `release_orphaned_queues` would release."""
        known = {each.id for each in self.list_heartbeats(has_rust_workers=False)}
        return [each for each in list_orphaned_queues(self.connection, self.schema) if each.worker_id not in known]

    # -- sweeping --------------------------------------------------------------------------------------------------

    def lock_sweep(self) -> None:
        """Lock sweeping for this transaction; raises `LockTimeoutError` naming the session that sweeps.

        Every role that can connect can hold this lock, so only a session that may be sweeping is waited for. Two sweeps
        at a time do no harm: neither waits for rows that the other has locked.
        """
        deadline = time.monotonic() + SWEEP_TIMEOUT.total_seconds()
        while not self._rows("try_sweep_lock")[0][0]:
            sessions = sweep_locks(self._rows("sweep_lock_sessions", schema=self.schema, most=MOST))
            sweepers = [each.session for each in sessions if each.granted and each.is_respected]
            if not sweepers:
                return
            if time.monotonic() > deadline:
                raise LockTimeoutError(f"another session is sweeping: {sweepers[0]}")
            time.sleep(POLL_SECONDS)

    def lock_jobs_table(self) -> None:
        """Wait until jobs can be changed, and keep it so for this transaction; raises `LockTimeoutError`."""
        try:
            self.connection.execute(query("lock_jobs_table", self.schema), {})
        except psycopg.Error as error:
            raise translate(error, schema=self.schema) from error

    def list_jobs_to_recover(self, inactive: DeadWorkers) -> list[Job]:
        """Return the jobs that these workers lock."""
        return [Job(*row) for row in self._visible_rows("sweep_list_jobs", **_columns(inactive))]

    def recover(self, inactive: DeadWorkers, *, delay: timedelta, decisions: Mapping[int, Decision]) -> RecoveredJobs:
        """Return the jobs of dead workers and release their queues; jobs without a decision get the default."""
        columns = _columns(inactive)
        skipped = [job_id for job_id, each in decisions.items() if isinstance(each, SkipRecovery)]
        jobs = self._visible_rows(
            "sweep_recover_jobs",
            **columns,
            **_decided(decisions),
            skipped=skipped,
            delay_seconds=delay.total_seconds(),
            message=RECOVERED_MESSAGE,
        )
        queues = self._visible_rows("sweep_release_queues", **columns)
        return RecoveredJobs(jobs=[Job(*row) for row in jobs], queues=len(queues))

    def is_any_queue_locked(self) -> bool:
        """Return whether a named queue is locked, other than by a pause."""
        return bool(self._rows("any_queue_locked")[0][0])

    def release_orphaned_queues(self) -> list[str]:
        """Release queues that are locked without a locked job, except those of gw workers; return their names."""
        return [name for (name,) in self._rows("release_orphaned_queues")]

    def record_sweep(self, by: str | None, *, jobs: Sequence[Job] = (), targets: Sequence[str], **counts: int) -> None:
        """Record that an operator swept, in the transaction of the sweep."""
        record = recording("sweep", by, self.schema, job_ids=[each.id for each in jobs], targets=targets, **counts)
        run_steps(record, fetch_on(self.connection, self.schema))

    def delete_swept(self, inactive: DeadWorkers, *, has_rust_workers: bool) -> None:
        """Delete the heartbeats of dead workers that hold no lock."""
        self._visible_rows("sweep_delete", **_columns(inactive))
        if has_rust_workers:
            self._visible_rows("sweep_delete", {"WORKERS": "_private_workers"}, **_columns(inactive))


def list_worker_locks(connection: Connection, schema: str) -> list[WorkerInfo]:
    """Return who locks jobs and queues; locks without a worker's name have an empty one."""
    found = visible_rows(connection, schema, "list_worker_locks", {"resilient_flags": []})
    return [lock_holder(row) for row in found]


def list_orphaned_queues(connection: Connection, schema: str) -> list[OrphanedQueue]:
    """Return the queues that are locked although none of their jobs is, the oldest lock first."""
    found = visible_rows(connection, schema, "orphaned_queue_list")
    return [OrphanedQueue(name, worker_id or "", timedelta(seconds=age)) for name, worker_id, age in found]


def lock_holder(row: Sequence[Any]) -> WorkerInfo:
    """Return who holds the locks of a row of list_worker_locks.sql."""
    name, jobs, queues, latest, oldest, is_resilient = row
    return WorkerInfo(
        id=name or "",
        jobs=jobs,
        queues=queues,
        lock_age=timedelta(seconds=latest),
        oldest_lock_age=timedelta(seconds=oldest),
        is_resilient=bool(is_resilient),
    )


def list_heartbeats(connection: Connection, schema: str) -> list[WorkerInfo]:
    """Return the workers that send heartbeats to gw's table or to that of graphile_worker_rs, each once."""
    state = check(connection, schema)
    found: list[WorkerInfo] = []
    if TABLES_STEP in state.own_present:
        found += (heartbeat(row) for row in visible_rows(connection, schema, "heartbeat_list", {"limit": None}))
    if state.has_rust_workers:
        found += list_rust_heartbeats(connection, schema)
    return merged(found, ())


def list_rust_heartbeats(connection: Connection, schema: str) -> list[WorkerInfo]:
    """Return the workers in the table of graphile_worker_rs, which must exist; those of gw are there too."""
    found = visible_rows(connection, schema, "heartbeat_list", {"limit": None}, **RUST_WORKERS)
    return [heartbeat(row) for row in found]


def with_workers(connections: ConnectionSource, act: Callable[[WorkerStore], Answer]) -> Answer:
    """Call `act` with a store; again if the connection turns out to have died while it was idle."""
    try:
        return _with_workers(connections, act)
    except DatabaseUnavailableError:
        return _with_workers(connections, act)


def _with_workers(connections: ConnectionSource, act: Callable[[WorkerStore], Answer]) -> Answer:
    with connections.connection() as connection:
        return act(WorkerStore(connection, connections.database.schema))


def _columns(inactive: DeadWorkers) -> dict[str, list[Any]]:
    return {"workers": list(inactive), "inactive_seconds": [interval.total_seconds() for interval in inactive.values()]}


def _decided(decisions: Mapping[int, Decision]) -> dict[str, list[Any]]:
    rows: list[tuple[int, datetime | None, int | None, str | None, bool]] = []
    for job_id, decision in decisions.items():
        match decision:
            case Reschedule(run_at, attempts):
                rows.append((job_id, run_at, attempts, None, False))
            case FailWithBackoff():
                rows.append((job_id, None, None, WORKER_CRASHED, True))
    names = ("ids", "run_ats", "attempts", "messages", "backoffs")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
