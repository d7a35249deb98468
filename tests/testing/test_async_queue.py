"""Jobs and async tasks of a test on an event loop, in its loop and its transaction."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from pydantic import BaseModel

from gw_core import AsyncClient, GiveUp, JobContext, JobSpec, Plugin, TaskRegistry
from gw_core.errors import GraphileWorkerError, InvalidInputError
from gw_core.testing import AsyncQueue, Clock, DrainLimitError, drain, inline, perform
from gw_core.types import RunTask

Open = Callable[[str], Any]
OnConnection = Callable[[Callable[..., Awaitable[None]]], None]
DEADLINE = 60.0


class Order(BaseModel):
    number: int
    note: str | None = None


@asynccontextmanager
async def asyncpg_connection(url: str) -> AsyncIterator[Any]:
    asyncpg = pytest.importorskip("asyncpg")
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection
        await transaction.rollback()
    finally:
        await connection.close()


@asynccontextmanager
async def psycopg_connection(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection
        await connection.rollback()


def session_on(driver: str) -> Open:
    @asynccontextmanager
    async def session(url: str) -> AsyncIterator[Any]:
        sqlalchemy = pytest.importorskip("sqlalchemy.ext.asyncio")
        pytest.importorskip(driver)
        engine = sqlalchemy.create_async_engine(url.replace("postgres:", f"postgresql+{driver}:", 1))
        try:
            async with engine.connect() as connection, connection.begin() as transaction:
                async with sqlalchemy.AsyncSession(connection, join_transaction_mode="create_savepoint") as session:
                    yield session
                await transaction.rollback()
        finally:
            await engine.dispose()

    return session


KINDS: dict[str, Open] = {
    "asyncpg": asyncpg_connection,
    "psycopg": psycopg_connection,
    "session on asyncpg": session_on("asyncpg"),
    "session on psycopg": session_on("psycopg"),
}


@pytest.fixture(params=KINDS)
def on_connection(request: pytest.FixtureRequest, database_url: str) -> OnConnection:
    """Run a test on an event loop, with a connection in a transaction that is rolled back."""

    def run(test: Callable[..., Awaitable[None]]) -> None:
        async def opened() -> None:
            async with KINDS[request.param](database_url) as conn, AsyncClient(database_url) as client:
                await asyncio.wait_for(test(conn, client), DEADLINE)

        asyncio.run(opened())

    return run


async def execute(conn: Any, statement: str) -> Any:
    """Run a statement on a connection of any kind."""
    if hasattr(conn, "exec_driver_sql") or hasattr(conn, "flush"):
        from sqlalchemy import text

        return await conn.execute(text(statement))
    return await conn.execute(statement)


def test_tasks_run_in_the_loop_and_the_transaction_of_the_test(on_connection: OnConnection) -> None:
    tasks, ran = TaskRegistry(), []

    async def program(conn: Any, client: AsyncClient) -> None:
        await execute(conn, "create table orders (number int)")

        @tasks.task
        async def ship(payload: Order) -> None:
            await execute(conn, f"insert into orders values ({payload.number})")
            ran.append((payload.number, asyncio.get_running_loop()))

        @tasks.task
        def receipt(payload: dict[str, Any], context: JobContext) -> None:
            context.add("later", payload)
            ran.append(("receipt", context.job.queue_name))

        await client.add(ship, Order(number=7), conn=conn)
        await client.add(ship, Order(number=8), conn=conn)
        await client.add(receipt, {"n": 1}, queue_name="till", conn=conn)
        queue = AsyncQueue(conn, tasks=tasks)
        await queue.assert_enqueued(ship, count=2)

        result = await queue.drain()

        loop = asyncio.get_running_loop()
        assert ran == [(7, loop), (8, loop), ("receipt", "till")]
        assert [job.task for job in result.completed] == ["ship", "ship", "receipt"]
        assert [(job.task, job.payload) for job in await queue.enqueued()] == [("later", {"n": 1})]

    on_connection(program)


def test_a_task_that_fails_is_recorded_and_undoes_what_it_wrote(on_connection: OnConnection) -> None:
    tasks = TaskRegistry()

    async def program(conn: Any, client: AsyncClient) -> None:
        await execute(conn, "create table orders (number int)")

        @tasks.task
        async def broken(payload: Any) -> None:
            await execute(conn, "insert into orders values (1)")
            await execute(conn, "select 1 / 0")

        @tasks.task
        async def given_up(payload: Any) -> None:
            raise GiveUp("never")

        await client.add(broken, {}, conn=conn)
        await client.add(given_up, {}, conn=conn)
        queue = AsyncQueue(conn, tasks=tasks)
        result = await queue.drain(raises=False)

        assert [type(each.error).__name__ for each in result.failed][1:] == ["GiveUp"]
        assert "division" in str(result.failed[0].error)
        waiting = await queue.enqueued("broken")
        assert [(job.attempts, "division" in str(job.last_error)) for job in waiting] == [(1, True)]
        kept = await execute(conn, "select * from orders")
        if hasattr(kept, "all"):
            assert kept.all() == []
        await client.add(given_up, {}, conn=conn)
        with pytest.raises(GiveUp, match="never"):
            await queue.drain()

    on_connection(program)


def test_time_limits_and_groups_are_those_of_a_drain(on_connection: OnConnection) -> None:
    tasks, ran, clock = TaskRegistry(), [], Clock()
    tasks.register("work", lambda payload: ran.append(payload["n"]))

    async def again(payload: Any, context: JobContext) -> None:
        await asyncio.to_thread(context.add, "again")

    tasks.register("again", again)

    async def program(conn: Any, client: AsyncClient) -> None:
        queue = AsyncQueue(conn, tasks=tasks, now=clock)
        job = await client.add("work", {"n": 1}, run_at=timedelta(days=1), priority=3, job_key="one", conn=conn)
        (found,) = await queue.assert_enqueued("work", {"n": 1}, run_at=timedelta(days=1), job_key="one", priority=3)
        assert found.id == job.id
        await queue.drain()
        assert ran == []
        clock.advance(timedelta(days=2))
        await queue.drain()
        assert ran == [1]
        clock.reset()
        first, second, last = (JobSpec(task="work", payload={"n": n}) for n in (2, 3, 4))
        await client.groups.add([first, second], then=last, conn=conn)
        await queue.drain(task="work")
        assert sorted(ran) == [1, 2, 3, 4]
        await client.add("again", conn=conn)
        with pytest.raises(DrainLimitError):
            await queue.drain(limit=3)

    on_connection(program)


def test_a_cancelled_drain_cancels_the_async_task_and_leaves_the_connection_alone(on_connection: OnConnection) -> None:
    tasks, ran = TaskRegistry(), []

    async def program(conn: Any, client: AsyncClient) -> None:
        began = asyncio.Event()

        @tasks.task
        async def hang(payload: Any) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ran.append(payload["n"])

        for n in (1, 2):
            await client.add(hang, {"n": n}, conn=conn)
        queue = AsyncQueue(conn, tasks=tasks)
        draining = asyncio.create_task(queue.drain())
        await began.wait()
        draining.cancel()
        with pytest.raises(asyncio.CancelledError):
            await draining

        assert ran == [1]
        assert [job.payload["n"] for job in await queue.enqueued()] == [2, 1], "the first is for later again"
        await execute(conn, "select 1")

    on_connection(program)


def test_a_cancelled_drain_ends_after_the_task_that_runs_in_its_thread(on_connection: OnConnection) -> None:
    tasks, ran, may_end = TaskRegistry(), [], threading.Event()

    async def program(conn: Any, client: AsyncClient) -> None:
        loop, began = asyncio.get_running_loop(), asyncio.Event()

        @tasks.task
        def work(payload: Any, context: JobContext) -> None:
            loop.call_soon_threadsafe(began.set)
            assert may_end.wait(DEADLINE)
            context.add("later")
            ran.append(payload["n"])

        for n in (1, 2):
            await client.add(work, {"n": n}, conn=conn)
        queue = AsyncQueue(conn, tasks=tasks)
        draining = asyncio.create_task(queue.drain())
        await began.wait()
        draining.cancel()
        loop.call_soon(draining.cancel)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not draining.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await draining

        assert ran == [1]
        assert [job.task for job in await queue.enqueued()] == ["work", "later"]

    on_connection(program)


def test_a_cancelled_perform_cancels_its_async_task() -> None:
    async def program() -> list[str]:
        ended: list[str] = []
        began = asyncio.Event()

        async def hang(payload: Any) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("ended")

        performing = asyncio.create_task(AsyncQueue().perform(hang))
        await began.wait()
        performing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await performing
        return ended

    assert asyncio.run(asyncio.wait_for(program(), DEADLINE)) == ["ended"]


def test_assertions_take_functions_models_and_specs(on_connection: OnConnection) -> None:
    tasks = TaskRegistry()

    @tasks.task("orders/ship")
    async def ship(payload: Order) -> None: ...

    async def program(conn: Any, client: AsyncClient) -> None:
        queue = AsyncQueue(conn, tasks=tasks)
        await queue.refute_enqueued(ship)
        await client.add(ship.job(Order(number=7), priority=2), conn=conn)

        for payload in (Order(number=7), {"number": 7}):
            await queue.assert_enqueued(ship, payload, count=1)
            with pytest.raises(AssertionError, match="expected no waiting job of the task 'orders/ship'"):
                await queue.refute_enqueued(ship, payload)
        await queue.assert_enqueued(ship.job(Order(number=7), priority=2))
        await queue.refute_enqueued(ship.job(Order(number=7), priority=1))
        with pytest.raises(AssertionError, match=r"differs in payload\.number"):
            await queue.assert_enqueued(ship, Order(number=8))

    on_connection(program)


def test_methods_of_the_context_that_cannot_work_say_why(on_connection: OnConnection) -> None:
    tasks = TaskRegistry()

    async def blocks(payload: Any, context: JobContext) -> None:
        context.add("later")

    tasks.register("blocks", blocks)

    async def program(conn: Any, client: AsyncClient) -> None:
        queue = AsyncQueue(conn, tasks=tasks)
        await client.add("blocks", conn=conn)
        with pytest.raises(InvalidInputError, match=r"asyncio\.to_thread"):
            await queue.drain()

    on_connection(program)


def test_perform_runs_a_task_on_the_loop_of_the_test() -> None:
    loops: list[Any] = []

    class Noting(Plugin):
        async def around_run(self, job: Any, context: Any, run: RunTask) -> object:
            loops.append(asyncio.get_running_loop())
            return await run()

    async def work(payload: Order, context: JobContext) -> str:
        loops.append(asyncio.get_running_loop())
        return f"order {payload.number}, attempt {context.job.attempts}"

    async def program() -> None:
        queue = AsyncQueue(plugins=[Noting()])
        assert await queue.perform(work, Order(number=7), attempt=3) == "order 7, attempt 3"
        assert await queue.perform(lambda payload: payload["n"] + 1, {"n": 1}) == 2
        assert loops == [asyncio.get_running_loop()] * 3
        for call in (queue.enqueued, queue.drain):
            with pytest.raises(InvalidInputError, match=r"has no connection|needs the tasks"):
                await call()  # type: ignore[operator]

    asyncio.run(program())


def test_functions_that_block_are_rejected_on_a_loop_with_the_way_to_go() -> None:
    async def work(payload: Any) -> None: ...

    async def program() -> None:
        with pytest.raises(GraphileWorkerError, match=r"use the methods of gw_core\.testing\.AsyncQueue"):
            perform(work)

    asyncio.run(program())


def test_an_asynchronous_connection_is_rejected_where_a_synchronous_one_belongs(database_url: str) -> None:
    async def program() -> None:
        async with await psycopg.AsyncConnection.connect(database_url) as connection:
            with pytest.raises(InvalidInputError, match=r"pass it to an AsyncClient, or in a test to AsyncQueue"):
                drain(connection, tasks=TaskRegistry())

    asyncio.run(program())


def test_inline_runs_async_tasks_on_the_loop_of_the_client(database_url: str) -> None:
    tasks, loops = TaskRegistry(), []

    @tasks.task
    async def work(payload: Any) -> None:
        loops.append(asyncio.get_running_loop())

    async def program() -> None:
        async with AsyncClient(database_url) as client:
            with inline(tasks):
                await client.add(work, {})
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(program())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_a_test_of_anyio_drains_in_its_own_loop(database_url: str) -> None:
    tasks, loops = TaskRegistry(), []

    @tasks.task
    async def work(payload: Any) -> None:
        loops.append(asyncio.get_running_loop())

    async with psycopg_connection(database_url) as connection, AsyncClient(database_url) as client:
        await client.add(work, {}, conn=connection)
        await AsyncQueue(connection, tasks=tasks).drain()

    assert loops == [asyncio.get_running_loop()]
