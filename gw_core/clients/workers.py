"""Manage workers: list them, release their locks, recover the jobs of dead ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Interceptors
from gw_core.domain.rules.sweep_rules import RecoverySettings, SweepReport, WorkerInfo, is_dead
from gw_core.postgres.road.bulk_actions import WorkerActions
from gw_core.postgres.road.worker_store import QUERY_TIMEOUT, WorkerStore


class Workers(WorkerActions, frozen=True):
    """The workers of one queue; `client.workers` is one. Safe to use from any thread."""

    events: Events
    interceptors: Interceptors

    def list(self, recovery: RecoverySettings | None = None) -> Sequence[WorkerInfo]:
        """Return every worker known by its heartbeat or by its locks; `recovery` decides which are stale."""
        settings = recovery or RecoverySettings()
        timeout = self.connections.database.limits.cap_statement_timeout(QUERY_TIMEOUT)
        with self.connections.connection() as connection:
            store = WorkerStore(connection, self.schema)
            with store.transaction(statement_timeout=timeout):
                around = store.sweep_preconditions()
                found = store.list_workers(
                    has_heartbeats=around.has_heartbeats,
                    has_rust_workers=around.has_rust_workers,
                    resilient_flags=settings.resilient_flags,
                )
        return [replace(worker, is_stale=is_dead(worker, settings)) for worker in found]

    def sweep(self, recovery: RecoverySettings | None = None, *, dry_run: bool = False) -> SweepReport:
        """Recover the jobs of dead workers, release their queues and delete their heartbeats; plugins are asked.

        With `dry_run`, only report what would be done. A worker without a heartbeat is judged by its latest lock.
        Raises `LockTimeoutError` while another session sweeps.
        """
        from gw_core.maintenance.sweeper import Sweep

        settings = recovery or RecoverySettings()
        sweep = Sweep(self.connections, settings, events=self.events, interceptors=self.interceptors)
        return sweep.run(dry_run=dry_run)
