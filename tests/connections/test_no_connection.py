"""A pool, an engine or a session that gets no connection: the database is unavailable, whatever the library raises."""

from __future__ import annotations

import asyncio

import pytest
from connections.kinds import asyncpg_connection, engine_url
from psycopg.conninfo import conninfo_to_dict

from gw_core import AsyncClient, Client
from gw_core.errors import DatabaseError, DatabaseUnavailableError

NOWHERE = "postgresql://nobody@127.0.0.1:1/none"


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_a_session_that_cannot_connect(driver: str) -> None:
    sqlalchemy, orm = pytest.importorskip("sqlalchemy"), pytest.importorskip("sqlalchemy.orm")
    engine = sqlalchemy.create_engine(engine_url(NOWHERE, driver))
    with Client(NOWHERE) as client, orm.Session(engine) as session, pytest.raises(DatabaseUnavailableError):
        client.add("mail", conn=session)


def test_a_session_of_an_exhausted_pool(database_url: str) -> None:
    sqlalchemy, orm = pytest.importorskip("sqlalchemy"), pytest.importorskip("sqlalchemy.orm")
    engine = sqlalchemy.create_engine(
        engine_url(database_url, "psycopg"), pool_size=1, max_overflow=0, pool_timeout=0.01
    )
    with (
        Client(database_url) as client,
        engine.connect(),
        orm.Session(engine) as session,
        pytest.raises(DatabaseUnavailableError, match="QueuePool limit"),
    ):
        client.add("mail", conn=session)
    engine.dispose()


def test_a_session_whose_flush_failed_has_to_be_rolled_back(database_url: str) -> None:
    sqlalchemy, orm = pytest.importorskip("sqlalchemy"), pytest.importorskip("sqlalchemy.orm")

    class Base(orm.DeclarativeBase):
        pass

    class Missing(Base):
        __tablename__ = "missing"
        id = orm.mapped_column(sqlalchemy.Integer, primary_key=True)

    engine = sqlalchemy.create_engine(engine_url(database_url, "psycopg"))
    with Client(database_url) as client, orm.Session(engine) as session:
        session.add(Missing(id=1))
        with pytest.raises(sqlalchemy.exc.ProgrammingError, match="does not exist"):
            session.flush()
        with pytest.raises(DatabaseError, match="roll it back first"):
            client.add("mail", conn=session)
        session.rollback()
        client.add("mail", conn=session)
    engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_an_engine(database_url: str, driver: str) -> None:
    aio = pytest.importorskip("sqlalchemy.ext.asyncio")

    async def work() -> None:
        nowhere = aio.create_async_engine(engine_url(NOWHERE, driver))
        async with AsyncClient(pool=nowhere) as client, aio.AsyncSession(nowhere) as session:
            for options in ({}, {"conn": session}):
                with pytest.raises(DatabaseUnavailableError):
                    await client.add("mail", **options)
        limits = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 0.01}
        engine = aio.create_async_engine(engine_url(database_url, driver), **limits)
        async with AsyncClient(pool=engine) as client, engine.connect():
            with pytest.raises(DatabaseUnavailableError, match="QueuePool limit"):
                await client.add("mail")
        await engine.dispose()

    asyncio.run(work())


def test_a_pool_of_asyncpg(database_url: str) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def work() -> None:
        async with asyncpg.create_pool(NOWHERE, min_size=0) as pool, AsyncClient(pool=pool) as client:
            with pytest.raises(DatabaseUnavailableError):
                await client.add("mail")
        parts = conninfo_to_dict(database_url)
        where = {"host": parts["host"], "port": parts.get("port"), "user": parts.get("user")}
        impatient = asyncpg.create_pool(
            **where, database=parts["dbname"], ssl=False, min_size=0, max_size=1, command_timeout=0.05
        )
        other = await asyncpg_connection(database_url)
        async with impatient as pool, AsyncClient(pool=pool) as client, other.transaction():
            await other.execute("lock table graphile_worker._private_jobs")
            with pytest.raises(DatabaseUnavailableError, match="has not answered within the timeout of its driver"):
                await client.add("mail")
        await other.close()

    asyncio.run(work())
