"""Claim jobs of tasks that have a limit, each within its limit."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Unpack

import msgspec

from gw_core.domain.errors import PermissionDeniedError
from gw_core.domain.job.expiry import expired_before_start
from gw_core.domain.job.job import Job
from gw_core.domain.rules.only import Only
from gw_core.postgres.road.claims import ClaimOptions, Claims, ClaimsByField, ClaimsOfQueues
from gw_core.postgres.road.job_store import JobStore
from gw_core.postgres.road.limits import forget_full_buckets, locked_limit, read_room, spend_room
from gw_core.postgres.road.permissions import with_lacking_rights

MIN_RETRY: Final = 0.005
MAX_RETRY: Final = 0.1
"""Seconds until a limit without room is tried again, doubled each time: jobs of other workers end without a notice."""

UNUSABLE_RETRY: Final = 1.0
"""Seconds until a limit is tried again whose index or right is missing."""

TIME_SHARE: Final = 20
"""Claims that find nothing, because they read past the jobs of other tasks, take one part in this many of the time."""

FORGET_INTERVAL: Final = 60.0
"""Seconds between two deletions of full buckets, of a limit that has one for each value of a field."""

MAX_RATE_WAIT: Final = 1.0
"""Seconds for which `run --once` waits for a rate that allows the next start."""

OnUnusable = Callable[[str], None]
"""Gets the message why none of a task's jobs is claimed: the worker cannot use its limit."""


class _Claimed(msgspec.Struct, frozen=True):
    """What a claim within a limit found, and when another one can find more."""

    jobs: Sequence[Job] = ()
    is_full: bool = False
    """Whether the end of a job makes room."""
    retry_after: float | None = None
    """Seconds until there is room without the end of a job; None: not before a notification."""
    closed: str | None = None
    """Why no job can start for a while."""


class Gate:
    """One limited task: its own place in the queue, and when to try again. One thread uses it."""

    has_more = is_rest_locked = False
    """What it leaves is claimed again at `next_at`, whatever the jobs of other tasks do."""

    def __init__(
        self, store: JobStore, task_id: int, task: str, on_unusable: OnUnusable, queues: Sequence[str]
    ) -> None:
        self._store = store
        self._task_id = task_id
        self._task = task
        self._on_unusable = on_unusable
        self._queues = queues
        """The only queues whose jobs it claims; none: it claims all jobs of the task."""
        self._claims: Claims | ClaimsOfQueues = (
            ClaimsOfQueues(store.connection, store.schema, queues) if queues else Claims(store.connection, store.schema)
        )
        self._by_field: ClaimsByField | None = None
        self._reported: str | None = None
        """Why its limit could not be used, as last reported."""
        self._forget_at = time.monotonic() + FORGET_INTERVAL
        self._retry = MIN_RETRY
        self._not_before = 0.0
        self.next_at = float("inf")
        """When to try again without a notification, by the monotonic clock."""
        self.is_full = False
        """Whether the end of one of its jobs makes room."""
        self.closed: str | None = None
        """Why no further job can start now, or within a second, by the last claim; None: one may."""

    @property
    def saw_queues(self) -> bool:
        """Whether jobs of named queues may have waited during the last claim."""
        return self._claims.saw_queues

    def claim(self, *, tasks: Mapping[int, str], limit: int, **options: Unpack[ClaimOptions]) -> Sequence[Job]:
        """Claim up to `limit` jobs of the task, as far as its limit allows."""
        began = time.monotonic()
        if began < self._not_before:
            return ()
        connection, schema = self._store.connection, self._store.schema
        with locked_limit(connection, schema, task=self._task, task_id=self._task_id) as locked:
            if locked is None:
                self.is_full, self.closed, self._not_before, self.next_at = False, None, 0.0, began + MIN_RETRY
                return ()
            if locked.field is None:
                claimed = self._claim_by_count(tasks, limit, options)
            elif locked.has_index:
                claimed = self._claim_by_field(tasks, limit, options, field=locked.field)
            else:
                index = f"its limit by {locked.field} needs an index that is missing; set the limit again with gw limit"
                claimed = self._unusable(index, closed=f"the limit by {locked.field} lacks its index")
        if claimed.jobs:
            self._reported = None
        self._plan(claimed, took=time.monotonic() - began)
        return claimed.jobs

    def _claim_by_count(self, tasks: Mapping[int, str], limit: int, options: ClaimOptions) -> _Claimed:
        connection, schema = self._store.connection, self._store.schema
        room, read_at = read_room(connection, schema, task=self._task, task_id=self._task_id)
        allowed = limit if room.jobs is None else min(limit, room.jobs)
        jobs = self._claims.claim(tasks=tasks, limit=allowed, **options) if allowed else ()
        expired = _expired(jobs)
        room = spend_room(
            connection, schema, self._task, room, jobs=len(jobs), starts=len(jobs) - expired, read_at=read_at
        )
        if room.jobs != 0 or len(jobs) < allowed:
            return _Claimed(jobs, retry_after=0.0 if self._claims.left_rest or expired else None)
        is_full = room.free is not None and room.free <= 0
        return _Claimed(jobs, is_full, room.seconds_until_tokens, _closed(is_full, room.seconds_until_start))

    def _claim_by_field(self, tasks: Mapping[int, str], limit: int, options: ClaimOptions, *, field: str) -> _Claimed:
        claims = self._by_field
        if claims is None or claims.field != field:
            claims = ClaimsByField(
                self._store.connection, self._store.schema, task=self._task, field=field, queues=self._queues
            )
            self._by_field = claims
        if time.monotonic() >= self._forget_at:
            self._forget_at = time.monotonic() + FORGET_INTERVAL
            forget_full_buckets(self._store.connection, self._store.schema, self._task)
        jobs = claims.claim(tasks=tasks, limit=limit, **options)
        if claims.has_more or _expired(jobs):
            return _Claimed(jobs, retry_after=0.0)
        closed = _closed(claims.is_any_full, claims.seconds_until_tokens)
        return _Claimed(jobs, claims.is_any_full, claims.seconds_until_tokens, closed)

    def deny(self, error: PermissionDeniedError) -> None:
        """Claim nothing for a while, because our role lacks a right that the limit needs."""
        reason = str(with_lacking_rights(error, self._store))
        self._plan(self._unusable(reason, closed="its limit needs a right that the database role lacks"), took=0.0)

    def _unusable(self, reason: str, *, closed: str) -> _Claimed:
        """Claim nothing, so that the limit is kept; report each reason once."""
        if reason != self._reported:
            self._on_unusable(f"no jobs of task {self._task!r} are claimed: {reason}")
        self._reported = reason
        return _Claimed(retry_after=UNUSABLE_RETRY, closed=closed)

    def _plan(self, claimed: _Claimed, *, took: float) -> None:
        """Decide when to try again."""
        now = time.monotonic()
        self.is_full, self.closed = claimed.is_full, claimed.closed
        self._not_before, self.next_at = 0.0, float("inf")
        if claimed.retry_after is not None:
            self._not_before = self.next_at = now + claimed.retry_after
        if claimed.is_full:
            # Jobs of other workers end without a notice, those of this worker with one.
            self._retry = MIN_RETRY if claimed.jobs else min(MAX_RETRY, 2 * self._retry)
            self._not_before, self.next_at = 0.0, max(self.next_at, now + self._retry)
        else:
            self._retry = MIN_RETRY
        if not claimed.jobs and took > MIN_RETRY and claimed.retry_after is None and not claimed.is_full:
            self._not_before = self.next_at = now + TIME_SHARE * took


def _expired(jobs: Sequence[Job]) -> int:
    """Return how many of the claimed jobs fail instead of starting, so that others may start in their place."""
    return sum(job._flags is not None and expired_before_start(job) is not None for job in jobs)


def _closed(is_full: bool, seconds_until_start: float | None) -> str | None:
    if is_full:
        return "the limit of running jobs is reached"
    return "the rate is used up" if (seconds_until_start or 0.0) > MAX_RATE_WAIT else None


class Gates:
    """The limited tasks of a worker. The claimer's thread uses it; other threads read `is_full`."""

    def __init__(self, on_unusable: OnUnusable, only: Only) -> None:
        self._on_unusable = on_unusable
        self._only = only
        self._gates: dict[int, Gate] = {}
        self._is_first = False
        self._turn = 0

    @property
    def is_full(self) -> bool:
        """Whether the end of a job may make room for another one."""
        return any(gate.is_full for gate in tuple(self._gates.values()))

    @property
    def next_at(self) -> float:
        """When to claim again without a notification, by the monotonic clock."""
        return min((gate.next_at for gate in self._gates.values()), default=float("inf"))

    @property
    def closed(self) -> Mapping[int, str]:
        """The tasks of which no job can start for a while, by their ids, with the reasons."""
        return {task_id: gate.closed for task_id, gate in self._gates.items() if gate.closed is not None}

    def reset(self) -> None:
        """Forget the gates: their connection or their limits have changed."""
        self._gates = {}

    def takes_turn(self) -> bool:
        """Return whether limited tasks come first in this claim; they take turns with all others."""
        self._is_first = not self._is_first
        return self._is_first

    def in_turn(self, store: JobStore, tasks: Mapping[int, str]) -> Iterator[tuple[int, Gate]]:
        """Yield the id and the gate of each of these tasks; the task that comes first changes each time."""
        self._turn += 1
        in_turn = deque(tasks.items())
        in_turn.rotate(self._turn)
        for task_id, task in in_turn:
            if task_id not in self._gates:
                queues = () if task in self._only.tasks else self._only.queues
                self._gates[task_id] = Gate(store, task_id, task, self._on_unusable, queues)
            yield task_id, self._gates[task_id]
