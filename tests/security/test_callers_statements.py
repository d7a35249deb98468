"""No function or operator that another role created runs in what gw sends over a caller's connection."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import attacks
import psycopg
import pytest
import traps
from connections.kinds import KINDS, CallersTransaction, Kind, OnLoop, Psycopg, Threaded, engine_url
from parse_trees import Call, recorded
from psycopg.pq import ExecStatus
from support.database_proxy import DatabaseProxy, SentText

from gw_core import Client, JobContext, JobSpec, TaskRegistry, testing
from gw_core.front_ends import TERMS

SOON = timedelta(seconds=5)
LATER = datetime(2040, 1, 1, tzinfo=UTC)
FULL = JobSpec(
    task="mail", payload={"n": 1}, run_at=SOON, queue_name="q", max_attempts=3, priority=2, flags=["a"], job_key="full"
)

CONDITIONS = [
    *(term.example for term in TERMS.values()),
    "payload:anywhere",
    "flag:b*",
    "-queue:none",
    "task:m* queue:q",
]
"""Every condition of selections, one by one: some contradict each other, and then nothing is sent."""

OTHER_TYPES = (
    *("numeric", "integer", "bigint", "double precision", "text", "character varying", "json"),
    *("timestamp with time zone", "interval", "anyelement", "anyarray", "text[]"),
)
"""The types that traps take beside those that a statement has."""

TRANSACTIONS = re.compile(r"\s*(begin|commit|rollback|savepoint|release|set|start|deallocate|discard|show)\b", re.I)
OF_DRIVERS = re.compile(r"typeinfo|to_regtype\(|pg_advisory_unlock_all")
"""What drivers ask about types, and how asyncpg resets a connection of its pool."""

Do = Callable[..., Any]
"""Calls a method of the client by its name, with the caller's connection."""


# -- what callers do ---------------------------------------------------------------------------------------------


def _remove(do: Do) -> None:
    do("add", "mail", {}, job_key="single")
    do("remove", "single")
    do("groups.add", [JobSpec(task="mail", job_key="member")], then=JobSpec(task="mail"))
    do("remove", "member", by="ada")


def _cancel_groups(do: Do) -> None:
    do("groups.cancel", do("groups.add", [JobSpec(task="mail")], then=JobSpec(task="mail", run_at=SOON)).id, by="ada")


def _restore(do: Do) -> None:
    job = do("add", FULL)
    do("jobs.complete", [job.id])
    do("jobs.restore", job)


def _retry(do: Do) -> None:
    ids = do("add_many", [JobSpec(task="mail"), JobSpec(task="mail")])
    do("jobs.fail", ids[:1])
    do("jobs.retry", ids, by="ada")
    do("jobs.retry", "state:failed task:mail created_at:-1d..now")


def _change(method: str, *arguments: Any, **options: Any) -> Callable[[Do], object]:
    """Change jobs that are named by their ids, as they were read, and by conditions."""

    def change(do: Do) -> None:
        do(method, do("add_many", [FULL, JobSpec(task="mail")]), *arguments, **options)
        do(method, None, *arguments, expected=[do("add", "mail", {"n": 1})], **options)
        do("add", "mail", {"n": 1})
        do(method, "task:mail state:ready,failed", *arguments, **options)

    return change


SCENARIOS: dict[str, Callable[[Do], object]] = {
    "add": lambda do: [
        do("add", "mail", {}),
        do("add", FULL),
        do("add", "mail", {}, run_at=LATER),
        do("add", "mail", {}, after=[do("add", "mail", {}).id], run_at=SOON),
        do("add", "mail", {}, after=[]),
        [do("add", "mail", {"n": 1}, unique_for=SOON) for _ in range(2)],
        do("add", "mail", {}, expires_at=SOON),
        do("add", "mail", {}, expires_at=LATER, unique_for=SOON),
        do("add", "mail", {}, expires_at=SOON, after=[]),
        do("add", "mail", {}, job_key="kept", job_key_mode="unsafe_dedupe", run_at=timedelta(seconds=1.5)),
    ],
    "try_add": lambda do: do("try_add", "mail", {}, run_at=SOON),
    "add_many": lambda do: [
        do("add_many", [JobSpec(task="mail", run_at=SOON), JobSpec(task="mail")]),
        do("add_many", [JobSpec(task="mail", expires_at=SOON), JobSpec(task="mail", expires_at=LATER)]),
        do("add_many", [FULL, JobSpec(task="mail", job_key="other", run_at=LATER)]),
    ],
    "add_batch": lambda do: do("add_batch", "mail", [1, 2], run_at=SOON),
    "groups.add": lambda do: do("groups.add", [JobSpec(task="mail", run_at=SOON)], then=FULL),
    "groups.list": lambda do: [do("groups.list"), do("groups.list", 1), do("groups.list", job_key="full")],
    "groups.cancel": _cancel_groups,
    "cron.list": lambda do: do("cron.list"),
    "cron.forget": lambda do: do("cron.forget", "nightly"),
    "limits.list": lambda do: do("limits.list"),
    "limits.set": lambda do: [
        do("limits.set", "mail", running=2, by="ada"),
        do("limits.set", "mail", per_period=10, period=timedelta(seconds=1.5), burst=20),
    ],
    "limits.remove": lambda do: do("limits.remove", "mail"),
    "pauses.list": lambda do: do("pauses.list"),
    "pauses.pause": lambda do: [
        do("pauses.pause", "task:slow", "queue:slow", until=SOON, reason="why", by="ada"),
        do("pauses.pause", "flag:slow", until=LATER),
        do("pauses.pause", "all"),
    ],
    "pauses.resume": lambda do: [
        do("pauses.resume", "task:slow", "queue:slow", "flag:slow", "all"),
        do("pauses.pause", "task:slow"),
        do("pauses.resume", "task:slow", by="ada"),
    ],
    "workers.locks": lambda do: do("workers.locks", ["worker"]),
    "workers.unlock": lambda do: do("workers.unlock", ["worker"], by="ada"),
    "jobs.count": lambda do: [do("jobs.count", each) for each in ("", "state:running", "task:mail", *CONDITIONS)],
    "jobs.restore": _restore,
    "jobs.retry": _retry,
    "remove": _remove,
    "jobs.steps": lambda do: do("jobs.steps", 1),
    "jobs.get": lambda do: [do("jobs.get", do("add", "mail", {}).id), do("jobs.get", job_key="full")],
    "jobs.complete": lambda do: [_change("jobs.complete")(do), _change("jobs.complete", by="ada")(do)],
    "jobs.fail": _change("jobs.fail", "no", by="ada"),
    "jobs.reschedule": lambda do: [
        _change("jobs.reschedule", run_at=SOON)(do),
        _change("jobs.reschedule", run_at=LATER, priority=1, attempts=0, max_attempts=5)(do),
    ],
    "history.actions": lambda do: [do("history.actions"), do("history.actions", 1, after=5)],
    "history.attempts": lambda do: do("history.attempts", do("add", "mail", {}).id),
}
"""For each method that takes `conn`, calls that lead to every statement it can send."""


def doors(client: object) -> Iterator[str]:
    """Yield the names of a client's methods that take `conn`, and of those of its parts."""
    for name in (name for name in dir(type(client)) if not name.startswith("_")):
        member = getattr(client, name)
        if _takes_conn(member):
            yield name
        elif type(member).__module__.startswith("gw_core") and not callable(member):
            parts = (part for part in dir(type(member)) if not part.startswith("_"))
            yield from (f"{name}.{part}" for part in parts if _takes_conn(getattr(member, part)))


def _takes_conn(member: object) -> bool:
    return callable(member) and "conn" in inspect.signature(member).parameters


def act(callers: Any) -> None:
    """Use each door of the caller's client on the caller's connection."""

    def do(name: str, *arguments: Any, **options: Any) -> Any:
        method = callers.client
        for part in name.split("."):
            method = getattr(method, part)
        conn = {} if callers.conn is None else {"conn": callers.conn}
        answer = method(*arguments, **conn, **options)
        return callers.run(answer) if inspect.isawaitable(answer) else answer

    found = list(doors(callers.client))
    assert len(found) > 5
    missing = set(found) - set(SCENARIOS)
    assert not missing, f"add to SCENARIOS how to call {', '.join(sorted(missing))}"
    for name in found:
        SCENARIOS[name](do)


def act_in_a_test(conn: object) -> None:
    """Use what `gw_core.testing` does on a connection; a task adds jobs on it too."""
    tasks = TaskRegistry()

    @tasks.task
    def first(payload: Any, context: JobContext) -> None:
        context.add("second", {}, run_at=SOON, conn=conn)
        context.add_many([JobSpec(task="second", run_at=SOON)], conn=conn)
        with context.connection():
            pass

    @tasks.task
    def second(payload: Any) -> None:
        if payload:
            raise RuntimeError("fails")

    @tasks.task(keep=timedelta(days=1), result=True)
    def kept(payload: Any) -> int:
        return 1

    with Client("dbname=none") as client:
        client.groups.add([JobSpec(task="kept"), JobSpec(task="first", queue_name="q")], then=FULL, conn=conn)
        client.add("second", {"n": 1}, conn=conn)
        testing.assert_enqueued(conn, "first")
        testing.refute_enqueued(conn, "third")
        testing.drain(conn, tasks=tasks, with_scheduled=True, raises=False)
        testing.drain(conn, tasks=tasks, now=LATER, raises=False)
        testing.perform(first, {}, conn=conn)
        assert testing.enqueued(conn, "mail")


# -- pools and engines of the caller's -------------------------------------------------------------------------------


class Pooled(OnLoop):
    """An `AsyncClient` on a pool of the caller's, which gives each call a connection."""

    def execute(self, statement: str) -> None:
        raise NotImplementedError

    commit = rollback = in_savepoint = execute  # type: ignore[assignment] # nothing here uses them


@contextmanager
def _pooled(url: str, open_source: Callable[[str], Any], close: str) -> Iterator[CallersTransaction]:
    from gw_core import AsyncClient

    with asyncio.Runner() as loop:

        async def opened() -> Any:
            source = open_source(url)
            return await source if inspect.isawaitable(source) else source

        source = loop.run(opened())
        yield Pooled(loop, AsyncClient(pool=source), None)
        loop.run(getattr(source, close)())


def _psycopg_pool(url: str) -> Any:
    import psycopg_pool

    pool = psycopg_pool.AsyncConnectionPool(url, min_size=1, max_size=2, open=False)

    async def opened() -> Any:
        await pool.open()
        return pool

    return opened()


def _asyncpg_pool(url: str) -> Any:
    import asyncpg

    parts = psycopg.conninfo.conninfo_to_dict(url)
    names = {"host": parts["host"], "port": parts["port"], "user": parts.get("user"), "database": parts["dbname"]}
    return asyncpg.create_pool(**names, ssl=False, min_size=1, max_size=2)


def _engine(driver: str) -> Callable[[str], Any]:
    def made(url: str) -> Any:
        from sqlalchemy.ext.asyncio import create_async_engine

        return create_async_engine(engine_url(url, driver))

    return made


@contextmanager
def _threaded_pool(url: str) -> Iterator[CallersTransaction]:
    import psycopg_pool

    with psycopg_pool.ConnectionPool(url, min_size=1, max_size=2, open=True) as pool, Client(pool=pool) as client:
        yield Psycopg(client, None)  # type: ignore[arg-type] # each call takes a connection of the pool


POOLS = [
    Kind("psycopg pool", _threaded_pool),
    Kind("psycopg pool, async", lambda url: _pooled(url, _psycopg_pool, "close")),
    Kind("asyncpg pool", lambda url: _pooled(url, _asyncpg_pool, "close"), ("asyncpg",)),
    Kind("SQLAlchemy engine, psycopg", lambda url: _pooled(url, _engine("psycopg"), "dispose"), ("sqlalchemy",)),
    Kind(
        "SQLAlchemy engine, asyncpg",
        lambda url: _pooled(url, _engine("asyncpg"), "dispose"),
        ("sqlalchemy", "asyncpg"),
    ),
]


# -- the test --------------------------------------------------------------------------------------------------------


ROADS = (
    *("psycopg", "psycopg2", "SQLAlchemy Session, psycopg", "SQLAlchemy Session, psycopg2"),
    *("Django", "Django, server-side binding", "asyncpg", "psycopg pool", "psycopg pool, async", "asyncpg pool"),
)
"""The kinds that send texts of their own; make nightly tries the others, which send the same."""

TRIED = [
    pytest.param(kind, id=kind.name, marks=() if kind.name in ROADS else pytest.mark.slow) for kind in [*KINDS, *POOLS]
]

CHECKED: set[SentText] = set()
"""What kinds of connections have sent that this process has tested; most send the same."""


def sent_by(kind: Kind, url: str) -> set[SentText]:
    """Return the texts that gw and the driver send over the caller's connection."""
    proxy = DatabaseProxy(url)
    sent = proxy.record_texts()
    try:
        with kind.open(proxy.url) as callers:
            act(callers)
            if is_on_psycopg_3(callers):
                act_in_a_test(callers.conn)  # type: ignore[attr-defined] # which all but pools have
    finally:
        proxy.close()
    return {each for each in sent if not each.session.startswith("gw") and is_of_gw(each.text)}


def is_on_psycopg_3(callers: CallersTransaction) -> bool:
    """Return whether `gw_core.testing` runs jobs on the connection."""
    from gw_core.postgres.connection.callers_transaction import psycopg_connection

    if not isinstance(callers, Threaded) or callers.conn is None:
        return False
    try:
        connection = psycopg_connection(callers.conn, "graphile_worker")
    except ValueError:
        return False
    return not connection.pgconn.pipeline_status


def is_of_gw(text: str) -> bool:
    return not TRANSACTIONS.match(text) and not OF_DRIVERS.search(text)


def calls_of(connection: psycopg.Connection[Any], sent: SentText) -> list[Call]:
    """Parse a text as the server did, and return what it calls. A trap can make it fail, as an ambiguous call does."""
    with recorded(connection) as calls:
        result = connection.pgconn.prepare(b"", sent.text.encode(), list(sent.types))
        if result.status != ExecStatus.COMMAND_OK:
            raise AssertionError(result.error_message.decode())
    return calls


def traps_sprung(connection: psycopg.Connection[Any], sent: SentText) -> list[str]:
    try:
        return traps.sprung(connection, calls_of(connection, sent))
    except AssertionError as error:
        return [str(error)]


@pytest.mark.direct("what the client sends passes a proxy of the test's own")
@pytest.mark.parametrize("server_url", ["this"], indirect=True)
@pytest.mark.parametrize("kind", TRIED)
def test_nothing_sent_over_a_caller_s_connection_springs_a_trap(intruder: str, installed: str, kind: Kind) -> None:
    for module in kind.needs:
        pytest.importorskip(module)
    sent = {SentText("", each.text, each.types) for each in sent_by(kind, installed)}
    assert len(sent) > 20
    new = sent - CHECKED
    CHECKED.update(new)
    if not new:
        return

    with psycopg.connect(installed, autocommit=True) as connection:
        calls = [call for each in new for call in calls_of(connection, each)]
        traps.plant(connection, calls, intruder, others=OTHER_TYPES)
    with psycopg.connect(installed, autocommit=True) as connection:
        found = [f"{trap} in: {each.text}" for each in new for trap in traps_sprung(connection, each)]
    assert not found, "\n\n".join(found)


DRIVERS = {kind.name: kind for kind in KINDS}


@pytest.mark.parametrize("name", ["psycopg", "psycopg2", "SQLAlchemy Session, psycopg2", "Django"])
def test_a_role_that_creates_functions_in_public_does_not_become_a_superuser(
    intruder: str, installed: str, name: str
) -> None:
    kind = DRIVERS[name]
    for module in kind.needs:
        pytest.importorskip(module)
    with psycopg.connect(installed, user=intruder, autocommit=True) as connection:
        if name == "Django" and connection.info.server_version < 140_000:
            pytest.skip("Django does not support this server")
        attacks.plant_better_functions(connection, intruder)

    with kind.open(installed) as callers:
        assert isinstance(callers, Threaded)
        for run_at in (SOON, None):
            job = callers.add(JobSpec(task="mail", run_at=run_at))
            assert callers.client.jobs.get(job.id, conn=callers.conn) is not None
        callers.commit()

    with psycopg.connect(installed) as connection:
        row = connection.execute("select rolsuper from pg_roles where rolname = %s", (intruder,)).fetchone()
    assert row == (False,)
