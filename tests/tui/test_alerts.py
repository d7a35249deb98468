"""The alerts, rule by rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from msgspec import structs
from support.console_queue import START
from support.console_source import QueueSource

from gw_core import JobState, cron_item
from gw_core.front_ends import CheckStatus, Count, LockedQueue, Quality, QueueSnapshot, TaskActivity
from gw_core.operations import Finding, QueueCounts
from gw_tui.rules.alerts import Alert, AlertInput, QueueSample, Severity, alerts, drain_time


def quiet_snapshot() -> QueueSnapshot:
    """Return a snapshot at a queue where all is well."""
    snapshot = QueueSource(jobs=60).snapshot()
    workers = [worker for worker in snapshot.workers if worker.has_heartbeat and not worker.is_stale]
    priorities = [structs.replace(head, oldest_due_at=None, ready=Count(0)) for head in snapshot.priorities]
    counters = structs.replace(snapshot.counters, dead_rows=0)
    return structs.replace(snapshot, workers=workers, priorities=priorities, locked_queues=(), counters=counters)


def with_backlog(snapshot: QueueSnapshot, age: timedelta) -> QueueSnapshot:
    head = structs.replace(snapshot.priorities[0], oldest_due_at=snapshot.at - age, oldest_task="mail", ready=Count(60))
    return structs.replace(snapshot, priorities=[head, *snapshot.priorities[1:]])


def found(snapshot: QueueSnapshot, *, is_listening: bool = True, **sample: object) -> list[Alert]:
    return alerts(AlertInput(snapshot=snapshot, sample=QueueSample(**sample), is_listening=is_listening))


def test_a_quiet_queue_raises_no_alert() -> None:
    assert found(quiet_snapshot()) == []


def test_stale_workers_come_first_with_the_jobs_they_hold() -> None:
    snapshot = QueueSource().snapshot()

    worst = found(snapshot)[0]

    assert (worst.severity, worst.place) == (Severity.CRITICAL, "workers")
    assert worst.what == "1 queue locked: worker gw-app-3-977-760e1f is gone"
    assert worst.age == timedelta(minutes=9, seconds=4)


def test_a_queue_held_for_long_is_named() -> None:
    held = LockedQueue(name="imports", locked_by="w1", locked_at=START - timedelta(minutes=16))
    fresh = LockedQueue(name="mail", locked_by="w1", locked_at=START - timedelta(minutes=14))

    (alert,) = found(structs.replace(quiet_snapshot(), locked_queues=(fresh, held)))

    assert (alert.what, alert.place, alert.filter) == ("queue imports locked by w1", "queues", "imports")


def test_a_long_wait_is_reported() -> None:
    (alert,) = found(with_backlog(quiet_snapshot(), timedelta(minutes=6)))

    assert (alert.severity, alert.place, alert.filter) == (Severity.WARNING, "jobs", "state:ready task:mail")
    assert alert.what == "oldest ready job (mail)"


def test_the_oldest_job_of_a_known_task_is_not_called_the_oldest_of_all() -> None:
    snapshot = reporting(with_backlog(quiet_snapshot(), timedelta(minutes=50)), "report")
    unknown, known = statistics_of("mail", ready=1), statistics_of("report", ready=1)
    both = structs.replace(
        known, tasks={**unknown.tasks, **known.tasks}, activity={**unknown.activity, **known.activity}
    )

    words = [alert.what for alert in found(snapshot, statistics=both)]

    assert words == [
        "mail: 1 ready, no live worker knows it",
        "oldest ready job of a task without another cause (report)",
    ]


@pytest.mark.parametrize(
    ("ready", "done", "expected"),
    [
        pytest.param(Count(60), 2.0, timedelta(seconds=30), id="exact"),
        pytest.param(Count(60, Quality.ESTIMATE), 2.0, timedelta(seconds=30), id="estimate"),
        pytest.param(Count(60, Quality.AT_LEAST), 2.0, None, id="a bound says nothing"),
        pytest.param(Count(60), 0.0, None, id="nothing is done"),
        pytest.param(Count(60), None, None, id="not known"),
    ],
)
def test_what_is_ready_takes_as_long_as_the_rate_says(
    ready: Count, done: float | None, expected: timedelta | None
) -> None:
    assert drain_time(ready, done) == expected


def test_a_short_wait_is_nothing() -> None:
    assert found(with_backlog(quiet_snapshot(), timedelta(minutes=4))) == []


def test_waiting_jobs_without_workers_are_bad() -> None:
    (alert,) = found(structs.replace(with_backlog(quiet_snapshot(), timedelta(seconds=31)), workers=()))

    assert found(structs.replace(with_backlog(quiet_snapshot(), timedelta(seconds=29)), workers=())) == []
    assert (alert.severity, alert.what) == (Severity.CRITICAL, "jobs are waiting, no live worker (mail)")


def statistics_of(task: str, *, lately: int = 0, **jobs: int) -> QueueCounts:
    """Return statistics of a queue with one task, whose first job has been due, and failing, for 46 minutes."""
    states = {state: Count(jobs.get(state.value, 0)) for state in JobState}
    since = START - timedelta(minutes=46)
    activity = TaskActivity(failed_lately=Count(lately), failing_since=since, due_since=since)
    return structs.replace(QueueSource(jobs=60).statistics(), tasks={task: states}, activity={task: activity})


def reporting(snapshot: QueueSnapshot, *tasks: str) -> QueueSnapshot:
    """Return a snapshot whose workers report these tasks."""
    reports = {"tasks": list(tasks)}
    return structs.replace(snapshot, workers=[structs.replace(each, metadata=reports) for each in snapshot.workers])


@pytest.mark.parametrize(("failed", "is_alert"), [(10, True), (9, False)])
def test_jobs_that_failed_permanently_are_counted(failed: int, is_alert: bool) -> None:
    statistics = statistics_of("mail", failed=failed, ready=100_000)

    words = [alert.what for alert in found(quiet_snapshot(), statistics=statistics)]

    assert words == (["mail: 10 jobs failed permanently"] if is_alert else [])


def test_a_task_that_keeps_failing_is_named_whatever_else_is_in_the_table() -> None:
    statistics = statistics_of("sync_crm", lately=900, backoff=1_500, ready=100_000)

    (alert,) = found(quiet_snapshot(), statistics=statistics)

    assert alert.what == "sync_crm keeps failing: 900 jobs in 10 min, 1,500 in backoff"
    assert (alert.severity, alert.age) == (Severity.CRITICAL, timedelta(minutes=46))
    assert (alert.place, alert.filter) == ("jobs", "state:backoff,failed task:sync_crm")


def test_a_task_that_no_live_worker_knows_is_the_cause_and_not_the_backlog() -> None:
    snapshot = with_backlog(reporting(quiet_snapshot(), "web"), timedelta(hours=3))
    statistics = statistics_of("mail", ready=13_397)

    (alert,) = found(snapshot, statistics=statistics)

    assert alert.what == "mail: 13.4k ready, no live worker knows it"
    assert (alert.place, alert.filter) == ("jobs", "state:ready task:mail")


def test_what_waits_behind_a_dead_worker_is_counted() -> None:
    source = QueueSource()
    snapshot = source.snapshot()
    dead = next(worker for worker in snapshot.workers if worker.is_stale)
    names = [f"q{number}" for number in range(8)]
    queues = [LockedQueue(name=name, locked_by=dead.id, locked_at=START - timedelta(hours=1)) for name in names]
    report = source.queues()[0]
    held = [structs.replace(report, name=name, locked_by=dead.id, due=Count(90)) for name in names]

    first = found(structs.replace(snapshot, locked_queues=queues), held=held)[0]

    assert first.what == f"720 due jobs in 8 queues wait: worker {dead.id} is gone"
    assert (first.place, first.filter) == ("workers", dead.id)


def keys_of(number: int) -> set[str]:
    """Return the keys of alerts that all have this number in their words."""
    snapshot = with_backlog(QueueSource().snapshot(), timedelta(hours=number))
    counters = structs.replace(snapshot.counters, live_rows=1_000, dead_rows=10_000 * number)
    changed = structs.replace(snapshot, counters=counters, errors=(("failed", f"cancelled after {number} ms"),))
    findings = [Finding("indexes", CheckStatus.ERROR, f"{number} indexes are invalid")]
    statistics = statistics_of("sync_crm", lately=10 * number, backoff=number, ready=number)
    return {alert.key for alert in found(changed, findings=findings, statistics=statistics)}


def test_an_alert_that_changes_its_numbers_stays_the_same_alert() -> None:
    """A row with another key would leave a struck-out row behind."""
    assert keys_of(2) == keys_of(3) == keys_of(400)
    assert len(keys_of(2)) >= 6


@pytest.mark.parametrize(
    ("seconds", "skipped_until", "is_alert"),
    [
        pytest.param(60, None, False, id="soon"),
        pytest.param(100, None, True, id="late"),
        pytest.param(100, "14:31", False, id="skipped by a pause"),
        pytest.param(100, "14:29", True, id="after a pause"),
    ],
)
def test_a_missed_run_is_named_once_it_is_late(seconds: int, skipped_until: str | None, is_alert: bool) -> None:
    at = START.replace(minute=30, second=0) + timedelta(seconds=seconds)
    crontabs = replace(QueueSource(jobs=60).crontabs(), items=[cron_item("30 14 * * *", "sync_customer")])
    end = None if skipped_until is None else at.replace(minute=int(skipped_until[3:]), second=0)
    last = at - timedelta(days=1)
    known = [structs.replace(each, last_execution=last, skipped_until=end) for each in crontabs.known]

    crontabs = replace(crontabs, known=known)
    named = [alert.what for alert in found(structs.replace(quiet_snapshot(), at=at), crontabs=crontabs)]

    assert named == (["sync_customer missed 14:30"] if is_alert else [])


def test_hidden_rows_standbys_lost_notifications_and_unseen_parts_are_reported() -> None:
    snapshot = quiet_snapshot()
    changed = structs.replace(
        snapshot,
        schema=structs.replace(snapshot.schema, rows_hidden=True),
        server=structs.replace(snapshot.server, in_recovery=True),
        errors=(("priorities", "too slow"),),
    )

    assert [alert.what for alert in found(changed, is_listening=False)] == [
        "row-level security hides jobs from app",
        "read-only standby: actions are disabled",
        "not listening for new jobs: polling only",
        "priorities unavailable: too slow",
    ]


def test_dead_rows_that_pile_up_are_reported() -> None:
    snapshot = quiet_snapshot()
    counters = structs.replace(snapshot.counters, live_rows=1_000, dead_rows=20_000, last_vacuum_at=None)

    assert found(structs.replace(snapshot, counters=counters))[0].what == "20.0k dead rows wait for vacuum"


def test_the_doctor_is_asked_where_nothing_newer_is_known() -> None:
    findings = [
        Finding("indexes", CheckStatus.ERROR, "index x is invalid"),
        Finding("vacuum", CheckStatus.WARNING, "later"),
        Finding("locks", CheckStatus.ERROR, "known better here"),
    ]

    assert [alert.what for alert in found(quiet_snapshot(), findings=findings)] == ["indexes: index x is invalid"]
