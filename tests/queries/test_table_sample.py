"""A large table is sampled: few pages each time, and what the last minute found counts together."""

from __future__ import annotations

import pytest
from support.jobs_in_states import Queue

from gw_core import JobState
from gw_core.domain.reports import table_sample
from gw_core.front_ends import FrontEnd, Quality

SAMPLED_PAGES, MIN_PAGES, MAX_AGE = table_sample.SAMPLED_PAGES, table_sample.MIN_PAGES, table_sample.MAX_AGE
LARGE = 100 * SAMPLED_PAGES


@pytest.fixture
def smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sample tables of more than 150 pages, which 20,000 jobs take."""
    monkeypatch.setattr(table_sample, "COUNTED_PAGES", 150)
    monkeypatch.setattr(table_sample, "SAMPLED_PAGES", 100)
    monkeypatch.setattr(table_sample, "MIN_PAGES", 20)


@pytest.mark.usefixtures("smaller")
def test_a_large_table_is_estimated_unless_counting_is_asked_for(queue: Queue) -> None:
    queue.many(20_000)

    estimated, exact = queue.client.counts(), queue.client.counts(exact=True)

    assert estimated.total.quality is Quality.ESTIMATE
    assert 10_000 < estimated.total.value < 30_000
    assert estimated.states[JobState.FAILED].quality is Quality.ROUGH
    assert (exact.total.value, exact.total.quality) == (20_000, Quality.EXACT)


@pytest.mark.usefixtures("smaller")
def test_counting_again_and_again_estimates_the_same_table(queue: Queue) -> None:
    queue.many(20_000)
    front_end = FrontEnd(queue.client)

    totals = [front_end.counts().total for _ in range(30)]

    assert {each.quality for each in totals} == {Quality.ESTIMATE}
    assert all(10_000 < each.value < 30_000 for each in totals)


def test_the_first_read_samples_all_pages_and_each_later_one_few() -> None:
    sample = table_sample.TableSample()
    pages = []

    for now in range(0, 200, 5):
        share = sample.next_share(LARGE, now)
        pages.append(round(share * LARGE))
        sample.add([], share, LARGE, now)

    assert pages[0] == SAMPLED_PAGES
    assert set(pages[1:12]) == {MIN_PAGES}
    assert max(pages[1:]) < 2 * MIN_PAGES


def test_what_is_older_than_a_minute_does_not_count() -> None:
    sample = table_sample.TableSample()
    share = sample.next_share(LARGE, 0.0)
    sample.add([("old",)], share, LARGE, 0.0)

    later = MAX_AGE + 1

    assert sample.next_share(LARGE, later) == share
    assert sample.add([("new",)], share, LARGE, later) == ([("new",)], share)


def test_parts_of_a_table_that_grows_stand_for_the_table_as_it_was_then() -> None:
    sample = table_sample.TableSample()
    first = sample.next_share(LARGE, 0.0)
    sample.add([("a",)], first, LARGE, 0.0)
    later = sample.next_share(2 * LARGE, 5.0)

    rows, share = sample.add([("b",)], later, 2 * LARGE, 5.0)

    assert (rows, share) == ([("a",), ("b",)], first + later)


def test_more_parts_than_needed_are_dropped() -> None:
    sample = table_sample.TableSample()

    counted = [len(sample.add([("part",)], sample.next_share(LARGE, 0.0), LARGE, 0.0)[0]) for _ in range(100)]

    assert max(counted) <= SAMPLED_PAGES // MIN_PAGES + 2


def test_a_table_of_few_pages_is_counted() -> None:
    assert table_sample.TableSample().next_share(table_sample.COUNTED_PAGES, 0.0) == 1.0
