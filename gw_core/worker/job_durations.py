"""How long jobs take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

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
