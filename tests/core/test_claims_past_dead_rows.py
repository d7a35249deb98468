"""While rows long dead cannot be removed, claims begin where jobs were found last, and sometimes at the beginning."""

from __future__ import annotations

import pytest

from gw_core.postgres.claims import MAX_MARGIN, MAX_SKIPPING_SECONDS, SHARE, SLOW_ONES, SkipAhead

QUICK, SLOW = 0.005, 0.1


def heads_after(*spans: float, found: int = 1) -> SkipAhead:
    """A resume point behind a job, after full claims that took so long, the last at time 0."""
    heads = SkipAhead()
    heads.record_found([(0, 1000.0, False)])
    for span in spans:
        heads.record_full_scan(found=found, seconds=span, now=0.0)
    return heads


@pytest.mark.parametrize(
    ("spans", "skips"),
    [
        pytest.param([], False, id="at first"),
        pytest.param([QUICK] * SLOW_ONES, False, id="quick ones"),
        pytest.param([SLOW] * (SLOW_ONES - 1), False, id="a few slow ones"),
        pytest.param([SLOW] * SLOW_ONES, True, id="slow ones in a row"),
        pytest.param([SLOW, QUICK, *[SLOW] * (SLOW_ONES - 1)], False, id="slow ones with a quick one between"),
        pytest.param([*[SLOW] * SLOW_ONES, QUICK], False, id="the first quick one after slow ones"),
    ],
)
def test_claims_skip_only_after_slow_ones_in_a_row(spans: list[float], skips: bool) -> None:
    assert heads_after(*spans).may_skip(0.1) is skips


def test_a_claim_that_found_many_jobs_may_take_its_time() -> None:
    assert not heads_after(*[SLOW] * 9, found=10_000).may_skip(0.1)


def test_without_a_job_found_there_is_nowhere_to_begin() -> None:
    heads = SkipAhead()
    for _ in range(SLOW_ONES):
        heads.record_full_scan(found=0, seconds=SLOW, now=0.0)

    assert not heads.may_skip(0.1)


@pytest.mark.parametrize(("span", "until"), [(SLOW, SHARE * SLOW), (3.0, MAX_SKIPPING_SECONDS), (60.0, 180.0)])
def test_claims_from_the_beginning_take_a_small_share_of_the_time_and_come_again(span: float, until: float) -> None:
    heads = heads_after(*[span] * SLOW_ONES)

    assert heads.skips_until(0.0) == pytest.approx(until)
    assert heads.may_skip(until - 0.01)
    assert not heads.may_skip(until)


def test_asked_to_restart_scan_the_next_claim_begins_at_the_beginning() -> None:
    heads = heads_after(*[SLOW] * SLOW_ONES)

    heads.restart_scan()

    assert not heads.may_skip(0.1)


def test_each_priority_begins_at_the_first_job_found_of_it_less_a_margin() -> None:
    heads = SkipAhead()
    heads.record_found([(5, 300.0, False), (5, 200.0, False), (-1, 400.0, False), (5, 100.0, True)])
    heads.record_found([(5, 250.0, False)])

    assert heads.columns(heads.unqueued) == ([-1, 5], [400.0 - MAX_MARGIN, 250.0 - MAX_MARGIN])
    assert heads.columns(heads.queued) == ([5], [100.0 - MAX_MARGIN])


def test_the_margin_shrinks_while_claims_within_it_are_slow_and_grows_again() -> None:
    heads = SkipAhead()
    heads.record_found([(0, 0.0, False)])

    def margin() -> float:
        return -heads.columns(heads.unqueued)[1][0]

    for _ in range(30):
        heads.record_partial_scan(found=1, seconds=SLOW)
    assert margin() < 0.001

    for _ in range(200):
        heads.record_partial_scan(found=1, seconds=QUICK)
    assert margin() == MAX_MARGIN
