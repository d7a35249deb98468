"""The common base of `Client` and `AsyncClient`: their parts, and the methods that they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from gw_core.clients.verbs import Part, R, Request, add_verb, batch_verb, blocking, verb
from gw_core.domain.job.job import Job, JobOptions, JobSpec, batch_spec, job_spec
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.plugins import Skip

# The rest is imported where it is used: a command that only reads a job does not wait for the migration code.
if TYPE_CHECKING:
    from gw_core.clients.cleanup import Cleanup
    from gw_core.clients.cron import Cron
    from gw_core.clients.doctor import Doctor
    from gw_core.clients.grants import Grants
    from gw_core.clients.groups import Groups
    from gw_core.clients.history import History
    from gw_core.clients.jobs import Jobs
    from gw_core.clients.limits import Limits
    from gw_core.clients.pauses import Pauses
    from gw_core.clients.queues import Queues
    from gw_core.clients.tasks import Tasks
    from gw_core.clients.workers import Workers
    from gw_core.domain.reports.query_results import QueueCounts
    from gw_core.domain.rules.roles import RoleKind
    from gw_core.postgres.connection.database import Database
    from gw_core.postgres.road.add_calls import RemovedJob
    from gw_core.postgres.schema.migrations import MigrationPlan, MigrationReport


class QueueClient(Part[R]):
    """One queue: a database and a schema in it."""

    @property
    def schema(self) -> str:
        """The schema the queue lives in."""
        return self._schema

    @property
    def events(self) -> Events:
        """Delivers the events of this client, such as `JobAdded`."""
        events: Events = self._runtime.events
        return events

    @property
    def is_embedded(self) -> bool:
        """True when gw runs the database itself, which may stop when the last client leaves."""
        database: Database | None = self._runtime.database
        return database is not None and database.is_embedded

    # -- parts -----------------------------------------------------------------------------------------------------

    @cached_property
    def jobs(self) -> Jobs[R]:
        """List, count and change jobs, which a selection or ids name; a selection is a text or a `Selection`."""
        from gw_core.clients.jobs import Jobs

        return Jobs(self._runtime)

    @cached_property
    def queues(self) -> Queues[R]:
        """The named queues: `list`."""
        from gw_core.clients.queues import Queues

        return Queues(self._runtime)

    @cached_property
    def tasks(self) -> Tasks[R]:
        """The tasks in the database, and their recent runs: `list`, `statistics`, `statistics_over_time`."""
        from gw_core.clients.tasks import Tasks

        return Tasks(self._runtime)

    @cached_property
    def workers(self) -> Workers[R]:
        """The workers of the queue: `list`, `sweep`, `locks`, `unlock`."""
        from gw_core.clients.workers import Workers

        return Workers(self._runtime)

    @cached_property
    def cron(self) -> Cron[R]:
        """The crontab items that workers have registered: `list`, `forget`."""
        from gw_core.clients.cron import Cron

        return Cron(self._runtime)

    @cached_property
    def groups(self) -> Groups[R]:
        """Jobs that wait for others: `add`, `list`, `cancel`."""
        from gw_core.clients.groups import Groups

        return Groups(self._runtime)

    @cached_property
    def history(self) -> History[R]:
        """The record of jobs that have ended: `list`, `count`, `attempts`."""
        from gw_core.clients.history import History

        return History(self._runtime)

    @cached_property
    def limits(self) -> Limits[R]:
        """Limits of tasks across all gw workers: `set`, `remove`, `list`."""
        from gw_core.clients.limits import Limits

        return Limits(self._runtime)

    @cached_property
    def pauses(self) -> Pauses[R]:
        """Pause and resume tasks, named queues, flags or everything: `pause`, `resume`, `list`."""
        from gw_core.clients.pauses import Pauses

        return Pauses(self._runtime)

    @cached_property
    def cleanup(self) -> Cleanup[R]:
        """Deletes permanently failed jobs, unused task identifiers and unused queues."""
        from gw_core.clients.cleanup import Cleanup

        return Cleanup(self._runtime)

    @cached_property
    def doctor(self) -> Doctor[R]:
        """Diagnoses the queue, suggests fixes, and checks that it responds."""
        from gw_core.clients.doctor import Doctor

        return Doctor(self._runtime)

    @cached_property
    def grants(self) -> Grants[R]:
        """Database roles that may use the queue: `grant`, `revoke`, `list`."""
        from gw_core.clients.grants import Grants

        return Grants(self._runtime)

    # -- add and remove --------------------------------------------------------------------------------------------

    @add_verb
    def add(
        self,
        task: str | JobSpec | Any,
        payload: Any = None,
        *,
        conn: object | None = None,
        **options: Unpack[JobOptions],
    ) -> Request[Job]:
        """Add a job and return it.

        `task` is an identifier, a whole `JobSpec`, or the function of a task: type checkers then check the payload
        against the function's annotation. `options` are the other fields of `JobSpec`.

        `conn` is your own connection. For a `Client` it is a psycopg connection or cursor of any class, a SQLAlchemy
        `Session` or `Connection`, one of Django's connections or its alias, or a psycopg2 connection. For an
        `AsyncClient` it is a psycopg `AsyncConnection` or `AsyncCursor`, a SQLAlchemy `AsyncSession` or
        `AsyncConnection`, or an asyncpg connection. The job belongs to its transaction and exists once that commits;
        in autocommit mode, immediately. asyncpg commits immediately outside `conn.transaction()`.

        Raises `InvalidJobError` and `InvalidInputError` before anything is sent, `JobRejectedError` if a plugin rejects
        the job, and `JobSkipped` if one skips it; see `try_add`.
        """
        return Request(self._runtime.adds.add_or_raise(job_spec(task, payload, **options)), conn)

    @add_verb
    def try_add(
        self,
        task: str | JobSpec | Any,
        payload: Any = None,
        *,
        conn: object | None = None,
        **options: Unpack[JobOptions],
    ) -> Request[Job | Skip]:
        """As `add`, but return why a plugin skipped the job, where `add` raises `JobSkipped`."""
        return Request(self._runtime.adds.add(job_spec(task, payload, **options)), conn)

    @verb
    def add_many(self, specs: Iterable[JobSpec], *, conn: object | None = None) -> Request[list[int]]:
        """Add jobs in as few statements as possible, all or none, and return their ids in no promised order.

        Jobs that a plugin skips are left out. With `conn` they belong to your transaction, however many they are.
        `conn` in autocommit mode has none: they are then added in one transaction that commits before this returns.
        """
        return Request(self._runtime.adds.add_many(specs), conn)

    @batch_verb
    def add_batch(
        self,
        task: str | JobSpec | Any,
        items: Sequence[Any] = (),
        *,
        conn: object | None = None,
        **options: Unpack[JobOptions],
    ) -> Request[Job]:
        """Add one job whose payload is the list of `items`: a batch job, of which failed items alone are retried.

        A whole spec has them as its payload. With a `job_key` the items are appended to a waiting job's items.
        `options` are those of `add`.
        """
        return Request(self._runtime.adds.add_or_raise(batch_spec(task, items, **options)), conn)

    @verb
    def remove(self, job_key: str, *, by: str | None = None, conn: object | None = None) -> Request[RemovedJob | None]:
        """Remove the job with this key; a running job ends, but is not retried. None: there is no such job.

        With `by`, the name of an operator, the action is recorded. `conn` is your own connection, as in `add`: the job
        is removed in its transaction.
        """
        from gw_core.postgres.road.enqueue import removing_by_key

        return Request(removing_by_key(job_key, self._schema, by), conn)

    # -- the whole queue -------------------------------------------------------------------------------------------

    @blocking
    def counts(self, *, exact: bool = False) -> QueueCounts:
        """Return how many jobs are in each state, in total and by task; `exact` counts instead of estimating."""
        return self._queries.counts(exact=exact)

    @blocking
    def migrate(self) -> MigrationReport:
        """Install or update the schema; any number of processes can do this at the same time."""
        from gw_core.postgres.schema.migrations import migrate

        with self._connections.connection() as connection:
            return migrate(connection, self._schema)

    @blocking
    def migration_plan(self) -> MigrationPlan:
        """Return what `migrate` would run, and change nothing."""
        from gw_core.postgres.schema.migrations import plan

        with self._connections.connection() as connection:
            return plan(connection, self._schema)

    @blocking
    def migration_script(self) -> str:
        """Return what `migrate` would run as a script for psql, and change nothing."""
        from gw_core.postgres.schema.migrations import script

        with self._connections.connection() as connection:
            return script(connection, self._schema)

    @blocking
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
            state = check(connection, self._schema, uses=JOB_USES, kind=wanted)
        problem = state.migration_problem()
        if problem is not None:
            raise problem
        if state.hidden:
            raise rows_hidden(state.role, state.hidden, self._schema, wanted)
