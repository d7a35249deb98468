"""Selections in a database: lists, counts and actions mean the jobs that the selection itself matches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.jobs_in_states import Queue

from gw_core import JobState, Selection
from gw_core.errors import InvalidInputError
from gw_core.front_ends import FoundJob, PageCursor
from gw_core.selection import Which, parse

NOW = datetime.now(UTC).replace(microsecond=0)

TEXTS = [
    "priority:1..2",
    "priority:<0",
    "priority:2..1",
    "-priority:0,2",
    "attempts:>=3",
    "attempts:0..999999999",
    "attempts:1,>5",
    "run_at:-1h..+1h",
    "run_at:<-30m",
    "run_at:<=9999-12-31T23:59:59.999999Z",
    "run_at:>+999999w",
    "started_at:<-1h",
    "-started_at:<-1h",
    "locked_at:>-1h",
    "created_at:>-1h",
    "worker:w",
    "worker:w* -flag:slow",
    "-worker:*",
    "flag:slow,f*",
    "queue:q",
    "queue:q*",
    "-queue:q",
    "-queue:*",
    "queue:none",
    "-queue:none",
    "task:ma*,none",
    "-task:mail",
    "error:REFUSED",
    "-error:*",
    'error:"connection re",none',
    "state:ready,backoff",
    "-state:ready",
    "state:failed -state:failed",
    "job_key:k1,k2",
    "job_key:k*",
    "-job_key:*",
    "payload.user.id:3",
    "payload.user.id:3,4",
    "payload.user.name:x*",
    "-payload.user.name:x3",
    "payload.list.1:true",
    "payload.list.-1:true",
    "payload.none:null",
    "payload.none:*",
    "payload.nothing:*",
    "payload.user:3",
    'payload:"\\"X3\\""',
    'payload:"100%_\'"',
    "priority:0 attempts:0..4 payload:user",
]

MORE = ["", "state:failed", "state:ready queue:q", "-state:failed,running", "-payload:nothing"]


@pytest.fixture
def filled(queue: Queue) -> Queue:
    """A queue of a few hundred jobs of all kinds."""
    queue.rows("insert into _private_job_queues (queue_name) values ('q')")
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


def pages(queue: Queue, wanted: Selection, *, limit: int = 1_000) -> list[int]:
    ids: list[int] = []
    page = queue.client.jobs.list(wanted, limit=limit)
    ids += [each.job.id for each in page.jobs]
    while page.after is not None:
        page = queue.client.jobs.list(wanted, after=page.after, limit=limit)
        ids += [each.job.id for each in page.jobs]
    return sorted(ids)


def every_job(queue: Queue) -> tuple[FoundJob, ...]:
    return queue.client.jobs.list(limit=1_000, with_payload=True).jobs


def meant(queue: Queue, wanted: Selection) -> list[int]:
    """The jobs that the selection itself matches, one by one."""
    return [each.job.id for each in every_job(queue) if wanted.matches(each, NOW)]


def changed(queue: Queue, wanted: Selection) -> list[int]:
    """The jobs that an action changes or skips; it changes nothing that a selection asks for."""
    ids = [
        each.id
        for batch in queue.client.jobs.in_batches(100).reschedule(wanted, max_attempts=25)
        for each in (*batch.changed, *batch.skipped)
    ]
    return sorted(ids)


@pytest.mark.parametrize("text", TEXTS)
def test_lists_counts_and_actions_mean_the_same_jobs(filled: Queue, text: str) -> None:
    selections = [parse(f"{text} {more}").at(NOW) for more in MORE]
    every = every_job(filled)
    expected = [[each.job.id for each in every if wanted.matches(each, NOW)] for wanted in selections]

    assert [pages(filled, wanted) for wanted in selections] == expected
    assert [pages(filled, wanted, limit=23) for wanted in selections] == expected
    assert [filled.client.jobs.count(wanted).jobs for wanted in selections] == list(map(len, expected))
    assert [changed(filled, wanted) for wanted in selections] == expected


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    texts = draw(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4))
    negated = [draw(st.booleans()) for _ in texts]
    return parse(
        " ".join(f"-{text}" if no and text[0] != "-" else text for text, no in zip(texts, negated, strict=True))
    )


def test_the_evaluator_agrees_with_the_database_on_any_selection(filled: Queue) -> None:
    every = every_job(filled)

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(selections())
    def agrees(wanted: Selection) -> None:
        fixed = wanted.at(NOW)
        expected = [each.job.id for each in every if fixed.matches(each, NOW)]
        assert pages(filled, fixed) == expected
        assert filled.client.jobs.count(fixed).jobs == len(expected)

    agrees()


@pytest.mark.parametrize("text", ["", "payload.user.id:3"])
@pytest.mark.parametrize("state", [None, JobState.FAILED, JobState.RUNNING])
def test_the_newest_jobs_come_first_when_a_list_begins_with_them(
    filled: Queue, text: str, state: JobState | None
) -> None:
    wanted = parse(text) & Selection.of(state=state)
    shown: list[int] = []
    after = str(PageCursor.newest())
    while after != "None":
        page = filled.client.jobs.list(wanted, after=after, limit=7)
        assert page.order == "newest"
        shown += [each.job.id for each in page.jobs]
        after = str(page.after)

    assert shown == sorted(pages(filled, wanted), reverse=True)


def test_jobs_named_by_their_ids_are_selected_further(filled: Queue) -> None:
    ids = [each.job.id for each in filled.client.jobs.list(limit=10).jobs]

    assert len(pages(filled, Selection.of(id=ids) & parse("payload.user.id:3"))) == 2
    assert pages(filled, parse(",".join(map(str, ids))), limit=3) == ids


def test_a_payload_no_server_can_take_apart_ends_no_search(queue: Queue) -> None:
    queue.many(1, "payload", r"""'{"a": "x\u0000y"}'::json""")
    kept = queue.make(payload={"a": "b"})

    assert pages(queue, parse("payload.a:b")) == [kept]
    assert pages(queue, parse("-payload.a:x")) == meant(queue, parse("-payload.a:x"))


@pytest.mark.parametrize("which", ["state:ready task:mail", Selection.of(task="mail"), [1, 2], 1, "1 2"], ids=str)
def test_every_call_takes_a_text_a_selection_or_ids(queue: Queue, which: Which) -> None:
    for _ in range(2):
        queue.ready()
    jobs = queue.client.jobs
    expected = (1,) if which == 1 else (1, 2)

    assert tuple(each.job.id for each in jobs.list(which).jobs) == expected
    assert jobs.count(which).jobs == len(expected)
    assert jobs.reschedule(which, priority=5).ids == expected
    assert {each.id for each in jobs.retry(which).skipped} == set(expected)
    assert jobs.fail(which if isinstance(which, list | int) else "task:mail id:1,2", "why").ids == expected
    assert jobs.complete("task:mail").ids == (1, 2)


def test_cancel_takes_a_selection_and_means_running_jobs(queue: Queue) -> None:
    queue.ready()
    held = queue.running(by="node-1")

    (cancelled,) = queue.client.jobs.cancel("task:mail", timeout=timedelta())

    assert cancelled.id == held
    assert [each.id for each in queue.client.jobs.cancel([1, 2, 9], timeout=timedelta())] == [1, 2, 9]


def test_no_ids_are_no_jobs_and_an_empty_text_is_rejected(queue: Queue) -> None:
    queue.ready()
    jobs = queue.client.jobs

    assert jobs.complete([]).ids == ()
    assert jobs.count([]).jobs == 0
    assert jobs.list([]).jobs == ()
    with pytest.raises(InvalidInputError, match="the selection is empty"):
        jobs.complete("  ")
    assert jobs.complete(Selection()).ids == (1,)


def test_times_count_from_the_clock_of_the_server_once_for_each_action(queue: Queue) -> None:
    job = queue.make("mail", "run_at = now() - interval '1 hour 1 second'")

    fixed = queue.front_end.at_server_time("run_at:<-1h")
    queue.rows("update _private_jobs set run_at = now() - interval '30 minutes'")

    assert not fixed.is_relative
    assert pages(queue, parse("run_at:<-1h")) == []
    assert queue.front_end.at_server_time("task:mail") == parse("task:mail")
    assert pages(queue, parse("run_at:>-1h")) == [job]
