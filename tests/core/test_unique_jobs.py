"""Jobs that are unique for a time: adding one again returns the one that is there, or was."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from support.queue_fixture import NEVER, QueueFixture
from support.waiting import wait_until

from gw_core import AsyncClient, Job, JobSpec
from gw_core.errors import InvalidJobError
from gw_core.events import JobAdded

HOUR = timedelta(hours=1)
SOON_OVER = timedelta(microseconds=1)


def add(site: QueueFixture, payload: Any = None, **options: Any) -> Job:
    return site.client.add("work", payload, unique_for=HOUR, **options)


def test_a_job_is_added_once_by_its_payload(site: QueueFixture) -> None:
    first = add(site, {"a": 1, "b": [1, 2]})
    again = add(site, {"b": [1, 2], "a": 1}, priority=5)
    other = add(site, {"a": 1, "b": [2, 1]})
    assert (again, other.id != first.id) == (first, True)
    assert site.ids() == [first.id, other.id]
    assert site.client.add("other", {"a": 1, "b": [1, 2]}, unique_for=HOUR).id not in (first.id, other.id)


def test_a_job_is_added_once_by_its_key(site: QueueFixture) -> None:
    first = add(site, {"n": 1}, job_key="k")
    assert add(site, {"n": 2}, job_key="k") == first
    assert add(site, queue_name="q", job_key="k") == first
    assert site.client.jobs.get(first.id).payload == {"n": 1}  # type: ignore[union-attr]


def test_it_stays_unique_after_it_has_ended(site: QueueFixture) -> None:
    first = add(site, {"n": 1})
    site.run_once({"work": lambda payload: None})
    again = add(site, {"n": 1})
    assert (again.id, again.task, again.payload, site.jobs()) == (first.id, "work", {"n": 1}, [])
    assert abs(again.created_at - first.created_at) < timedelta(seconds=30)


def test_it_is_added_again_when_its_time_is_over(site: QueueFixture) -> None:
    first = site.client.add("work", unique_for=SOON_OVER)
    second = site.client.add("work", unique_for=SOON_OVER)
    assert site.ids() == [first.id, second.id]
    with site.running({"other": lambda payload: None}, poll_interval=NEVER):  # workers forget it
        wait_until(lambda: site.run("select * from _private_gw_unique") == [], what="the key to go")


def test_of_many_that_add_at_the_same_time_one_adds(site: QueueFixture) -> None:
    with ThreadPoolExecutor(16) as threads:
        for n in range(10):
            added = list(threads.map(lambda _, n=n: add(site, {"n": n}).id, range(16)))
            assert len(set(added)) == 1
    assert len(site.jobs()) == 10


@pytest.mark.parametrize("commits", [True, False])
def test_it_belongs_to_the_callers_transaction(site: QueueFixture, commits: bool) -> None:
    found: list[Job] = []
    with psycopg.connect(site.url) as conn:
        first = add(site, {"n": 1}, conn=conn)
        other = threading.Thread(target=lambda: found.append(add(site, {"n": 1})))
        other.start()
        conn.commit() if commits else conn.rollback()
        other.join()
    assert ([each.id for each in found] == [first.id]) is commits
    assert site.ids() == [found[0].id]


def test_bulks_and_asynchronous_clients_add_it_once(site: QueueFixture) -> None:
    spec = JobSpec(task="work", payload={"n": 1}, unique_for=HOUR)

    async def again() -> list[int]:
        async with AsyncClient(site.url) as client:
            return [(await client.add(spec)).id, *await client.add_many([spec, JobSpec(task="other")])]

    first, second = site.client.add_many([spec, spec])
    assert (first == second, site.ids()) == (True, [first])
    assert asyncio.run(again())[:2] == [first, first]


def test_a_large_bulk_is_added_once_in_the_order_of_its_jobs(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gw_core.postgres.road.add_calls.BULK", 500)
    specs = [JobSpec(task="work", payload=n % 600, unique_for=HOUR) for n in range(700)]
    ids = site.client.add_many(specs)
    assert ids[600:] == ids[:100]
    assert [site.client.jobs.get(ids[n]).payload for n in (0, 499, 500, 599)] == [0, 499, 500, 599]  # type: ignore[union-attr]
    assert len(site.ids()) == 600
    assert site.client.add_many(specs[:10]) == ids[:10]


def test_a_bulk_finds_what_is_there_and_adds_the_rest(site: QueueFixture) -> None:
    def spec(number: int, **options: Any) -> JobSpec:
        return JobSpec(task="work", payload=number, unique_for=HOUR, queue_name=f"q{number % 3}", **options)

    ended = site.client.add(spec(0))
    site.run_once({"work": lambda payload: None})
    keyed, plain = site.client.add(spec(1, job_key="b")), site.client.add(spec(2))
    expired = site.client.add("work", 3, unique_for=SOON_OVER)
    site.client.add("work", 4, job_key="c")  # not unique, so a unique job with this key replaces it

    given = [
        spec(7),
        spec(0),
        spec(5, job_key="b"),
        spec(5, job_key="c"),
        spec(2),
        spec(3),
        spec(7),
        spec(6, job_key="a"),
    ]
    ids = site.client.add_many(given)

    assert ids[1:3] + ids[4:5] == [ended.id, keyed.id, plain.id]
    assert (ids[6], expired.id in ids) == (ids[0], False)
    new = {n: site.client.jobs.get(ids[n]) for n in (0, 3, 5, 7)}
    facts = {n: (job.payload, job.job_key, job.queue_name) for n, job in new.items() if job is not None}
    assert facts == {0: (7, None, "q1"), 3: (5, "c", "q2"), 5: (3, None, "q0"), 7: (6, "a", "q0")}
    assert site.client.add_many(given) == ids


def test_bulks_in_opposite_orders_do_not_deadlock(site: QueueFixture) -> None:
    def deadlocks() -> int:
        return site.value("select deadlocks from pg_stat_database where datname = current_database()")

    before = deadlocks()
    for batch in range(20):
        specs = [JobSpec(task="work", payload=[batch, n], unique_for=HOUR) for n in range(500)]
        with ThreadPoolExecutor(2) as threads:
            forwards, backwards = threads.map(site.client.add_many, (specs, specs[::-1]))
        assert forwards == backwards[::-1]
    assert (len(site.ids()), deadlocks()) == (10_000, before)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unique_for": 4e8}, "unique_for must be more than 0 and at most ten years"),
        ({"unique_for": timedelta(0)}, "unique_for must be more than 0 and at most ten years"),
        (
            {"unique_for": HOUR, "after": [1]},
            "a job that is unique for a time takes neither after nor a job key mode but 'replace'",
        ),
    ],
)
def test_wrong_input_gets_one_sentence(site: QueueFixture, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJobError) as raised:
        site.client.add("work", **options)

    assert str(raised.value) == message


def test_a_job_that_was_there_has_no_event(site: QueueFixture) -> None:
    added: list[JobAdded] = []
    site.client.events.on(JobAdded, added.append)
    unique = [JobSpec(task="work", payload=n, unique_for=HOUR) for n in (1, 2, 1)]

    first = add(site, 1)
    assert add(site, 1) == first
    assert [event.job_id for event in added] == [first.id]

    added.clear()
    ids = site.client.add_many([*unique, JobSpec(task="other"), unique[1], JobSpec(task="work", unique_for=HOUR)])
    assert len(set(ids)) == 4
    assert [(event.spec.task, event.spec.payload) for event in added] == [("work", 2), ("other", None), ("work", None)]

    added.clear()
    site.client.groups.add(unique, then=JobSpec(task="last"))
    assert added == []


def test_a_job_added_twice_in_a_transaction_has_one_event(site: QueueFixture) -> None:
    added: list[JobAdded] = []
    site.client.events.on(JobAdded, added.append)
    with psycopg.connect(site.url) as connection:
        first = add(site, 1, conn=connection)
        assert add(site, 1, conn=connection) == first
        assert add(site, 2, job_key="k", conn=connection).id != first.id
    assert len(added) == 2


def test_of_two_that_add_at_the_same_time_one_has_the_event(site: QueueFixture) -> None:
    added: list[JobAdded] = []
    site.client.events.on(JobAdded, added.append)
    with psycopg.connect(site.url) as connection, ThreadPoolExecutor(1) as threads:
        first = add(site, 1, conn=connection)
        second = threads.submit(add, site, 1)
        wait_until(lambda: site.run("select pid from pg_locks where not granted"), what="the other to wait")
        connection.commit()
        assert second.result() == first
    assert len(added) == 1
