"""The attempts of a job as a table: those there were, as far as they can be inferred, and those to come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice

from gw_core import JobState
from gw_core.front_ends import retry_delay
from gw_core.operations import EndedAttempt, JobReport
from gw_tui.text import formatting
from gw_tui.text.redact import masked

MAX_PAST = 50


class Certainty(StrEnum):
    """How an attempt is known, in the word for it."""

    RECORDED = "recorded"
    """History has it."""
    INFERRED = "failed"
    """Reckoned back from the backoff: the table keeps no history."""
    NOW = "running"
    """It is under way."""
    DUE = "due"
    """The database has its time."""
    PROJECTED = "earliest"
    """The earliest time, if the attempts before it fail immediately."""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """One attempt: when it failed or will start, and the wait that follows when it fails; None is unknown."""

    number: int
    at: datetime | None
    wait: timedelta | None
    certainty: Certainty
    is_next: bool = False
    is_last: bool = False
    note: str = ""
    """How it ended, where that is recorded."""


def attempt_rows(report: JobReport, ended: Sequence[EndedAttempt] = ()) -> list[AttemptRow]:
    """Return the attempts of a job in order, at most a bounded number of them; recorded ones as history has them."""
    recorded = recorded_rows(ended)
    known = {each.number for each in recorded}
    inferred = [each for each in _past(report) if each.number not in known]
    past = sorted([*inferred, *recorded], key=lambda each: each.number)
    return [*past, *_under_way(report), *_to_come(report)]


def recorded_rows(ended: Sequence[EndedAttempt]) -> list[AttemptRow]:
    """Return the attempts that history has, the latest ones if they are many."""
    return [
        AttemptRow(each.attempt, each.finished_at, None, Certainty.RECORDED, note=_note(each))
        for each in ended[-MAX_PAST:]
    ]


def _note(attempt: EndedAttempt) -> str:
    """Return how an attempt ended, where, and why."""
    took = (
        "" if attempt.started_at is None else f" after {formatting.duration(attempt.finished_at - attempt.started_at)}"
    )
    error = next((line for line in (attempt.error or "").splitlines() if line.strip()), "")
    parts = (f"{attempt.state}{took}", attempt.worker_id or "", masked(error))
    return " · ".join(each for each in parts if each)


def _past(report: JobReport) -> Iterator[AttemptRow]:
    """Yield the attempts that failed, each at the latest time that leaves room for those after it."""
    job, running = report.job, report.state is JobState.RUNNING
    failures = job.attempts - running
    timestamps: list[datetime | None] = []
    time = report.failed_at
    for number in islice(range(failures, 0, -1), MAX_PAST):
        timestamps.append(time)
        earlier = _before(time, number - 1)
        time = earlier if earlier is not None and earlier >= job.created_at else None
    for number, at in zip(range(failures - len(timestamps) + 1, failures + 1), reversed(timestamps), strict=True):
        is_last = number >= job.max_attempts
        yield AttemptRow(number, at, None if is_last else retry_delay(number), Certainty.INFERRED, is_last=is_last)


def _before(time: datetime | None, number: int) -> datetime | None:
    if time is None or number < 1:
        return None
    try:
        return time - retry_delay(number)
    except OverflowError:
        return None


def _under_way(report: JobReport) -> Iterator[AttemptRow]:
    job = report.job
    if report.state is JobState.RUNNING:
        is_last = job.attempts >= job.max_attempts
        wait = None if is_last else retry_delay(max(1, job.attempts))
        yield AttemptRow(job.attempts, job.started_at, wait, Certainty.NOW, is_next=True, is_last=is_last)


def _to_come(report: JobReport) -> Iterator[AttemptRow]:
    for index, each in enumerate(report.attempts):
        certain = index == 0 and report.state is not JobState.RUNNING
        is_last = each.number >= report.job.max_attempts
        yield AttemptRow(
            each.number,
            each.at,
            None if is_last else retry_delay(each.number),
            Certainty.DUE if certain else Certainty.PROJECTED,
            is_next=certain,
            is_last=is_last,
        )
