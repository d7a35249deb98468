"""Who counts as dead, as a table; what hooks decide; what settings may be."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.recovery_fixture import Deciding, minutes, seconds

from gw_core import Job, RecoverySettings, WorkerSettings
from gw_core.domain.rules.sweep_rules import decide, is_dead, merged
from gw_core.errors import InvalidSettingError
from gw_core.operations import WorkerInfo
from gw_core.recovery import FailWithBackoff, Reschedule, SkipRecovery

HOURS = minutes(60)


def a_worker(heartbeat: timedelta | None = None, lock: timedelta | None = None, **options: Any) -> WorkerInfo:
    return WorkerInfo(id="w", heartbeat_age=heartbeat, lock_age=lock, **options)


@pytest.mark.parametrize(
    ("worker", "dead"),
    [
        pytest.param(a_worker(seconds(299)), False, id="a heartbeat younger than the threshold"),
        pytest.param(a_worker(minutes(5)), True, id="a heartbeat as old as the threshold"),
        pytest.param(a_worker(minutes(6), minutes(6)), True, id="heartbeat and lock are old"),
        pytest.param(a_worker(minutes(6), seconds(1)), False, id="it claimed a moment ago"),
        pytest.param(a_worker(seconds(1), 5 * HOURS), False, id="a long job of a living worker"),
        pytest.param(a_worker(minutes(14), is_resilient=True), False, id="resilient below three thresholds"),
        pytest.param(a_worker(minutes(15), is_resilient=True), True, id="resilient at three thresholds"),
        pytest.param(a_worker(None, minutes(239)), False, id="no heartbeat, lock below four hours"),
        pytest.param(a_worker(None, minutes(240)), True, id="no heartbeat, lock of four hours"),
        pytest.param(a_worker(None, minutes(100), is_resilient=True), False, id="no heartbeat, resilient"),
        pytest.param(a_worker(seconds(-3)), False, id="a heartbeat from a clock that was set back"),
    ],
)
def test_a_worker_counts_as_dead_after_its_allowed_time_without_heartbeats(worker: WorkerInfo, dead: bool) -> None:
    assert is_dead(worker, RecoverySettings()) is dead


def test_no_staleness_counts_from_before_the_server_could_receive_heartbeats() -> None:
    stale = a_worker(minutes(60))

    assert not is_dead(stale, RecoverySettings(), possible_for=minutes(4))
    assert is_dead(stale, RecoverySettings(), possible_for=minutes(5))


def test_the_allowed_time_without_heartbeats_follows_the_settings() -> None:
    settings = RecoverySettings(sweep_threshold=seconds(10), orphans_after=seconds(20), resilient_multiplier=2)

    assert settings.allowed_inactivity(a_worker(seconds(0))) == seconds(10)
    assert settings.allowed_inactivity(a_worker(seconds(0), is_resilient=True)) == seconds(20)
    assert settings.allowed_inactivity(a_worker(None, seconds(0))) == seconds(20)


def test_a_worker_in_two_tables_is_one_with_its_later_heartbeat_and_its_locks() -> None:
    older = WorkerInfo(id="w", heartbeat_age=seconds(9), host="here")
    newer = WorkerInfo(id="w", heartbeat_age=seconds(2))
    holder = WorkerInfo(id="w", lock_age=seconds(5), jobs=3, queues=1)
    orphan = WorkerInfo(id="node", lock_age=seconds(1), jobs=1)

    one, other = merged([older, newer], [holder, orphan])

    assert (one.heartbeat_age, one.host, one.jobs, one.queues, one.inactive_for) == (
        seconds(2),
        "here",
        3,
        1,
        seconds(2),
    )
    assert (other.id, other.has_heartbeat) == ("node", False)


# -- hooks -------------------------------------------------------------------------------------------------------------

JOB = Job(7, "work", "{}", 1, 25, 0, 0.0, 0.0, 0.0, 0)
LATER = Reschedule(datetime(2030, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("answers", "decision"),
    [
        pytest.param([], None, id="nobody asked"),
        pytest.param([None, None], None, id="both leave it"),
        pytest.param([None, SkipRecovery(), LATER], SkipRecovery(), id="the first that decides"),
        pytest.param([ValueError("broken"), FailWithBackoff()], FailWithBackoff(), id="one that raises does not count"),
        pytest.param(["skip"], None, id="an answer that is none"),
    ],
)
def test_the_first_hook_that_decides_otherwise_wins(answers: list[Any], decision: Any) -> None:
    hooks = [Deciding(answer).on_recovery for answer in answers]

    assert decide(hooks, JOB, "dead", None, lambda job, error: None) == decision


def test_a_hook_that_raises_or_answers_nonsense_is_reported() -> None:
    reported: list[str] = []

    for answer in (ValueError("broken"), 5):
        hook = Deciding(answer)
        decide([hook.on_recovery], JOB, "dead", "sweeper", lambda job, error: reported.append(f"{job.id}: {error}"))
        assert hook.asked == [(JOB.id, "dead", "WorkerCrashed", "sweeper")]

    assert reported == ["7: broken", "7: on_recovery returned int, which is not a decision"]


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: Reschedule(datetime(2030, 1, 1)), id="a moment without a zone"),
        pytest.param(lambda: Reschedule(LATER.run_at, attempts=-1), id="negative attempts"),
        pytest.param(lambda: RecoverySettings(sweep_threshold=seconds(-1)), id="a negative threshold"),
        pytest.param(lambda: RecoverySettings(resilient_multiplier=0.5), id="less patience for resilient jobs"),
        pytest.param(lambda: RecoverySettings(resilient_flags="flag"), id="flags that are a text"),
        pytest.param(lambda: WorkerSettings(heartbeat_interval=seconds(0)), id="a heart without a rest"),
        pytest.param(
            lambda: WorkerSettings(heartbeat_interval=seconds(25), sweep_threshold=seconds(45)),
            id="a threshold of one beat",
        ),
    ],
)
def test_what_cannot_be_meant_is_rejected(make: Any) -> None:
    with pytest.raises(ValueError, match=r"must|zone"):
        make()


def test_the_threshold_matters_only_to_those_who_sweep() -> None:
    assert not WorkerSettings(recover=False, heartbeat_interval=seconds(25), sweep_threshold=seconds(45)).recover
    with pytest.raises(InvalidSettingError, match="twice heartbeat_interval"):
        WorkerSettings(heartbeat_interval=seconds(25), sweep_threshold=seconds(45))


@pytest.mark.parametrize("threshold", [seconds(4), seconds(8), seconds(10), seconds(60), minutes(5), minutes(60)])
def test_one_lost_heartbeat_kills_no_worker(threshold: timedelta) -> None:
    """Also with the longest interval: the next heartbeat follows when the answer to the last one is given up."""
    settings = WorkerSettings(sweep_threshold=threshold, heartbeat_interval=threshold / 2)

    assert settings.effective_heartbeat_interval + settings.heartbeat_timeout <= 0.75 * threshold


def test_sweeps_that_are_rarer_than_the_threshold_are_rejected() -> None:
    assert WorkerSettings(sweep_threshold=seconds(60), sweep_interval=seconds(60)).recover
    with pytest.raises(InvalidSettingError, match=r"sweep_interval \(1m1s\) must be at most sweep_threshold \(1m\)"):
        WorkerSettings(sweep_threshold=seconds(60), sweep_interval=seconds(61))


@pytest.mark.parametrize(
    ("threshold", "heartbeat", "sweep", "delay"),
    [
        pytest.param(minutes(5), seconds(30), seconds(60), seconds(30), id="usual"),
        pytest.param(minutes(10), seconds(30), seconds(60), seconds(30), id="longer"),
        pytest.param(minutes(2), seconds(30), seconds(30), seconds(12), id="shorter"),
        pytest.param(seconds(5), seconds(1.25), seconds(1.25), seconds(0.5), id="seconds"),
    ],
)
def test_the_usual_durations_shrink_with_the_threshold(
    threshold: timedelta, heartbeat: timedelta, sweep: timedelta, delay: timedelta
) -> None:
    settings = WorkerSettings(sweep_threshold=threshold)

    assert (settings.effective_heartbeat_interval, settings.effective_sweep_interval) == (heartbeat, sweep)
    assert (
        settings.effective_recovery_delay
        == RecoverySettings(sweep_threshold=threshold).effective_recovery_delay
        == delay
    )


def test_with_a_threshold_of_five_seconds_a_job_runs_again_within_ten() -> None:
    settings = WorkerSettings(sweep_threshold=seconds(5))

    longest = settings.sweep_threshold + 1.1 * settings.effective_sweep_interval + settings.effective_recovery_delay
    assert longest < seconds(8)


def test_a_duration_that_was_given_stays_whatever_the_threshold_also_when_it_is_the_usual_one() -> None:
    given = {"heartbeat_interval": seconds(30), "sweep_interval": seconds(60), "recovery_delay": seconds(30)}
    settings = WorkerSettings(recover=False, sweep_threshold=seconds(5), **given)

    intervals = (settings.effective_heartbeat_interval, settings.effective_sweep_interval)
    assert (*intervals, settings.effective_recovery_delay) == (seconds(30), seconds(60), seconds(30))
    with pytest.raises(InvalidSettingError, match="twice heartbeat_interval"):
        replace(settings, recover=True)


def test_another_threshold_gives_other_usual_durations() -> None:
    settings = replace(WorkerSettings(sweep_threshold=minutes(10)), sweep_threshold=seconds(4))

    assert (settings.effective_heartbeat_interval, settings.effective_recovery_delay) == (seconds(1), seconds(0.4))
