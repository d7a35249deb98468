"""Queries of real rows: pages, one job, statistics, queues and tasks; bounded, read-only, by indexes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.databases import Databases
from support.jobs_in_states import Queue

from gw_core import Client, JobState, RecoverySettings, Selection
from gw_core.errors import (
    DatabaseError,
    InvalidInputError,
    PermissionDeniedError,
    SchemaMissingError,
    TransientDatabaseError,
)
from gw_core.front_ends import PageCursor, Quality, ReasonCode
from gw_core.postgres.connection.statements import query
from gw_core.postgres.read import job_queries as bounds, read_only

NO_TIME = timedelta(0)
QUERIES = Path(__file__).parents[2] / "sql" / "queries"


def ids_of(holder: Queue, /, *, limit: int = 50, **conditions: Any) -> list[int]:
    return [each.job.id for each in holder.client.jobs.list(Selection.of(**conditions), limit=limit).jobs]


def all_pages(
    client: Client, wanted: Selection, *, limit: int, first: PageCursor | None = None, **options: Any
) -> list[int]:
    """The ids of every page, one after the other."""
    found: list[int] = []
    after: PageCursor | str | None = first
    while True:
        page = client.jobs.list(wanted, after=after, limit=limit, **options)
        found += [each.job.id for each in page.jobs]
        if page.after is None:
            return found
        after = str(page.after)


@pytest.fixture(params=["our schema", "npm's schema"])
def either(request: pytest.FixtureRequest, queue: Queue) -> Queue:
    """A queue with and without the line of our own."""
    if request.param == "npm's schema":
        queue.without_our_line()
    return queue


# -- pages of jobs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", list(JobState))
def test_jobs_are_found_by_their_state(either: Queue, state: JobState) -> None:
    made = {**either.one_of_each(), "waiting": either.waiting()}

    page = either.client.jobs.list(Selection.of(state=state))

    assert [(each.job.id, each.state) for each in page.jobs] == [(made[state], state)]
    assert page.after is None


def test_jobs_by_state_begin_with_those_that_run_and_end_with_the_far_future(either: Queue) -> None:
    far = either.make("import", "run_at = now() + interval '30 days', priority = -5")
    waiting, backoff, soon = either.waiting(), either.backoff(), either.scheduled()
    old, late, urgent = either.failed(), either.ready(), either.make("mail", "run_at = now(), priority = -9")
    either.set(old, "run_at = now() - interval '2 days'")
    failed, longest, running = either.failed(), either.running(since="3 hours"), either.running()
    either.set(failed, "run_at = now() - interval '1 day'")
    has_indexes = "jobs_gw_failed_index" in either.rows("select string_agg(indexname, ',') from pg_indexes")[0][0]
    expected_order = [longest, running, urgent, late, backoff, failed, old, soon, far, waiting]
    expected = expected_order if has_indexes else sorted(expected_order)

    for limit in (1, 3, 50):
        assert all_pages(either.client, Selection(), limit=limit, first=PageCursor.by_state()) == expected

    page = either.client.jobs.list("", after=PageCursor.by_state())
    assert page.order == ("state" if has_indexes else "id")


def test_jobs_by_state_have_up_to_a_thousand_of_each_and_are_not_a_selection(queue: Queue) -> None:
    queue.many(1_500)
    failed = queue.failed()

    assert all_pages(queue.client, Selection(), limit=400, first=PageCursor.by_state())[1_000:] == [failed]
    with pytest.raises(InvalidInputError, match="belongs to another list"):
        queue.client.jobs.list("task:mail", after=PageCursor.by_state())


def test_jobs_are_found_by_every_condition(either: Queue) -> None:
    plain = either.ready()
    keyed = either.ready(job_key="k")
    queued = either.ready(queue_name="letters", flags=["slow"])
    held = either.running(by="pool-2")
    broken = either.failed("pay", error="Connection REFUSED by 10%_of hosts")

    assert ids_of(either) == [plain, keyed, queued, held, broken]
    assert ids_of(either, task="pay") == [broken]
    assert ids_of(either, queue="letters") == ids_of(either, queue="letters", state="ready") == [queued]
    assert ids_of(either, job_key="k") == [keyed]
    assert ids_of(either, worker="pool-2") == [held]
    assert ids_of(either, flag="slow") == [queued]
    assert ids_of(either, error="refused by 10%_") == [broken]
    assert ids_of(either, id=[held, plain, 999_999]) == [plain, held]
    assert ids_of(either, id=[held, plain], state="running") == [held]
    assert ids_of(either, job_key="k", task="pay") == []


@pytest.mark.parametrize(
    "conditions",
    [{"task": "nobody"}, {"queue": "none"}, {"worker": "pool-1", "state": "ready"}, {"job_key": "none"}, {"id": []}],
    ids=str,
)
def test_what_cannot_match_is_answered_without_a_search(queue: Queue, conditions: dict[str, Any]) -> None:
    queue.ready()

    page = queue.client.jobs.list(Selection.of(**conditions))

    assert (page.jobs, page.scanned, page.after) == ((), 0, None)


def test_payloads_are_loaded_only_when_asked_for(queue: Queue) -> None:
    queue.ready(payload={"secret": 1})

    (without,) = queue.client.jobs.list(Selection()).jobs
    (with_payload,) = queue.client.jobs.list(Selection(), with_payload=True).jobs

    assert (without.job.payload_json, with_payload.job.payload_json) == ("", '{"secret":1}')


@pytest.mark.parametrize(
    "conditions", [{}, {"state": "ready"}, {"state": "ready", "queue": "letters"}, {"state": "scheduled"}], ids=str
)
def test_pages_hold_every_match_once(either: Queue, conditions: dict[str, Any]) -> None:
    either.ready(queue_name="letters")
    columns = "priority, run_at, job_queue_id"
    # Three priorities, few times: most jobs are equal to others in all that an index orders by.
    either.many(150, columns, "i % 3, now() + (i % 5 - 2) * interval '1 hour', case when i % 2 = 0 then 1 end")
    wanted = Selection.of(**conditions)
    expected = [each.job.id for each in either.client.jobs.list(wanted, limit=1000).jobs]

    assert all_pages(either.client, wanted, limit=7) == expected
    assert len(set(expected)) == len(expected) > 20


@pytest.mark.parametrize("conditions", [{"state": "ready"}, {"state": "ready", "queue": "letters"}], ids=str)
def test_the_next_jobs_are_bounded_and_all_of_them_come_by_id(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, conditions: dict[str, Any]
) -> None:
    queue.ready(queue_name="letters")
    queue.many(30, "priority, job_queue_id", "-i, 1")
    monkeypatch.setattr(bounds, "MAX_NEXT", 20)
    wanted = Selection.of(**conditions)

    assert all_pages(queue.client, wanted, limit=7) == list(range(31, 11, -1))
    assert all_pages(queue.client, wanted, limit=21) == list(range(1, 32))


def test_waiting_jobs_come_in_the_order_in_which_they_will_run(either: Queue) -> None:
    late = either.make(change="run_at = now() - interval '1 minute'")
    early = either.make(change="run_at = now() - interval '1 hour'")
    urgent = either.make(change="run_at = now() - interval '1 second', priority = -5")
    either.scheduled(priority=-9)

    assert ids_of(either, state="ready") == [urgent, early, late]


def test_a_number_of_an_id_asks_for_the_order_of_ids(queue: Queue) -> None:
    jobs = [queue.ready(priority=-i) for i in range(3)]

    page = queue.client.jobs.list(Selection.of(state=JobState.READY), after=jobs[0])

    assert [each.job.id for each in page.jobs] == jobs[1:]


def test_a_job_gone_between_two_pages_by_id_loses_no_other(queue: Queue) -> None:
    queue.many(30)
    first = queue.client.jobs.list(limit=10)
    shown = [each.job.id for each in first.jobs]
    queue.rows("delete from _private_jobs where id = any(%s)", shown)

    second = queue.client.jobs.list(after=first.after, limit=100)

    assert len(second.jobs) == 20


def test_a_search_without_an_index_ends_in_time_and_says_how_far_it_came(queue: Queue) -> None:
    queue.without_our_line()
    queue.many(bounds.FIRST_CHUNK + 500)
    queue.failed()

    page = queue.client.jobs.list(Selection.of(state=JobState.FAILED), timeout=NO_TIME)

    assert (page.jobs, page.scanned, page.is_full) == ((), bounds.FIRST_CHUNK, False)
    assert page.after is not None
    assert len(all_pages(queue.client, Selection.of(state=JobState.FAILED), limit=5, timeout=NO_TIME)) == 1


def test_failed_jobs_come_with_the_latest_failure_first(queue: Queue) -> None:
    early = queue.make(change="attempts = 25, run_at = now() + interval '1 hour'")
    latest = queue.make(change="attempts = 25, run_at = now() + interval '3 hours'")
    endless = queue.make(change="attempts = 25, run_at = 'infinity'")
    late = queue.make(change="attempts = 25, run_at = now() + interval '2 hours'")

    assert all_pages(queue.client, Selection.of(state=JobState.FAILED), limit=1) == [endless, latest, late, early]


@pytest.mark.parametrize(
    ("conditions", "order"),
    [
        ({}, "id"),
        ({"state": "running"}, "id"),
        ({"state": "failed"}, "failed"),
        ({"state": "ready"}, "turn"),
        ({"state": "ready", "queue": "letters"}, "turn"),
        ({"state": "ready", "task": "mail"}, "id"),
    ],
    ids=str,
)
def test_a_page_says_in_which_order_it_is(queue: Queue, conditions: dict[str, Any], order: str) -> None:
    queue.ready(queue_name="letters")

    assert queue.client.jobs.list(Selection.of(**conditions)).order == order


@pytest.mark.parametrize("conditions", [{"state": "failed"}, {"state": "running"}, {"worker": "pool-1"}], ids=str)
def test_what_an_index_leads_to_is_found_without_reading_other_jobs(queue: Queue, conditions: dict[str, Any]) -> None:
    queue.many(3 * bounds.FIRST_CHUNK)
    one = queue.failed() if "failed" in conditions.values() else queue.running()

    page = queue.client.jobs.list(Selection.of(**conditions), timeout=NO_TIME)

    assert ([each.job.id for each in page.jobs], page.scanned, page.after) == ([one], 1, None)


@pytest.mark.parametrize("state", ["failed", "running"])
def test_pages_of_failed_and_running_jobs_hold_every_match_once(either: Queue, state: str) -> None:
    attempts, locked = ("25", "null::timestamptz") if state == "failed" else ("1", "now() - i % 3 * interval '1 hour'")
    flags = """case when i % 2 = 0 then '{"slow": true}'::jsonb end"""
    columns = "attempts, run_at, locked_at, flags"
    either.many(50, columns, f"{attempts}, now() + i % 4 * interval '1 hour', {locked}, {flags}")

    found = all_pages(either.client, Selection.of(state=JobState(state), flag="slow"), limit=7)

    assert sorted(found) == list(range(2, 51, 2))


def test_where_too_many_jobs_are_held_they_are_searched_for(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.many(30, "locked_at, locked_by", "now(), 'pool-' || i % 2")
    monkeypatch.setattr(bounds, "MAX_LOCKED", 10)

    assert all_pages(queue.client, Selection.of(worker="pool-1"), limit=4) == list(range(1, 31, 2))


def test_a_search_among_waiting_jobs_ends_in_time_as_well(either: Queue) -> None:
    either.many(bounds.FIRST_CHUNK + 500)
    rare = either.ready("rare")
    wanted = Selection.of(state=JobState.READY, task="rare")

    assert bounds.FIRST_CHUNK <= either.client.jobs.list(wanted, timeout=NO_TIME).scanned < bounds.FIRST_CHUNK + 500
    assert all_pages(either.client, wanted, limit=5, timeout=NO_TIME) == [rare]


def test_a_client_that_gets_many_jobs_is_not_cut_short(queue: Queue) -> None:
    queue.many(3 * bounds.FIRST_CHUNK, "attempts", "case when i % 5 = 0 then 25 else 0 end")

    page = queue.client.jobs.list(Selection.of(state=JobState.FAILED), limit=1000, timeout=NO_TIME)

    assert (len(page.jobs), page.after) == (600, None)


@pytest.mark.parametrize(
    ("conditions", "after"),
    [
        pytest.param({}, "turn/7", id="a turn among all jobs"),
        pytest.param({"id": [1]}, "turn/7", id="a turn among ids"),
        pytest.param({"state": "ready"}, "failed/2026-01-31_12:00:00/1", id="a failure among waiting jobs"),
    ],
)
def test_a_mark_of_another_list_is_rejected(queue: Queue, conditions: dict[str, Any], after: str) -> None:
    with pytest.raises(InvalidInputError, match="belongs to another list"):
        queue.client.jobs.list(Selection.of(**conditions), after=after)


# -- one job ----------------------------------------------------------------------------------------------------------


def test_a_job_is_shown_with_everything(either: Queue) -> None:
    job_id = either.backoff(payload={"n": 1}, job_key="k", queue_name="letters")

    for report in (either.client.jobs.show(job_id), either.client.jobs.show(job_key="k")):
        assert report is not None
        assert (report.job.id, report.job.payload_json, report.state) == (job_id, '{"n":1}', JobState.BACKOFF)
        assert (report.attempts[0].number, report.attempts[0].at) == (4, report.job.run_at)
        assert report.reasons[0].code is ReasonCode.BACKOFF


def test_a_job_that_is_not_there_is_no_report(queue: Queue) -> None:
    assert queue.client.jobs.show(7) is None
    assert queue.client.jobs.show(job_key="none") is None


def test_a_job_must_be_named_in_one_way(queue: Queue) -> None:
    for names in ({}, {"job_id": 1, "job_key": "k"}):
        with pytest.raises(InvalidInputError, match="name one job"):
            queue.client.jobs.show(**names)  # type: ignore[arg-type]


def test_a_job_waits_for_those_before_it_in_its_queue(queue: Queue) -> None:
    queue.heartbeat("pool-9", tasks=["mail"])
    for _ in range(2):
        queue.ready(queue_name="letters")
    queue.scheduled(queue_name="letters", priority=-1)
    last = queue.make(queue_name="letters")
    queue.hold("letters", by="pool-9")

    report = queue.client.jobs.show(last)

    assert report is not None
    assert [each.code for each in report.reasons] == [ReasonCode.QUEUE_LOCKED, ReasonCode.BEHIND_IN_QUEUE]
    assert "pool-9" in report.reasons[0].message
    assert "2 jobs are ahead" in report.reasons[1].message


def test_a_task_no_live_worker_knows_is_reported(queue: Queue) -> None:
    queue.heartbeat("pool-9", tasks=["pay"])
    queue.heartbeat("gone", tasks=["mail"], ago="1 hour")

    report = queue.client.jobs.show(queue.ready())

    assert report is not None
    assert [each.code for each in report.reasons] == [ReasonCode.NO_WORKER_FOR_TASK]


def test_workers_of_the_rust_port_keep_what_they_know_to_themselves(queue: Queue) -> None:
    queue.rows(
        "create table _private_workers"
        " (id text, started_at timestamptz, last_heartbeat_at timestamptz, metadata jsonb default '{}')"
    )
    queue.rows("insert into _private_workers values ('pool-9', now(), now())")
    queue.heartbeat("pool-9", tasks=["pay"])
    job_id = queue.ready()

    ours_alone = queue.client.jobs.show(job_id)
    queue.rows("insert into _private_workers values ('rusty', now(), now())")
    with_theirs = queue.client.jobs.show(job_id)

    assert ours_alone is not None
    assert with_theirs is not None
    assert [each.code for each in ours_alone.reasons] == [ReasonCode.NO_WORKER_FOR_TASK]
    assert [each.code for each in with_theirs.reasons] == [ReasonCode.CLAIMABLE]


# -- the whole --------------------------------------------------------------------------------------------------------


def test_a_small_table_is_counted_exactly(either: Queue) -> None:
    either.one_of_each()
    either.waiting("waiting")
    either.ready("ready", queue_name="letters")
    either.hold("letters")

    found = either.client.counts()

    assert {state: count.value for state, count in found.states.items()} == {**dict.fromkeys(JobState, 1), "ready": 2}
    assert (found.total.value, found.total.quality) == (7, Quality.EXACT)
    assert {name: counts[JobState.READY].value for name, counts in found.tasks.items()}["ready"] == 2
    assert (found.queues, found.locked_queues) == (1, 1)
    assert found.oldest_due_at is not None
    assert found.oldest_due_at < found.at
    assert found.next_due_at is not None
    assert found.next_due_at > found.at


def test_a_job_that_waits_for_others_is_not_the_next_to_be_due(queue: Queue) -> None:
    queue.client.add("mail", after=[queue.failed()])

    found = queue.client.counts()
    assert (found.states[JobState.WAITING].value, found.next_due_at) == (1, None)
    assert queue.front_end.snapshot().next_due_at is None

    queue.scheduled()
    later = queue.client.counts().next_due_at
    assert later is not None
    assert later == queue.front_end.snapshot().next_due_at
    assert later.year < 9999


def test_an_empty_queue_has_statistics(queue: Queue) -> None:
    found = queue.client.counts()

    assert (found.total.value, found.oldest_due_at, found.next_due_at, found.tasks) == (0, None, None, {})


def test_a_queue_shows_its_waiting_jobs_its_owner_and_its_next_job(either: Queue) -> None:
    either.scheduled(queue_name="letters", priority=-9)
    head = either.ready("next", queue_name="letters")
    either.ready(queue_name="letters")
    either.ready(queue_name="held")
    either.hold("held", by="pool-3")
    either.rows("insert into _private_job_queues (queue_name) values ('unused')")

    held, letters, unused = either.client.queues.list()

    assert (held.name, held.locked_by, held.unclaimed.value) == ("held", "pool-3", 1)
    assert held.locked_at is not None
    assert (letters.name, letters.locked_by, letters.next_job_id, letters.next_job_task) == (
        "letters",
        None,
        head,
        "next",
    )
    assert (letters.unclaimed.value, letters.due.value, letters.due.quality) == (3, 2, Quality.EXACT)
    assert (unused.name, unused.unclaimed.value, unused.next_job_id, unused.next_job_run_at) == (
        "unused",
        0,
        None,
        None,
    )
    assert [each.name for each in either.client.queues.list(only_locked=True)] == ["held"]
    assert [each.name for each in either.client.queues.list(after="held", limit=1)] == ["letters"]


def test_counting_a_queue_stops_at_a_bound_and_says_so(either: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_UNCLAIMED", 10)
    monkeypatch.setattr(bounds, "BACKLOG_LIMIT", 10)
    either.ready(queue_name="letters")
    either.many(20, "job_queue_id", "1")

    (letters,) = either.client.queues.list()

    assert (letters.unclaimed.value, letters.unclaimed.quality) == (10, Quality.AT_LEAST)


def test_tasks_show_their_jobs_and_the_workers_that_know_them(queue: Queue) -> None:
    queue.one_of_each()
    queue.heartbeat("pool-1", tasks=["ready", "running"])
    queue.heartbeat("old", tasks=["failed"], ago="1 hour")

    found = {each.name: each for each in queue.client.tasks.list()}

    assert found["running"].jobs[JobState.RUNNING].value == 1
    assert found["running"].known_by == ("pool-1",)
    assert found["failed"].known_by == ()


NOT_REPORTING = {
    "a worker known by a lock": lambda queue: queue.running("other", by="node-1"),
    "a worker known by a queue it holds": lambda queue: (queue.ready(queue_name="q"), queue.hold("q", by="node-1")),
    "a worker that sends heartbeats without its tasks": lambda queue: queue.heartbeat("rust-1", tasks=None),
}


@pytest.mark.parametrize("worker", NOT_REPORTING)
def test_the_workers_of_a_task_are_unknown_beside_a_live_one_that_does_not_report_tasks(
    queue: Queue, worker: str
) -> None:
    queue.ready()
    queue.heartbeat("pool-1", tasks=["other"])
    assert {each.name: each.known_by for each in queue.client.tasks.list()} == {"mail": ()}

    NOT_REPORTING[worker](queue)

    found = {each.name: each.known_by for each in queue.client.tasks.list()}
    assert found.pop("mail") is None
    assert set(found.values()) <= {("pool-1",)}, "a worker that reports a task knows it, whoever else may"


def test_a_dead_worker_that_reports_no_tasks_leaves_the_others_known(queue: Queue) -> None:
    queue.heartbeat("pool-1", tasks=["other"])
    queue.running(by="node-1", since="3 hours")

    alive, dead = (
        queue.client.tasks.list(RecoverySettings(orphans_after=timedelta(hours=hours)))[0].known_by for hours in (4, 2)
    )

    assert (alive, dead) == (None, ())


@pytest.mark.parametrize(("workers", "expected"), [(499, ()), (500, None)])
def test_the_workers_of_a_task_are_unknown_if_there_are_more_than_are_read(
    queue: Queue, workers: int, expected: tuple[str, ...] | None
) -> None:
    queue.ready()
    queue.rows(
        "insert into _private_gw_workers (id, started_at, last_heartbeat_at, metadata) "
        "select 'pool-' || i, now(), now(), '{\"tasks\": []}' from generate_series(1, %s) as i",
        workers,
    )

    assert queue.client.tasks.list()[0].known_by == expected


def test_the_workers_of_a_task_are_unknown_if_locks_cannot_be_read(queue: Queue) -> None:
    queue.ready()
    queue.heartbeat("pool-1", tasks=["other"])
    queue.rows("drop index jobs_gw_locked_index")

    assert queue.client.tasks.list()[0].known_by is None


def test_without_heartbeats_the_workers_of_a_task_are_unknown(either: Queue) -> None:
    either.ready()

    (mail,) = either.client.tasks.list()

    assert mail.known_by is None


# -- limits -----------------------------------------------------------------------------------------------------------


def all_queries(queue: Queue) -> Iterator[Any]:
    for state in (None, *JobState):
        yield queue.client.jobs.list(Selection.of(state=state))
        yield queue.client.jobs.list(Selection.of(state=state, queue="letters", task="mail"))
    first = queue.client.jobs.list(Selection.of(state=JobState.READY), limit=2)
    if first.after is not None:
        yield queue.client.jobs.list(Selection.of(state=JobState.READY), after=first.after)
    yield queue.client.jobs.list(Selection(), after=PageCursor.by_state())
    yield queue.client.jobs.show(1)
    yield queue.client.counts()
    yield queue.client.queues.list()
    yield queue.client.tasks.list()


def test_reading_leaves_nothing_open_and_no_setting_behind(queue: Queue) -> None:
    queue.ready(queue_name="letters")
    with queue.front_end.connection() as connection:
        names = ("statement_timeout", "enable_seqscan", "transaction_read_only", "row_security", "jit")
        before = [connection.execute(f"show {name}").fetchone() for name in names]

    assert len(list(all_queries(queue))) > 0

    assert connection.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    assert [connection.execute(f"show {name}").fetchone() for name in names] == before


@pytest.mark.parametrize("schema", ["npm's schema", "our schema"])
def test_no_statement_reads_the_whole_table_of_jobs(queue: Queue, monkeypatch: pytest.MonkeyPatch, schema: str) -> None:
    queue.ready(queue_name="letters")
    queue.many(3_000, "job_queue_id", "case when i % 2 = 0 then 1 end")
    if schema == "npm's schema":
        queue.without_our_line()
    plans: dict[str, str] = {}

    def explained(name: str, schema: str, **names: str) -> Any:
        text = query(name, schema, **names)
        if name.startswith(("session_limits", "stats_sample", "limit_list")):  # limits need gw's additions
            return text
        with psycopg.connect(queue.url) as connection:
            connection.execute(
                "set enable_seqscan = off; set enable_bitmapscan = off; set plan_cache_mode = force_generic_plan"
            )
            placeholders = re.findall(r"%\((\w+)\)s", text)
            order = list(dict.fromkeys(placeholders))
            numbered = re.sub(r"%\((\w+)\)s", lambda found: f"${order.index(found[1]) + 1}", text).replace("%%", "%")
            connection.execute(f"prepare looked as {numbered}".encode())
            nulls = f"({', '.join(['null'] * len(order))})" if order else ""
            rows = connection.execute(f"explain execute looked{nulls}".encode()).fetchall()
            plans[name] = "\n".join(row[0] for row in rows)
        return text

    monkeypatch.setattr(read_only, "query", explained)
    assert len(list(all_queries(queue))) > 0

    used = {"job_page_by_id", "job_page_next", "find_jobs", "snapshot_priorities"}
    used |= {"job_page_by_state"} if schema == "our schema" else set()
    assert used <= set(plans)
    assert [name for name, plan in plans.items() if "Seq Scan on _private_jobs" in plan] == []


def test_every_statement_of_reading_is_used_and_bounded() -> None:
    source = Path(bounds.__file__).read_text("utf-8")
    patterns = (
        "stats_*",
        "job_page_*",
        "queue_*",
        "task_list",
        "heartbeat_list",
        "find_jobs",
        "schema_objects",
        "selection_names",
    )
    files = [path.stem for pattern in patterns for path in QUERIES.glob(f"{pattern}.sql")]

    chosen = {"job_page_by_turn", "job_page_by_queue"}
    named = {name: source.count(f'"{name}"') - (name in bounds.GENERIC_PLANS) for name in files}
    assert [name for name, times in named.items() if times < 1 and name not in chosen] == []
    assert {*files, "snapshot_priorities", "pause_list", "limit_list"} >= bounds.GENERIC_PLANS
    assert len(files) > 10


def test_a_table_locked_by_another_session_is_not_waited_for_long(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_only, "LOCK_TIMEOUT", timedelta(milliseconds=50))
    queue.ready()
    with psycopg.connect(queue.url) as other:
        other.execute("lock table graphile_worker._private_jobs in access exclusive mode")
        with pytest.raises(TransientDatabaseError, match="lock timeout"):
            queue.client.jobs.list(Selection())

    assert len(queue.client.jobs.list(Selection()).jobs) == 1


def test_a_role_that_may_not_see_the_rows_gets_a_message(queue: Queue, databases: Databases) -> None:
    queue.ready()
    role = f"{databases.run.prefix}reader"
    queue.rows(f"create role {role}")
    try:
        queue.rows(f"grant usage on schema graphile_worker to {role}")
        queue.rows(f"grant select on all tables in schema graphile_worker to {role}")
        with queue.front_end.connection() as connection:
            connection.execute(f"set role {role}".encode())
        with pytest.raises(PermissionDeniedError, match="row security hides rows of _private_tasks"):
            queue.client.jobs.list(Selection())
        connection.execute("reset role")
    finally:
        queue.rows(f"drop owned by {role}")
        queue.rows(f"drop role {role}")


def test_a_schema_that_is_missing_is_named(empty_database_url: str) -> None:
    queue = Queue(empty_database_url)
    try:
        for read in (queue.client.queues.list, queue.client.counts, lambda: queue.client.jobs.list(Selection())):
            with pytest.raises(SchemaMissingError, match="gw migrate"):
                read()
    finally:
        queue.close()


def test_a_schema_of_any_name_is_read(empty_database_url: str) -> None:
    queue = Queue(empty_database_url, schema="""odd "sch'ema" 100%""")
    try:
        queue.client.migrate()
        queue.ready(queue_name="letters")

        assert len(list(all_queries(queue))) > 0
        assert ids_of(queue, queue="letters", state="ready") == [1]
    finally:
        queue.close()


def test_a_page_without_jobs_cannot_be_asked_for(queue: Queue) -> None:
    with pytest.raises(InvalidInputError, match="at least 1"):
        queue.client.jobs.list(Selection(), limit=0)


def test_the_driver_s_errors_become_ours(queue: Queue) -> None:
    queue.rows("drop table _private_job_queues cascade")

    with pytest.raises(DatabaseError):
        queue.client.counts()
