"""A snapshot of the queue: everything a console draws at each tick, at a cost that does not grow with the queue."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec import structs
from psycopg.conninfo import make_conninfo
from support.databases import Databases
from support.jobs_in_states import Queue
from support.plans import kept_plan
from support.waiting import wait_until

from gw_core import Client, RecoverySettings, SessionLimits
from gw_core.errors import SchemaMissingError
from gw_core.front_ends import Count, FrontEnd, Quality, QueueSnapshot, TableCounters, ThroughputMeter
from gw_core.postgres.read import snapshots as bounds

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


# -- what is seen -----------------------------------------------------------------------------------------------------


def test_a_snapshot_names_its_server(queue: Queue) -> None:
    found = queue.front_end.snapshot()

    assert found.server.database == queue.rows("select current_database()")[0][0]
    assert (found.server.in_recovery, found.server.read_only) == (False, False)
    assert (found.schema.revision, found.schema.rows_hidden) == (20, False)
    assert abs(found.at - datetime.now(UTC)) < timedelta(minutes=5)
    assert found.errors == ()


def test_the_first_snapshot_is_complete(queue: Queue) -> None:
    queue.one_of_each()

    found = queue.front_end.snapshot()

    assert (found.running, found.failed, found.ready) == (Count(1), Count(1), Count(1))
    assert [worker.id for worker in found.workers] == ["pool-1"]


def test_each_priority_shows_its_head(queue: Queue) -> None:
    queue.make("late", "run_at = now() - interval '1 minute'", priority=5)
    oldest = queue.make("early", "run_at = now() - interval '1 hour'", priority=5)
    queue.scheduled("later", priority=-5)

    first, second = queue.front_end.snapshot().priorities

    assert (first.priority, first.ready, first.oldest_id) == (-5, Count(0), None)
    assert (second.priority, second.ready, second.oldest_id, second.oldest_task) == (5, Count(2), oldest, "early")
    assert second.next_due_at is None


@pytest.mark.parametrize("run_at", ["2001-01-01", "-infinity"])
def test_no_job_was_due_before_it_was_added(queue: Queue, run_at: str) -> None:
    queue.run("select add_job('first', run_at => %s)", run_at)

    age = queue.front_end.snapshot().backlog_age
    oldest = queue.client.counts().oldest_due_at
    findings = [each.message for each in queue.client.doctor.findings()]

    assert age is not None
    assert oldest is not None
    assert age < timedelta(hours=1)
    assert abs(oldest - queue.client.counts().at) < timedelta(hours=1)
    assert not [each for each in findings if "been due" in each]


def test_the_oldest_ready_job_makes_the_age_of_the_backlog(queue: Queue) -> None:
    queue.make("urgent", "run_at = now() - interval '1 minute'", priority=-5)
    queue.make("patient", "run_at = now() - interval '2 hours', created_at = now() - interval '3 hours'")
    queue.scheduled(priority=7)

    found = queue.front_end.snapshot()

    assert found.backlog_age is not None
    assert timedelta(hours=2) <= found.backlog_age < timedelta(hours=2, minutes=30)
    assert found.oldest is not None
    assert found.oldest.oldest_task == "patient"
    assert found.next_due_at is not None
    assert timedelta(minutes=30) < found.next_due_at - found.at <= timedelta(hours=1)


def test_an_empty_queue_has_no_backlog(queue: Queue) -> None:
    found = queue.front_end.snapshot()

    assert (found.ready, found.oldest, found.backlog_age, found.next_due_at) == (Count(0), None, None, None)
    assert (found.running, found.failed) == (Count(0), Count(0))


def test_counting_ends_at_its_bounds(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.many(12)
    queue.many(12, "attempts", "25")
    queue.many(12, "locked_at, locked_by", "now(), 'pool-' || i % 3")
    for name in ("MAX_READY", "MIN_READY", "MAX_FAILED", "MAX_LOCKED"):
        monkeypatch.setattr(bounds, name, 10)

    found = queue.front_end.snapshot()

    at_least_ten = Count(10, Quality.AT_LEAST)
    assert (found.ready, found.failed, found.running) == (at_least_ten, at_least_ten, at_least_ten)


def test_many_priorities_are_cut_short_and_said_to_be(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.many(9, "priority", "i")
    monkeypatch.setattr(bounds, "MAX_PRIORITIES", 5)

    found = queue.front_end.snapshot()

    assert [head.priority for head in found.priorities] == [1, 2, 3, 4, 5]
    assert not found.has_all_priorities
    assert found.ready == Count(5, Quality.AT_LEAST)


def test_workers_are_known_by_their_heartbeats_and_by_their_locks(queue: Queue) -> None:
    queue.heartbeat("alive")
    queue.heartbeat("silent", ago="1 hour")
    queue.running(by="alive")
    queue.running(by="node-1")
    queue.ready(queue_name="letters")
    queue.hold("letters", by="node-2")

    workers = {worker.id: worker for worker in queue.front_end.snapshot().workers}

    assert [(each.id, each.jobs, each.queues) for each in workers.values()] == [
        ("alive", 1, 0),
        ("silent", 0, 0),
        ("node-1", 1, 0),
        ("node-2", 0, 1),
    ]
    assert [name for name, each in workers.items() if each.is_stale] == ["silent"]


def test_recovery_settings_say_who_counts_as_dead(queue: Queue) -> None:
    queue.heartbeat("quiet", ago="2 minutes")

    (usual,) = queue.front_end.snapshot().workers
    (strict,) = queue.front_end.snapshot(RecoverySettings(sweep_threshold=timedelta(minutes=1))).workers

    assert (usual.is_stale, strict.is_stale) == (False, True)


def test_held_queues_come_with_those_held_for_longest_first(queue: Queue) -> None:
    for name in ("letters", "parcels", "free"):
        queue.ready(queue_name=name)
    queue.hold("letters")
    queue.hold("parcels", by="pool-2")
    queue.rows("update _private_job_queues set locked_at = now() - interval '1 day' where queue_name = 'parcels'")

    held = queue.front_end.snapshot().locked_queues

    assert [(each.name, each.locked_by) for each in held] == [("parcels", "pool-2"), ("letters", "pool-1")]


def test_known_crontabs_are_shown(queue: Queue) -> None:
    queue.rows("insert into _private_known_crontabs (identifier, known_since) values ('nightly', now())")

    assert [each.identifier for each in queue.front_end.snapshot().crontabs] == ["nightly"]


def test_the_counters_are_the_servers(queue: Queue) -> None:
    queue.many(20)
    queue.hands.close()  # a session that ends hands in what it has counted

    def counted() -> TableCounters | None:
        counters = queue.front_end.snapshot().counters
        return counters if counters is not None and counters.inserted == 20 else None

    assert wait_until(counted, what="the server's counters", deadline_seconds=60).deleted == 0
    assert queue.front_end.snapshot().total == Count(20, Quality.ESTIMATE)


# -- where less is to be seen -----------------------------------------------------------------------------------------


def test_npms_schema_shows_what_it_can(queue: Queue) -> None:
    queue.one_of_each()
    queue.without_our_line()

    found = queue.front_end.snapshot()

    assert (found.running, found.failed) == (None, None)
    assert found.ready == Count(1)
    assert found.errors == ()


def test_a_schema_that_changes_between_two_snapshots_is_noticed(queue: Queue) -> None:
    queue.running()
    before = queue.front_end.snapshot()
    queue.without_our_line()

    after = queue.front_end.snapshot()

    assert (before.running, after.running) == (Count(1), None)
    assert after.errors == ()


def test_a_frequent_reader_gets_the_known_count_of_locks_again(queue: Queue) -> None:
    queue.running(by="pool-1")
    queries = queue.front_end
    before = queries.snapshot()
    queue.running(by="pool-1")

    kept = queries.snapshot(with_background=False)
    again = queries.snapshot()

    assert [each.running for each in (before, kept, again)] == [Count(1), Count(1), Count(2)]
    assert [worker.jobs for each in (before, kept, again) for worker in each.workers] == [1, 1, 2]


def test_locks_of_workers_are_counted_apart_from_the_snapshots(queue: Queue) -> None:
    queries = queue.front_end
    queue.running(by="pool-1")
    queries.read_background()
    first = queries.snapshot(with_background=False)
    queue.running(by="pool-1")
    kept = queries.snapshot(with_background=False)

    server_time = queries.read_background()
    again = queries.snapshot(with_background=False)

    assert [each.running for each in (first, kept, again)] == [Count(1), Count(1), Count(2)]
    assert server_time is not None
    assert first.locks_age is not None
    assert kept.locks_age is not None
    assert first.locks_age < kept.locks_age
    assert first.workers[0].lock_age is not None
    assert kept.workers[0].lock_age is not None
    assert first.workers[0].lock_age < kept.workers[0].lock_age


def test_a_background_that_was_not_read_is_named_by_the_snapshots(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LOCK_TIMEOUT", timedelta(milliseconds=50))
    queries = queue.front_end
    queue.running()
    queries.snapshot(with_background=False)
    with queue.hands.transaction():
        queue.rows("lock table _private_jobs in access exclusive mode")
        queries.read_background()

    blind = queries.snapshot(with_background=False)
    queries.read_background()
    again = queries.snapshot(with_background=False)

    assert {part for part, _ in blind.errors} == {"sizes", "locks", "failed"}
    assert (blind.running, blind.locks_age, blind.failed) == (None, None, None)
    assert (again.errors, again.running) == ((), Count(1))


def test_a_schema_that_changes_between_two_refreshes_is_noticed(queue: Queue) -> None:
    queue.running()
    before = queue.front_end.snapshot()
    queue.without_our_line()

    after = queue.front_end.snapshot(with_background=False)

    assert (before.running, after.running) == (Count(1), None)
    assert after.errors == ()


def test_a_schema_that_goes_between_two_refreshes_is_an_error(queue: Queue) -> None:
    queue.front_end.snapshot()
    queue.rows("drop schema graphile_worker cascade")

    with pytest.raises(SchemaMissingError):
        queue.front_end.snapshot(with_background=False)


def test_a_snapshot_has_the_time_the_server_worked_at_it(queue: Queue) -> None:
    queue.front_end.snapshot()

    found = queue.front_end.snapshot()

    assert found.server_time is not None
    assert found.server_time > timedelta()


@pytest.mark.parametrize("before", [1, 9], ids=["planned each time", "planned for good"])
def test_a_part_that_fails_is_named_and_the_rest_is_seen(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr(bounds, "LOCK_TIMEOUT", timedelta(milliseconds=50))
    queue.ready()
    queue.rows("insert into _private_known_crontabs (identifier, known_since) values ('nightly', now())")
    for _ in range(before):
        queue.front_end.snapshot()
    with queue.hands.transaction():
        queue.rows("lock table _private_known_crontabs in access exclusive mode")
        found = queue.front_end.snapshot()

    assert [part for part, _ in found.errors] == ["crontabs"]
    assert found.ready == Count(1)
    for _ in range(before):
        assert [each.identifier for each in queue.front_end.snapshot().crontabs] == ["nightly"]


def test_a_role_that_may_not_see_the_rows_gets_a_message(queue: Queue, databases: Databases) -> None:
    role = f"{databases.run.prefix}blind"
    queue.ready()
    queue.rows(f"create role {role}")
    try:
        queue.rows(f"grant usage on schema graphile_worker to {role}")
        queue.rows(f"grant select on all tables in schema graphile_worker to {role}")
        with Client(make_conninfo(queue.url, options=f"-c role={role}"), max_pool_size=1) as client:
            found = FrontEnd(client).snapshot()
    finally:
        queue.rows(f"drop owned by {role}")
        queue.rows(f"drop role {role}")

    assert found.schema.rows_hidden
    assert {"priorities", "queues"} <= {part for part, _ in found.errors}
    assert found.counters is not None


@pytest.mark.parametrize("polls_before", range(8))
def test_however_often_it_polled_before_it_sees_all_again_when_a_lock_is_gone(queue: Queue, polls_before: int) -> None:
    """The driver has the server prepare a statement that it sent some times: the query that fails may be that one."""
    queue.failed(queue_name="q")
    impatient = SessionLimits(lock_timeout=timedelta(milliseconds=20))
    with Client(queue.url, max_pool_size=1, session_limits=impatient) as client:
        front_end = FrontEnd(client)
        for _ in range(polls_before):
            front_end.snapshot()
        with queue.hands.transaction():
            queue.rows("lock table _private_jobs in access exclusive mode")
            assert front_end.snapshot().errors

        assert [front_end.snapshot().errors for _ in range(8)] == [()] * 8


def test_a_schema_that_is_missing_is_an_error(empty_database_url: str) -> None:
    with Client(empty_database_url, max_pool_size=1) as client, pytest.raises(SchemaMissingError):
        FrontEnd(client).snapshot()


def test_a_guarded_session_is_seen_to_be_read_only(queue: Queue) -> None:
    with Client(queue.url, max_pool_size=1, session_limits=SessionLimits(read_only=True)) as client:
        assert FrontEnd(client).snapshot().server.read_only


# -- what it costs ----------------------------------------------------------------------------------------------------


def test_a_refresh_is_one_round_trip(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    queue.one_of_each()
    queue.front_end.snapshot()
    asked: list[int] = []
    rows = bounds.Snapshots._rows
    monkeypatch.setattr(bounds.Snapshots, "_rows", lambda self, questions: asked.append(1) or rows(self, questions))

    queue.front_end.snapshot(with_background=False)

    assert asked == [1]


@pytest.mark.parametrize("statistics", ["fresh", "missing"])
def test_no_part_of_a_snapshot_reads_the_table_of_jobs_whole(queue: Queue, statistics: str) -> None:
    queue.many(20_000, "priority, locked_at, locked_by", "i % 4, case when i % 500 = 0 then now() end, 'pool'")
    queue.rows("update _private_jobs set attempts = max_attempts where id % 10 = 0 and locked_at is null")
    if statistics == "fresh":
        queue.rows("vacuum analyze _private_jobs")
    queue.front_end.snapshot()
    snapshots = queue.front_end._snapshots

    background = snapshots.read_background(RecoverySettings())
    questions = {
        **snapshots._questions(background.objects, 1000),
        **snapshots._background_questions(background.objects, RecoverySettings()),
    }
    for part, call in questions.items():
        plan = kept_plan(queue.hands, call.statement, dict(call.values), is_read=True)
        assert "Seq Scan on _private_jobs" not in plan, f"{part}:\n{plan}"
        for index, parts in {"jobs_gw_locked_index": "locks", "jobs_gw_failed_index": "failed"}.items():
            assert part != parts or index in plan, f"{part}:\n{plan}"


# -- how fast jobs flow -----------------------------------------------------------------------------------------------


@pytest.fixture
def seen(queue: Queue) -> QueueSnapshot:
    return queue.front_end.snapshot()


def later(found: QueueSnapshot, seconds: float, *, inserted: int, updated: int = 0, deleted: int = 0) -> QueueSnapshot:
    counters = TableCounters(inserted=inserted, updated=updated, deleted=deleted, live_rows=0, dead_rows=0)
    return structs.replace(found, at=NOON + timedelta(seconds=seconds), counters=counters)


def test_two_snapshots_make_a_throughput(seen: QueueSnapshot) -> None:
    meter = ThroughputMeter()

    assert meter.read(later(seen, 0, inserted=100, updated=50, deleted=10)) is None
    flow = meter.read(later(seen, 2, inserted=140, updated=70, deleted=20))

    assert flow is not None
    assert (flow.added, flow.changed, flow.done, flow.period) == (20, 10, 5, timedelta(seconds=2))


def test_a_flow_is_measured_over_one_window(seen: QueueSnapshot) -> None:
    meter = ThroughputMeter(window=timedelta(seconds=2))
    flows = [meter.read(later(seen, second, inserted=10 * second * second)) for second in range(6)]

    assert [flow and flow.added for flow in flows] == [None, 10, 20, 40, 60, 80]


def test_counters_that_began_again_make_no_spike(seen: QueueSnapshot) -> None:
    meter = ThroughputMeter()
    meter.read(later(seen, 0, inserted=1_000_000))

    assert meter.read(later(seen, 1, inserted=5)) is None
    flow = meter.read(later(seen, 2, inserted=8))
    assert flow is not None
    assert flow.added == 3


def test_another_server_makes_a_new_beginning(seen: QueueSnapshot) -> None:
    meter = ThroughputMeter()
    meter.read(later(seen, 0, inserted=10))
    other = structs.replace(seen.server, started_at=NOON)

    assert meter.read(structs.replace(later(seen, 1, inserted=1_000_000), server=other)) is None


def test_a_snapshot_without_counters_is_passed_over(seen: QueueSnapshot) -> None:
    meter = ThroughputMeter()
    meter.read(later(seen, 0, inserted=10))
    assert meter.read(structs.replace(seen, at=NOON + timedelta(seconds=1), counters=None)) is None

    flow = meter.read(later(seen, 2, inserted=14))

    assert flow is not None
    assert flow.added == 2
