"""When a worker claims next, by what its last claims found."""

from __future__ import annotations

from typing import Any

import pytest

from gw_core.domain.job.claim_schedule import QUEUE_RETRY_INTERVAL, ClaimSchedule, Found

POLL = 2.0


@pytest.mark.parametrize(
    ("found", "may_find"),
    [
        pytest.param({"jobs": 0}, False, id="nothing"),
        pytest.param({"jobs": 9}, False, id="fewer than it asked for"),
        pytest.param({"jobs": 10}, True, id="as many as it asked for"),
        pytest.param({"jobs": 1, "has_queued": True}, True, id="a job of a queue, which may hide others"),
        pytest.param({"jobs": 1, "has_more": True}, True, id="some, before it had read everything"),
        pytest.param({"jobs": 1, "has_queued": True, "is_rest_locked": True}, False, id="the only queue with jobs"),
    ],
)
def test_a_claim_follows_while_it_may_find_a_job(found: dict[str, Any], may_find: bool) -> None:
    schedule = ClaimSchedule(POLL)

    schedule.note_claim(Found(limit=10, **found), began=100.0)

    assert schedule.may_find is may_find
    assert (schedule.is_due(100.0), schedule.is_due(100.0 + POLL)) == (False, True)


def test_a_request_that_arrives_during_a_poll_stays() -> None:
    schedule = ClaimSchedule(POLL)
    schedule.is_requested = True

    assert schedule.take_request(0.0)
    schedule.is_requested = True

    assert schedule.is_due(0.0)
    assert schedule.take_request(0.0)
    assert not schedule.take_request(0.0)


def test_after_a_request_a_locked_queue_is_tried_again_less_and_less_often() -> None:
    schedule = ClaimSchedule(POLL)
    schedule.is_requested = True
    schedule.take_request(0.0)
    retries: list[float] = []
    for _ in range(10):
        schedule.note_claim(Found(limit=10, saw_queues=True), began=0.0)
        retries.append(schedule.poll_at)

    assert retries[:3] == [QUEUE_RETRY_INTERVAL, 2 * QUEUE_RETRY_INTERVAL, 4 * QUEUE_RETRY_INTERVAL]
    assert retries[-1] == POLL


def test_jobs_announced_to_many_workers_are_a_reason_to_poll_and_not_to_claim() -> None:
    schedule = ClaimSchedule(POLL)
    schedule.note_claim(Found(limit=10), began=0.0)
    schedule.poll_now(1.0)

    assert schedule.is_due(1.0)
    assert not schedule.take_request(1.0)
    schedule.note_claim(Found(limit=10, saw_queues=True), began=1.0)
    assert schedule.poll_at == 1.0 + QUEUE_RETRY_INTERVAL


def test_the_queue_becomes_empty_once() -> None:
    schedule = ClaimSchedule(POLL)
    nothing, a_job = Found(limit=10), Found(limit=10, jobs=1)

    assert [schedule.note_claim(each, began=0.0) for each in (nothing, nothing, a_job, nothing)] == [
        True,
        False,
        False,
        True,
    ]


def test_room_of_a_limit_is_not_waited_for_until_the_next_poll() -> None:
    schedule = ClaimSchedule(POLL)

    schedule.note_claim(Found(limit=10, retry_at=0.5), began=0.0)

    assert schedule.poll_at == 0.5
