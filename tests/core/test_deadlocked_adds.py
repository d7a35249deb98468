"""Adds that the server undoes because of a deadlock are done again."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psycopg
import pytest

from gw_core import AsyncClient, Client, JobSpec
from gw_core.front_ends import DeadlockError

KEYS = [f"key-{number}" for number in range(60)]


@pytest.mark.direct("its clients prepare statements")
def test_bulks_that_add_the_same_keys_in_opposite_orders_all_succeed(database_url: str) -> None:
    impatient(database_url)
    together = Barrier(2)

    def add_rounds(keys: list[str]) -> None:
        with Client(database_url, max_pool_size=1) as queue:
            for turn in range(20):
                together.wait(60)
                queue.add_many(JobSpec(task="mail", payload=turn, job_key=f"{turn}/{key}") for key in keys)

    with ThreadPoolExecutor(2) as pool:
        for ended in [pool.submit(add_rounds, keys) for keys in (KEYS, KEYS[::-1])]:
            ended.result(120)

    with psycopg.connect(database_url) as connection:
        assert connection.execute("select count(*) from graphile_worker.jobs").fetchone() == (20 * len(KEYS),)


def test_bulks_of_an_async_client_succeed_too(database_url: str) -> None:
    impatient(database_url)

    async def add_rounds() -> None:
        async with AsyncClient(database_url) as queue:
            for turn in range(20):
                specs = [JobSpec(task="mail", payload=turn, job_key=f"{turn}/{key}") for key in KEYS]
                await asyncio.gather(queue.add_many(specs), queue.add_many(specs[::-1]))
            assert (await queue.jobs.count()).jobs == 20 * len(KEYS)

    asyncio.run(add_rounds())


def test_in_the_callers_own_transaction_a_deadlock_is_the_callers(database_url: str) -> None:
    impatient(database_url)
    with (
        Client(database_url) as queue,
        psycopg.connect(database_url) as ours,
        psycopg.connect(database_url) as theirs,
        ThreadPoolExecutor(1) as pool,
    ):
        queue.add("mail")  # the first add of a task blocks other adds of it
        queue.add("mail", job_key="a", conn=ours)
        queue.add("mail", job_key="b", conn=theirs)
        other = pool.submit(queue.add, "mail", job_key="a", conn=theirs)
        errors = [error for error in (failure_of(queue, ours), other.exception(60)) if error is not None]

    assert [type(error) for error in errors] == [DeadlockError]


def failure_of(queue: Client, connection: psycopg.Connection) -> Exception | None:
    """Close the circle, and end the transaction so that the other can go on."""
    try:
        queue.add("mail", job_key="b", conn=connection)
    except DeadlockError as error:
        return error
    finally:
        connection.rollback()
    return None


def impatient(database_url: str) -> None:
    """Have the server detect deadlocks immediately; by default it waits a second."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        try:
            name = connection.info.dbname
            connection.execute(
                psycopg.sql.SQL("alter database {} set deadlock_timeout = '20ms'").format(psycopg.sql.Identifier(name))
            )
        except psycopg.errors.InsufficientPrivilege:
            pytest.skip("only a superuser may change deadlock_timeout")
