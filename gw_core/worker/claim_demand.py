"""How many jobs the next claim should ask for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MEAN_WEIGHT: Final = 0.2
"""How much of the news a batch's mean duration is: a fifth, so that one odd batch does not swing the prefetch."""


class JobDurations:
    """How long jobs take, in seconds. One thread adds, others may read old values."""

    def __init__(self) -> None:
        self.mean: float | None = None
        """Smoothed; None before the first job has ended."""

    def add(self, durations: Sequence[float]) -> None:
        """Add the durations of jobs that have ended."""
        if not durations:
            return
        mean = sum(durations) / len(durations)
        known = self.mean
        # A slower mean applies immediately: hoarding jobs delays other workers, and extra claims only cost this one.
        self.mean = mean if known is None or mean > known else known + MEAN_WEIGHT * (mean - known)


def jobs_in_window(mean_seconds: float, *, window: float, claim_limit: int) -> int:
    """Return how many jobs of mean duration one thread runs within the prefetch window."""
    return int(window / mean_seconds) if mean_seconds > 1e-9 else claim_limit


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
