"""Manage workers: list them, release their locks, recover the jobs of dead ones."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs

from gw_core.clients.verbs import Part, R, Request, blocking, verb
from gw_core.domain.rules.sweep_rules import RecoverySettings, SweepReport, WorkerInfo, is_dead
from gw_core.postgres.road.bulk_actions import locks_of, unlocking
from gw_core.postgres.road.worker_store import QUERY_TIMEOUT, WorkerStore


class Workers(Part[R]):
    """The workers of one queue; `client.workers` is one."""

    @blocking
    def list(self, recovery: RecoverySettings | None = None) -> Sequence[WorkerInfo]:
        """Return every worker known by its heartbeat or by its locks; `recovery` decides which are stale."""
        settings = recovery or RecoverySettings()
        timeout = self._connections.database.limits.cap_statement_timeout(QUERY_TIMEOUT)
        with self._connection() as connection:
            store = WorkerStore(connection, self._schema)
            with store.transaction(statement_timeout=timeout):
                around = store.sweep_preconditions()
                found = store.list_workers(
                    has_heartbeats=around.has_heartbeats,
                    has_rust_workers=around.has_rust_workers,
                    resilient_flags=settings.resilient_flags,
                )
        return [structs.replace(worker, is_stale=is_dead(worker, settings)) for worker in found]

    @blocking
    def sweep(
        self, recovery: RecoverySettings | None = None, *, dry_run: bool = False, by: str | None = None
    ) -> SweepReport:
        """Recover the jobs of dead workers, release their queues and delete their heartbeats; plugins are asked.

        With `dry_run`, only report what would be done. A worker without a heartbeat is judged by its latest lock.
        With `by`, the name of an operator, what it recovered is recorded. Raises `LockTimeoutError` while another
        session sweeps.
        """
        from gw_core.maintenance.sweeper import Sweep

        runtime = self._runtime
        sweep = Sweep(
            self._connections,
            recovery or RecoverySettings(),
            events=runtime.events,
            interceptors=runtime.interceptors,
            by=by,
        )
        return sweep.run(dry_run=dry_run)

    @verb
    def locks(self, worker_ids: Sequence[str], *, conn: object | None = None) -> Request[Sequence[WorkerInfo]]:
        """Return how many jobs and queues each of these workers has locked, and the age of its last heartbeat."""
        return Request(locks_of(worker_ids, self._schema), conn)

    @verb
    def unlock(
        self, worker_ids: Sequence[str], *, by: str | None = None, conn: object | None = None
    ) -> Request[Sequence[WorkerInfo]]:
        """Release every lock of these workers, notify the others, and return what was released.

        Only for dead workers: jobs that a live worker still runs may run twice. With `by`, the name of an operator, the
        action is recorded.
        """
        return Request(unlocking(worker_ids, self._schema, by), conn)
