"""Queries of gw's own command line and console. Unstable: programs use `Client`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gw_core.domain.job.job import Job, JobSpec
from gw_core.domain.rules.sweep_rules import RecoverySettings

if TYPE_CHECKING:
    from gw_core.clients.client import Client
    from gw_core.domain.reports.diagnosis import DoctorFacts
    from gw_core.domain.reports.lock_waits import BackendSession
    from gw_core.domain.reports.query_results import Count, QueueCounts, QueueReport, QueueSize
    from gw_core.domain.reports.snapshot import QueueSnapshot
    from gw_core.postgres.connection.database import Connection
    from gw_core.postgres.read.job_queries import JobQueries
    from gw_core.postgres.read.listener import JobListener
    from gw_core.postgres.read.name_lookup import NameKind
    from gw_core.postgres.read.snapshots import Snapshots
    from gw_core.postgres.road.add_calls import RemovedJob
    from gw_core.postgres.road.bulk_actions import SkippedJob
    from gw_core.selection.parser import Which
    from gw_core.selection.selection import Selection


class FrontEnd:
    """More of the queue of a client. Safe to use from any thread."""

    def __init__(self, client: Client) -> None:
        self._runtime: Any = client._runtime

    @cached_property
    def _queries(self) -> JobQueries:
        from gw_core.postgres.read.job_queries import JobQueries  # adding a job waits for none of it

        return JobQueries(self._runtime.connections, self._runtime.schema)

    @cached_property
    def _snapshots(self) -> Snapshots:
        from gw_core.postgres.read.snapshots import Snapshots

        return Snapshots(self._runtime.connections, self._runtime.schema)

    def cancellable(self, selection: Selection) -> Selection:
        """Return those jobs of a selection that `client.jobs.cancel` acts on."""
        from gw_core.selection.selection import cancellable

        return cancellable(selection)

    def snapshot(self, recovery: RecoverySettings | None = None, *, with_background: bool = True) -> QueueSnapshot:
        """Return the state of the whole queue, at a cost that does not grow with the queue.

        `recovery` defines which workers are dead. A caller that refreshes often sets `with_background` to False, and
        calls `read_background` now and then. A part that fails is named in the answer. An error of every query is
        raised: no connection, no schema, no privilege to read the tables.
        """
        return self._snapshots.read(recovery or RecoverySettings(), with_background=with_background)

    def read_background(self, recovery: RecoverySettings | None = None) -> timedelta | None:
        """Read again for the next snapshots what changes seldom or costs more, such as the locks of workers.

        Returns how long the server worked at it; None if that is unknown. The next snapshots name the parts that
        failed.
        """
        return self._snapshots.read_background(recovery or RecoverySettings()).server_time

    def counts(self) -> QueueCounts:
        """Return how many jobs are in each state. Of a large table each call samples a part, pooled for a minute."""
        return self._queries.counts()

    def count_queue(self, name: str) -> tuple[Count, Count]:
        """Count the jobs that wait in a named queue, and how many of them are due. For a long queue it takes long."""
        return self._queries.count_queue(name)

    def queue_sizes(self) -> Sequence[QueueSize]:
        """Return how many jobs wait in each named queue that has any, the most due jobs first.

        It reads gw's index of queued jobs whole: 114 ms for a million jobs in 2,000 queues.
        """
        return self._queries.queue_sizes()

    def ranked_queues(self, sizes: Sequence[QueueSize]) -> Sequence[QueueReport]:
        """Return the queues of these sizes in their order, with them as exact counts."""
        from gw_core.domain.reports.query_results import Count

        reports = self._queries.queues(names=[each.name for each in sizes], limit=len(sizes), most=1)
        found = {each.name: each for each in reports}
        return [
            replace(found[each.name], unclaimed=Count(each.unclaimed), due=Count(each.due))
            for each in sizes
            if each.name in found
        ]

    def names(self, kind: NameKind, prefix: str = "", *, limit: int = 200) -> Sequence[str]:
        """Return the first names of a kind that begin with `prefix`, for completion; none if that takes long."""
        from gw_core.postgres.read.name_lookup import find_names

        connections, schema = self._runtime.connections, self._runtime.schema
        with connections.connection() as connection:
            limits = connections.database.limits
            return find_names(connection, schema, kind, prefix=prefix, limit=limit, limits=limits)

    def at_server_time(self, which: Which) -> Selection:
        """Return a selection whose times no longer count from now, so that a count and an action mean the same jobs."""
        from gw_core.selection.parser import selection_of

        return self._queries.at_server_time(selection_of(which))

    def tasks_of(self, which: Which, *, most: int) -> Sequence[tuple[str, int]]:
        """Return the tasks of the jobs of a selection with their numbers, the largest first."""
        from gw_core.postgres.road.bulk_actions import counting_tasks
        from gw_core.selection.parser import selection_of

        found: Sequence[tuple[str, int]] = self._runtime.carry_out(
            counting_tasks(selection_of(which), self._runtime.schema, most)
        )
        return found

    @property
    def place(self) -> str:
        """The database and its server, as `shop@db1`."""
        with self.connection() as connection:
            host = connection.info.host
            return f"{connection.info.dbname}@{'localhost' if host.startswith('/') else host}"

    def add_json(self, spec: JobSpec, payload: str, *, conn: object | None = None) -> Job:
        """Add a job whose payload is JSON text already; it is stored to the letter. Raises `JobSkipped`."""
        job: Job = self._runtime.carry_out(self._runtime.adds.add_or_raise(spec, payload), conn)
        return job

    def remove_expected(self, job_key: str, expected: Job, by: str | None = None) -> RemovedJob | SkippedJob:
        """Remove the job with this key if it is still as it was read; else say why it was skipped."""
        from gw_core.postgres.road.bulk_actions import removing_expected

        removed: RemovedJob | SkippedJob = self._runtime.carry_out(
            removing_expected(job_key, expected, self._runtime.schema, by)
        )
        return removed

    def end_session(self, session: BackendSession, *, by: str | None = None) -> bool:
        """End a session that blocks others; return False if it is gone. Needs the right to signal its role.

        With `by`, the name of an operator, the action is recorded, with the statement of the session. If a lock delays
        the record, the session ends first. Raises `NotRecordedError` if the lock outlasts it.
        """
        from gw_core.postgres.road.bulk_actions import ending_session

        has_ended: bool = self._runtime.carry_out(ending_session(session, self._runtime.schema, by))
        return has_ended

    def ping(self) -> None:
        """Find out whether a connection still works; the next call replaces a broken one."""
        from gw_core.postgres.connection.error_mapping import translated

        with translated(self._runtime.schema), self.connection() as connection:
            connection.execute("select 1")

    def examine(self) -> DoctorFacts:
        """Gather the doctor's facts; what the role may not see, or takes too long, is named as not_checked."""
        from gw_core.postgres.read.doctor import Examination

        return Examination(self._runtime.connections, self._runtime.schema).examine()

    def connection(self) -> AbstractContextManager[Connection]:
        """Provide one of the client's connections for a block."""
        connection: AbstractContextManager[Connection] = self._runtime.connections.connection()
        return connection

    def listen(self) -> JobListener:
        """Open a connection that receives a notification for each added job, in any schema of the database.

        Raises `ReadOnlyError` on a standby, which cannot listen. A pooler in transaction mode drops notifications.
        """
        from gw_core.postgres.read.listener import JobListener

        return JobListener(self._runtime.database)

    def cancel_statements(self) -> bool:
        """Cancel the statements under way in other threads, which then raise `StatementTimeoutError`; True: any was.

        So a program that exits does not wait for a result that it no longer needs. Safe from any thread.
        """
        cancelled: bool = self._runtime.connections.cancel()
        return cancelled
