"""A job added under a key is never lost, whatever it races with, and the answer is never an empty row."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count

import pytest
from psycopg import IsolationLevel, errors as pg
from psycopg.types.json import Json
from support.keyed_races import ADDED_AND_CLAIMED_CONCURRENTLY, CLAIMED_CONCURRENTLY, RACES, Race, add_against
from support.schema_fixture import Row, SchemaFixture, connected


@pytest.mark.parametrize("mode", ["replace", "preserve_run_at"])
@pytest.mark.parametrize("race", RACES, ids=str)
def test_the_last_payload_waits_to_be_run_under_its_key(database_url: str, race: Race, mode: str) -> None:
    added = add_against(race, database_url, job_key_mode=mode)

    assert (added["key"], added["payload"], added["is_available"]) == ("k", {"from": "us"}, True)
    with connected(database_url) as schema:
        (holder,) = schema.run("select * from :S._private_jobs where key = 'k'")
        assert holder == added
        others = [job for job in schema.jobs() if job["id"] != added["id"]]
        assert [job["is_available"] for job in others] in ([], [False])


@pytest.mark.parametrize("race", [CLAIMED_CONCURRENTLY, ADDED_AND_CLAIMED_CONCURRENTLY], ids=str)
def test_a_job_claimed_in_the_meantime_is_retired_and_left_to_its_worker(database_url: str, race: Race) -> None:
    added = add_against(race, database_url)

    with connected(database_url) as schema:
        (old, new) = schema.jobs()
        assert new["id"] == added["id"]
        assert (old["key"], old["attempts"], old["locked_by"]) == (None, 25, "pool-theirs")


def test_arrays_added_concurrently_are_all_gathered(database_url: str) -> None:
    race = Race(
        "gathered meanwhile",
        lambda schema: schema.add_job(job_key="k", payload=Json([1])),
        lambda schema: schema.add_job(job_key="k", payload=Json([2])),
    )

    assert add_against(race, database_url, payload=Json([3]))["payload"] == [1, 2, 3]


@pytest.mark.parametrize("race", RACES, ids=str)
def test_unsafe_dedupe_answers_a_row_too(database_url: str, race: Race) -> None:
    assert add_against(race, database_url, job_key_mode="unsafe_dedupe")["id"] is not None


def test_a_transaction_that_may_not_see_the_change_gets_an_error_and_not_an_empty_row(database_url: str) -> None:
    with connected(database_url) as ours, connected(database_url) as theirs:
        job = theirs.add_job(job_key="k")
        ours.connection.isolation_level = IsolationLevel.REPEATABLE_READ
        with ours.connection.transaction(force_rollback=True):
            ours.jobs()
            theirs.claim(job)
            with pytest.raises(pg.SerializationFailure):
                ours.add_job(job_key="k")


def test_adds_of_the_same_keys_in_other_orders_do_not_lock_each_other_out(database_url: str) -> None:
    keys = [f"key{number}" for number in range(20)]
    with connected(database_url) as schema:
        schema.add_jobs(*({"job_key": key} for key in keys))

    def add_shuffled(seed: int) -> None:
        order = random.Random(seed).sample(keys, len(keys))
        with connected(database_url) as schema:
            for _ in range(20):
                assert len(schema.add_jobs(*({"job_key": key} for key in order))) == len(keys)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(add_shuffled, seed) for seed in range(4)]:
            done.result(timeout=120)


ADDS = 2_000
ADDERS = 4
CLAIMERS = 8
KEYS = 20


def test_of_thousands_of_adds_racing_with_claims_the_last_payload_of_each_key_runs(database_url: str) -> None:
    ran: set[tuple[str, int]] = set()
    last: dict[str, int] = {}
    numbers = count()
    over = threading.Event()

    def add(adder: int) -> None:
        """Each adder has keys of its own, so that it knows which payload of a key was the last."""
        choose = random.Random(adder)
        with connected(database_url) as schema:
            for _ in range(ADDS // ADDERS):
                key = f"{adder}-{choose.randrange(KEYS // ADDERS)}"
                number = next(numbers)
                added = schema.add_job(job_key=key, payload={"key": key, "number": number})
                assert (added["key"], added["payload"]) == (key, {"key": key, "number": number})
                last[key] = number

    def claim_and_settle(seed: int) -> None:
        chance = random.Random(seed)
        with connected(database_url) as schema:
            while not over.is_set() or schema.run("select 1 from :S._private_jobs where is_available limit 1"):
                for job in _claimed(schema):
                    if not over.is_set() and chance.random() < 0.3:
                        _give_up(schema, job["id"])
                        continue
                    ran.add((job["payload"]["key"], job["payload"]["number"]))
                    schema.run("delete from :S._private_jobs where id = %s", job["id"])

    with ThreadPoolExecutor(ADDERS + CLAIMERS) as threads:
        claimers = [threads.submit(claim_and_settle, seed) for seed in range(CLAIMERS)]
        try:
            for adder in [threads.submit(add, adder) for adder in range(ADDERS)]:
                adder.result(timeout=120)
        finally:
            over.set()
        for claimer in claimers:
            claimer.result(timeout=120)

    assert len(last) == KEYS
    assert set(last.items()) <= ran


def _claimed(schema: SchemaFixture) -> list[Row]:
    return schema.run(
        "update :S._private_jobs as jobs set attempts = attempts + 1, locked_at = now(), locked_by = 'pool' "
        "from (select id from :S._private_jobs where is_available limit 3 for update skip locked) as found "
        "where jobs.id = found.id returning jobs.id, jobs.payload"
    )


def _give_up(schema: SchemaFixture, job_id: int) -> None:
    """Fail the attempt: the job waits again, unless it was retired while it ran."""
    schema.run("update :S._private_jobs set locked_at = null, locked_by = null where id = %s", job_id)
