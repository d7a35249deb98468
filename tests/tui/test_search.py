"""A page of jobs: found in one answer or many, bounded, kept fresh at little cost, and left and found again exactly."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest
from hypothesis import given, strategies as st

from gw_core import Job, JobState
from gw_core.front_ends import FoundJob, PageCursor
from gw_core.operations import JobPage
from gw_core.selection import parse
from gw_tui.rules.search import CHEAP, MAX_ROWS, PAGE, Ask, Search, Stage

RARE = "priority:<99 priority:7"

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def a_job(job_id: int, *, priority: int = 0, state: JobState = JobState.READY) -> FoundJob:
    return FoundJob(
        Job(
            id=job_id,
            task="send",
            payload_json="",
            attempts=0,
            max_attempts=25,
            priority=priority,
            _run_at=NOW.timestamp(),
            _created_at=0.0,
            _updated_at=0.0,
            revision=0,
        ),
        state,
    )


class Queue:
    """Answers as the core does: by ids, and after scanning at most `scan_limit` jobs."""

    def __init__(self, jobs: list[FoundJob], scan_limit: int = 1_000_000) -> None:
        self.jobs = jobs
        self.scan_limit = scan_limit

    def page(self, ask: Ask) -> JobPage:
        after = int(ask.after.place[0]) if ask.after else 0
        rest = [each for each in self.jobs if each.job.id > after]
        scanned = rest[: self.scan_limit]
        wanted = ask.wanted
        found = list(islice((each for each in scanned if wanted.matches(each, NOW)), ask.limit))
        if len(found) == ask.limit:
            return JobPage(
                jobs=tuple(found), after=PageCursor.after_id(found[-1].job.id), scanned=len(scanned), is_full=True
            )
        after_all = PageCursor.after_id(scanned[-1].job.id) if len(scanned) < len(rest) else None
        return JobPage(jobs=tuple(found), after=after_all, scanned=len(scanned))


def searched(search: Search, queue: Queue) -> Search:
    """Ask until the page stands."""
    while search.is_searching:
        search = search.answered(queue.page(search.ask))
    return search


def ids(search: Search) -> list[int]:
    return [each.job.id for each in search.jobs]


def test_a_page_that_an_index_serves_comes_with_one_answer() -> None:
    queue = Queue([a_job(n) for n in range(1, 251)])

    search = Search().answered(queue.page(Search().ask))

    assert (search.stage, ids(search)) == (Stage.FULL, list(range(1, 101)))


def test_such_a_page_is_made_again_at_each_tick() -> None:
    queue = Queue([a_job(n) for n in range(1, 251)])
    search = searched(Search(), queue)

    del queue.jobs[:10]
    search = search.answered(queue.page(search.ask))

    assert ids(search) == list(range(11, 111))


def test_finds_stream_in_while_a_search_goes_on() -> None:
    queue = Queue([a_job(n, priority=n % 50) for n in range(1, 2_001)], scan_limit=500)
    search = Search(wanted=parse(RARE))

    counts = []
    while search.is_searching:
        search = search.answered(queue.page(search.ask))
        counts.append(len(search.jobs))

    assert counts == sorted(counts)
    assert len(counts) > 2
    assert ids(search) == [n for n in range(1, 2_001) if n % 50 == 7]
    assert search.stage is Stage.OVER


def test_a_search_that_was_stopped_keeps_its_finds_and_can_go_on_with_the_next_page() -> None:
    queue = Queue([a_job(n, priority=n % 50) for n in range(1, 2_001)], scan_limit=500)
    search = Search(wanted=parse(RARE))
    search = search.answered(queue.page(search.ask)).stopped()

    rest = searched(Search(wanted=search.wanted, begin=search.follows), queue)

    assert search.stage is Stage.STOPPED
    assert ids(search) + ids(rest) == [n for n in range(1, 2_001) if n % 50 == 7]


def test_after_an_expensive_search_only_its_finds_are_read_again() -> None:
    queue = Queue([a_job(n, priority=int(n == 30_000)) for n in range(1, 40_001)], scan_limit=5_000)
    search = searched(Search(wanted=parse("priority:<9 priority:1")), queue)

    assert search.scanned > CHEAP
    assert search.ask.wanted.ids == (30_000,)
    queue.jobs = [a_job(30_000, state=JobState.RUNNING)]
    assert search.answered(queue.page(search.ask)).jobs[0].state is JobState.RUNNING
    queue.jobs = []
    assert search.answered(queue.page(search.ask)).jobs == ()


def test_a_page_made_again_in_several_answers_stays_until_it_is_whole() -> None:
    queue = Queue([a_job(n, priority=n % 50) for n in range(1, 2_001)], scan_limit=500)
    search = searched(Search(wanted=parse(RARE)), queue)
    del queue.jobs[6]

    shown = []
    for _ in range(20):
        search = search.answered(queue.page(search.ask))
        shown.append(tuple(ids(search)))
        assert not search.is_searching

    assert set(shown) == {
        tuple(n for n in range(1, 2_001) if n % 50 == 7),
        tuple(n for n in range(8, 2_001) if n % 50 == 7),
    }


@given(
    st.lists(st.integers(0, 3), max_size=600),
    st.integers(1, 400),
    st.sampled_from(["", "priority:1", "prio:>0 prio:<3", "-prio:1", "priority:>=2", "-task:send", "state:ready"]),
)
def test_page_by_page_every_match_is_shown_once_and_sorted(priorities: list[int], scan_limit: int, text: str) -> None:
    queue = Queue([a_job(n, priority=priority) for n, priority in enumerate(priorities, 1)], scan_limit)
    wanted = parse(text)
    shown: list[int] = []
    begin: PageCursor | None = None
    while True:
        search = searched(Search(wanted=wanted, begin=begin), queue)
        assert len(search.jobs) <= MAX_ROWS
        shown += ids(search)
        if search.follows is None:
            break
        assert len(search.jobs) >= PAGE
        begin = search.follows

    assert shown == [each.job.id for each in queue.jobs if wanted.matches(each, NOW)]


@pytest.mark.parametrize("stage", [Stage.FULL, Stage.OVER, Stage.STOPPED])
def test_only_a_search_under_way_can_be_stopped(stage: Stage) -> None:
    search = Search(stage=stage)

    assert search.stopped() is search
