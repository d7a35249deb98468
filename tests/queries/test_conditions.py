"""Conditions beyond names: every list says of each job what the condition itself says, in every order there is."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from query_fixture import Queue

from gw_core import JobFilter, JobState
from gw_core.errors import InvalidInputError
from gw_core.operations import Narrowing, PageCursor

NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = timedelta(hours=1)

NARROWINGS = [
    pytest.param(Narrowing(priority=(1, 2)), id="priorities"),
    pytest.param(Narrowing(priority=(None, -1)), id="priorities without a least"),
    pytest.param(Narrowing(priority=(2, 1)), id="no priority at all"),
    pytest.param(Narrowing(attempts=(3, None)), id="attempts"),
    pytest.param(Narrowing(attempts=(-(10**9), 10**9)), id="numbers beyond any column"),
    pytest.param(Narrowing(run_at=(NOW - HOUR, NOW + HOUR)), id="moments to run at"),
    pytest.param(Narrowing(run_at=(None, datetime.max.replace(tzinfo=UTC))), id="up to the end of the calendar"),
    pytest.param(Narrowing(run_at=(NOW, NOW - HOUR)), id="no moment at all"),
    pytest.param(Narrowing(started_at=(None, NOW - HOUR)), id="held for long"),
    pytest.param(Narrowing(payload_path=["user", "id"], payload_value="3"), id="a number in the payload"),
    pytest.param(Narrowing(payload_path=["user", "name"], payload_value="x3"), id="a text in the payload"),
    pytest.param(Narrowing(payload_path=["list", "1"], payload_value="true"), id="a place in a list"),
    pytest.param(Narrowing(payload_path=["none"], payload_value="null"), id="null reads as nothing"),
    pytest.param(Narrowing(payload_path=["user"], payload_value="3"), id="what holds other values"),
    pytest.param(Narrowing(payload_text='"X3"'), id="a text anywhere"),
    pytest.param(Narrowing(payload_text="100%_'"), id="a text that means something elsewhere"),
    pytest.param(Narrowing(priority=(0, 0), attempts=(0, 4), payload_text="user"), id="several"),
]


@pytest.fixture
def filled(queue: Queue) -> Queue:
    """A queue of a few hundred jobs of all kinds."""
    queue.run("insert into _private_job_queues (queue_name) values ('q')")
    queue.many(
        300,
        "payload, priority, run_at, attempts, last_error, locked_at, locked_by, job_queue_id",
        """json_build_object('user', json_build_object('id', i % 5, 'name', 'x' || i % 5), 'list', json_build_array(i,
             i % 3 = 0), 'none', null, 'note', case when i % 10 = 0 then $$100%%_'$$ end),
           i % 5 - 2, now() + (i % 9 - 4) * interval '30 minutes', case when i % 11 = 0 then 25 else i % 7 end,
           case when i % 7 > 0 then 'refused' end, case when i % 20 = 0 then now() - i * interval '1 minute' end,
           case when i % 20 = 0 then 'w' end, case when i % 4 = 0 then (select id from _private_job_queues) end""",
    )
    return queue


def found(queue: Queue, wanted: JobFilter, *, limit: int = 1_000) -> list[int]:
    ids: list[int] = []
    after = None
    while True:
        page = queue.reports.list_jobs(wanted, after=after, limit=limit)
        ids += [each.job.id for each in page.jobs]
        if page.after is None:
            return sorted(ids)
        after = page.after


@pytest.mark.parametrize("narrowing", NARROWINGS)
def test_a_list_holds_what_the_condition_says_of_each_job(filled: Queue, narrowing: Narrowing) -> None:
    every = filled.reports.list_jobs(limit=1_000, wanted=JobFilter(), with_payload=True).jobs

    for state in (None, *JobState):
        for queue in (None, "q"):
            for limit in (1_000, 7):
                wanted = JobFilter(state=state, queue=queue, narrowing=narrowing)
                expected = [each.job.id for each in every if wanted.matches(each.job, each.state)]
                assert found(filled, wanted, limit=limit) == expected, (state, queue, limit)


@pytest.mark.parametrize("narrowing", [None, Narrowing(payload_path=["user", "id"], payload_value="3")])
@pytest.mark.parametrize("state", [None, JobState.FAILED, JobState.RUNNING])
def test_the_newest_jobs_come_first_when_a_list_begins_with_them(
    filled: Queue, narrowing: Narrowing | None, state: JobState | None
) -> None:
    wanted = JobFilter(state=state, narrowing=narrowing)
    shown: list[int] = []
    after = str(PageCursor.newest())
    while after != "None":
        page = filled.reports.list_jobs(wanted, after=after, limit=7)
        assert page.order == "newest"
        shown += [each.job.id for each in page.jobs]
        after = str(page.after)

    assert shown == sorted(found(filled, wanted), reverse=True)


def test_jobs_named_by_their_ids_are_narrowed_as_well(filled: Queue) -> None:
    ids = [each.job.id for each in filled.reports.list_jobs(JobFilter(), limit=10).jobs]
    narrowing = Narrowing(payload_path=["user", "id"], payload_value="3")

    assert len(found(filled, JobFilter(ids=ids, narrowing=narrowing))) == 2


def test_a_payload_no_server_can_take_apart_ends_no_search(queue: Queue) -> None:
    queue.many(1, "payload", r"""'{"a": "x\u0000y"}'::json""")
    kept = queue.add(payload={"a": "b"})

    assert found(queue, JobFilter(narrowing=Narrowing(payload_path=["a"], payload_value="b"))) == [kept]


def test_a_path_without_a_value_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="give both or none"):
        Narrowing(payload_path=["a"])


@pytest.mark.parametrize(
    "conditions", [{"payload_text": "x" * 2_000}, {"payload_path": ["a"] * 99, "payload_value": "b"}]
)
def test_a_condition_on_the_payload_has_bounds(conditions: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="at most 1000 characters, 50 levels deep"):
        Narrowing(**conditions)


def test_acts_refuse_a_filter_they_could_not_keep_to(queue: Queue) -> None:
    job = queue.ready()
    wanted = JobFilter(narrowing=Narrowing(priority=(5, 9)))

    with pytest.raises(InvalidInputError, match="for looking only"):
        queue.client.jobs.complete(wanted)
    with pytest.raises(InvalidInputError, match="for looking only"):
        queue.client.jobs.count(wanted)
    assert queue.client.get(job) is not None
