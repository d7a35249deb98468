"""How long a worker's claims that follow notifications are apart."""

from __future__ import annotations

import random

import pytest

from gw_core.domain.job.claim_gap import MAX_GAP, AnnouncedShare, claim_gap


def share_of(workers: int, jobs: int = 2_000) -> AnnouncedShare:
    """Return the share of one of several equal workers after this many jobs, each announced alone."""
    share = AnnouncedShare()
    for number in range(jobs):
        share = share.after(announced=1, claimed=int(number % workers == 0))
    return share


@pytest.mark.parametrize("workers", [1, 2])
def test_one_or_two_workers_never_wait(workers: int) -> None:
    assert claim_gap(share_of(workers), 1.0) == 0


def test_a_worker_that_was_announced_nothing_does_not_wait() -> None:
    assert claim_gap(AnnouncedShare(), 1.0) == 0


@pytest.mark.parametrize(
    ("workers", "seconds"),
    [pytest.param(5, 0.0015, id="five"), pytest.param(20, 0.009, id="twenty"), pytest.param(80, 0.034, id="eighty")],
)
def test_the_gap_grows_with_the_number_of_workers(workers: int, seconds: float) -> None:
    assert claim_gap(share_of(workers), 1.0) == pytest.approx(seconds, rel=0.25)


def test_the_gap_is_bounded() -> None:
    nothing_for_us = AnnouncedShare().after(announced=1_000_000, claimed=0)

    assert claim_gap(nothing_for_us, 1.0) == MAX_GAP


def test_a_worker_left_alone_stops_waiting() -> None:
    share = share_of(100)
    for _ in range(1_000):
        share = share.after(announced=1, claimed=1)

    assert claim_gap(share, 1.0) == 0


@pytest.mark.parametrize("workers", [10, 100])
def test_a_fleet_claims_four_thousand_times_a_second_whatever_its_size(workers: int) -> None:
    chances = random.Random(1)
    share = share_of(workers)

    gaps = [claim_gap(share, chances.random()) for _ in range(10_000)]

    assert workers * len(gaps) / sum(gaps) == pytest.approx(4_500, rel=0.3)
