"""The client: add jobs, query them, and change them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

from gw_core.domain.job.group import JobGroup, OnFailure, WaitingGroup
from gw_core.domain.job.job import AddOptions, Job, JobOptions, JobSpec, batch_items, job_spec
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Interceptors, Plugin, Skip
from gw_core.domain.rules.session_limits import NO_LIMITS, SessionLimits
from gw_core.postgres.connection.connections import (
    CallersPool,
    ConnectionPool,
    PoolOrConnection,
    SharedConnection,
    conninfo_of,
    password_of,
)
from gw_core.postgres.connection.database import DEFAULT_SCHEMA, Database, find_conninfo

# The rest is imported where it is used: a command that only reads a job does not wait for the migration code.
if TYPE_CHECKING:
    from gw_core.clients.sharding import ShardedClient, ShardKey
    from gw_core.clients.workers import Workers
    from gw_core.domain.cron.cron_item import KnownCronItem
    from gw_core.domain.reports.query_results import Count, QueueReport, QueueStatistics, TaskReport
    from gw_core.domain.reports.run_statistics import RunHistory, RunStatistics
    from gw_core.domain.reports.snapshot import QueueSnapshot
    from gw_core.domain.rules.roles import RoleKind
    from gw_core.domain.rules.sweep_rules import RecoverySettings
    from gw_core.execution.context import JobContext
    from gw_core.postgres.connection.connections import AnyPool
    from gw_core.postgres.read.doctor import Doctor
    from gw_core.postgres.read.history import History
    from gw_core.postgres.read.job_queries import JobQueries
    from gw_core.postgres.read.job_results import ResultListener
    from gw_core.postgres.read.listener import JobListener
    from gw_core.postgres.read.name_lookup import NameKind
    from gw_core.postgres.road.add_calls import RemovedJob
    from gw_core.postgres.road.bulk_actions import Jobs, SkippedJob
    from gw_core.postgres.road.enqueue import Enqueuer
    from gw_core.postgres.road.limits import Limits
    from gw_core.postgres.road.pauses import Pauses
    from gw_core.postgres.schema.cleanup import Cleanup
    from gw_core.postgres.schema.grants import Grants
    from gw_core.postgres.schema.migrations import MigrationPlan, MigrationReport

P = TypeVar("P")


class Client:
    """One queue: a database and a schema in it. Safe to share between threads; make one and keep it.

    `conninfo` is anything libpq takes, or `embedded:`; without one `DATABASE_URL` and libpq's variables are used.
    Connections are opened when first needed, at most `max_pool_size`; the server shows them as `application_name` and
    limits each by `limits`. `password` is called for each new connection, for passwords that change. With `pool`, a
    psycopg pool of yours, its connections are used instead, and get their settings back afterwards.

    Raises `NoConnectionError` when nothing names a database; every method raises `DatabaseUnavailableError`,
    `AuthenticationError`, `SchemaMissingError` and the like.
    """

    def __init__(
        self,
        conninfo: str | None = None,
        *,
        schema: str = DEFAULT_SCHEMA,
        prepared_statements: bool = True,
        max_pool_size: int = 10,
        events: Events | None = None,
        plugins: Sequence[Plugin] = (),
        pg_bin: Path | None = None,
        application_name: str = "gw",
        limits: SessionLimits = NO_LIMITS,
        password: Callable[[], str] | None = None,
        pool: AnyPool | None = None,
    ) -> None:
        self.events = events or Events()
        for plugin in plugins:
            plugin.attach(self.events)
        self._database = Database(
            find_conninfo(conninfo) if pool is None else conninfo_of(pool),
            schema=schema,
            application_name=application_name,
            prepared_statements=prepared_statements,
            pg_bin=pg_bin,
            limits=limits,
            password=password or password_of(pool),
        )
        self._connections: PoolOrConnection
        if pool is not None:
            self._connections = CallersPool(self._database, pool)
        elif max_pool_size == 1:  # one caller at a time needs no pool and none of its threads
            self._connections = SharedConnection(self._database)
        else:
            self._connections = ConnectionPool(self._database, max_size=max_pool_size)
        self._interceptors = Interceptors(plugins)

    @classmethod
    def sharded(cls, connections: Mapping[str, str], *, by: ShardKey, **options: Any) -> ShardedClient[Self]:
        """Return a client for queues on several databases, by name; `options` are those of each `Client`.

        `by` returns the key of a job, such as its tenant: jobs with equal keys go to the same database.
        """
        from gw_core.clients.sharding import ShardedClient

        return ShardedClient({name: cls(each, **options) for name, each in connections.items()}, by=by)

    @cached_property
    def _queries(self) -> JobQueries:
        from gw_core.postgres.read.job_queries import JobQueries

        return JobQueries(self._connections, self.schema)

    def snapshot(self, recovery: RecoverySettings | None = None, *, with_locks: bool = True) -> QueueSnapshot:
        """Return the state of the whole queue in one round trip, at a cost that does not grow with the queue.

        `recovery` defines which workers are dead. A caller that refreshes often sets `with_locks` to False, and counts
        locks with `count_locks`. A part that fails is named in the answer. What makes every query fail is raised: no
        connection, no schema, no privilege to read the tables.
        """
        return self._queries.snapshot(recovery, with_locks=with_locks)

    def count_locks(self, recovery: RecoverySettings | None = None) -> timedelta | None:
        """Count again what workers have locked, for the next snapshots; they report an error if it failed.

        Returns how long the server worked at it; None if that is unknown. Before the first snapshot it does nothing,
        because that snapshot counts locks.
        """
        return self._queries.count_locks(recovery)

    def statistics(self, *, exact: bool = False) -> QueueStatistics:
        """Return how many jobs are in each state, in total and by task; `exact` counts instead of estimating."""
        return self._queries.statistics(exact=exact)

    def queues(
        self, *, after: str = "", limit: int = 50, only_locked: bool = False, most: int | None = None
    ) -> list[QueueReport]:
        """Return named queues by name, those after `after`, or only those of them that are locked.

        The jobs of each are counted up to `most`, by default a thousand.
        """
        return self._queries.queues(after=after, limit=limit, only_locked=only_locked, most=most)

    def count_queue(self, name: str) -> tuple[Count, Count]:
        """Count all jobs that wait in a named queue, and those of them that are due. For a long queue it takes long."""
        return self._queries.count_queue(name)

    def tasks(self, recovery: RecoverySettings | None = None, *, exact: bool = False) -> list[TaskReport]:
        """Return every task in the database, by name, with its jobs and the live workers that know it.

        Workers are unknown (None) without a live worker, and if one of them does not report its tasks, such as a
        Node.js worker, which is known by its locks. `recovery` defines which workers are dead.
        """
        return self._queries.tasks(recovery, exact=exact)

    def run_history(
        self, back: timedelta = timedelta(hours=1), *, step: timedelta = timedelta(minutes=1), task: str | None = None
    ) -> RunHistory:
        """Return what ended in each step of the last time, as gw's workers recorded it; of one task, or of all.

        A step is a number of minutes. Jobs that workers in other languages ran are not recorded.
        """
        return self._queries.run_history(back, step=step, task=task)

    def runs_by_task(self, back: timedelta = timedelta(hours=1)) -> Mapping[str, RunStatistics]:
        """Return what ended lately of each task, as gw's workers recorded it."""
        return self._queries.runs_by_task(back)

    @cached_property
    def jobs(self) -> Jobs:
        """List, count and change jobs: those of a selection, as text or as a `Selection`, or those with given ids."""
        from gw_core.postgres.road.bulk_actions import Jobs

        return Jobs(self._connections, self.schema)

    @cached_property
    def workers(self) -> Workers:
        """The workers of the queue: `list`, `sweep`, `locks`, `unlock`."""
        from gw_core.clients.workers import Workers

        return Workers(self._connections, self.schema, self.events, self._interceptors)

    @cached_property
    def history(self) -> History:
        """What became of jobs that have ended: `list`, `count`, `attempts`."""
        from gw_core.postgres.read.history import History

        return History(self._connections, self.schema)

    def result(self, job_id: int, *, timeout: timedelta | float | None = None) -> Any:
        """Wait until a job has ended, and return what its task returned. Its task needs `result=True`.

        `timeout` is a `timedelta` or seconds; 0 does not wait, None waits forever. Raises `JobFailedError` when the job
        failed permanently, `ResultTimeoutError` when it does not end in time, and `ResultUnavailableError` when there
        is no result and none will come. Waiting threads share one connection, which listens.
        """
        from gw_core.postgres.read.job_results import wait_for_result

        return wait_for_result(self.history, self._result_listener, job_id, timeout)

    @cached_property
    def _result_listener(self) -> ResultListener:
        from gw_core.postgres.read.job_results import ResultListener

        return ResultListener(self._database)

    @cached_property
    def limits(self) -> Limits:
        """Limits of tasks across all gw workers: `set`, `remove`, `list`."""
        from gw_core.postgres.road.limits import Limits

        return Limits(self._connections, self.schema)

    @cached_property
    def pauses(self) -> Pauses:
        """Pause and resume tasks, named queues, flags or everything: `pause`, `resume`, `list`."""
        from gw_core.postgres.road.pauses import Pauses

        return Pauses(self._connections, self.schema)

    @cached_property
    def cleanup(self) -> Cleanup:
        """Deletes permanently failed jobs, unused task identifiers and unused queues."""
        from gw_core.postgres.schema.cleanup import Cleanup

        return Cleanup(self._connections, self.schema)

    @cached_property
    def doctor(self) -> Doctor:
        """Diagnoses the queue, suggests fixes, and checks that it responds."""
        from gw_core.postgres.read.doctor import Doctor

        return Doctor(self._connections, self.schema)

    @cached_property
    def grants(self) -> Grants:
        """Database roles that may use the queue: `grant`, `revoke`, `list`."""
        from gw_core.postgres.schema.grants import Grants

        return Grants(self._connections, self.schema)

    @cached_property
    def _adder(self) -> Enqueuer:
        from gw_core.postgres.road.enqueue import AddOperations, Enqueuer

        return Enqueuer(self._connections, self.schema, AddOperations(self._interceptors, self.events))

    @property
    def schema(self) -> str:
        """The schema the queue lives in."""
        return self._database.schema

    @property
    def is_embedded(self) -> bool:
        """True when the database is one that is run for us, and may stop when the last client leaves."""
        return self._database.is_embedded

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and leave the embedded server, if one was started."""
        if "_result_listener" in self.__dict__:
            self._result_listener.close()
        self._connections.close()
        self._database.close()

    def cancel_statements(self) -> bool:
        """Cancel the statements under way in other threads, which then raise `StatementTimeoutError`; True: any was.

        So a program that exits does not wait for a result that it no longer needs. Safe from any thread.
        """
        return self._connections.cancel()

    def listen(self) -> JobListener:
        """Open a connection that receives a notification for each added job, in any schema of the database.

        Raises `ReadOnlyError` on a standby, which cannot listen. A pooler in transaction mode drops notifications.
        """
        from gw_core.postgres.read.listener import JobListener

        return JobListener(self._database)

    # -- add -------------------------------------------------------------------------------------------------------

    @overload
    def add(self, task: str | JobSpec, payload: Any = None, **options: Unpack[AddOptions]) -> Job | Skip: ...
    @overload
    def add(self, task: Callable[[P, JobContext], object], payload: P, **options: Unpack[AddOptions]) -> Job | Skip: ...
    @overload
    def add(self, task: Callable[[P], object], payload: P, **options: Unpack[AddOptions]) -> Job | Skip: ...
    @overload
    def add(self, task: Callable[[], object], **options: Unpack[AddOptions]) -> Job | Skip: ...
    def add(
        self,
        task: str | JobSpec | Callable[..., object],
        payload: Any = None,
        *,
        conn: object | None = None,
        **options: Unpack[JobOptions],
    ) -> Job | Skip:
        """Add a job and return it, or why a plugin skipped it.

        `task` is an identifier, a whole `JobSpec`, or the function of a task: type checkers then check the payload
        against the function's annotation. `options` are the other fields of `JobSpec`.

        `conn` is your own connection: a psycopg connection or cursor of any class, a SQLAlchemy `Session` or
        `Connection`, one of Django's connections or its alias, or a psycopg2 connection. The job belongs to its
        transaction and exists once that commits; in autocommit mode, immediately. Raises `InvalidJobError` and
        `InvalidInputError` before anything is sent, and `JobRejectedError` if a plugin rejects the job.
        """
        return self._adder.add(job_spec(task, payload, **options), conn=conn)

    def add_json(self, spec: JobSpec, payload: str, *, conn: object | None = None) -> Job | Skip:
        """Add a job whose payload is JSON text already; it is stored to the letter."""
        return self._adder.add(spec, payload=payload, conn=conn)

    def add_many(self, specs: Iterable[JobSpec], *, conn: object | None = None) -> list[int]:
        """Add jobs in as few statements as possible, all or none, and return their ids in no promised order.

        With `conn` they belong to your transaction, however many they are. `conn` in autocommit mode has none: they are
        then added in one transaction that commits before this returns.
        """
        return self._adder.add_many(specs, conn=conn)

    def group(
        self,
        specs: Iterable[JobSpec],
        *,
        then: JobSpec,
        on_failure: OnFailure | str = OnFailure.HOLD,
        conn: object | None = None,
    ) -> JobGroup:
        """Add jobs, and one that is added when all of them have ended, exactly once.

        A member has ended when it completed or was removed. `on_failure` decides what happens if one fails permanently:
        with `hold` the last job waits until that member was retried or removed, with `cancel` it is dropped, and with
        `run` the member counts as ended. With `conn` everything belongs to your transaction, as in `add`. A `run_at` of
        `then` given as a duration counts from the end of the last member.
        """
        return self._adder.run(self._adder.adds.add_group(specs, then, on_failure), conn)

    def waiting_groups(
        self, job_id: int | None = None, *, job_key: str | None = None, limit: int = 1_000
    ) -> list[WaitingGroup]:
        """Return the groups whose last job waits, oldest first: all, those of a member, or of the last job's key."""
        from gw_core.postgres.road.enqueue import waiting_groups

        return self._adder.run(waiting_groups(job_id, job_key, limit))

    def cancel_groups(self, *ids: int, conn: object | None = None) -> tuple[int, ...]:
        """Drop the waiting jobs of these groups, and return the ids of those that waited. Members stay as they are."""
        from gw_core.postgres.road.enqueue import cancelling_groups

        return self._adder.run(cancelling_groups(ids), conn)

    def add_batch(
        self, task: str, items: Sequence[Any], *, conn: object | None = None, **options: Unpack[JobOptions]
    ) -> Job | Skip:
        """Add one job whose payload is the list of `items`: a batch job, of which failed items alone are retried.

        With a `job_key` the items are appended to those of a waiting job. `options` are those of `add`.
        """
        return self.add(task, batch_items(items), conn=conn, **options)

    # -- remove and complete names ------------------------------------------------------------------------------------

    @overload
    def remove(self, job_key: str, *, conn: object | None = None) -> RemovedJob | None: ...

    @overload
    def remove(self, job_key: str, *, expected: Job) -> RemovedJob | SkippedJob: ...

    def remove(
        self, job_key: str, *, expected: Job | None = None, conn: object | None = None
    ) -> RemovedJob | SkippedJob | None:
        """Remove the job with this key; one that is running ends, but is not retried. None: there is no such job.

        A job that is no longer the `expected` version, or has another key, is skipped, and the result has the reason.
        `conn` is your own connection, as in `add`: the job is removed in its transaction.
        """
        if expected is not None:
            return self.jobs.remove_expected(job_key, expected)
        from gw_core.postgres.road.enqueue import removing

        return self._adder.run(removing(job_key, self.schema), conn)

    def names(self, kind: NameKind, prefix: str = "", *, limit: int = 200) -> list[str]:
        """Return the first names of a kind that begin with `prefix`, for completion; none if that takes long."""
        from gw_core.postgres.read.name_lookup import find_names

        with self._connections.connection() as connection:
            return find_names(connection, self.schema, kind, prefix=prefix, limit=limit)

    # -- recurring tasks -------------------------------------------------------------------------------------------

    def cron_items(self) -> list[KnownCronItem]:
        """Return the crontab items the database has seen, with their last run."""
        from gw_core.postgres.road.cron_store import CronStore

        with self._connections.connection() as connection:
            return CronStore(connection, self.schema).known()

    def forget_cron_item(self, identifier: str) -> KnownCronItem | None:
        """Forget a crontab item and return it, or None; a worker that still has it registers it again."""
        from gw_core.postgres.road.cron_store import CronStore

        with self._connections.connection() as connection:
            return CronStore(connection, self.schema).forget(identifier)

    # -- schema ----------------------------------------------------------------------------------------------------

    def migrate(self) -> MigrationReport:
        """Install or update the schema; any number of processes can do this at the same time."""
        from gw_core.postgres.schema.migrations import migrate

        with self._connections.connection() as connection:
            return migrate(connection, self.schema)

    def check_schema(self, kind: RoleKind | str = "operator") -> None:
        """Raise `SchemaTooNewError` when a breaking revision is installed that this version does not know.

        Raises `PermissionDeniedError` when row security hides every job from the role, or lets it change none.
        `kind` is what the role is for, which decides the grant that the error names.
        Jobs are added without asking, in one round trip; a program that lives long may ask once at its start.
        """
        from gw_core.domain.job.job import named
        from gw_core.domain.rules.roles import RoleKind
        from gw_core.postgres.connection.row_security import JOB_USES, rows_hidden
        from gw_core.postgres.schema.schema_state import check

        wanted = named(RoleKind, kind, "a kind of role")
        with self._connections.connection() as connection:
            state = check(connection, self.schema, uses=JOB_USES, kind=wanted)
        problem = state.migration_problem()
        if problem is not None:
            raise problem
        if state.hidden:
            raise rows_hidden(state.role, state.hidden, self.schema, wanted)

    def migration_plan(self) -> MigrationPlan:
        """Return what `migrate` would run, and change nothing."""
        from gw_core.postgres.schema.migrations import plan

        with self._connections.connection() as connection:
            return plan(connection, self.schema)

    def migration_script(self) -> str:
        """Return what `migrate` would run as a script for psql, and change nothing."""
        from gw_core.postgres.schema.migrations import script

        with self._connections.connection() as connection:
            return script(connection, self.schema)
