"""A worker that has run for long enough exits gracefully and logs why."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from support.queue_fixture import RunRecord, ms
from support.recovery_fixture import RecoveryFixture, minutes

from gw_core import WorkerSettings
from gw_core.errors import InvalidSettingError

MEGABYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        pytest.param(WorkerSettings(), None, id="no bounds"),
        pytest.param(WorkerSettings(max_jobs=101), None, id="jobs to go"),
        pytest.param(WorkerSettings(max_jobs=100), "100 jobs have run, the limit is 100", id="jobs"),
        pytest.param(WorkerSettings(max_lifetime=minutes(61)), None, id="time to go"),
        pytest.param(WorkerSettings(max_lifetime=minutes(60)), "its lifetime of 1h has ended", id="time"),
        pytest.param(WorkerSettings(max_rss=201 * MEGABYTE), None, id="memory to go"),
        pytest.param(
            WorkerSettings(max_rss=150 * MEGABYTE), "it uses 200 MB of memory, of at most 150 MB", id="memory"
        ),
    ],
)
def test_a_limit_is_reached_at_its_value(settings: WorkerSettings, reason: str | None) -> None:
    assert settings.limit_reached(ended=100, lived=minutes(60), rss=200 * MEGABYTE) == reason


def test_memory_that_cannot_be_measured_oversteps_nothing() -> None:
    assert WorkerSettings(max_rss=1).limit_reached(ended=0, lived=timedelta(0), rss=None) is None


def test_a_worker_ends_gracefully_after_so_many_jobs(ward: RecoveryFixture) -> None:
    done = RunRecord()
    ward.fill(300)
    with ward.running({"work": done}, max_jobs=20, prefetch=ms(0)) as running:
        result = running.end()

    assert (result.exit_code, result.reason.endswith("jobs have run, the limit is 20")) == (0, True)
    assert result.completed == len(done.entries) >= 20
    assert (len(ward.jobs()), ward.held()) == (300 - result.completed, [])


def test_a_worker_ends_gracefully_after_its_lifetime(ward: RecoveryFixture) -> None:
    with ward.running({"work": RunRecord()}, max_lifetime=ms(50)) as running:
        assert running.end().reason == "its lifetime of 50ms has ended"


def test_a_worker_ends_gracefully_when_it_uses_too_much_memory(ward: RecoveryFixture) -> None:
    with ward.running({"work": RunRecord()}, max_rss=MEGABYTE) as running:
        reason = re.fullmatch(r".*?([\d,]+) MB of memory, of at most 1 MB.*", running.end().reason)

    assert reason is not None
    assert 10 < int(reason[1].replace(",", "")) < 10_000, "not the memory of a Python with a database driver"


@pytest.mark.parametrize("options", [{"max_jobs": 0}, {"max_rss": -1}, {"max_lifetime": ms(-1)}])
def test_a_bound_that_leaves_nothing_is_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidSettingError):
        WorkerSettings(**options)


def test_one_job_is_not_jobs() -> None:
    reason = WorkerSettings(max_jobs=1).limit_reached(ended=1, lived=timedelta(0), rss=None)

    assert reason == "1 job has run, the limit is 1"
