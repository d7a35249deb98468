"""The states of jobs, filters, and the reason of one job: pure rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gw_core import Job, JobState
from gw_core.domain.reports.job_status import JobFacts, reasons, retry_schedule
from gw_core.domain.reports.query_results import MIN_HITS, projected
from gw_core.errors import InvalidInputError
from gw_core.front_ends import PageCursor, Quality, ReasonCode, retry_delay
from gw_core.operations import WorkerInfo

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def a_job(*, run_at: datetime = NOW, locked_at: datetime | None = None, **fields: Any) -> Job:
    long_ago = (NOW - 100 * HOUR).timestamp()
    given: dict[str, Any] = {"attempts": 0, "max_attempts": 25, "_updated_at": long_ago, **fields}
    return Job(
        id=7,
        task="mail",
        payload_json="{}",
        priority=0,
        _run_at=run_at.timestamp(),
        _created_at=long_ago,
        revision=0,
        _locked_at=None if locked_at is None else locked_at.timestamp(),
        **given,
    )


RUNNING = a_job(locked_at=NOW - HOUR, locked_by="pool-1", attempts=2)


def state_at_noon(job: Job) -> JobState:
    """Return the state as the database has it at `NOW`."""
    if job.locked_at is not None:
        return JobState.RUNNING
    if job.is_last_attempt:
        return JobState.FAILED
    if job.run_at <= NOW:
        return JobState.READY
    return JobState.BACKOFF if job.attempts > 0 and job.last_error is not None else JobState.SCHEDULED


def standings(job: Job, **around: Any) -> list[ReasonCode]:
    found = reasons(job, state_at_noon(job), JobFacts(now=NOW, **around))
    return [reason.code for reason in found]


def a_heartbeat(
    worker: str = "pool-1", *, tasks: frozenset[str] | None = frozenset({"mail"}), ago: timedelta = HOUR * 0
) -> WorkerInfo:
    return WorkerInfo(id=worker, heartbeat_age=ago, metadata={} if tasks is None else {"tasks": list(tasks)})


# -- cursors and numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "0",
        "9223372036854775807",
        "turn/100",
        "state/4900",
        "newest/12",
        "failed/2026-01-31_12:00:00.123456/36",
        "failed/-infinity/1",
        "failed/0044-03-15_12:00:00_BC/1",
    ],
)
def test_a_cursor_reads_back_as_it_was_written(text: str) -> None:
    assert str(PageCursor.parse(text)) == text


@pytest.mark.parametrize("text", ["", "-1", "x", "9223372036854775808", "turn/x", "failed/now/1", "turn"])
def test_what_is_not_a_cursor_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInputError, match="cursor that the previous page ended with"):
        PageCursor.parse(text)


def test_a_count_says_how_good_it_is() -> None:
    assert (projected(5, 1.0).value, projected(5, 1.0).quality) == (5, Quality.EXACT)
    assert (projected(500, 0.1).value, projected(500, 0.1).quality) == (5000, Quality.ESTIMATE)
    assert projected(MIN_HITS - 1, 0.1).quality is Quality.ROUGH


# -- the attempts to come ---------------------------------------------------------------------------------------------


def test_a_waiting_job_is_tried_at_its_time_and_then_after_each_backoff() -> None:
    job = a_job(run_at=NOW + HOUR, attempts=1, max_attempts=4, last_error="x")

    planned = retry_schedule(job, JobState.BACKOFF, NOW)

    assert [(each.number, each.inferred) for each in planned] == [(2, False), (3, True), (4, True)]
    assert planned[0].at == NOW + HOUR
    assert planned[1].at - planned[0].at == retry_delay(2)
    assert planned[2].at - planned[1].at == retry_delay(3)


def test_a_ready_job_is_tried_from_now_on_which_is_inferred() -> None:
    planned = retry_schedule(a_job(run_at=NOW - HOUR), JobState.READY, NOW)

    assert (planned[0].number, planned[0].at, planned[0].inferred) == (1, NOW, True)
    assert planned[-1].number == 25


def test_a_running_job_is_tried_again_after_the_backoff_of_this_attempt() -> None:
    planned = retry_schedule(RUNNING, JobState.RUNNING, NOW)

    assert (planned[0].number, planned[0].at, planned[0].inferred) == (3, NOW + retry_delay(2), True)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(a_job(attempts=25), id="failed for good"),
        pytest.param(a_job(attempts=25, locked_at=NOW, locked_by="p"), id="in its last attempt"),
    ],
)
def test_a_job_without_attempts_left_is_not_tried(job: Job) -> None:
    assert retry_schedule(job, state_at_noon(job), NOW) == ()


def test_a_projection_ends_with_the_calendar_and_is_bounded() -> None:
    forever = a_job(run_at=datetime.max.replace(tzinfo=UTC) - HOUR)

    assert 0 < len(retry_schedule(forever, JobState.SCHEDULED, NOW)) < 25
    assert len(retry_schedule(a_job(max_attempts=32767), JobState.READY, NOW)) == 100


# -- why it is not running --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "around", "expected"),
    [
        pytest.param(a_job(), {"workers": [a_heartbeat()]}, ["claimable"], id="nothing keeps it"),
        pytest.param(a_job(), {}, ["no_heartbeat"], id="nobody writes heartbeats"),
        pytest.param(a_job(), {"workers": [a_heartbeat(ago=HOUR)]}, ["no_heartbeat"], id="no live worker"),
        pytest.param(
            a_job(),
            {"workers": [a_heartbeat(tasks=frozenset())]},
            ["no_worker_for_task"],
            id="no worker knows the task",
        ),
        pytest.param(
            a_job(),
            {"workers": [a_heartbeat(tasks=frozenset()), a_heartbeat("b", tasks=None)]},
            ["claimable"],
            id="a worker that does not tell may know the task",
        ),
        pytest.param(
            a_job(queue_name="q", queue_id=1),
            {"workers": [a_heartbeat()], "queue_held_by": "pool-2", "queue_held_at": NOW - HOUR, "ahead": 3},
            ["queue_locked", "behind_in_queue"],
            id="its queue is held and others come first",
        ),
        pytest.param(a_job(_flags='{"slow": true}'), {"workers": [a_heartbeat()]}, ["flagged"], id="it has a flag"),
        pytest.param(a_job(run_at=NOW + HOUR), {"workers": [a_heartbeat()]}, ["scheduled"], id="of later"),
        pytest.param(
            a_job(run_at=NOW + HOUR, attempts=1, last_error="x"),
            {"workers": [a_heartbeat(tasks=frozenset())]},
            ["backoff", "no_worker_for_task"],
            id="waits for its next attempt, which nobody will make",
        ),
        pytest.param(a_job(attempts=25), {}, ["failed"], id="failed for good"),
        pytest.param(RUNNING, {"workers": [a_heartbeat()]}, ["running"], id="runs"),
        pytest.param(
            RUNNING, {"workers": [a_heartbeat(ago=HOUR)]}, ["running", "worker_stale"], id="its worker is stale"
        ),
        pytest.param(
            a_job(locked_at=NOW - 5 * HOUR, locked_by="pool-1", attempts=2),
            {},
            ["running", "lock_expired"],
            id="its lock is stale",
        ),
        pytest.param(
            a_job(locked_at=NOW - HOUR, locked_by="p", attempts=25, _updated_at=NOW.timestamp()),
            {},
            ["running", "retired"],
            id="removed while it runs",
        ),
    ],
)
def test_why_a_job_is_where_it_is(job: Job, around: dict[str, Any], expected: list[str]) -> None:
    assert standings(job, **around) == expected


def test_a_running_job_says_the_age_of_the_last_heartbeat_of_its_worker() -> None:
    (reason,) = reasons(RUNNING, JobState.RUNNING, JobFacts(now=NOW, workers=[a_heartbeat(ago=timedelta(seconds=4))]))

    assert reason.message.endswith("; its last heartbeat was 4s ago")


def test_a_reason_names_who_and_how_long() -> None:
    job = a_job(queue_name="letters", queue_id=1)
    around = JobFacts(
        now=NOW, queue_held_by="pool-2", queue_held_at=NOW - timedelta(minutes=90), workers=[a_heartbeat()]
    )

    (reason,) = reasons(job, JobState.READY, around)

    assert reason.message == "its queue letters is locked by pool-2, for 1h30m"
    assert not reason.inferred
