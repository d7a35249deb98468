"""The client for event loops: in its own pool, and in pools and engines of the caller's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import psycopg
import psycopg_pool
import pytest
from connections.kinds import engine_url
from psycopg.conninfo import conninfo_to_dict

from gw_core import AsyncClient, Client, Events, Job, JobSpec, Plugin, Skip
from gw_core.errors import DatabaseError, DatabaseUnavailableError, InvalidInputError, JobSkipped, SchemaMissingError
from gw_core.events import JobAdded
from gw_core.front_ends import SkipReason

Source = Callable[[str], AbstractAsyncContextManager[Any]]


@asynccontextmanager
async def a_string(url: str) -> AsyncIterator[str]:
    yield url


@asynccontextmanager
async def a_psycopg_pool(url: str) -> AsyncIterator[Any]:
    async with psycopg_pool.AsyncConnectionPool(url, min_size=1, max_size=2, open=False) as pool:
        yield pool


@asynccontextmanager
async def an_asyncpg_pool(url: str) -> AsyncIterator[Any]:
    asyncpg = pytest.importorskip("asyncpg")
    parts = conninfo_to_dict(url)
    where = {"host": parts["host"], "port": parts.get("port"), "user": parts.get("user"), "database": parts["dbname"]}
    async with asyncpg.create_pool(**where, min_size=1, max_size=2, ssl=False) as pool:
        yield pool


def an_engine(driver: str) -> Source:
    @asynccontextmanager
    async def engine(url: str) -> AsyncIterator[Any]:
        asyncio_of_sqlalchemy = pytest.importorskip("sqlalchemy.ext.asyncio")
        engine = asyncio_of_sqlalchemy.create_async_engine(engine_url(url, driver))
        yield engine
        await engine.dispose()

    return engine


def client_on(opened: Any, url: str | None = None) -> AsyncClient:
    return AsyncClient(opened) if isinstance(opened, str) else AsyncClient(url, pool=opened)


SOURCES: dict[str, Source] = {
    "connection string": a_string,
    "psycopg pool": a_psycopg_pool,
    "asyncpg pool": an_asyncpg_pool,
    "engine, psycopg": an_engine("psycopg"),
    "engine, asyncpg": an_engine("asyncpg"),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_jobs_are_added_read_and_removed(database_url: str, source: Source) -> None:
    async def work() -> None:
        async with source(database_url) as opened, client_on(opened) as client:
            job = await client.add("mail", {"n": 1}, job_key="k", run_at=None)
            assert job is not None
            assert await client.jobs.get(job.id) == await client.jobs.get(job_key="k") == job
            ids = await client.add_many([JobSpec(task="mail", payload={"n": n}) for n in range(10)])
            batch = await client.add_batch("mail", [1, 2])
            assert batch is not None
            assert (len(ids), batch.payload_json) == (10, "[1,2]")
            removed = await client.remove("k")
            assert removed is not None
            assert await client.jobs.get(job_key="k") is None

    asyncio.run(work())

    with Client(database_url) as client:
        assert len(client.jobs.list().jobs) == 11


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_tasks_are_paused_and_limited(database_url: str, source: Source) -> None:
    async def work() -> None:
        async with source(database_url) as opened, client_on(opened) as client:
            assert (await client.pauses.pause("task:mail", "queue:slow", by="ada", reason="down")).changed == 2
            assert {(str(each.target), each.by, each.reason) for each in await client.pauses.list()} == {
                ("task:mail", "ada", "down"),
                ("queue:slow", "ada", "down"),
            }
            with Client(database_url) as outside:
                assert [each.locked_by for each in outside.queues.list()] == ["gw-pause:slow"]
                assert (await client.pauses.resume("task:mail", "queue:slow")).changed == 2
                assert [each.locked_by for each in outside.queues.list()] == [None]
            assert list(await client.pauses.list()) == []

            await client.limits.set("mail", running=2, per_period=10, period=timedelta(seconds=1))
            assert [(each.running, each.per_period) for each in await client.limits.list()] == [(2, 10)]
            assert (await client.limits.remove("mail")).changed == 1
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute(
                    "insert into graphile_worker._private_gw_workers (id, started_at, last_heartbeat_at)"
                    " values ('stuck', now(), now())"
                )
            result = await client.pauses.pause("all", timeout=timedelta(0))
            assert result.unconfirmed == ("stuck",)

    asyncio.run(work())


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_limit_by_field_builds_and_drops_its_index(database_url: str, source: Source) -> None:
    def indexes() -> set[str]:
        with psycopg.connect(database_url) as connection:
            found = connection.execute("select relname from pg_class where starts_with(relname, 'jobs_gw_field_')")
            return {name for (name,) in found}

    async def work() -> None:
        async with source(database_url) as opened, client_on(opened) as client:
            await client.limits.set("mail", running=1, field="tenant")
            [limit] = await client.limits.list()
            assert (limit.field, limit.has_index) == ("tenant", True)
            first = indexes()
            await client.limits.set("mail", running=1, field="customer.id")
            second = indexes()
            assert (len(first), len(second), first & second) == (1, 1, set())
            await client.limits.remove("mail")
            assert indexes() == set()

    asyncio.run(work())


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_jobs_are_changed_by_id(database_url: str, source: Source) -> None:
    async def work() -> None:
        async with source(database_url) as opened, client_on(opened) as client:
            ids = await client.add_many([JobSpec(task="mail", payload={"n": n}) for n in range(5)])
            ended, failed, moved, running, waiting = sorted(ids)
            with psycopg.connect(database_url, autocommit=True) as connection:
                connection.execute(
                    "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'w' where id = %s",
                    (running,),
                )

            completed = await client.jobs.complete([ended, running, 999])
            await client.jobs.fail([failed], "no longer wanted")
            await client.jobs.reschedule([moved], run_at=timedelta(hours=1), priority=-5)

            assert completed.ids == (ended,)
            assert [(each.id, each.reason, each.locked_by) for each in completed.skipped] == [
                (running, SkipReason.LOCKED, "w"),
                (999, SkipReason.NOT_FOUND, None),
            ]
            assert await client.jobs.get(ended) is None
            dead, later, kept = [await client.jobs.get(each) for each in (failed, moved, waiting)]
            assert dead is not None
            assert later is not None
            assert kept is not None
            assert (dead.attempts, dead.last_error) == (dead.max_attempts, "no longer wanted")
            assert (later.priority, later.run_at > kept.run_at + timedelta(minutes=50)) == (-5, True)

    asyncio.run(work())


def test_changes_belong_to_the_callers_transaction(database_url: str) -> None:
    async def work() -> None:
        async with AsyncClient(database_url) as client:
            [job_id] = await client.add_many([JobSpec(task="mail")])
            async with await psycopg.AsyncConnection.connect(database_url) as conn:
                assert (await client.jobs.complete([job_id], conn=conn)).ids == (job_id,)
                assert await client.jobs.get(job_id, conn=conn) is None
                assert await client.jobs.get(job_id) is not None
                await conn.rollback()
            assert await client.jobs.get(job_id) is not None

    asyncio.run(work())


def test_many_adds_share_the_pool(database_url: str) -> None:
    async def work() -> None:
        async with AsyncClient(database_url, max_pool_size=3) as client:
            jobs = await asyncio.gather(*(client.add("mail", {"n": n}) for n in range(50)))
            assert len({job.id for job in jobs if job is not None}) == 50

    asyncio.run(work())


def test_plugins_and_events_are_those_of_the_client(database_url: str) -> None:
    class OnlyMail(Plugin):
        def before_add(self, spec: JobSpec) -> JobSpec | Skip:
            return spec if spec.task == "mail" else Skip("not mail")

    async def work() -> None:
        events = Events()
        added: list[JobAdded] = []
        events.on(JobAdded, added.append)
        async with AsyncClient(database_url, plugins=[OnlyMail()], events=events) as client:
            assert await client.try_add("other") == Skip("not mail")
            with pytest.raises(JobSkipped, match="not mail"):
                await client.add("other")
            assert len(await client.add_many([JobSpec(task="mail"), JobSpec(task="other")])) == 1
        assert [event.spec.task for event in added] == ["mail"]

    asyncio.run(work())


def test_a_client_can_be_closed_when_the_loop_that_used_it_is_closed(database_url: str) -> None:
    client = AsyncClient(database_url)
    asyncio.run(client.add("mail"))
    asyncio.run(client.close())
    asyncio.run(client.add("mail"))
    with asyncio.Runner() as loop:
        with asyncio.Runner() as other:
            other.run(client.close())
        loop.run(client.add("mail"))
        with asyncio.Runner() as other, pytest.raises(InvalidInputError, match="belongs to another event loop"):
            other.run(client.close())
        loop.run(client.close())


def test_an_add_that_is_cancelled_as_it_gets_a_connection_adds_nothing(database_url: str) -> None:
    async def work() -> None:
        async with AsyncClient(database_url, max_pool_size=1) as client:
            await client.add("before")
            for turn in range(20):
                adding = [asyncio.create_task(client.add("mail", {"turn": turn})) for _ in range(3)]
                await adding[0]  # its connection goes to the next
                for each in adding[1:]:
                    each.cancel()
                ended = await asyncio.gather(*adding[1:], return_exceptions=True)
                assert [type(each) for each in ended] == [asyncio.CancelledError] * 2

    asyncio.run(work())


def test_errors_are_those_of_the_client(empty_database_url: str) -> None:
    async def add(url: str) -> None:
        async with AsyncClient(url) as client:
            await client.add("mail")

    with pytest.raises(SchemaMissingError, match="gw migrate"):
        asyncio.run(add(empty_database_url))
    with pytest.raises(DatabaseUnavailableError):
        asyncio.run(add("postgres://127.0.0.1:1/none"))


def test_errors_of_a_busy_or_aborted_connection_name_the_cause(database_url: str) -> None:
    async def program() -> None:
        async with an_asyncpg_pool(database_url) as pool, pool.acquire() as conn, AsyncClient(database_url) as client:
            adding = [client.add("work", conn=conn) for _ in range(2)]
            errors = [
                each for each in await asyncio.gather(*adding, return_exceptions=True) if not isinstance(each, Job)
            ]
            assert [type(each) for each in errors] == [DatabaseError]
            assert str(errors[0]).startswith("the connection is busy with another statement; use it for one at a time")
            transaction = conn.transaction()
            await transaction.start()
            with pytest.raises(Exception, match="division by zero"):
                await conn.execute("select 1 / 0")
            with pytest.raises(DatabaseError, match="an earlier error aborted the transaction of this connection"):
                await client.add("work", conn=conn)
            await transaction.rollback()

    asyncio.run(program())


def test_a_method_that_blocks_needs_to_know_where_a_pool_of_asyncpg_leads(database_url: str) -> None:
    async def work() -> str:
        async with an_asyncpg_pool(database_url) as pool:
            async with AsyncClient(pool=pool) as client:
                with pytest.raises(InvalidInputError, match=r"AsyncClient\(conninfo, pool=pool\)"):
                    await client.queues.list()
            async with AsyncClient(database_url, pool=pool) as client:
                return (await client.add("mail", queue_name="q")).task + str(len(await client.queues.list()))

    assert asyncio.run(work()) == "mail1"
