"""Claim jobs: which statement runs, and where it starts to read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, Required, TypedDict, Unpack

import msgspec

from gw_core.domain.errors import DatabaseUnavailableError
from gw_core.domain.job.job import Job
from gw_core.domain.rules.settings import CLAIM_BYTES
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.connection.statement_runner import array_text, statements_over

# The order of a queue, and near enough the order of everything: by priority, then by `run_at`, then by id. Three sorts,
# of which the first is by id, take half as long as one by all three.
_ORDER: Final = (itemgetter(0), itemgetter(6), itemgetter(5))

CLAIM_PLAN: Final = {
    # The claim must walk its indexes in order whatever the statistics say: with none, or with those of an empty table,
    # the planner sorts the whole backlog. Measured: 100,000 queues, no statistics: 110 jobs/s with its own choice.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    # The generic plan guesses that a limit keeps a tenth of the table. Past some 100,000 jobs that looks costly enough
    # to be compiled, again at every claim, which took 90 ms where the claim itself takes 4.
    "jit": "off",
    # Without a response for longer than this, the server is gone, and no claim runs that the worker has given up.
    "statement_timeout": "15s",
    # A claim never waits for a row lock, so it can only wait for a table lock, which the error then names.
    "lock_timeout": "5s",
    # A claim that is lost in a crash only means that the job is claimed again. One that holds a queue turns it on.
    "synchronous_commit": "off",
}
"""Settings of the session that claims."""

POLLS: Final = 10
"""One of this many polls without a due job claims."""

SCAN_LIMIT: Final = 100
"""How many queued jobs, and then queues, a small claim reads at most before it takes what it found."""

STEPS: Final = 256
"""How many values of a field, each with one priority, a claim within a limit by field reads at most."""

_BEFORE_ALL_VALUES: Final = ("", -32769)

CLAIMS_WITH_QUEUES: Final = 50
"""How many claims include named queues once there were some, before one checks whether there still are."""

SLOW_SECONDS: Final = 0.015
SLOW_SECONDS_A_JOB: Final = 0.00002
"""A claim that took longer than this, and this for each job it found, may have read much that it could not take."""

SLOW_ONES: Final = 3
"""This many in a row are not an accident: a plan that was made, a machine that was busy."""

MAX_MARGIN: Final = 5.0
"""Seconds before the first job found last time at which a claim begins: there are the jobs of transactions that took
their time. Where even that holds very many dead rows, as after a bulk, the margin shrinks until claims are quick."""

SHARE: Final = 20
"""Claims from the very beginning take at most one part in this many of the time, …"""

MAX_SKIPPING_SECONDS: Final = 30.0
"""… and are this many seconds apart at most: what lies before the margin waits so long."""


class ClaimOptions(TypedDict, total=False):
    """What all claims of a step have in common."""

    worker_id: Required[str]
    per_queue: int
    """How many jobs of one named queue, which then run one after the other; 1 by default."""
    forbidden_flags: Sequence[str] | None
    now: datetime | None
    """The client's time; None: the server's."""
    max_bytes: int
    """How much memory the payloads may take; a single larger job is still claimed."""


class Claims:
    """Claims jobs over one connection; one thread uses it. Raises our errors and not the driver's."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self.connection = connection
        self.schema = schema
        # Prepared at the first use: the plan is forced to be the generic one, see CLAIM_PLAN.
        self._statements = statements_over(connection, schema, prepares_early=True)
        self.scanned_to: int | None = None
        """The id of the last queue that the last claim read, if unlocked queues may follow; None when it read all."""
        self.claims_with_queues = 0
        self.saw_queues = True
        """Whether jobs of named queues may have waited during the last claim."""
        self.is_rest_locked = False
        """Whether all jobs that the last claim left are in the queue that it locked: only its release makes room."""
        self.left_rest = False
        """Whether the last claim left jobs to the complete statement, which the next claim runs."""
        self.skip_ahead = SkipAhead()
        self._known_priority: int | None = None
        """The most urgent priority that the last claim found; None when it found no job."""
        self._asked = 0
        self._any_waits = False
        """Whether a job waited, perhaps for later, when that was last asked."""

    @property
    def has_more(self) -> bool:
        """Whether the last claim ended before it had read everything."""
        return self.left_rest or self.scanned_to is not None

    def is_nothing_due(self, now: datetime | None = None) -> bool:
        """Return whether no job is due, at a fraction of the cost of a claim; false also without having asked.

        Some polls do not ask: only a claim notices that it reads many dead rows, and skips them.
        """
        self._asked += 1
        if self._asked % POLLS == 0 or self.skip_ahead.may_skip(time.monotonic()):
            return False
        if not self._any_waits:
            [[self._any_waits]] = self._statements.rows("is_any_available", {})
            if not self._any_waits:
                return True
        [[is_due, self._any_waits]] = self._statements.rows("is_any_due", {"now": now})
        return not is_due

    def claim(self, *, tasks: Mapping[int, str], limit: int, **options: Unpack[ClaimOptions]) -> list[Job]:
        """Lock up to `limit` runnable jobs for the worker and return them in the order they should start.

        A claim starts behind the dead rows where there are very many, and at the beginning otherwise.
        """
        values = _values(tasks, limit, options)
        # From the queue at which the last scan stopped, when those of the first jobs are locked.
        values["scan_from"] = 0 if self.scanned_to is None else self.scanned_to + 1
        values["scan_limit"] = max(SCAN_LIMIT, limit)
        values["known_priority"] = self._known_priority
        self.scanned_to, self.left_rest, self.is_rest_locked = None, False, False
        skip, began = self.skip_ahead, time.monotonic()
        try:
            if skip.may_skip(began):
                rows = self._claim_all_kinds(values | skip.values())
                skip.record_partial_scan(found=len(rows), seconds=time.monotonic() - began)
            else:
                values |= _FROM_THE_BEGINNING
                unqueued = self._claim_unqueued(values)
                rows = self._claim_all_kinds(values) if unqueued is None else unqueued
                skip.record_full_scan(found=len(rows), seconds=time.monotonic() - began, now=time.monotonic())
        except MemoryError as error:
            raise _too_large() from error
        _sort(rows)
        self._known_priority = rows[0][5] if rows else None
        if rows:
            # Of each kind the first job, which comes last here.
            skip.record_found({(row[5], row[12] is not None): row[6] for row in reversed(rows)})
        return _jobs(rows, tasks)

    def _claim_unqueued(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]] | None:
        """Run the short statement, unless there were named queues lately; None: the complete one must run.

        One claim never returns the jobs of two statements: should the second fail, those of the first would be lost.
        """
        if self.claims_with_queues:
            self.claims_with_queues -= 1
            return None
        rows = self._statements.rows("claim_unqueued_jobs", values)
        if not rows or rows[-1][0] is not None:
            self.saw_queues = False
            return rows
        rows.pop()
        self.claims_with_queues = CLAIMS_WITH_QUEUES
        self.left_rest = bool(rows)
        return rows or None

    def _claim_all_kinds(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run the complete statement."""
        rows = self._statements.rows("claim_jobs", values)
        report = rows.pop()
        names = {} if report[2] is None else msgspec.json.decode(report[2], type=dict[int, str])
        self.saw_queues, self.is_rest_locked, self.scanned_to = True, bool(report[3]), report[12]
        return [(*row[:13], names.get(row[12]), *row[14:]) for row in rows]


class ClaimsOfQueues:
    """Claims jobs of some named queues alone; one thread uses it."""

    saw_queues = True
    has_more = is_rest_locked = left_rest = False
    """A claim reads all of its queues."""

    def __init__(self, connection: Connection, schema: str, queues: Sequence[str]) -> None:
        self._queues = list(queues)
        self._statements = statements_over(connection, schema, prepares_early=True)

    def claim(self, *, tasks: Mapping[int, str], limit: int, **options: Unpack[ClaimOptions]) -> list[Job]:
        """Lock up to `limit` runnable jobs of the queues for the worker."""
        values = _values(tasks, limit, options) | {"queue_names": self._queues}
        try:
            return _jobs(_sort(self._statements.rows("claim_jobs_of_queues", values)), tasks)
        except MemoryError as error:
            raise _too_large() from error


class ClaimsByField:
    """Claims jobs of a task whose limit counts each value of a field of the payload separately; one thread uses it."""

    def __init__(
        self, connection: Connection, schema: str, *, task: str, field: str, queues: Sequence[str] = ()
    ) -> None:
        self.task = task
        self.field = field
        self._queues = list(queues)
        """The only queues whose jobs it claims; none: it claims all jobs of the task."""
        self._statements = statements_over(connection, schema, prepares_early=True)
        self.is_any_full = False
        """Whether a value has as many running jobs as may run, by the last claim and those that it went on from."""
        self.seconds_until_tokens: float | None = None
        """When the first value without tokens has one, by the same claims; None: there was none."""
        self._after: tuple[str, int] | None = None

    @property
    def has_more(self) -> bool:
        """Whether the last claim ended before it had read all values; the next one goes on there."""
        return self._after is not None

    def claim(self, *, tasks: Mapping[int, str], limit: int, **options: Unpack[ClaimOptions]) -> list[Job]:
        """Lock up to `limit` runnable jobs of the task for the worker, within the limit of each value."""
        [task_id] = tasks
        after_value, after_priority = self._after or _BEFORE_ALL_VALUES
        values = _values(tasks, limit, options)
        values |= {"task": self.task, "scan_limit": STEPS, "after_value": after_value, "after_priority": after_priority}
        values["queue_names"] = self._queues
        form = {"TASK": str(task_id), "FIELD": self.field, "ONLYQUEUES": "true" if self._queues else "false"}
        try:
            rows = self._statements.rows("claim_by_field", values, **form)
        except MemoryError as error:
            raise _too_large() from error
        report = rows.pop()
        if self._after is None:
            self.is_any_full, self.seconds_until_tokens = False, None
        self.is_any_full |= report[3] > 0
        waits = [each for each in (self.seconds_until_tokens, report[15]) if each is not None]
        self.seconds_until_tokens = min(waits, default=None)
        self._after = None if report[13] is None else (report[13], report[5])
        return _jobs(_sort(rows), tasks)


class SkipAhead:
    """Records the first job found of each priority, and decides when a claim may start there.

    While another transaction prevents vacuum from removing them, the index entries of deleted jobs precede those of
    waiting jobs, and every claim reads them all. Only then, measured by the duration of claims, do most claims start
    where the last one found something. From time to time one starts at the beginning; once that is fast again, all do.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[int, bool], float] = {}
        """`run_at`, in seconds since 1970, of the first job that was found last, by priority and having a queue."""
        self._margin = MAX_MARGIN
        self._slow_ones = 0
        self.full_scan_at = 0.0

    def may_skip(self, now: float) -> bool:
        """Return whether a claim may start at the recorded jobs now."""
        return now < self.full_scan_at and bool(self._first)

    def skips_until(self, now: float) -> float | None:
        """Return when the next claim starts at the beginning, if those before do not."""
        return self.full_scan_at if self.may_skip(now) else None

    def restart_scan(self) -> None:
        """Let the next claim start from the beginning."""
        self.full_scan_at = 0.0

    def record_full_scan(self, *, found: int, seconds: float, now: float) -> None:
        """Record the duration of a claim that started at the beginning."""
        if not _is_slow(found, seconds):
            self._slow_ones, self.full_scan_at = 0, 0.0
            return
        self._slow_ones += 1
        if self._slow_ones >= SLOW_ONES:
            self.full_scan_at = now + min(SHARE * seconds, max(MAX_SKIPPING_SECONDS, 3 * seconds))

    def record_partial_scan(self, *, found: int, seconds: float) -> None:
        """Record the duration of a claim that started at the recorded jobs."""
        self._margin = self._margin / 4 if _is_slow(found, seconds) else min(MAX_MARGIN, self._margin * 1.1 + 0.001)

    def record_found(self, first: Mapping[tuple[int, bool], float]) -> None:
        """Record the first job found of each kind: its `run_at` by its priority and whether it has a named queue."""
        self._first.update(first)

    def values(self) -> dict[str, list[Any]]:
        """Return the values of the statement: priorities, and the `run_at` from which to read their jobs."""
        columns: dict[str, list[Any]] = {}
        for kind, has_queue in (("unqueued", False), ("queued", True)):
            known = sorted(
                (priority, run_at) for (priority, queued), run_at in self._first.items() if queued is has_queue
            )
            columns[f"{kind}_priorities"] = [priority for priority, _ in known]
            columns[f"{kind}_since"] = [run_at - self._margin for _, run_at in known]
        return columns


def _values(tasks: Iterable[int], limit: int, options: ClaimOptions) -> dict[str, Any]:
    """Return the values that all statements of claims have."""
    return {
        "worker_id": options["worker_id"],
        "task_ids": array_text(tasks),
        "limit": limit,
        "per_queue": max(1, min(limit, options.get("per_queue", 1))),
        "forbidden_flags": list(options.get("forbidden_flags") or ()) or None,
        "now": options.get("now"),
        "max_bytes": options.get("max_bytes", CLAIM_BYTES),
    }


def _too_large() -> DatabaseUnavailableError:
    return DatabaseUnavailableError("the claimed jobs do not fit into memory; fewer are claimed next")


def _sort(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    for column in _ORDER:
        rows.sort(key=column)
    return rows


def _jobs(rows: Iterable[tuple[Any, ...]], tasks: Mapping[int, str]) -> list[Job]:
    # Each column has a name: to pass on a part of each row takes twice as long.
    return [
        Job(
            job_id,
            tasks[task_id],
            payload,
            attempts,
            max_attempts,
            priority,
            run_at,
            created_at,
            updated_at,
            revision,
            key,
            flags,
            queue_id,
            queue_name,
            last_error,
            locked_at,
        )
        for (
            job_id,
            task_id,
            payload,
            attempts,
            max_attempts,
            priority,
            run_at,
            created_at,
            updated_at,
            revision,
            key,
            flags,
            queue_id,
            queue_name,
            last_error,
            locked_at,
        ) in rows
    ]


def _is_slow(found: int, seconds: float) -> bool:
    return seconds > SLOW_SECONDS + SLOW_SECONDS_A_JOB * found


_FROM_THE_BEGINNING: Final = dict.fromkeys(
    ("unqueued_priorities", "unqueued_since", "queued_priorities", "queued_since")
)
