"""How many jobs the next claim should ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

ORDINARY: Final = 500
"""The jobs of a claim at most, unless one thread runs more than these within the prefetch window."""

MEAN_WEIGHT: Final = 0.2
"""How much of the news a batch's mean duration is: a fifth, so that one odd batch does not swing the prefetch."""

LONG_RUN: Final = 4_000
"""Over how many jobs the lasting mean is taken, about: long enough that a long job in a hundred always counts."""

UNMEASURED: Final = 0.0001
"""Seconds: what the lasting mean begins with, so that claims stay ordinary until many jobs have ended."""


class JobDurations:
    """How long jobs take, in seconds. One thread adds, others may read old values."""

    def __init__(self) -> None:
        self.mean: float | None = None
        """Smoothed; None before the first job has ended."""
        self.lasting_mean = UNMEASURED
        """Over many jobs: a few short or long ones hardly change it."""

    def add(self, durations: Sequence[float]) -> None:
        """Add the durations of jobs that have ended."""
        if not durations:
            return
        mean = sum(durations) / len(durations)
        known = self.mean
        # A slower mean applies immediately: hoarding jobs delays other workers, and extra claims only cost this one.
        self.mean = mean if known is None or mean > known else known + MEAN_WEIGHT * (mean - known)
        self.lasting_mean += min(1.0, len(durations) / LONG_RUN) * (mean - self.lasting_mean)


def jobs_in_window(mean_seconds: float, *, window: float, claim_limit: int) -> int:
    """Return how many jobs of mean duration one thread runs within the prefetch window."""
    return int(window / mean_seconds) if mean_seconds > 1e-9 else claim_limit


def claim_size(lasting_mean: float, *, window: float, claim_limit: int, queues: int) -> int:
    """Return how many jobs a claim may ask for: more of those that take microseconds.

    A claim passes the index entries of all jobs claimed since the last vacuum, so that fewer and larger claims cost
    less. Of longer jobs, large claims would take too many from other workers and from urgent jobs. If the last claim
    locked several `queues`, a large one might lock them all, and the next would find none until they are released.
    """
    if queues > 1:
        return min(claim_limit, ORDINARY)
    return min(claim_limit, max(ORDINARY, jobs_in_window(lasting_mean, window=window, claim_limit=claim_limit)))


def prefetch_limit(mean_seconds: float | None, *, threads: int, window: float, claim_limit: int) -> int:
    """Return how many jobs may wait for `threads` threads; none before the first job has ended."""
    if mean_seconds is None:
        return 0
    per_thread = jobs_in_window(mean_seconds, window=window, claim_limit=claim_limit)
    return min(2 * claim_limit, threads * per_thread)


def claim_demand(*, idle: int, waiting: int, prefetch: int, threads: int, outstanding: int, max_jobs: int) -> int:
    """Return how many jobs to claim: for idle threads, and ahead up to the prefetch limit.

    While no thread is idle and more than half of the prefetch limit waits, the next claim can wait too.
    """
    if not idle and waiting > prefetch // 2:
        return 0
    return min(max_jobs, max(idle - waiting, threads + prefetch - outstanding))
