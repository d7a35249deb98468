"""How many jobs a claim asks for."""

from __future__ import annotations

import pytest

from gw_core.worker.claim_demand import claim_demand, claim_size, jobs_in_window, prefetch_limit
from gw_core.worker.job_durations import JobDurations

BUSY = {"idle": 0, "waiting": 0, "prefetch": 10, "threads": 4, "outstanding": 4, "max_jobs": 100}


@pytest.mark.parametrize(
    ("mean", "jobs"),
    [
        pytest.param(0.1, 5, id="jobs shorter than the window"),
        pytest.param(2.0, 0, id="jobs longer than the window"),
        pytest.param(0.0, 500, id="jobs too short to measure"),
    ],
)
def test_a_window_holds_as_many_jobs_as_one_thread_runs_in_it(mean: float, jobs: int) -> None:
    assert jobs_in_window(mean, window=0.5, claim_limit=500) == jobs


@pytest.mark.parametrize(
    ("mean", "claim_limit", "size"),
    [
        pytest.param(0.000_01, 1_000, 1_000, id="a thread runs more in the window"),
        pytest.param(0.000_05, 1_000, 800, id="a thread runs some more"),
        pytest.param(0.1, 1_000, 500, id="jobs that are not short"),
        pytest.param(0.1, 10, 10, id="a low limit"),
    ],
)
def test_large_claims_are_for_jobs_of_microseconds(mean: float, claim_limit: int, size: int) -> None:
    assert claim_size(mean, window=0.04, claim_limit=claim_limit, queues=1) == size


def test_a_claim_of_several_queues_is_no_larger_for_short_jobs() -> None:
    assert [claim_size(0.000_01, window=0.04, claim_limit=1_000, queues=queues) for queues in (0, 1, 2)] == [
        1_000,
        1_000,
        500,
    ]


def test_claims_grow_after_thousands_of_short_jobs_and_not_after_a_few() -> None:
    durations, short, long = JobDurations(), 0.000_002, 0.01

    def size_after(*batches: list[float]) -> int:
        for batch in batches:
            durations.add(batch)
        return claim_size(durations.lasting_mean, window=0.04, claim_limit=1_000, queues=0)

    assert size_after([short] * 10) == 500
    assert size_after([short] * 8_000) == 1_000
    assert size_after([long]) == 1_000  # the machine may have paused
    assert size_after(*[[long, *[short] * 99]] * 100) == 500
    assert size_after(*[[short] * 10] * 40) == 500
    assert durations.mean is not None
    assert durations.mean < 2 * short
    assert size_after([short] * 8_000) == 1_000


@pytest.mark.parametrize(
    ("mean", "threads", "limit"),
    [
        pytest.param(None, 4, 0, id="before the first job has ended"),
        pytest.param(0.1, 4, 20, id="every thread prefetches its window"),
        pytest.param(0.1, 0, 0, id="all threads are stuck in long jobs"),
        pytest.param(0.0001, 4, 1_000, id="at most two claims"),
    ],
)
def test_jobs_are_prefetched_for_the_threads_that_reach_them(mean: float | None, threads: int, limit: int) -> None:
    assert prefetch_limit(mean, threads=threads, window=0.5, claim_limit=500) == limit


@pytest.mark.parametrize(
    ("changes", "jobs"),
    [
        pytest.param({}, 10, id="busy threads with nothing prefetched"),
        pytest.param({"waiting": 6, "outstanding": 10}, 0, id="busy threads with more than half prefetched"),
        pytest.param({"waiting": 5, "outstanding": 9}, 5, id="busy threads with half prefetched"),
        pytest.param({"idle": 4, "outstanding": 0, "prefetch": 0}, 4, id="idle threads without prefetch"),
        pytest.param({"idle": 2, "outstanding": 50}, 2, id="idle threads although many outcomes are unwritten"),
        pytest.param({"max_jobs": 3}, 3, id="at most what a claim may take"),
    ],
)
def test_a_claim_asks_for_idle_threads_and_up_to_the_prefetch_limit(changes: dict[str, int], jobs: int) -> None:
    assert claim_demand(**{**BUSY, **changes}) == jobs
