"""The attempts of a job: inferred backwards, projected forwards, and each marked as what it is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from gw_core import Job, JobState
from gw_core.front_ends import PlannedAttempt, retry_delay
from gw_core.operations import JobReport
from gw_tui.rules.attempts import AttemptRow, Certainty, attempt_rows

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def a_report(state: JobState, *, failed_at: datetime | None = None, to_come: int = 0, **changes: Any) -> JobReport:
    values: dict[str, Any] = {
        "id": 7,
        "task": "send",
        "payload_json": "{}",
        "attempts": 0,
        "max_attempts": 5,
        "priority": 0,
        "_run_at": NOW.timestamp(),
        "_created_at": NOW.timestamp() - 3600,
        "_updated_at": NOW.timestamp() - 3600,
        "revision": 0,
    }
    job = Job(**{**values, **changes})
    planned = tuple(
        PlannedAttempt(number, NOW + timedelta(minutes=number), number > job.attempts + 1)
        for number in range(job.attempts + 1, job.attempts + 1 + to_come)
    )
    return JobReport(job=job, state=state, at=NOW, reasons=(), attempts=planned, failed_at=failed_at)


def numbers(rows: list[AttemptRow], certainty: Certainty) -> list[int]:
    return [row.number for row in rows if row.certainty is certainty]


def test_a_job_in_backoff_has_inferred_attempts_behind_it_and_projected_ones_before_it() -> None:
    rows = attempt_rows(a_report(JobState.BACKOFF, attempts=3, to_come=2, failed_at=NOW - timedelta(seconds=5)))

    assert numbers(rows, Certainty.INFERRED) == [1, 2, 3]
    assert numbers(rows, Certainty.DUE) == [4]
    assert numbers(rows, Certainty.PROJECTED) == [5]
    assert [row.number for row in rows if row.is_next] == [4]
    assert [row.number for row in rows if row.is_last] == [5]


def test_earlier_failures_are_reckoned_back_by_the_backoff() -> None:
    failed = NOW - timedelta(seconds=5)

    rows = attempt_rows(a_report(JobState.BACKOFF, attempts=2, to_come=1, failed_at=failed))

    assert [row.at for row in rows[:2]] == [failed - retry_delay(1), failed]


def test_no_attempt_is_put_before_the_job_was_added() -> None:
    failed = NOW - timedelta(minutes=52)

    rows = attempt_rows(a_report(JobState.FAILED, attempts=7, max_attempts=7, failed_at=failed))

    assert [row.at is None for row in rows] == [True, True, True, True, True, False, False]


def test_a_job_that_failed_permanently_ends_with_its_last_attempt() -> None:
    rows = attempt_rows(a_report(JobState.FAILED, attempts=5, failed_at=NOW))

    assert rows[-1] == AttemptRow(5, NOW, None, Certainty.INFERRED, is_last=True)


def test_a_running_job_shows_the_attempt_under_way() -> None:
    rows = attempt_rows(a_report(JobState.RUNNING, attempts=2, to_come=2, _locked_at=NOW.timestamp() - 9))

    assert numbers(rows, Certainty.NOW) == [2]
    assert numbers(rows, Certainty.PROJECTED) == [3, 4]
    assert [row.number for row in rows if row.is_next] == [2]


def test_a_job_with_very_many_attempts_stays_a_short_table() -> None:
    report = a_report(JobState.BACKOFF, attempts=30_000, max_attempts=32_000, to_come=3, failed_at=NOW)

    assert len(attempt_rows(report)) == 53
