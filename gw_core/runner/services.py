"""The services of a run beside its worker pool: heartbeats, lock renewal, sweeps, history and statistics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final

from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import HeartbeatLate, JobsSettled, MaintenanceFailed
from gw_core.domain.rules.plugins import Interceptors
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.maintenance.follow_up_check import FollowUpCheck
from gw_core.maintenance.heartbeat import Heartbeat, HeartbeatHandlers
from gw_core.maintenance.history_expiry import HistoryExpiry
from gw_core.maintenance.lock_renewal import ExpiredLocks, LockRenewal
from gw_core.maintenance.recycling import RecycleMonitor
from gw_core.maintenance.statistics_writer import StatisticsWriter
from gw_core.maintenance.sweeper import Sweep, Sweeper
from gw_core.postgres.road.job_store import JobStore
from gw_core.runner.connections import RunnerConnections
from gw_core.runtime.service import Service
from gw_core.tasks.registry import TaskRegistry
from gw_core.worker.pool import WorkerPool

MAX_REPORTED_OVERRUNS: Final = 100
"""How many tasks that overran a heartbeat names."""


class Services:
    """Makes the services of one worker pool; the runner starts and stops them."""

    def __init__(
        self,
        pool: WorkerPool,
        connections: RunnerConnections,
        settings: WorkerSettings,
        events: Events,
        interceptors: Interceptors,
    ) -> None:
        self._pool = pool
        self._connections = connections
        self._settings = settings
        self._events = events
        self._interceptors = interceptors

    def of_every_run(self, *, once: bool) -> Iterator[Service]:
        """Yield what renews locks, makes room in history, and writes statistics."""
        pool, connection, events = self._pool, self._connections.maintenance, self._events
        yield LockRenewal(
            worker_id=pool.id,
            connection=connection,
            events=events,
            locked=pool.ledger.locked,
            every=self._settings.lock_renewal_interval,
        )
        if pool.keeps or not once:
            expiry = HistoryExpiry(connection=connection, events=events, keeps=lambda: pool.keeps)
            expiry.prepare()
            yield expiry
        if keep := self._settings.statistics:
            yield StatisticsWriter(worker_id=pool.id, connection=connection, events=events, keep=keep)

    def of_lasting_run(self, heartbeat: Heartbeat, *, on_limit_reached: Callable[[str], None]) -> Iterator[Service]:
        """Yield what only a long-running worker needs."""
        pool, connection, events, settings = self._pool, self._connections.maintenance, self._events, self._settings
        between = settings.expired_lock_interval
        yield ExpiredLocks(worker_id=pool.id, connection=connection, events=events, between=between)
        yield FollowUpCheck(worker_id=pool.id, connection=connection, events=events, keeps=lambda: pool.keeps)
        if settings.keep_failed is not None:
            from gw_core.maintenance.failed_job_expiry import FailedJobExpiry  # with the selection language

            yield FailedJobExpiry(connection=connection, events=events, keep=settings.keep_failed)
        if settings.recover:
            yield self._sweeper(heartbeat)
        if settings.recycles:
            monitor = RecycleMonitor(
                settings,
                ended=lambda: pool.settler.completed + pool.settler.failed,
                on_limit_reached=on_limit_reached,
            )
            if settings.max_jobs is not None:
                events.on(JobsSettled, lambda event: monitor.wake())
            yield monitor

    def _sweeper(self, heartbeat: Heartbeat) -> Sweeper:
        sweep = Sweep(
            self._connections.maintenance,
            self._settings,
            events=self._events,
            interceptors=self._interceptors,
            worker_id=self._pool.id,
        )
        return Sweeper(
            sweep,
            self._settings,
            events=self._events,
            every=self._settings.effective_sweep_interval,
            held_up_at=heartbeat.held_up_at,
        )

    def heartbeat(
        self, registry: TaskRegistry, *, once: bool, on_breaking_migration: Callable[[int], None]
    ) -> Heartbeat:
        """Return what writes the heartbeats of the pool."""
        pool, settings = self._pool, self._settings
        self._events.on(HeartbeatLate, lambda event: self._stop_lost_runs_soon())
        return Heartbeat(
            worker_id=pool.id,
            connection=self._connections.heartbeat,
            events=self._events,
            settings=settings,
            metadata=lambda: {
                "tasks": pool.task_names,
                "concurrency": settings.concurrency,
                "recovery": settings.recover,
                "statistics": bool(settings.statistics),
                "lease_seconds": settings.lease.total_seconds(),
                "overruns": pool.timeouts.overruns[:MAX_REPORTED_OVERRUNS],
            },
            # A long single run needs heartbeats too, or a sweep recovers its jobs; most end before the first.
            first_after=settings.effective_heartbeat_interval if once else timedelta(0),
            handlers=HeartbeatHandlers(
                needs_ping=pool.notifications.needs_ping if settings.listen else lambda: False,
                on_ping_sent=pool.expect_ping,
                on_written=pool.renew_lease,
                on_rejected=pool.claim_without_heartbeat,
                on_cancel_request=pool.claimer.on_cancel_request,
                on_claim_rules=pool.claimer.on_claim_rules,
                on_breaking_migration=on_breaking_migration,
            ),
        )

    def _stop_lost_runs_soon(self) -> None:
        # In its own thread: it reads the jobs table, and the heartbeat thread must never wait for that.
        threading.Thread(target=self._stop_lost_runs, name="gw-stop-lost", daemon=True).start()

    def _stop_lost_runs(self) -> None:
        """After a late heartbeat, stop the tasks whose jobs a sweep recovered."""
        pool, locked = self._pool, self._pool.ledger.locked()
        try:
            with self._connections.maintenance.connection() as connection:
                ours, _ = JobStore(connection, self._connections.database.schema).renew_locks(
                    locked.jobs, worker_id=pool.id, queues=locked.queues
                )
        except GraphileWorkerError as error:
            self._events.emit(MaintenanceFailed(service="gw-heartbeat", error=error))
            return
        pool.stop_lost([job for job in locked.jobs if job.id not in ours])
