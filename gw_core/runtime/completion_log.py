"""Log records of completed jobs, no more than people can read."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from gw_core.domain.job.outcome import Completed
from gw_core.runtime.loggers import job_fields

JOBS_A_SECOND: Final = 100
"""How many completed jobs have a record of their own within a second."""

MAX_TASKS: Final = 5
"""How many tasks the record about the others names."""


class CompletionLog:
    """Logs each of the first completed jobs of a second, and all others of that second in one record.

    A record costs more than a small job: a third of a drain was logging. At the level debug, each job has its record.
    Safe from any thread; `_lock` guards all attributes but the logger.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._lock = threading.Lock()
        self._began = -float("inf")
        self._room = 0
        self._others: Counter[str] = Counter()

    def log(self, outcomes: Sequence[Completed], worker_id: str) -> None:
        """Log jobs that this worker has completed."""
        if not outcomes or not self._logger.isEnabledFor(logging.INFO):
            return
        if not self._logger.isEnabledFor(logging.DEBUG):
            outcomes = self._admit(outcomes, worker_id)
        for outcome in outcomes:
            message, values = _sentence(outcome)
            duration = round(outcome.seconds * 1000, 3)
            fields = {**job_fields(outcome.job, worker_id), "duration_ms": duration}
            self._logger.info(message, *values, extra=fields)

    def flush(self, worker_id: str) -> None:
        """Log the jobs that have only been counted until now."""
        with self._lock:
            others, self._others = self._others, Counter()
        if not others:
            return
        count = others.total()
        names = ", ".join(f"{task} {number}" for task, number in others.most_common(MAX_TASKS))
        rest = f" and {len(others) - MAX_TASKS} other tasks" if len(others) > MAX_TASKS else ""
        fields = {"completed": count, "tasks": dict(others), "worker_id": worker_id}
        self._logger.info("Completed %d more within a second: %s%s", count, names, rest, extra=fields)

    def _admit(self, outcomes: Sequence[Completed], worker_id: str) -> Sequence[Completed]:
        """Return those that get a record of their own, and count the others."""
        with self._lock:
            now = time.monotonic()
            if now - self._began >= 1:
                self._began, self._room = now, JOBS_A_SECOND
            own, others = outcomes[: self._room], outcomes[self._room :]
            self._room -= len(own)
            if others and not self._others:
                self._flush_at(self._began + 1, worker_id)
            self._others.update([outcome.job.task for outcome in others])
        return own

    def _flush_at(self, when: float, worker_id: str) -> None:
        timer = threading.Timer(max(0.0, when - time.monotonic()), self.flush, (worker_id,))
        timer.name, timer.daemon = "gw-completion-log", True
        timer.start()


def _sentence(outcome: Completed) -> tuple[str, tuple[object, ...]]:
    job, milliseconds = outcome.job, outcome.seconds * 1000
    if job.attempts > 1:
        message = "Completed task %s (%s, %.2fms, attempt %s of %s) with success"
        return message, (job.id, job.task, milliseconds, job.attempts, job.max_attempts)
    return "Completed task %s (%s, %.2fms) with success", (job.id, job.task, milliseconds)
