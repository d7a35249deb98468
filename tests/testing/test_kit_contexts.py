"""A context offers in every testing kit what it offers in a worker; the members are found in the class."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
import pytest
from support.queue_fixture import QueueFixture
from test_async_queue import KINDS

from gw_core import AsyncClient, Client, JobContext, JobSpec, TaskRegistry
from gw_core.testing import AsyncQueue, drain, inline, perform

Answers = dict[str, Any]
Use = Callable[[JobContext], Any]

DEADLINE: Final = 60.0
TRANSPORT: Final = {"_cron": {"ts": "2026-01-31T08:00:00Z"}, "_trace": {"traceparent": "00-ab"}}


def query(context: JobContext) -> Any:
    return [
        context.query("select 1, 'a%b'"),
        context.query("select %s::int + 1, %s::text, '5%%'", (1, "it's \\ %s")),
        context.query("select %(n)s::int * 2, %(n)s::bigint", {"n": 21}),
        context.query("select cardinality(%s::int[])", ([1, 2, 3],)),
        context.query("set local work_mem = '4MB'"),
    ]


def write_and_fail(opened: Any) -> None:
    with opened.transaction():
        opened.execute("select set_config('gw.test', 'undone', false)")
        raise ZeroDivisionError


def connection(context: JobContext) -> Any:
    with context.connection() as opened:
        with pytest.raises(ZeroDivisionError):
            write_and_fail(opened)
        with opened.transaction(), opened.cursor() as cursor:
            cursor.execute("select * from generate_series(1, 4)")
            rows = [cursor.fetchone(), next(iter(cursor)), cursor.fetchall(), cursor.fetchone()]
        return rows, opened.execute("select coalesce(current_setting('gw.test', true), '')").fetchall()


def cursor_of_a_step(context: JobContext) -> Any:
    with context.step("rows") as step:
        before = step.cursor
        step.save(7)
        return before, step.cursor


def database(context: JobContext) -> Any:
    with psycopg.connect(context.database.conninfo) as opened:
        return context.database.schema, opened.execute("select current_database()").fetchall()


USES: Final[dict[str, Use]] = {
    "add": lambda context: context.add("later", {"n": 1}, queue_name="till").queue_name,
    "add_batch": lambda context: context.add_batch("later", [1, 2]).payload,
    "add_many": lambda context: len(context.add_many([JobSpec(task="later"), JobSpec(task="later")])),
    "checkpoint": lambda context: context.checkpoint(),
    "connection": connection,
    "cron": lambda context: context.cron,
    "database": database,
    "is_stopping": lambda context: context.is_stopping,
    "job": lambda context: (context.job.task, context.job.payload, context.job.attempts, context.job.max_attempts),
    "logger": lambda context: sorted(context.logger.extra or ()),
    "query": query,
    "queue_name": lambda context: context.queue_name,
    "results": lambda context: context.results(),
    "should_stop": lambda context: (context.should_stop.is_set(), context.should_stop.wait(0.0)),
    "step": lambda context: (context.step("one", lambda number: number + 1, 6), cursor_of_a_step(context)),
    "stop_reason": lambda context: context.stop_reason,
    "thread_name": lambda context: bool(context.thread_name),
    "trace": lambda context: context.trace,
    "try_add": lambda context: context.try_add("later").task,  # type: ignore[union-attr]
    "worker_id": lambda context: bool(context.worker_id),
}
"""What a task does with each member; its value is the same wherever the task runs."""

WITHOUT_A_DATABASE: Final = dict.fromkeys(
    ("add", "add_batch", "add_many", "connection", "database", "query", "try_add"), "perform is given no connection"
)
WITHOUT_A_QUEUE: Final = {"results": "inline runs each job where it is added, so that no job waits for another"}


def members() -> set[str]:
    return {name for name in dir(JobContext) if not name.startswith("_")}


def test_each_member_of_a_context_is_used_here() -> None:
    assert set(USES) == members()


def answer(use: Use, context: JobContext) -> Any:
    try:
        return use(context)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def probe(payload: Any, context: JobContext) -> Answers:
    return {name: answer(use, context) for name, use in USES.items()}


def registry(answers: list[Answers]) -> TaskRegistry:
    tasks = TaskRegistry()
    tasks.task("number", result=True)(lambda payload: 5)
    tasks.register("later", lambda payload: None if not isinstance(payload, list) else [None] * len(payload))
    tasks.register("probe", lambda payload, context: answers.append(probe(payload, context)))
    return tasks


def add_jobs(client: Client, conn: object | None = None) -> None:
    number = client.add("number", conn=conn)
    client.add("probe", TRANSPORT, queue_name="till", after=[number], conn=conn)


async def add_jobs_on_loop(client: AsyncClient, conn: object | None = None) -> None:
    number = await client.add("number", conn=conn)
    await client.add("probe", TRANSPORT, queue_name="till", after=[number], conn=conn)


@pytest.fixture
def in_a_worker(site: QueueFixture) -> Answers:
    answers: list[Answers] = []
    add_jobs(site.client)
    site.run_once(registry(answers))
    return answers[0]


def differences(found: Answers, in_a_worker: Answers, missing: dict[str, str] | None = None) -> Answers:
    """Return what a kit answers differently, except what is known to be missing, which must be missing."""
    missing = missing or {}
    assert {name for name in missing if found[name] == in_a_worker[name]} == set(), "no longer missing"
    return {
        name: (found[name], expected)
        for name, expected in in_a_worker.items()
        if name not in missing and found[name] != expected
    }


def test_a_worker_raises_none_of_the_errors(in_a_worker: Answers) -> None:
    assert in_a_worker["job"] == ("probe", TRANSPORT, 1, 25)
    assert in_a_worker["results"] == [5]
    assert [name for name, value in in_a_worker.items() if isinstance(value, str) and "Error: " in value] == []


def test_a_drain_offers_what_a_worker_offers(site: QueueFixture, in_a_worker: Answers) -> None:
    answers: list[Answers] = []
    with psycopg.connect(site.url) as conn:
        add_jobs(site.client, conn)
        drain(conn, tasks=registry(answers), schema=site.schema)
        conn.rollback()

    assert differences(answers[0], in_a_worker) == {}


def test_perform_offers_what_a_worker_offers(site: QueueFixture, in_a_worker: Answers) -> None:
    tasks = TaskRegistry()
    tasks.register("probe", probe)
    options: dict[str, Any] = {"tasks": tasks, "queue_name": "till", "results": [5]}
    with psycopg.connect(site.url) as conn:
        found = perform("probe", TRANSPORT, conn=conn, schema=site.schema, **options)
        conn.rollback()
    assert differences(found, in_a_worker) == {}

    assert differences(perform("probe", TRANSPORT, **options), in_a_worker, WITHOUT_A_DATABASE) == {}


def test_inline_offers_what_a_worker_offers(site: QueueFixture, in_a_worker: Answers) -> None:
    answers: list[Answers] = []
    with psycopg.connect(site.url) as conn:
        with inline(registry(answers), schema=site.schema):
            add_jobs(site.client, conn)
        conn.rollback()

    assert differences(answers[0], in_a_worker, WITHOUT_A_QUEUE) == {}


@asynccontextmanager
async def opened(site: QueueFixture, kind: str) -> AsyncIterator[tuple[Any, AsyncClient]]:
    async with KINDS[kind](site.url) as conn, AsyncClient(site.url, schema=site.schema) as client:
        yield conn, client


@pytest.mark.parametrize("kind", KINDS)
def test_the_kit_on_a_loop_offers_what_a_worker_offers(site: QueueFixture, in_a_worker: Answers, kind: str) -> None:
    answers: list[Answers] = []
    tasks = registry(answers)

    async def program() -> tuple[Any, Any]:
        async with opened(site, kind) as (conn, client):
            await add_jobs_on_loop(client, conn)
            queue = AsyncQueue(conn, tasks=tasks, schema=site.schema)
            await queue.drain()
            performing = TaskRegistry()
            performing.register("probe", probe)
            performer = AsyncQueue(conn, tasks=performing, schema=site.schema)
            performed = await performer.perform("probe", TRANSPORT, queue_name="till", results=[5])
            with inline(tasks, schema=site.schema):
                await add_jobs_on_loop(client, conn)
            return performed

    performed = asyncio.run(asyncio.wait_for(program(), DEADLINE))

    drained, ran_inline = answers
    assert differences(drained, in_a_worker) == {}
    assert differences(performed, in_a_worker) == {}
    assert differences(ran_inline, in_a_worker, WITHOUT_A_QUEUE) == {}


def test_a_job_that_runs_where_it_is_added_reads_nothing_of_a_stored_one(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, answers = TaskRegistry(), list[tuple[int, Any]]()
    tasks.task("number", result=True)(lambda payload: 5)
    tasks.register("probe", lambda payload, context: answers.append((context.job.id, context.results())))
    waiting = site.client.add("probe", after=[site.client.add("number")])
    site.run_once(tasks)

    # Both count from 1 in many tests; here the stored jobs may be far ahead.
    monkeypatch.setattr("gw_core.runner.synchronous._UNSTORED_IDS", itertools.count(waiting.id))
    with psycopg.connect(site.url) as conn, inline(tasks, schema=site.schema):
        site.client.add("probe", conn=conn)

    assert answers == [(waiting.id, [5]), (waiting.id, [])]


def test_what_a_connection_on_a_loop_does_not_offer_says_so(site: QueueFixture) -> None:
    def copy(payload: Any, context: JobContext) -> None:
        with context.connection() as opened:
            getattr(opened, payload["name"])

    async def program() -> None:
        async with opened(site, "psycopg") as (conn, _):
            for name in ("copy", "pipeline"):
                with pytest.raises(AttributeError, match=f"no '{name}' here: the test has an asynchronous connection"):
                    await AsyncQueue(conn, schema=site.schema).perform(copy, {"name": name})

    asyncio.run(asyncio.wait_for(program(), DEADLINE))
