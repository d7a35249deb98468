"""The statements of recurring tasks: the first worker adds the job, all others add nothing."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from support.cron_fixture import CronFixture, at

from gw_core import Client, JobSpec, cron_item
from gw_core.errors import InvalidJobError
from gw_core.operations import KnownCronItem
from gw_core.postgres.road.cron_store import CronStore

NOON = at("12:00")


@pytest.fixture
def store(world: CronFixture) -> Iterator[CronStore]:
    with world.line().connection() as connection:
        yield CronStore(connection, "graphile_worker")


def a_run(task: str = "report", *, timestamp: object = NOON) -> JobSpec:
    return cron_item("* * * * *", task).job_spec(timestamp, backfilled=False)  # type: ignore[arg-type]


def test_an_unknown_identifier_becomes_known_and_stays_known_since_then(store: CronStore, world: CronFixture) -> None:
    first = store.register(["a"], known_since=NOON)
    second = store.register(["a", "b"], known_since=NOON + timedelta(hours=1))

    assert first == {"a": KnownCronItem("a", NOON)}
    assert second == {"a": KnownCronItem("a", NOON), "b": KnownCronItem("b", NOON + timedelta(hours=1))}
    with Client(world.url) as client:
        assert client.cron.list() == [second["a"], second["b"]]


def test_the_first_to_schedule_a_minute_adds_its_jobs_in_sequence(store: CronStore, world: CronFixture) -> None:
    added = store.schedule(NOON, {"z": a_run("zebra"), "a": a_run("ape")})

    ids = world.execute("select id from graphile_worker._private_jobs order by id")
    assert list(added.items()) == [("z", ids[0][0]), ("a", ids[1][0])]
    assert world.due() == [("zebra", "12:00"), ("ape", "12:00")]
    assert world.known() == {"z": (NOON, NOON), "a": (NOON, NOON)}


def test_the_second_to_schedule_a_minute_adds_nothing(store: CronStore, world: CronFixture) -> None:
    store.schedule(NOON, {"a": a_run()})

    assert store.schedule(NOON, {"a": a_run(), "b": a_run("other")}).keys() == {"b"}
    assert world.due() == [("report", "12:00"), ("other", "12:00")]


def test_a_minute_before_the_last_run_is_over(store: CronStore) -> None:
    store.schedule(NOON, {"a": a_run()})

    assert store.schedule(NOON - timedelta(minutes=1), {"a": a_run()}) == {}
    assert store.schedule(NOON + timedelta(minutes=1), {"a": a_run()}).keys() == {"a"}


def test_a_run_without_a_job_uses_the_minute_up(store: CronStore, world: CronFixture) -> None:
    assert store.schedule(NOON, {"a": None}) == {"a": None}
    assert store.schedule(NOON, {"a": a_run()}) == {}
    assert world.jobs() == []


def test_a_job_gets_everything_its_item_says(store: CronStore, world: CronFixture) -> None:
    item = cron_item(
        "* * * * *",
        "report",
        max_attempts=3,
        queue_name="q",
        job_key="k",
        job_key_mode="preserve_run_at",
        priority=-7,
        payload={"a": [1]},
    )
    store.schedule(NOON, {"a": item.job_spec(NOON, backfilled=True)})

    (job,) = world.jobs()
    row = world.execute("select queue_name, max_attempts, key, priority from graphile_worker.jobs")
    assert row == [("q", 3, "k", -7)]
    assert job.payload == {"a": [1], "_cron": {"ts": "2026-11-21T12:00:00.000Z", "backfilled": True}}


def test_a_key_replaces_the_job_of_the_minute_before(store: CronStore, world: CronFixture) -> None:
    item = cron_item("* * * * *", "report", job_key="k")
    for timestamp in (NOON, NOON + timedelta(minutes=1)):
        store.schedule(timestamp, {"a": item.job_spec(timestamp, backfilled=False)})

    assert world.due() == [("report", "12:01")]


def test_what_the_database_rejects_leaves_the_minute_open(store: CronStore, world: CronFixture) -> None:
    world.execute("alter table graphile_worker._private_jobs add constraint no_reports check (priority <> 99)")
    bad = cron_item("* * * * *", "report", priority=99).job_spec(NOON, backfilled=False)
    with pytest.raises(InvalidJobError):
        store.schedule(NOON, {"a": bad, "b": a_run("other")})

    assert world.jobs() == []
    assert store.schedule(NOON, {"a": a_run(), "b": a_run("other")}).keys() == {"a", "b"}


def test_sixteen_concurrent_workers_add_each_job_once(world: CronFixture) -> None:
    runs = {f"id{number}": a_run(f"task{number}") for number in range(20)}

    def schedule(_: int) -> int:
        with world.line().connection() as connection:
            store = CronStore(connection, "graphile_worker")
            return sum(len(store.schedule(NOON + timedelta(minutes=m), runs)) for m in range(5))

    with ThreadPoolExecutor(16) as threads:
        assert sum(threads.map(schedule, range(16))) == 5 * 20
    assert len(world.jobs()) == 5 * 20


def test_a_forgotten_identifier_is_unknown_again(store: CronStore, world: CronFixture) -> None:
    store.schedule(NOON, {"a": None})

    with Client(world.url) as client:
        assert client.cron.forget("a") == KnownCronItem("a", NOON, NOON)
        assert client.cron.forget("a") is None
        assert client.cron.list() == []
