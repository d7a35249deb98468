"""Claim jobs of tasks that have a limit, each within its limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from gw_core.domain.job import Job
from gw_core.domain.task_limit import LimitRoom
from gw_core.postgres.claims import Claims
from gw_core.postgres.job_store import JobStore
from gw_core.postgres.limits import claim_within_limit

MIN_RETRY: Final = 0.005
MAX_RETRY: Final = 0.1
"""Seconds until a limit without room is tried again, doubled each time: jobs of other workers end without a notice."""

TIME_SHARE: Final = 20
"""A claim that finds nothing, because it reads past the jobs of other tasks, takes one part in so many of the time."""

Take = Callable[[Claims, int], Sequence[Job]]
"""Claims up to so many jobs of one task."""


class Gate:
    """One limited task: its own place in the queue, and when to try again. One thread uses it."""

    def __init__(self, store: JobStore, task_id: int, task: str) -> None:
        self._store = store
        self._task_id = task_id
        self._task = task
        self._claims = Claims(store.connection, store.schema)
        self._retry = MIN_RETRY
        self._not_before = 0.0
        self.next_at = float("inf")
        """When to try again without a notification, by the monotonic clock."""
        self.is_full = False
        """Whether the end of one of its jobs makes room."""

    def claim(self, most: int, take: Take) -> Sequence[Job]:
        """Claim up to `most` jobs, as far as the limit allows."""
        began = time.monotonic()
        if began < self._not_before:
            return ()
        wanted = 0

        def within(allowed: int | None) -> Sequence[Job]:
            nonlocal wanted
            wanted = most if allowed is None else min(most, allowed)
            return take(self._claims, wanted)

        jobs, room = claim_within_limit(
            self._store.connection, self._store.schema, task=self._task, task_id=self._task_id, claim=within
        )
        self._plan(room, wanted=wanted, found=len(jobs), took=time.monotonic() - began)
        return jobs

    def _plan(self, room: LimitRoom | None, *, wanted: int, found: int, took: float) -> None:
        """Decide when to try again."""
        now = time.monotonic()
        self.is_full, self._not_before = False, 0.0
        if room is None:
            self.next_at = now + MIN_RETRY
        elif room.jobs == 0 and (found == wanted):
            self.is_full = room.free is not None and room.free <= 0
            self._retry = MIN_RETRY if found else min(MAX_RETRY, 2 * self._retry)
            self.next_at = now + max(room.seconds_until_tokens, self._retry if self.is_full else 0.0)
            self._not_before = 0.0 if self.is_full else self.next_at
        else:
            self._retry, self.next_at = MIN_RETRY, float("inf")
            if not found and took > MIN_RETRY:
                self._not_before = self.next_at = now + TIME_SHARE * took


class Gates:
    """The limited tasks of a worker. The claimer's thread uses it; other threads read `is_full`."""

    def __init__(self) -> None:
        self._gates: dict[int, Gate] = {}
        self._is_first = False

    @property
    def is_full(self) -> bool:
        """Whether the end of a job may make room for another one."""
        return any(gate.is_full for gate in tuple(self._gates.values()))

    @property
    def next_at(self) -> float:
        """When to claim again without a notification, by the monotonic clock."""
        return min((gate.next_at for gate in self._gates.values()), default=float("inf"))

    def reset(self) -> None:
        """Forget the gates: their connection or their limits have changed."""
        self._gates = {}

    def takes_turn(self) -> bool:
        """Return whether limited tasks come first in this claim; they take turns with all others."""
        self._is_first = not self._is_first
        return self._is_first

    def claim(
        self, store: JobStore, tasks: Iterable[tuple[int, str]], most: int, take: Callable[[int, str], Take]
    ) -> list[Job]:
        """Claim up to `most` jobs of these tasks; the task that comes first changes each time."""
        jobs: list[Job] = []
        for task_id, task in tasks:
            if len(jobs) >= most:
                break
            if task_id not in self._gates:
                self._gates[task_id] = Gate(store, task_id, task)
            jobs += self._gates[task_id].claim(most - len(jobs), take(task_id, task))
        return jobs
