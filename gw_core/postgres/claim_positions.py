"""Where the waiting jobs begin, for claims that would read very many dead rows before them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

SLOW_SECONDS: Final = 0.015
SLOW_SECONDS_A_JOB: Final = 0.00002
"""A claim that took longer than this, and this for each job it found, may have read much that it could not take."""

SLOW_ONES: Final = 3
"""So many in a row are no accident: a plan that was made, a machine that was busy."""

WIDEST_MARGIN: Final = 5.0
"""Seconds before the first job found last time at which a claim begins: there are the jobs of transactions that took
their time. Where even that holds very many dead rows, as after a bulk, the margin shrinks until claims are quick."""

SHARE: Final = 20
"""Claims from the very beginning take at most one part in so many of the time, …"""

LONGEST_WITHOUT: Final = 30.0
"""… and are this many seconds apart at most: what lies before the margin waits so long."""

GOES_ON_FOR: Final = 0.05
"""Seconds between two claims from the very beginning at most, while claims follow each other and go on from there to
there: the prefetch window. So long waits what was given back, or committed late, while newer jobs are plenty."""

LEAST_TO_GO_ON: Final = 50
"""Claims of fewer jobs begin at the very beginning: they are for whoever is waited for, and have passed little."""


class ResumePoint:
    """How far the last claims came, so that the next one need not read past what they took.

    Only for a pool that finds as many jobs as it asks for, claim after claim. Not for jobs in named queues, whose order
    is not the order in which they are found.
    """

    def __init__(self) -> None:
        self._reached: dict[int, float] = {}
        self._until = 0.0

    def goes_on(self, now: float) -> bool:
        """Whether a claim at this moment may go on where the last one stopped."""
        return bool(self._reached) and now < self._until

    def begin(self, now: float) -> None:
        """Note that a claim began at the very beginning."""
        self._reached = {}
        self._until = now + GOES_ON_FOR

    def note(self, jobs: Iterable[tuple[int, float]]) -> None:
        """Note priority and `run_at`, in seconds since 1970, of each job that was found, when no fewer were wanted."""
        for priority, run_at in jobs:
            self._reached[priority] = max(run_at, self._reached.get(priority, run_at))

    def forget(self) -> None:
        """Let the next claim begin at the very beginning."""
        self._reached = {}

    def columns(self) -> tuple[list[int], list[float]]:
        """Return priorities, and since when their jobs are worth a look."""
        return sorted(self._reached), [self._reached[priority] for priority in sorted(self._reached)]


class SkipAhead:
    """Remembers the first job found of each priority, and says when a claim may begin there.

    While a transaction elsewhere keeps vacuum from removing them, the index entries of jobs long gone stand before
    those of the jobs that wait, and every claim reads them all. Only then, told by how long claims take, do most claims
    begin where the last one found something; from time to time one begins at the very beginning, and when that is quick
    again all of them do.
    """

    def __init__(self) -> None:
        self.unqueued: dict[int, float] = {}
        """By priority: `run_at`, in seconds since 1970, of the first job without a named queue that was found last."""
        self.queued: dict[int, float] = {}
        self._margin = WIDEST_MARGIN
        self._slow_ones = 0
        self._whole_at = 0.0

    def may_skip(self, now: float) -> bool:
        """Whether a claim at this moment may begin at the heads."""
        return now < self._whole_at and bool(self.unqueued or self.queued)

    def skips_until(self, now: float) -> float | None:
        """Return when the next claim begins at the very beginning, if those before do not."""
        return self._whole_at if self.may_skip(now) else None

    def look_everywhere(self) -> None:
        """Let the next claim begin at the very beginning."""
        self._whole_at = 0.0

    def note_whole(self, *, found: int, seconds: float, now: float) -> None:
        """Note how long a claim took that began at the very beginning."""
        if not _is_slow(found, seconds):
            self._slow_ones, self._whole_at = 0, 0.0
            return
        self._slow_ones += 1
        if self._slow_ones >= SLOW_ONES:
            self._whole_at = now + min(SHARE * seconds, max(LONGEST_WITHOUT, 3 * seconds))

    def note_partial(self, *, found: int, seconds: float) -> None:
        """Note how long a claim took that began at the heads."""
        self._margin = self._margin / 4 if _is_slow(found, seconds) else min(WIDEST_MARGIN, self._margin * 1.1 + 0.001)

    def note_found(self, jobs: Iterable[tuple[int, float, bool]]) -> None:
        """Note priority, `run_at` in seconds since 1970 and whether it has a named queue, of each job found."""
        lowest: dict[tuple[int, bool], float] = {}
        for priority, run_at, has_queue in jobs:
            kind = (priority, has_queue)
            lowest[kind] = min(run_at, lowest.get(kind, run_at))
        for (priority, has_queue), run_at in lowest.items():
            (self.queued if has_queue else self.unqueued)[priority] = run_at

    def columns(self, heads: Mapping[int, float]) -> tuple[list[int], list[float]]:
        """Return priorities, and since when their jobs are worth a look."""
        return sorted(heads), [heads[priority] - self._margin for priority in sorted(heads)]


def _is_slow(found: int, seconds: float) -> bool:
    return seconds > SLOW_SECONDS + SLOW_SECONDS_A_JOB * found
