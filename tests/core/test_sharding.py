"""Which shard a job goes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from gw_core import Client, Job, JobSpec, ShardedClient
from gw_core.errors import InvalidInputError

SERVERLESS = {name: f"host=127.0.0.1 port=1 dbname={name}" for name in ("eu", "us", "asia")}


def by_tenant(spec: JobSpec) -> str:
    return str(spec.payload["tenant"])


def sharded(*names: str) -> ShardedClient[Client]:
    return Client.sharded({name: SERVERLESS.get(name, "dbname=x") for name in names}, by=by_tenant)


def test_keys_spread_evenly_and_stay_where_they_are() -> None:
    queue = sharded("eu", "us", "asia")
    found = Counter(queue.shard_for(f"tenant {n}") for n in range(3000))

    assert all(900 < count < 1100 for count in found.values())
    # Stored jobs depend on it, so it must never change.
    assert [queue.shard_for(key) for key in ("acme", "globex", 7)] == ["eu", "us", "asia"]
    assert [sharded("asia", "us", "eu").shard_for(key) for key in ("acme", "globex", 7)] == ["eu", "us", "asia"]


def test_a_new_shard_takes_only_its_own_keys() -> None:
    before, after = sharded("eu", "us", "asia"), sharded("eu", "us", "asia", "africa")
    keys = [f"tenant {n}" for n in range(2000)]
    moved = [key for key in keys if before.shard_for(key) != after.shard_for(key)]

    assert {after.shard_for(key) for key in moved} == {"africa"}
    assert len(moved) == pytest.approx(500, abs=100)


def test_a_sharded_client_needs_a_shard() -> None:
    with pytest.raises(InvalidInputError, match="at least one shard"):
        Client.sharded({}, by=by_tenant)


@pytest.fixture
def two(second_database_url: str, database_url: str) -> Iterator[ShardedClient[Client]]:
    with Client.sharded({"a": second_database_url, "b": database_url}, by=by_tenant, max_pool_size=1) as queue:
        yield queue


def test_jobs_with_the_same_key_are_in_one_database(two: ShardedClient[Client]) -> None:
    added = two.add("mail", {"tenant": "acme"}, job_key="once")
    again = two.add("mail", {"tenant": "acme"}, job_key="once")
    ids = two.add_many(JobSpec(task="mail", payload={"tenant": f"{n}"}) for n in range(20))

    assert isinstance(added, Job)
    assert isinstance(again, Job)
    assert added.id == again.id
    counts = {name: each.jobs.count().jobs for name, each in two.shards.items()}
    assert sum(counts.values()) == 21
    assert {name: len(found) for name, found in ids.items()} == {
        name: count - (name == two.shard_for("acme")) for name, count in counts.items()
    }
