"""The health of a worker, from its last heartbeat or lock."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gw_core import RecoverySettings
from gw_core.operations import WorkerInfo
from gw_tui.rules.worker_health import WorkerHealth, health, staleness

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
