"""Act on sets of jobs, free locks and clear away what nobody needs: the statements of an operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from psycopg.rows import tuple_row

from gw_core.domain.job import JobSpec, check_count
from gw_core.domain.job_state import JobFilter
from gw_core.postgres.connections import Lender
from gw_core.postgres.database import Connection
from gw_core.postgres.names import MOST_NAMES, NameKind, find_names
from gw_core.postgres.schema_state import WORKERS_STEP, check
from gw_core.postgres.statements import query
from gw_core.postgres.translation import translated

BATCH: Final = 1_000
"""Jobs in one transaction: few enough that a worker waiting for one of the rows does not notice."""

LONGEST_WAIT: Final = "10s"
"""How long a batch waits for a row that somebody else holds in an open transaction."""

NOW: Final = timedelta()


class SkipReason(StrEnum):
    """Why a job was left as it is."""

    LOCKED = "locked"
    """A worker runs it."""
    MISSING = "missing"
    """There is no such job, or no longer."""
    NOT_FAILED = "not failed"
    """It has not failed yet, so there is nothing to retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a filter means at this moment."""

    jobs: int
    highest_id: int
    running: int
    """Jobs that a worker runs; they will be skipped."""
    locked: int
    """Jobs with any lock, also one older than four hours."""
    unfailed: int
    """Jobs that wait for their first attempt; `retry` skips them."""


@dataclass(frozen=True, slots=True)
class Tended:
    """A job that was acted on."""

    id: int
    task: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A job that was left as it is, and why; `locked_by` is the worker that runs it."""

    id: int
    task: str | None
    reason: SkipReason
    locked_by: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What one transaction did."""

    done: tuple[Tended, ...]
    skipped: tuple[Skipped, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Locks:
    """What a worker holds, and how long ago its heart beat; None when it never did, or nobody can know."""

    worker_id: str
    jobs: int
    queues: int
    last_beat: timedelta | None


@dataclass(frozen=True, slots=True)
class _Held:
    """A row we hold."""

    id: int
    task: str
    locked_by: str | None
    is_fresh: bool | None
    has_given_its_last: bool
    has_failed: bool

    @property
    def is_running(self) -> bool:
        """True when the shared functions would leave it alone: a lock of more than four hours counts as none."""
        return bool(self.is_fresh)


_Act = Callable[[Connection, list[_Held]], tuple[set[int], dict[int, SkipReason]]]


@dataclass(frozen=True, slots=True)
class Care:
    """Acts on any number of jobs in bounded batches, each a transaction; `client.care` is one. Safe from any thread.

    What acts on jobs returns an iterator: every step is one batch, and to stop asking is to stop between batches.
    """

    lender: Lender
    schema: str
    batch: int = field(default=BATCH)

    # -- acting ----------------------------------------------------------------------------------------------------

    def survey(self, jobs: JobFilter) -> Survey:
        """Count the jobs a filter means, and change nothing."""
        with self._connection() as connection:
            found = rows(connection, query("survey_jobs", self.schema), _conditions(jobs))[0]
        count, highest, running, locked, unfailed = found
        return Survey(jobs=count, highest_id=highest, running=running, locked=locked, unfailed=unfailed)

    def complete(self, jobs: JobFilter) -> Iterator[Batch]:
        """Delete jobs as if they had been completed."""
        return self._walk(jobs, self._unlocked("complete_held_jobs"))

    def fail(self, jobs: JobFilter, reason: str | None = None) -> Iterator[Batch]:
        """Fail jobs for good."""
        return self._walk(jobs, self._unlocked("fail_held_jobs", reason=reason))

    def reschedule(
        self,
        jobs: JobFilter,
        *,
        run_at: datetime | timedelta | None = None,
        priority: int | None = None,
        attempts: int | None = None,
        max_attempts: int | None = None,
    ) -> Iterator[Batch]:
        """Change when and how jobs run; None keeps a value, a `timedelta` counts from the database's clock."""
        check_count("attempts", attempts, 0)
        check_count("max attempts", max_attempts, 1)
        JobSpec(task="reschedule", run_at=run_at, priority=priority)  # the same limits as for a new job
        is_span = isinstance(run_at, timedelta)
        values = {
            "run_at": None if is_span else run_at,
            "delay_seconds": run_at.total_seconds() if isinstance(run_at, timedelta) else None,
            "priority": priority,
            "attempts": attempts,
            "max_attempts": max_attempts,
        }
        act = self._unlocked("reschedule_held_jobs", **values)
        return self._walk(jobs, lambda connection, held: self._announced(connection, act(connection, held)))

    def retry(self, jobs: JobFilter) -> Iterator[Batch]:
        """Let failed jobs run again now: one that waits for its next attempt at once, one that failed for good anew.

        The latter has all its attempts before it again. The workers are told.
        """
        return self._walk(jobs, self._retry)

    # -- locks -----------------------------------------------------------------------------------------------------

    def locks(self, worker_ids: Sequence[str]) -> list[Locks]:
        """Return what each of these workers holds."""
        with self._connection() as connection:
            return self._locks(connection, worker_ids)

    def unlock(self, worker_ids: Sequence[str]) -> list[Locks]:
        """Take every lock from workers known to be dead, tell the others, and return what was freed."""
        with self._transaction() as connection:
            names = {"worker_ids": list(worker_ids)}
            rows(connection, query("hold_locked_jobs", self.schema), names)
            freed = self._locks(connection, worker_ids)
            rows(connection, query("force_unlock_workers", self.schema), names)
            self._announce(connection, sum(each.jobs + each.queues for each in freed))
        return freed

    # -- names -----------------------------------------------------------------------------------------------------

    def names(self, kind: NameKind, prefix: str = "", *, limit: int = MOST_NAMES) -> list[str]:
        """Return the first names of a kind that begin with `prefix`, for completion; nothing when that takes long."""
        with self.lender.connection() as connection:
            return find_names(connection, self.schema, kind, prefix=prefix, limit=limit)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _walk(self, jobs: JobFilter, act: _Act) -> Iterator[Batch]:
        if jobs.ids is not None:
            for start in range(0, len(jobs.ids), self.batch):
                ids = jobs.ids[start : start + self.batch]
                yield self._one_batch(jobs, act, after=0, through=ids[-1], ids=ids)[0]
            return
        after, through = 0, self.survey(jobs).highest_id
        while after < through:
            batch, last = self._one_batch(jobs, act, after=after, through=through)
            if last is None:
                return
            yield batch
            after = last

    def _one_batch(
        self, jobs: JobFilter, act: _Act, *, after: int, through: int, ids: Sequence[int] | None = None
    ) -> tuple[Batch, int | None]:
        bounds = {"after": after, "through": through, "limit": self.batch}
        values = {**_conditions(jobs), **bounds, **({} if ids is None else {"ids": list(ids)})}
        with self._transaction() as connection:
            held = [_Held(*row) for row in rows(connection, query("hold_jobs", self.schema), values)]
            done, reasons = act(connection, held)
        skipped = [
            Skipped(each.id, each.task, reasons.get(each.id, SkipReason.LOCKED), each.locked_by)
            for each in held
            if each.id not in done
        ]
        missing = set(ids or ()) - {each.id for each in held}
        skipped += [Skipped(each, None, SkipReason.MISSING) for each in missing]
        tended = tuple(Tended(each.id, each.task) for each in held if each.id in done)
        return Batch(tended, tuple(sorted(skipped, key=lambda each: each.id))), held[-1].id if held else None

    def _unlocked(self, name: str, **values: Any) -> _Act:
        """Return what runs a statement on those jobs that nobody runs."""

        def act(connection: Connection, held: list[_Held]) -> tuple[set[int], dict[int, SkipReason]]:
            return self._run(connection, name, [each for each in held if not each.is_running], **values), {}

        return act

    def _retry(self, connection: Connection, held: list[_Held]) -> tuple[set[int], dict[int, SkipReason]]:
        # A lock of any age keeps a job from running, so a retry that ignored it would not be one.
        free = [each for each in held if each.locked_by is None]
        nothing = {"run_at": None, "delay_seconds": 0.0, "priority": None, "attempts": None, "max_attempts": None}
        ended = [each for each in free if each.has_given_its_last]
        waiting = [each for each in free if each.has_failed and not each.has_given_its_last]
        done = self._run(connection, "reschedule_held_jobs", ended, **{**nothing, "attempts": 0})
        done |= self._run(connection, "reschedule_held_jobs", waiting, **nothing)
        unfailed = {each.id: SkipReason.NOT_FAILED for each in free if each.id not in done}
        return self._announced(connection, (done, unfailed))

    def _run(self, connection: Connection, name: str, jobs: Sequence[_Held], **values: Any) -> set[int]:
        if not jobs:
            return set()
        found = rows(connection, query(name, self.schema), {"ids": [each.id for each in jobs], **values})
        return {row[0] for row in found}

    def _announced(
        self, connection: Connection, result: tuple[set[int], dict[int, SkipReason]]
    ) -> tuple[set[int], dict[int, SkipReason]]:
        self._announce(connection, len(result[0]))
        return result

    def _announce(self, connection: Connection, count: int) -> None:
        if count:
            rows(connection, query("announce_jobs", self.schema), {"count": count})

    def _locks(self, connection: Connection, worker_ids: Sequence[str]) -> list[Locks]:
        beats = {heart.worker_id: heart.age for heart in hearts(connection, self.schema)}
        found = rows(connection, query("survey_locks", self.schema), {"worker_ids": list(worker_ids)})
        return [
            Locks(worker_id=name, jobs=jobs, queues=queues, last_beat=beats.get(name)) for name, jobs, queues in found
        ]

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self.lender.connection() as connection, translated(self.schema):
            yield connection

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with self._connection() as connection, connection.transaction():
            connection.execute("select set_config('lock_timeout', %s, true)", (LONGEST_WAIT,))
            yield connection


def _conditions(jobs: JobFilter) -> dict[str, Any]:
    """Return the conditions under the names the statements know; None for those not given."""
    return {**asdict(jobs), "ids": None if jobs.ids is None else list(jobs.ids)}


@dataclass(frozen=True, slots=True)
class Heart:
    """A worker that said it lives: how long ago, and which tasks it knows."""

    worker_id: str
    age: timedelta
    tasks: Sequence[str]


def hearts(connection: Connection, schema: str) -> list[Heart]:
    """Return the workers whose hearts ever beat and that did not take their leave; none without our own line."""
    if WORKERS_STEP not in check(connection, schema).own_present:
        return []
    found = rows(connection, query("find_last_beats", schema), {})
    return [Heart(name, timedelta(seconds=age), tasks) for name, age, tasks in found]


def rows(connection: Connection, statement: Any, values: Any) -> list[tuple[Any, ...]]:
    """Run a statement of an operator's and return its rows."""
    with connection.cursor(row_factory=tuple_row) as cursor:
        # Never prepared: a plan for any values would walk the table where one for these takes an index.
        return cursor.execute(statement, values, prepare=False).fetchall()
