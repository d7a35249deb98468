"""The kinds of connections, each with the same few operations, so that one test covers all of them."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row

from gw_core import AsyncClient, Client, JobSpec


class CallersTransaction(ABC):
    """What a program does with a connection of its own: statements, savepoints, the end of the transaction, and gw."""

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Run a statement of the caller's, without a result."""

    @abstractmethod
    def commit(self) -> None:
        """Commit the transaction."""

    @abstractmethod
    def rollback(self) -> None:
        """Roll the transaction back."""

    @abstractmethod
    def in_savepoint(self, block: Callable[[], object], *, undone: bool) -> None:
        """Run a block in a savepoint, as the library's users do, and keep or undo what it did."""

    @abstractmethod
    def add(self, spec: JobSpec) -> Any:
        """Add a job in the transaction."""

    @abstractmethod
    def add_many(self, specs: Sequence[JobSpec]) -> list[int]:
        """Add jobs in the transaction."""

    @abstractmethod
    def remove(self, job_key: str) -> Any:
        """Remove a job in the transaction."""


@dataclass(frozen=True)
class Kind:
    """One kind of connection; `open` yields a transaction on it."""

    name: str
    open: Callable[[str], AbstractContextManager[CallersTransaction]]
    needs: tuple[str, ...] = ()


class Threaded(CallersTransaction):
    """The operations of a synchronous connection, `conn`, with a `Client`."""

    def __init__(self, client: Client, conn: Any) -> None:
        self.client = client
        self.conn = conn

    def add(self, spec: JobSpec) -> Any:
        return self.client.add(spec, conn=self.conn)

    def add_many(self, specs: Sequence[JobSpec]) -> list[int]:
        return self.client.add_many(specs, conn=self.conn)

    def remove(self, job_key: str) -> Any:
        return self.client.remove(job_key, conn=self.conn)


# -- psycopg ---------------------------------------------------------------------------------------------------------


class Psycopg(Threaded):
    def __init__(self, client: Client, connection: psycopg.Connection[Any], conn: Any = None) -> None:
        super().__init__(client, connection if conn is None else conn)
        self.connection = connection

    def execute(self, statement: str) -> None:
        psycopg.ClientCursor(self.connection).execute(statement.encode())

    def commit(self) -> None:
        self.connection.commit()

    def rollback(self) -> None:
        self.connection.rollback()

    def in_savepoint(self, block: Callable[[], object], *, undone: bool) -> None:
        self.execute("select 1")  # outside a transaction, `transaction()` would make one and commit it
        with self.connection.transaction(force_rollback=undone):
            block()


@contextmanager
def plain(url: str, **options: Any) -> Iterator[CallersTransaction]:
    with Client(url) as client, psycopg.connect(url, **options) as connection:
        yield Psycopg(client, connection)
        connection.rollback()


@contextmanager
def pipeline(url: str) -> Iterator[CallersTransaction]:
    with Client(url) as client, psycopg.connect(url) as connection, connection.pipeline():
        yield Psycopg(client, connection)
        connection.rollback()


@contextmanager
def cursor(url: str) -> Iterator[CallersTransaction]:
    with Client(url) as client, psycopg.connect(url) as connection, connection.cursor() as each:
        yield Psycopg(client, connection, each)
        connection.rollback()


# -- psycopg2 --------------------------------------------------------------------------------------------------------


class Psycopg2(Threaded):
    def execute(self, statement: str) -> None:
        with self.conn.cursor() as each:
            each.execute(statement)

    def commit(self) -> None:
        self.conn.commit()

    def rollback(self) -> None:
        self.conn.rollback()

    def in_savepoint(self, block: Callable[[], object], *, undone: bool) -> None:
        self.execute("savepoint callers")
        block()
        self.execute("rollback to callers" if undone else "release callers")


@contextmanager
def in_psycopg2(url: str, *, autocommit: bool = False) -> Iterator[CallersTransaction]:
    import psycopg2
    import psycopg2.extras

    connection = psycopg2.connect(url, cursor_factory=psycopg2.extras.RealDictCursor)
    connection.autocommit = autocommit
    with Client(url) as client:
        yield Psycopg2(client, connection)
    connection.close()


# -- SQLAlchemy ------------------------------------------------------------------------------------------------------


class SqlAlchemy(Threaded):
    def execute(self, statement: str) -> None:
        from sqlalchemy import text

        self.conn.execute(text(statement))

    def commit(self) -> None:
        self.conn.commit()

    def rollback(self) -> None:
        self.conn.rollback()

    def in_savepoint(self, block: Callable[[], object], *, undone: bool) -> None:
        savepoint = self.conn.begin_nested()
        block()
        savepoint.rollback() if undone else savepoint.commit()


def engine_url(url: str, driver: str) -> Any:
    """Return the URL for an engine; the server may be behind a socket, which SQLAlchemy takes as a parameter."""
    from sqlalchemy import URL

    parts = {key: str(value) for key, value in conninfo_to_dict(url).items()}
    socket = {"host": parts["host"]} if parts["host"].startswith("/") else {}
    return URL.create(
        f"postgresql+{driver}",
        username=parts.get("user"),
        password=parts.get("password"),
        host=None if socket else parts["host"],
        port=int(parts["port"]) if "port" in parts else None,
        database=parts["dbname"],
        query=socket,
    )


@contextmanager
def session(url: str, driver: str, **options: Any) -> Iterator[CallersTransaction]:
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    engine = create_engine(engine_url(url, driver), **options)
    with Client(url) as client, Session(engine) as opened:
        yield SqlAlchemy(client, opened)
    engine.dispose()


@contextmanager
def scoped(url: str) -> Iterator[CallersTransaction]:
    from sqlalchemy import create_engine
    from sqlalchemy.orm import scoped_session, sessionmaker

    engine = create_engine(engine_url(url, "psycopg"))
    registry = scoped_session(sessionmaker(engine))
    with Client(url) as client:
        yield SqlAlchemy(client, registry)
    registry.remove()
    engine.dispose()


@contextmanager
def engine_connection(url: str, driver: str, **options: Any) -> Iterator[CallersTransaction]:
    from sqlalchemy import create_engine

    engine = create_engine(engine_url(url, driver), **options)
    with Client(url) as client, engine.connect() as opened:
        yield SqlAlchemy(client, opened)
    engine.dispose()


# -- Django ----------------------------------------------------------------------------------------------------------


class Django(Threaded):
    """Django's connection in a transaction, as `ATOMIC_REQUESTS` makes one around a view."""

    def __init__(self, client: Client, wrapper: Any, conn: Any = None) -> None:
        super().__init__(client, wrapper if conn is None else conn)
        self._wrapper = wrapper
        self._begin()

    def _begin(self) -> None:
        from django.db import transaction

        self._atomic = transaction.atomic(using="queue")
        self._atomic.__enter__()

    def execute(self, statement: str) -> None:
        with self._wrapper.cursor() as each:
            each.execute(statement)

    def commit(self) -> None:
        self._atomic.__exit__(None, None, None)
        self._begin()

    def rollback(self) -> None:
        self._undo(self._atomic)
        self._begin()

    def in_savepoint(self, block: Callable[[], object], *, undone: bool) -> None:
        from django.db import transaction

        inner = transaction.atomic(using="queue")
        inner.__enter__()
        block()
        self._undo(inner) if undone else inner.__exit__(None, None, None)

    def close(self) -> None:
        self._undo(self._atomic)
        self._wrapper.close()

    def _undo(self, atomic: Any) -> None:
        atomic.__exit__(RuntimeError, RuntimeError("rolled back by the test"), None)


@contextmanager
def in_django(url: str, conn: str | None = None, **options: Any) -> Iterator[CallersTransaction]:
    import django
    from django.conf import settings
    from django.db import connections

    _skip_without_support(url)
    parts = conninfo_to_dict(url)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user", ""),
        "HOST": parts.get("host", ""),
        "PORT": str(parts.get("port", "")),
        "OPTIONS": options,
    }
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=True)
        django.setup()
    connections.databases["queue"] = connections.configure_settings({"default": {}, "queue": database})["queue"]
    with Client(url) as client:
        callers = Django(client, connections["queue"], conn)
        yield callers
        callers.close()
    if "pool" in options:
        connections["queue"].close_pool()
    del connections["queue"]


def _skip_without_support(url: str) -> None:
    from django.db.backends.postgresql.features import DatabaseFeatures

    with psycopg.connect(url) as connection:
        version = divmod(connection.info.server_version, 10_000)
    if version < DatabaseFeatures.minimum_database_version:
        pytest.skip(f"Django does not support PostgreSQL {version[0]}")


# -- event loops -----------------------------------------------------------------------------------------------------


class OnLoop(CallersTransaction):
    """The operations of an asynchronous connection; each one runs on one event loop until it is done."""

    def __init__(self, loop: asyncio.Runner, client: AsyncClient, conn: Any) -> None:
        self.loop = loop
        self.client = client
        self.conn = conn

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run(work)

    def add(self, spec: JobSpec) -> Any:
        return self.run(self.client.add(spec, conn=self.conn))

    def add_many(self, specs: Sequence[JobSpec]) -> list[int]:
        ids: list[int] = self.run(self.client.add_many(specs, conn=self.conn))
        return ids

    def remove(self, job_key: str) -> Any:
        return self.run(self.client.remove(job_key, conn=self.conn))


class AsyncPsycopg(OnLoop):
    def execute(self, statement: str) -> None:
        self.run(self.conn.execute(statement.encode()))

    def commit(self) -> None:
        self.run(self.conn.commit())

    def rollback(self) -> None:
        self.run(self.conn.rollback())

    def in_savepoint(self, block: Callable[[], object], *, undone: bool) -> None:
        self.execute("savepoint callers")
        block()
        self.execute("rollback to callers" if undone else "release callers")


class Asyncpg(OnLoop):
    """asyncpg commits each statement outside a transaction, so the caller begins one."""

    def __init__(self, loop: asyncio.Runner, client: AsyncClient, conn: Any) -> None:
        super().__init__(loop, client, conn)
        self._begin()

    def _begin(self) -> None:
        self._transaction = self.conn.transaction()
        self.run(self._transaction.start())

    def execute(self, statement: str) -> None:
        self.run(self.conn.execute(statement))

    def commit(self) -> None:
        self.run(self._transaction.commit())
        self._begin()

    def rollback(self) -> None:
        self.run(self._transaction.rollback())
        self._begin()

    def in_savepoint(self, block: Callable[[], object], *, undone: bool) -> None:
        savepoint = self.conn.transaction()
        self.run(savepoint.start())
        block()
        self.run(savepoint.rollback() if undone else savepoint.commit())


class AsyncpgAlone(Asyncpg):
    """asyncpg without a transaction."""

    def _begin(self) -> None:
        pass


class AsyncSqlAlchemy(OnLoop):
    def execute(self, statement: str) -> None:
        from sqlalchemy import text

        self.run(self.conn.execute(text(statement)))

    def commit(self) -> None:
        self.run(self.conn.commit())

    def rollback(self) -> None:
        self.run(self.conn.rollback())

    def in_savepoint(self, block: Callable[[], object], *, undone: bool) -> None:
        savepoint = self.conn.begin_nested()
        self.run(savepoint.start())
        block()
        self.run(savepoint.rollback() if undone else savepoint.commit())


@contextmanager
def on_loop(url: str) -> Iterator[tuple[asyncio.Runner, AsyncClient]]:
    with asyncio.Runner() as loop:
        client = AsyncClient(url)
        yield loop, client
        loop.run(client.close())


@contextmanager
def async_psycopg(url: str, **options: Any) -> Iterator[CallersTransaction]:
    with on_loop(url) as (loop, client):
        conn = loop.run(psycopg.AsyncConnection.connect(url, row_factory=dict_row, **options))
        yield AsyncPsycopg(loop, client, conn)
        loop.run(conn.close())


@contextmanager
def async_pipeline(url: str) -> Iterator[CallersTransaction]:
    with async_psycopg(url) as transaction:
        assert isinstance(transaction, AsyncPsycopg)
        block = transaction.conn.pipeline()
        transaction.run(block.__aenter__())
        yield transaction
        transaction.rollback()
        transaction.run(block.__aexit__(None, None, None))


@contextmanager
def in_asyncpg(url: str, kind: Callable[..., CallersTransaction] = Asyncpg) -> Iterator[CallersTransaction]:
    with on_loop(url) as (loop, client):
        conn = loop.run(asyncpg_connection(url))
        yield kind(loop, client, conn)
        loop.run(conn.close())


async def asyncpg_connection(url: str) -> Any:
    """Connect with asyncpg; the server may be behind a socket."""
    import asyncpg

    parts = conninfo_to_dict(url)
    return await asyncpg.connect(
        host=parts["host"], port=parts.get("port"), user=parts.get("user"), database=parts["dbname"], ssl=False
    )


@contextmanager
def async_session(url: str, driver: str, **options: Any) -> Iterator[CallersTransaction]:
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    with on_loop(url) as (loop, client):
        engine = create_async_engine(engine_url(url, driver), **options)
        conn = AsyncSession(engine)
        yield AsyncSqlAlchemy(loop, client, conn)
        loop.run(conn.close())
        loop.run(engine.dispose())


@contextmanager
def async_engine_connection(url: str, driver: str, **options: Any) -> Iterator[CallersTransaction]:
    from sqlalchemy.ext.asyncio import create_async_engine

    with on_loop(url) as (loop, client):
        engine = create_async_engine(engine_url(url, driver), **options)
        conn = loop.run(_entered(engine.connect()))
        yield AsyncSqlAlchemy(loop, client, conn)
        loop.run(conn.close())
        loop.run(engine.dispose())


async def _entered(connection: Any) -> Any:
    return await connection


KINDS = [
    Kind("psycopg", plain),
    Kind("psycopg, dict_row", lambda url: plain(url, row_factory=dict_row)),
    Kind("psycopg, ClientCursor", lambda url: plain(url, cursor_factory=psycopg.ClientCursor)),
    Kind("psycopg, RawCursor", lambda url: plain(url, cursor_factory=psycopg.RawCursor)),
    Kind("psycopg, pipeline", pipeline),
    Kind("psycopg, cursor", cursor),
    Kind("psycopg2", in_psycopg2, ("psycopg2",)),
    Kind("SQLAlchemy Session, psycopg", lambda url: session(url, "psycopg"), ("sqlalchemy",)),
    Kind("SQLAlchemy Session, psycopg2", lambda url: session(url, "psycopg2"), ("sqlalchemy", "psycopg2")),
    Kind("SQLAlchemy scoped_session", scoped, ("sqlalchemy",)),
    Kind("SQLAlchemy Connection, psycopg", lambda url: engine_connection(url, "psycopg"), ("sqlalchemy",)),
    Kind("SQLAlchemy Connection, psycopg2", lambda url: engine_connection(url, "psycopg2"), ("sqlalchemy", "psycopg2")),
    Kind("Django", in_django, ("django",)),
    Kind("Django, alias", lambda url: in_django(url, "queue"), ("django",)),
    Kind("Django, server-side binding", lambda url: in_django(url, server_side_binding=True), ("django",)),
    Kind("Django, connection pool", lambda url: in_django(url, pool={"min_size": 1, "max_size": 2}), ("django",)),
    Kind("psycopg, async", async_psycopg),
    Kind("psycopg, async pipeline", async_pipeline),
    Kind("asyncpg", in_asyncpg, ("asyncpg",)),
    Kind("SQLAlchemy AsyncSession, psycopg", lambda url: async_session(url, "psycopg"), ("sqlalchemy",)),
    Kind("SQLAlchemy AsyncSession, asyncpg", lambda url: async_session(url, "asyncpg"), ("sqlalchemy", "asyncpg")),
    Kind(
        "SQLAlchemy AsyncConnection, psycopg",
        lambda url: async_engine_connection(url, "psycopg"),
        ("sqlalchemy",),
    ),
    Kind(
        "SQLAlchemy AsyncConnection, asyncpg",
        lambda url: async_engine_connection(url, "asyncpg"),
        ("sqlalchemy", "asyncpg"),
    ),
]

AUTOCOMMIT = {"isolation_level": "AUTOCOMMIT"}

AUTOCOMMIT_KINDS = [
    Kind("psycopg", lambda url: plain(url, autocommit=True)),
    Kind("psycopg2", lambda url: in_psycopg2(url, autocommit=True), ("psycopg2",)),
    Kind("SQLAlchemy Session, psycopg", lambda url: session(url, "psycopg", **AUTOCOMMIT), ("sqlalchemy",)),
    Kind(
        "SQLAlchemy Connection, psycopg2",
        lambda url: engine_connection(url, "psycopg2", **AUTOCOMMIT),
        ("sqlalchemy", "psycopg2"),
    ),
    Kind("psycopg, async", lambda url: async_psycopg(url, autocommit=True)),
    Kind("asyncpg", lambda url: in_asyncpg(url, AsyncpgAlone), ("asyncpg",)),
    Kind("SQLAlchemy AsyncSession, psycopg", lambda url: async_session(url, "psycopg", **AUTOCOMMIT), ("sqlalchemy",)),
    Kind(
        "SQLAlchemy AsyncConnection, asyncpg",
        lambda url: async_engine_connection(url, "asyncpg", **AUTOCOMMIT),
        ("sqlalchemy", "asyncpg"),
    ),
]
"""Connections whose statements are committed one by one."""
