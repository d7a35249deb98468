"""Recover the jobs of dead workers."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from msgspec import structs

from gw_core.domain.errors import LockTimeoutError
from gw_core.domain.job.job import Job
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import JobRecovered, RecoveryHookFailed, WorkersRecovered
from gw_core.domain.rules.plugins import Interceptors
from gw_core.domain.rules.sweep_rules import (
    WORKER_CRASHED,
    Decision,
    RecoverySettings,
    SkipRecovery,
    SweepReport,
    WorkerInfo,
    decide,
    is_dead,
)
from gw_core.postgres.connection.connections import ConnectionSource
from gw_core.postgres.road.action_records import check_by
from gw_core.postgres.road.worker_store import DeadWorkers, RecoveredJobs, WorkerStore, with_workers
from gw_core.runtime.service import MaintenanceService

ORPHANS_INTERVAL: Final = timedelta(minutes=10)
"""The shortest time between searches for locks without a heartbeat: each reads all locked jobs."""


class Sweep:
    """One sweep over a schema, by a worker (`worker_id`, which is never swept) or an operator (`by`, who is recorded).

    Jobs and queues of dead workers are taken in one short transaction, in which hooks do not run: they are called
    before, with what was found then. A worker that was active in the meantime is skipped. Raises
    `LockTimeoutError` when another session sweeps or keeps the jobs table locked.
    """

    def __init__(
        self,
        connections: ConnectionSource,
        settings: RecoverySettings,
        *,
        events: Events,
        interceptors: Interceptors,
        worker_id: str | None = None,
        by: str | None = None,
    ) -> None:
        check_by(by)
        self._by = by
        self._connections = connections
        self._settings = settings
        self._events = events
        self._hooks = interceptors.on_recovery
        self._worker_id = worker_id

    def run(
        self,
        *,
        dry_run: bool = False,
        with_orphans: bool = True,
        with_queues: bool = True,
        since_server_start: bool = False,
    ) -> SweepReport:
        """Sweep; `since_server_start` counts no time before the server started, when no heartbeat could be written.

        `with_queues` also releases queues that are locked without a job.
        """
        dead = self._dead(with_orphans, since_server_start)
        if dry_run:
            return self._preview(dead)
        report = SweepReport()
        if dead:
            decisions = self._ask_hooks(dead) if self._hooks else {}
            report = self._recover({worker.id for worker in dead}, decisions, with_orphans, since_server_start)
        orphaned = self._release_orphaned_queues() if with_queues else 0
        return structs.replace(report, queues=report.queues + orphaned)

    def _preview(self, dead: list[WorkerInfo]) -> SweepReport:
        orphaned = with_workers(self._connections, WorkerStore.orphaned_queues)
        ids = {worker.id for worker in dead}
        return SweepReport(
            dry_run=True,
            workers=tuple(dead),
            jobs=sum(worker.jobs for worker in dead),
            queues=sum(worker.queues for worker in dead) + sum(queue.worker_id not in ids for queue in orphaned),
        )

    # -- looking ---------------------------------------------------------------------------------------------------

    def is_any_queue_locked(self) -> bool:
        """Return whether queues may be locked without a job; raises the database's errors."""
        return with_workers(self._connections, WorkerStore.is_any_queue_locked)

    def _dead(self, with_orphans: bool, since_server_start: bool) -> list[WorkerInfo]:
        def read(store: WorkerStore) -> list[WorkerInfo]:
            with store.transaction():
                return self._read_workers(store, with_orphans, since_server_start)

        return with_workers(self._connections, read)

    def _read_workers(self, store: WorkerStore, with_orphans: bool, since_server_start: bool) -> list[WorkerInfo]:
        around = store.sweep_preconditions()
        possible_for = around.server_up_for if since_server_start else None
        heartbeats = store.list_heartbeats(has_rust_workers=around.has_rust_workers)
        # Locks are only read when there is a reason to: it reads all locked jobs.
        if not with_orphans and not any(self._is_dead(heartbeat, possible_for) for heartbeat in heartbeats):
            return []
        workers = store.list_workers(
            has_rust_workers=around.has_rust_workers, resilient_flags=self._settings.resilient_flags
        )
        return [structs.replace(worker, is_stale=True) for worker in workers if self._is_dead(worker, possible_for)]

    def _is_dead(self, worker: WorkerInfo, possible_for: timedelta | None) -> bool:
        return worker.id != self._worker_id and is_dead(worker, self._settings, possible_for=possible_for)

    # -- asking ----------------------------------------------------------------------------------------------------

    def _ask_hooks(self, dead: list[WorkerInfo]) -> dict[int, Decision]:
        def read(store: WorkerStore) -> list[Job]:
            with store.transaction():
                return store.list_jobs_to_recover(self._allowances(dead))

        jobs = with_workers(self._connections, read)
        decisions = (
            (job.id, decide(self._hooks, job, job.locked_by or "", self._worker_id, self._report_hook_failure))
            for job in jobs
        )
        return {job_id: decision for job_id, decision in decisions if decision is not None}

    def _report_hook_failure(self, job: Job, error: Exception) -> None:
        self._events.emit(RecoveryHookFailed(job=job, error=error))

    # -- acting ----------------------------------------------------------------------------------------------------

    def _recover(
        self, found: set[str], decisions: dict[int, Decision], with_orphans: bool, since_server_start: bool
    ) -> SweepReport:
        with self._connections.connection() as connection:
            store = WorkerStore(connection, self._connections.database.schema)
            with store.transaction():
                store.lock_sweep()
                store.lock_jobs_table()  # before the heartbeats are read, see there
                still = [
                    worker
                    for worker in self._read_workers(store, with_orphans, since_server_start)
                    if worker.id in found
                ]
                recovered = self._take(store, self._allowances(still), decisions)
                workers = [worker.id for worker in still]
                store.record_sweep(self._by, jobs=recovered.jobs, targets=workers, queues=recovered.queues)
        held_back = sum(1 for decision in decisions.values() if isinstance(decision, SkipRecovery))
        report = SweepReport(workers=tuple(still), jobs=len(recovered.jobs), queues=recovered.queues, skipped=held_back)
        self._report(report, recovered)
        return report

    def _release_orphaned_queues(self) -> int:
        """Release queues that are locked without a job; while the tables are locked, that is left to the next sweep."""

        def release(store: WorkerStore) -> int:
            with store.transaction():
                names = store.release_orphaned_queues()
                store.record_sweep(self._by, targets=[f"queue:{name}" for name in names], queues=len(names))
                return len(names)

        try:
            queues = with_workers(self._connections, release)
        except LockTimeoutError:
            return 0
        if queues:
            self._events.emit(WorkersRecovered(worker_id=self._worker_id, workers=(), jobs=0, queues=queues))
        return queues

    def _take(self, store: WorkerStore, dead: DeadWorkers, decisions: dict[int, Decision]) -> RecoveredJobs:
        recovered = store.recover(dead, delay=self._settings.effective_recovery_delay, decisions=decisions)
        store.delete_swept(dead, has_rust_workers=store.sweep_preconditions().has_rust_workers)
        return recovered

    def _allowances(self, workers: list[WorkerInfo]) -> DeadWorkers:
        return {worker.id: self._settings.allowed_inactivity(worker) for worker in workers}

    def _report(self, report: SweepReport, recovered: RecoveredJobs) -> None:
        for job in recovered.jobs:
            self._events.emit(
                JobRecovered(
                    job=job, worker_id=job.locked_by or "", reason=WORKER_CRASHED, recovered_by=self._worker_id
                )
            )
        if report.workers:
            workers = tuple(worker.id for worker in report.workers)
            self._events.emit(
                WorkersRecovered(worker_id=self._worker_id, workers=workers, jobs=report.jobs, queues=report.queues)
            )


class Sweeper(MaintenanceService):
    """Sweeps every so often. All state belongs to the thread that calls `step`.

    After an outage that this process noticed, it waits for a worker's full timeout: the others could not send
    heartbeats either, and the first one back must not sweep the rest. One that has just started does not know whether
    there was an outage; it waits for half as long, in which every live worker sends a heartbeat. One whose own
    heartbeats came too late (`held_up_at`) waits as after an outage: what kept it from writing may have kept others.
    """

    def __init__(
        self,
        sweep: Sweep,
        settings: RecoverySettings,
        *,
        events: Events,
        every: timedelta,
        held_up_at: Callable[[], float | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__("gw-sweep", events)
        self._sweep = sweep
        self._threshold = settings.sweep_threshold.total_seconds()
        self._orphans_every = min(ORPHANS_INTERVAL, settings.orphans_after / 4).total_seconds()
        self._every = every
        self._held_up_at = held_up_at
        self._clock = clock
        self._last_contact: float | None = None
        self._not_before = float("-inf")
        self._next_orphans = float("-inf")

    def step(self) -> timedelta:
        """Sweep unless others may still be coming back; rest."""
        with self._reporting():
            with_queues = self._sweep.is_any_queue_locked()  # which also shows that the server answers
            now = self._clock()
            self._notice_outage(now)
            if now >= self._not_before:
                self._sweep_now(now, with_queues=with_queues)
        # Spread, so that a fleet that starts together does not sweep together.
        return self._every * random.uniform(0.9, 1.1)

    def _notice_outage(self, now: float) -> None:
        longest = 1.2 * self._every.total_seconds() + self._threshold / 2
        if self._last_contact is None:
            self._not_before = now + self._threshold / 2
        elif now - self._last_contact > longest:
            self._not_before = now + self._threshold
        if (held_up_at := self._held_up_at()) is not None:
            self._not_before = max(self._not_before, held_up_at + self._threshold)
        self._last_contact = now

    def _sweep_now(self, now: float, *, with_queues: bool) -> None:
        with_orphans = now >= self._next_orphans
        self._sweep.run(with_orphans=with_orphans, with_queues=with_queues, since_server_start=True)
        if with_orphans:
            self._next_orphans = now + self._orphans_every
