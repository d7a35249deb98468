"""Limits for each value of a field of the payload: full values hold nothing, and others do not wait behind them."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from support.queue_fixture import DEADLINE, NEVER, QueueFixture, ms
from support.waiting import wait_until

from gw_core import JobSpec
from gw_core.errors import InvalidInputError
from gw_core.front_ends import Database, MaintenanceFailed
from gw_core.postgres.road.claims import CLAIM_PLAN, STEPS, ClaimsByField

INDEXES = "select relname::text from pg_class where relname like 'jobs_gw_field_%'"


class Running:
    """A task that counts how many of its jobs run at a time for each tenant; the first ones wait until this many do."""

    def __init__(self, together: int = 1) -> None:
        self._together = together
        self._are_together: defaultdict[str, threading.Event] = defaultdict(threading.Event)
        self._lock = threading.Lock()
        self._now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.order: list[str] = []

    def __call__(self, payload: Any) -> None:
        tenant = str(payload.get("tenant"))
        with self._lock:
            self._now[tenant] += 1
            self.most[tenant] = max(self.most[tenant], self._now[tenant])
            self.order.append(tenant)
            are_together = self._are_together[tenant]
            if self._now[tenant] >= self._together:
                are_together.set()
        assert are_together.wait(DEADLINE), f"{self.most[tenant]} of {tenant} ran together"
        time.sleep(0.005 if self._together > 1 else 0)
        with self._lock:
            self._now[tenant] -= 1


@pytest.fixture
def site(site: QueueFixture) -> Any:
    yield site
    site.client.limits.remove("work")


def add_for(site: QueueFixture, tenant: object, count: int = 1, **options: Any) -> None:
    site.client.add_many([JobSpec(task="work", payload={"tenant": tenant}, **options)] * count)


def until_empty(site: QueueFixture) -> None:
    wait_until(lambda: not site.jobs(), what="every job to be done", every=0.05)


def test_each_value_has_the_limit_for_itself_over_all_workers(site: QueueFixture) -> None:
    work = Running(together=2)
    site.client.limits.set("work", running=2, field="tenant")
    for tenant in "abc":
        add_for(site, tenant, 40)

    with site.running({"work": work}, concurrency=6), site.running({"work": work}, concurrency=6):
        until_empty(site)

    assert work.most == {"a": 2, "b": 2, "c": 2}
    assert len(work.order) == 120


@pytest.mark.parametrize("limit", [{"running": 2}, {"per_period": 500, "period": timedelta(seconds=1)}], ids=str)
def test_a_full_value_goes_on_without_a_poll(site: QueueFixture, limit: dict[str, Any]) -> None:
    work = Running()
    site.client.limits.set("work", field="tenant", **limit)
    add_for(site, "a", 150)

    with site.running({"work": work}, concurrency=4, poll_interval=NEVER):
        until_empty(site)

    assert len(work.order) == 150


def test_others_do_not_wait_behind_a_full_value(site: QueueFixture) -> None:
    gate = site.gate()
    site.client.limits.set("work", running=1, field="tenant")
    add_for(site, "large", 3_000)
    for tenant in "abcd":
        add_for(site, tenant)

    with site.running({"work": gate}, concurrency=9, poll_interval=NEVER):
        gate.wait_for(5)
        time.sleep(0.2)
        assert gate.arrived == 5
        assert len(site.run("select 1 from _private_jobs where locked_at is not null")) == 5
        site.run("delete from _private_jobs where locked_at is null")


def test_a_nested_field_and_values_that_are_no_text(site: QueueFixture) -> None:
    site.client.limits.set("work", running=1, field="customer.id")
    for payload in ({"customer": {"id": 7}}, {"customer": {"id": "7"}}, {"customer": 7}, {}, [1], None):
        site.add(payload=payload)
    site.run("""insert into _private_jobs (task_id, payload)
        select id, '{"customer": {"id": "a\\u0000b"}}' from _private_tasks where identifier = 'work'""")
    with by_field(site, "customer.id") as claim:
        # The jobs without the field, or with a value that is no text, share one limit.
        assert claim() == [{"customer": {"id": 7}}, {"customer": 7}]
        assert claim() == []


@contextmanager
def by_field(site: QueueFixture, field: str) -> Iterator[Callable[..., list[Any]]]:
    """Claim with the statement of a gate, and return the payloads."""
    task_id = site.value("select id from _private_tasks where identifier = 'work'")
    with Database(site.url).connect("claim", CLAIM_PLAN) as connection:
        claims = ClaimsByField(connection, "graphile_worker", task="work", field=field)
        yield lambda limit=100: [
            json.loads(job.payload_json) for job in claims.claim(worker_id="gw-1", tasks={task_id: "work"}, limit=limit)
        ]


@pytest.mark.direct("its session prepares statements")
def test_a_claim_takes_the_most_urgent_jobs_of_all_values(site: QueueFixture) -> None:
    site.client.limits.set("work", running=2, field="tenant")
    add_for(site, "a", 3, priority=5)
    add_for(site, "b", 3, priority=1)
    add_for(site, "a", 1, priority=0)
    add_for(site, "c", 3, priority=3)
    with by_field(site, "tenant") as claim:
        assert [each["tenant"] for each in claim(4)] == ["a", "b", "b", "c"]
        assert [each["tenant"] for each in claim(4)] == ["c", "a"]
        assert claim() == []


READ = "select idx_tup_fetch + seq_tup_read from pg_stat_xact_user_tables where relname = '_private_jobs'"


@pytest.mark.direct("its session prepares statements")
@pytest.mark.parametrize("statistics", ["none", "of an empty table", "of a moment when all jobs were locked"])
def test_a_claim_reads_little_of_a_backlog_whatever_the_statistics(site: QueueFixture, statistics: str) -> None:
    site.client.limits.set("work", running=7, field="tenant")
    task_id = site.value("select id from _private_tasks where identifier = 'work'")
    if statistics != "none":
        if "locked" in statistics:
            add_for(site, "large", 3_000)
            site.run("update _private_jobs set locked_at = now(), locked_by = 'other'")
        site.run("analyze _private_jobs")
        site.run("delete from _private_jobs")
    add_for(site, "large", 5_000)
    add_for(site, "small", 3)

    with Database(site.url).connect("claim", CLAIM_PLAN) as connection, connection.transaction(force_rollback=True):
        claims = ClaimsByField(connection, "graphile_worker", task="work", field="tenant")
        found = [len(claims.claim(worker_id="gw-1", tasks={task_id: "work"}, limit=20)) for _ in range(3)]
        [(read,)] = connection.execute(READ).fetchall()

    assert found == [10, 0, 0]
    assert read < 300


def test_more_values_than_a_claim_reads_all_get_their_turn(site: QueueFixture) -> None:
    work = Running()
    site.client.limits.set("work", running=1, field="tenant")
    site.client.add_many(
        [JobSpec(task="work", payload={"tenant": f"t{n:04}"}) for n in range(2 * STEPS + 50) for _ in range(2)]
    )

    with site.running({"work": work}, concurrency=4, poll_interval=NEVER):
        until_empty(site)

    assert len(work.order) == 2 * (2 * STEPS + 50)
    assert set(work.most.values()) == {1}


def test_each_value_has_a_rate_of_its_own(site: QueueFixture) -> None:
    work = Running()
    site.client.limits.set("work", per_period=20, period=timedelta(seconds=1), field="tenant")
    add_for(site, "a", 15)
    add_for(site, "b", 15)
    add_for(site, "c", 1)

    began = time.monotonic()
    with site.running({"work": work}, concurrency=10):
        until_empty(site)

    assert time.monotonic() - began >= 0.6  # two of each start together, the others 50 ms apart
    assert work.order.index("c") < 25  # it does not wait for the others, which would make it the last of 31
    assert len(site.run("select 1 from _private_gw_buckets where task = 'work' and value in ('a', 'b', 'c')")) == 3


def test_named_queues_stay_serial_and_a_locked_one_is_stepped_over(site: QueueFixture) -> None:
    gate = site.gate()
    site.client.limits.set("work", running=3, field="tenant")
    add_for(site, "a", 4, queue_name="serial")
    add_for(site, "a", 1)
    add_for(site, "b", 1, queue_name="closed")
    site.change_queue("closed", locked_by="node", locked_at=site.now())

    with site.running({"work": gate}, concurrency=9, poll_interval=NEVER):
        gate.wait_for(2)
        time.sleep(0.2)
        assert gate.arrived == 2
        site.run("delete from _private_jobs where locked_at is null")


def test_without_its_index_a_limit_claims_nothing_and_says_so(site: QueueFixture) -> None:
    work = Running()
    site.client.limits.set("work", running=1, field="tenant")
    [(index,)] = site.rows(INDEXES)
    site.run(f"drop index {index}")
    add_for(site, "a", 2)

    with site.running({"work": work}) as running:
        missing = "its limit by tenant needs an index that is missing"
        running.recorded.wait_for(MaintenanceFailed, lambda event: missing in str(event.error))
        assert work.order == []
        [finding] = [each for each in site.client.doctor.findings() if each.check == "limits"]
        assert (str(finding.status), finding.message) == (
            "error",
            "task work: no jobs are claimed, because the index of tenant is missing",
        )
        site.client.limits.set("work", running=1, field="tenant")
        until_empty(site)


def test_an_index_is_dropped_with_the_limit_that_needs_it(site: QueueFixture) -> None:
    site.client.limits.set("work", running=1, field="tenant")
    first = site.rows(INDEXES)
    site.client.limits.set("work", running=2, field="customer.id")
    second = site.rows(INDEXES)
    site.client.limits.set("work", running=2)

    assert len(first) == len(second) == 1
    assert first != second
    assert site.rows(INDEXES) == []


def test_a_field_becomes_a_limit_for_the_whole_task_while_workers_run(site: QueueFixture) -> None:
    gate = site.gate()
    site.client.limits.set("work", running=1, field="tenant")
    add_for(site, "a", 5)
    add_for(site, "b", 5)
    with site.running({"work": gate}, concurrency=9, poll_interval=NEVER):
        gate.wait_for(2)
        site.client.limits.set("work", running=4)
        gate.wait_for(4)
        site.client.limits.set("work", running=3, field="tenant")
        gate.wait_for(6)
        site.run("delete from _private_jobs where locked_at is null")


def test_a_job_says_how_full_the_limit_of_its_value_is(site: QueueFixture) -> None:
    site.client.limits.set("work", running=1, field="tenant")
    add_for(site, "a", 2)
    add_for(site, "b", 1)
    site.run(
        "update _private_jobs set locked_at = now(), locked_by = 'gw-1', attempts = 1"
        " where id = (select min(id) from _private_jobs)"
    )
    full, free = (each["id"] for each in site.run("select id from _private_jobs where locked_by is null order by id"))

    assert limits_of(site, full) == [
        ("its task has a limit by tenant: 1 of at most 1 with the same value are locked", False),
    ]
    assert limits_of(site, free) == []

    site.client.limits.set("work", running=1, per_period=5, period=ms(1000), field="tenant")
    assert [inferred for _, inferred in limits_of(site, free)] == [True]

    [(index,)] = site.rows(INDEXES)
    site.run(f"drop index {index}")
    assert limits_of(site, free) == [
        ("its task has a limit by tenant without an index, so none of its jobs is claimed", False),
    ]


def limits_of(site: QueueFixture, job_id: int) -> list[tuple[str, bool]]:
    report = site.client.jobs.show(job_id)
    assert report is not None
    return [(each.message, each.inferred) for each in report.reasons if str(each.code) == "limited"]


def test_the_list_of_limits_has_the_field(site: QueueFixture) -> None:
    site.client.limits.set("work", running=4, per_period=100, period=ms(500), field="tenant")

    [limit] = site.client.limits.list()

    assert (limit.field, limit.is_full) == ("tenant", False)
    assert (
        limit.description
        == "at most 4 jobs are locked, at most 100 start in 500ms for each tenant, 0 are locked in all"
    )


@pytest.mark.parametrize("field", ["", "a.", "a b", "a'b", "é", "x" * 64, "a.b.c.d.e.f.g.h.i.j.k"])
def test_a_field_that_is_no_name_is_rejected(site: QueueFixture, field: str) -> None:
    with pytest.raises(InvalidInputError, match="field"):
        site.client.limits.set("work", running=1, field=field)


def test_a_limit_that_another_session_sets_in_between_keeps_its_index(site: QueueFixture) -> None:
    site.client.limits.set("work", running=1, field="first")
    site.run("insert into _private_gw_workers (id, started_at, last_heartbeat_at) values ('slow', now(), now())")
    waiting = threading.Thread(
        target=site.client.limits.set,
        args=("work",),
        kwargs={"running": 1, "field": "second", "timeout": timedelta(seconds=1)},
    )
    waiting.start()
    wait_until(lambda: site.value("select field from _private_gw_limits") == "second", what="the second limit")

    site.client.limits.set("work", running=1, field="third", timeout=timedelta(0))
    waiting.join(DEADLINE)
    site.run("delete from _private_gw_workers")

    [limit] = site.client.limits.list()
    assert (limit.field, limit.has_index) == ("third", True)
    assert len(site.rows(INDEXES)) == 1


def test_two_sessions_that_set_the_same_limit_share_its_index(site: QueueFixture) -> None:
    site.client.limits.remove("work")

    with ThreadPoolExecutor(2) as threads, psycopg.connect(site.url) as holder:
        # Neither build begins before both sessions have found that there is none.
        holder.execute("lock table graphile_worker._private_jobs in share row exclusive mode")
        both = [threads.submit(site.client.limits.set, "work", running=1, field="x") for _ in range(2)]
        blocked = (
            "select pid from pg_locks where not granted and database = (select oid from pg_database "
            "where datname = current_database()) and mode = 'ShareUpdateExclusiveLock'"
        )
        wait_until(
            lambda: len(site.rows(blocked)) == 2 or any(each.done() for each in both),
            what="both builds to wait for the table",
        )
        holder.rollback()
        for each in both:
            each.result(DEADLINE)

    assert [limit.has_index for limit in site.client.limits.list()] == [True]
    assert len(site.rows(INDEXES)) == 1


def test_a_limit_of_a_task_that_another_session_makes_now_gets_its_index(site: QueueFixture) -> None:
    waits = "select pid from pg_stat_activity where datname = current_database() and wait_event = 'transactionid'"
    with ThreadPoolExecutor(1) as threads, psycopg.connect(site.url) as other:
        other.execute("insert into graphile_worker._private_tasks (identifier) values ('new')")
        setting = threads.submit(site.client.limits.set, "new", running=1, field="x")
        wait_until(lambda: site.rows(waits) or setting.done(), what="our insert to wait for theirs")
        other.commit()
        setting.result(DEADLINE)

    assert [limit.has_index for limit in site.client.limits.list() if limit.task == "new"] == [True]
    site.client.limits.remove("new")


def test_two_indexes_are_built_one_after_the_other_without_a_deadlock(site: QueueFixture) -> None:
    """A build that waits for the lock of another one has a snapshot, for which that one waits."""
    site.add()

    def limits_of(task: str) -> threading.Thread:
        thread = threading.Thread(target=site.client.limits.set, args=(task,), kwargs={"running": 1, "field": "x"})
        thread.start()
        return thread

    def sessions(condition: str) -> int:
        return len(site.rows(f"select pid from pg_stat_activity where datname = current_database() and {condition}"))

    with psycopg.connect(site.url) as holder:
        holder.execute("update graphile_worker._private_jobs set priority = 0")
        first = limits_of("work")
        is_building = "query like 'create index%' and wait_event = 'virtualxid'"
        wait_until(lambda: sessions(is_building), what="the first build to wait for the open transaction")
        second = limits_of("other")
        wait_until(lambda: sessions("wait_event in ('PgSleep', 'relation')"), what="the second to wait for the first")
        assert not sessions("wait_event = 'relation'")
    for each in (first, second):
        each.join(DEADLINE)

    assert all(limit.has_index for limit in site.client.limits.list())
    assert len(site.rows(INDEXES)) == 2
    site.client.limits.remove("other")
