"""While rows long dead cannot be removed, claims begin where jobs were found last, and sometimes at the beginning."""

from __future__ import annotations

import pytest

from gw_core.postgres.road.claims import MAX_MARGIN, MAX_SKIPPING_SECONDS, SHARE, SLOW_ONES, SkipAhead

QUICK, SLOW = 0.005, 0.1


def skip_after(*durations: float, found: int = 1) -> SkipAhead:
    """A resume point behind a job, after full claims that took so long, the last at time 0."""
    skip = SkipAhead()
    skip.record_found({(0, False): 1000.0})
    for duration in durations:
        skip.record_full_scan(found=found, seconds=duration, now=0.0)
    return skip


@pytest.mark.parametrize(
    ("durations", "skips"),
    [
        pytest.param([], False, id="at first"),
        pytest.param([QUICK] * SLOW_ONES, False, id="quick ones"),
        pytest.param([SLOW] * (SLOW_ONES - 1), False, id="a few slow ones"),
        pytest.param([SLOW] * SLOW_ONES, True, id="slow ones in a row"),
        pytest.param([SLOW, QUICK, *[SLOW] * (SLOW_ONES - 1)], False, id="slow ones with a quick one between"),
        pytest.param([*[SLOW] * SLOW_ONES, QUICK], False, id="the first quick one after slow ones"),
    ],
)
def test_claims_skip_only_after_slow_ones_in_a_row(durations: list[float], skips: bool) -> None:
    assert skip_after(*durations).may_skip(0.1) is skips


def test_a_claim_that_found_many_jobs_may_take_its_time() -> None:
    assert not skip_after(*[SLOW] * 9, found=10_000).may_skip(0.1)


def test_without_a_job_found_there_is_nowhere_to_begin() -> None:
    skip = SkipAhead()
    for _ in range(SLOW_ONES):
        skip.record_full_scan(found=0, seconds=SLOW, now=0.0)

    assert not skip.may_skip(0.1)


@pytest.mark.parametrize(("duration", "until"), [(SLOW, SHARE * SLOW), (3.0, MAX_SKIPPING_SECONDS), (60.0, 180.0)])
def test_claims_from_the_beginning_take_a_small_share_of_the_time_and_come_again(duration: float, until: float) -> None:
    skip = skip_after(*[duration] * SLOW_ONES)

    assert skip.skips_until(0.0) == pytest.approx(until)
    assert skip.may_skip(until - 0.01)
    assert not skip.may_skip(until)


def test_asked_to_restart_scan_the_next_claim_begins_at_the_beginning() -> None:
    skip = skip_after(*[SLOW] * SLOW_ONES)

    skip.restart_scan()

    assert not skip.may_skip(0.1)


def test_each_priority_begins_at_the_first_job_found_of_it_less_a_margin() -> None:
    skip = SkipAhead()
    skip.record_found({(5, False): 200.0, (-1, False): 400.0, (5, True): 100.0})
    skip.record_found({(5, False): 250.0})

    assert skip.values() == {
        "unqueued_priorities": [-1, 5],
        "unqueued_since": [400.0 - MAX_MARGIN, 250.0 - MAX_MARGIN],
        "queued_priorities": [5],
        "queued_since": [100.0 - MAX_MARGIN],
    }


def test_the_margin_shrinks_while_claims_within_it_are_slow_and_grows_again() -> None:
    skip = SkipAhead()
    skip.record_found({(0, False): 0.0})

    def margin() -> float:
        return -float(skip.values()["unqueued_since"][0])

    for _ in range(30):
        skip.record_partial_scan(found=1, seconds=SLOW)
    assert margin() < 0.001

    for _ in range(200):
        skip.record_partial_scan(found=1, seconds=QUICK)
    assert margin() == MAX_MARGIN
