"""The health of a worker, from its last heartbeat or lock."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.console_source import QueueSource

from gw_core import JobState, RecoverySettings
from gw_core.operations import WorkerInfo
from gw_tui.rules.worker_health import WorkerHealth, cancel_effects, health, staleness

RECOVERY = RecoverySettings(sweep_threshold=timedelta(minutes=5), orphans_after=timedelta(hours=4))


def a_worker(
    heartbeat: float | None, *, lock: float | None = None, stale: bool = False, resilient: bool = False
) -> WorkerInfo:
    return WorkerInfo(
        id="w",
        heartbeat_age=None if heartbeat is None else timedelta(seconds=heartbeat),
        lock_age=None if lock is None else timedelta(seconds=lock),
        is_stale=stale,
        is_resilient=resilient,
    )


@pytest.mark.parametrize(
    ("worker", "found"),
    [
        pytest.param(a_worker(5), WorkerHealth.HEALTHY, id="it beats"),
        pytest.param(a_worker(99), WorkerHealth.HEALTHY, id="a heartbeat or two late"),
        pytest.param(a_worker(101), WorkerHealth.LATE, id="several beats late"),
        pytest.param(a_worker(101, lock=3), WorkerHealth.HEALTHY, id="a fresh lock is a sign of life as well"),
        pytest.param(a_worker(101, resilient=True), WorkerHealth.HEALTHY, id="its heartbeats may be late for longer"),
        pytest.param(a_worker(301, stale=True), WorkerHealth.STALE, id="the core says it is dead"),
        pytest.param(a_worker(None, lock=60), WorkerHealth.UNKNOWN, id="locks and no heartbeat"),
        pytest.param(a_worker(None, lock=20_000, stale=True), WorkerHealth.STALE, id="old locks and no heartbeat"),
    ],
)
def test_a_worker_is_judged_by_its_last_sign_of_life(worker: WorkerInfo, found: WorkerHealth) -> None:
    assert health(worker, RECOVERY) is found


def test_the_warning_threshold_is_a_share_of_what_counts_as_dead() -> None:
    assert staleness(a_worker(150), RECOVERY) == 0.5
    assert staleness(a_worker(150, resilient=True), RECOVERY) == pytest.approx(1 / 6)
    assert staleness(a_worker(None, lock=7200), RECOVERY) == 0.5
    assert staleness(a_worker(9000), RECOVERY) == 1
    assert staleness(a_worker(0), RecoverySettings(sweep_threshold=timedelta())) == 0


def test_the_question_before_a_cancellation_says_what_each_worker_will_do() -> None:
    source = QueueSource()
    running = [each for each in source.queue.states() if each.state is JobState.RUNNING]
    one, other, third = sorted({str(each.job.locked_by) for each in running})[:3]
    workers = {
        one: WorkerInfo(id=one, heartbeat_age=timedelta(seconds=4)),
        other: WorkerInfo(id=other, heartbeat_age=timedelta(minutes=20), is_stale=True),
    }
    lines = dict(line.split(": ", 1) for line in cancel_effects(running, workers))
    assert "to stop; last heartbeat 4.0s ago" in lines[one]
    assert "gone for 20m00s, nothing stops" in lines[other]
    assert "sends no heartbeats" in lines[third]
