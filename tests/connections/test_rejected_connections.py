"""Anything else as `conn` is rejected, and the error names what can be passed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import psycopg_pool
import pytest
from connections.kinds import engine_url

from gw_core import AsyncClient, Client
from gw_core.errors import InvalidInputError


def sqlite_connection(_: str) -> Any:
    from sqlalchemy import create_engine

    return create_engine("sqlite://").connect()


def engine(url: str) -> Any:
    from sqlalchemy import create_engine

    return create_engine(engine_url(url, "psycopg"))


def async_engine(url: str) -> Any:
    from sqlalchemy.ext.asyncio import create_async_engine

    return create_async_engine(engine_url(url, "psycopg"))


REJECTED_BY_CLIENT: dict[str, tuple[Callable[[str], Any], str]] = {
    "a string": (lambda url: url, "no transaction to join"),
    "a pool": (lambda url: psycopg_pool.ConnectionPool(url, open=False), "no transaction to join"),
    "an engine": (engine, "no transaction to join"),
    "an asynchronous engine": (async_engine, "pass it to an AsyncClient"),
    "SQLite": (sqlite_connection, "needs postgresql with psycopg or psycopg2"),
    "a number": (lambda url: 42, "conn cannot be of type builtins.int; pass an open psycopg connection"),
}


@pytest.mark.parametrize(("make", "sentence"), REJECTED_BY_CLIENT.values(), ids=REJECTED_BY_CLIENT)
def test_a_client_says_what_conn_may_be(database_url: str, make: Callable[[str], Any], sentence: str) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    conn = make(database_url)

    with Client(database_url) as client:
        for act in (lambda: client.add("mail", conn=conn), lambda: client.remove("k", conn=conn)):
            with pytest.raises(InvalidInputError, match=sentence):
                act()
    if isinstance(conn, sqlalchemy.Connection):
        conn.close()
        conn.engine.dispose()  # its pool keeps the connection


def test_a_client_names_the_async_client(database_url: str) -> None:
    async def asynchronous() -> psycopg.AsyncConnection[Any]:
        return await psycopg.AsyncConnection.connect(database_url)

    with asyncio.Runner() as loop:
        conn = loop.run(asynchronous())
        with Client(database_url) as client, pytest.raises(InvalidInputError, match="AsyncClient"):
            client.add("mail", conn=conn)
        loop.run(conn.close())


REJECTED_BY_ASYNC_CLIENT: dict[str, tuple[Callable[[str], Any], str]] = {
    "a synchronous connection": (psycopg.connect, "pass it to a Client"),
    "a string": (lambda url: url, "no transaction to join"),
    "a number": (lambda url: 42, "conn cannot be of type builtins.int"),
}


@pytest.mark.parametrize(("make", "sentence"), REJECTED_BY_ASYNC_CLIENT.values(), ids=REJECTED_BY_ASYNC_CLIENT)
def test_an_async_client_says_what_conn_may_be(database_url: str, make: Callable[[str], Any], sentence: str) -> None:
    conn = make(database_url)

    async def add() -> None:
        async with AsyncClient(database_url) as client:
            await client.add("mail", conn=conn)

    with pytest.raises(InvalidInputError, match=sentence):
        asyncio.run(add())
    if isinstance(conn, psycopg.Connection):
        conn.close()


def test_an_async_client_says_what_its_source_may_be() -> None:
    with pytest.raises(InvalidInputError, match="pass a psycopg AsyncConnectionPool, an asyncpg Pool"):
        AsyncClient(pool=42)
