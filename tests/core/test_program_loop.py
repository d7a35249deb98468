"""Async tasks on the event loop of the program, and what a runner rejects there."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import psycopg
import psycopg_pool
import pytest
from support.log_recorder import LogRecorder
from support.queue_fixture import DEADLINE, EventRecorder, QueueFixture, ms

from gw_core import AsyncClient, JobSpec, Plugin, Runner, TaskRegistry, WorkerSettings, run_once
from gw_core.errors import GraphileWorkerError
from gw_core.events import JobErrored, JobReturned, JobStarted, JobSucceeded
from gw_core.testing import enqueued

T = TypeVar("T")

pytestmark = [
    pytest.mark.direct("the pools of the program lead to the server"),
    pytest.mark.usefixtures("time_to_settle"),
]


def on_loop(program: Callable[[], Awaitable[T]]) -> T:
    """Run a program on an event loop, and fail the test if it does not end."""

    async def limited() -> T:
        return await asyncio.wait_for(program(), DEADLINE)

    return asyncio.run(limited())


def runner(site: QueueFixture, tasks: TaskRegistry, **options: Any) -> Runner:
    given = options.pop("settings", WorkerSettings(concurrency=3, poll_interval=ms(200)))
    return Runner(site.url, tasks=tasks, settings=given, **options)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_tasks_and_requests_share_an_engine_and_no_commit_is_lost(site: QueueFixture) -> None:
    sqlalchemy, tasks = pytest.importorskip("sqlalchemy.ext.asyncio"), TaskRegistry()
    pytest.importorskip("asyncpg")
    from sqlalchemy import text

    engine = sqlalchemy.create_async_engine(site.url.replace("postgres:", "postgresql+asyncpg:", 1))
    queue, charged = AsyncClient(pool=engine), []

    @tasks.task
    async def charge(payload: Any) -> None:
        async with engine.connect() as connection:
            await connection.execute(text("select 1"))
        charged.append(payload["n"])

    async def program() -> None:
        async with runner(site, tasks):
            for n in range(20):
                await queue.add(charge, {"n": n})
                async with engine.begin() as connection:
                    await queue.add("later", {"n": n}, conn=connection)
            await until(lambda: len(charged) == 20)
        await queue.close()
        await engine.dispose()

    on_loop(program)

    assert sorted(charged) == list(range(20))
    assert [job.task for job in enqueued(site.hands)] == ["later"] * 20


def test_hundreds_of_tasks_beside_requests_lose_no_commit_and_stop_gracefully(site: QueueFixture) -> None:
    sqlalchemy, tasks, count = pytest.importorskip("sqlalchemy.ext.asyncio"), TaskRegistry(), 300
    pytest.importorskip("asyncpg")
    from sqlalchemy import text

    engine = sqlalchemy.create_async_engine(
        site.url.replace("postgres:", "postgresql+asyncpg:", 1), pool_size=5, max_overflow=0, pool_timeout=DEADLINE
    )
    queue, arrived, cancelled = AsyncClient(pool=engine), 0, 0

    async def write(what: str, n: int) -> None:
        async with engine.begin() as connection:
            await connection.execute(text("insert into public.written values (:what, :n)"), {"what": what, "n": n})
            if what == "request":
                await queue.add("later", {"n": n}, conn=connection)

    async def program() -> None:
        all_arrived = asyncio.Event()

        @tasks.task
        async def work(payload: Any) -> None:
            nonlocal arrived
            arrived += 1
            if arrived == count:
                all_arrived.set()
            await all_arrived.wait()
            await write("task", payload["n"])

        @tasks.task
        async def endless(payload: Any) -> None:
            nonlocal cancelled
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled += 1
                raise

        async def requests() -> None:
            for n in range(100):
                await write("request", n)

        async with engine.begin() as connection:
            await connection.execute(text("drop table if exists public.written"))
            await connection.execute(text("create table public.written (what text, n int)"))
        await queue.add_many([JobSpec(task="work", payload={"n": n}) for n in range(count)])
        settings = WorkerSettings(concurrency=count, poll_interval=ms(200), grace_period=ms(300))
        async with runner(site, tasks, settings=settings) as running:
            began, recorded = EventRecorder(running.events), asyncio.Event()
            loop = asyncio.get_running_loop()
            running.events.on(
                JobStarted, lambda event: event.job.task == "endless" and loop.call_soon_threadsafe(recorded.set)
            )
            await asyncio.gather(requests(), until(lambda: len(began.of(JobSucceeded)) == count))
            await queue.add("endless")
            await recorded.wait()
        await queue.close()
        await engine.dispose()

    on_loop(program)

    written = site.rows("select what, count(*), count(distinct n) from public.written group by what order by what")
    site.run("drop table public.written")
    assert written == [("request", 100, 100), ("task", count, count)]
    assert cancelled == 1
    left = Counter(job.task for job in enqueued(site.hands))
    assert left == {"later": 100, "endless": 1}
    assert {(job["attempts"], job["locked_by"]) for job in site.jobs()} == {(0, None)}


def test_the_loop_stays_free_while_the_runner_starts_and_stops(site: QueueFixture) -> None:
    tasks, threads = TaskRegistry(), []

    @tasks.task
    async def work(payload: Any) -> None:
        threads.append(threading.current_thread())
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            threads.append(threading.current_thread())

    async def program() -> None:
        site.client.add("work")
        async with runner(site, tasks, settings=WorkerSettings(grace_period=ms(500))) as running:
            await until(lambda: threads)
            running.stop("the test asked")
            assert (await running.wait_async()).reason == "the test asked"
        assert (await running.wait_async()).completed == 0

    on_loop(program)

    assert threads == [threading.current_thread()] * 2
    (job,) = site.jobs()
    assert (job["attempts"], job["locked_by"]) == (0, None)


def test_a_loop_can_be_given_to_a_runner_of_another_thread(site: QueueFixture) -> None:
    tasks, loops = TaskRegistry(), []

    @tasks.task
    async def work(payload: Any) -> list[Any]:
        loops.append(asyncio.get_running_loop())
        return []

    async def program() -> None:
        site.client.add("work", [])
        once = Runner(site.url, tasks=tasks, event_loop=asyncio.get_running_loop())
        assert (await asyncio.to_thread(once.run_once)).completed == 1
        assert loops == [asyncio.get_running_loop()]

    on_loop(program)


def test_async_tasks_beside_the_loop_of_the_program_are_rejected(site: QueueFixture) -> None:
    tasks = TaskRegistry()

    @tasks.task
    async def work(payload: Any) -> None: ...

    async def program() -> None:
        with pytest.raises(GraphileWorkerError, match=r"the async task 'work' should run, too; start the runner with"):
            await asyncio.to_thread(runner(site, tasks).start)

    on_loop(program)


def test_methods_that_block_are_rejected_on_a_loop(site: QueueFixture) -> None:
    tasks = TaskRegistry()
    tasks.register("work", lambda payload: None)

    async def program() -> None:
        started = await asyncio.to_thread(lambda: runner(site, tasks))
        for method in (started.wait, started.run):
            with pytest.raises(GraphileWorkerError, match="would block the event loop of this thread; use `async with"):
                method()
        own = runner(site, tasks, event_loop=asyncio.get_running_loop())
        for method in (own.start, own.run_once):
            with pytest.raises(GraphileWorkerError, match="cannot start on its own event loop; use `async with"):
                method()

    on_loop(program)


def test_an_event_loop_that_is_none_or_is_closed_is_rejected() -> None:
    closed, tasks = asyncio.new_event_loop(), TaskRegistry()
    closed.close()

    with pytest.raises(GraphileWorkerError, match="event_loop must be an event loop of asyncio, not str"):
        Runner("postgres:///nowhere", tasks=tasks, event_loop="uvloop")  # type: ignore[arg-type]
    with pytest.raises(GraphileWorkerError, match="event_loop is closed"):
        Runner("postgres:///nowhere", tasks=tasks, event_loop=closed)


def test_a_start_that_fails_raises_its_error_in_the_program() -> None:
    tasks = TaskRegistry()
    tasks.register("work", lambda payload: None)

    async def program() -> None:
        async with Runner("postgres://localhost:1/nowhere", tasks=tasks):
            pytest.fail("it started")

    with pytest.raises(GraphileWorkerError, match="cannot be reached"):
        on_loop(program)


def test_a_program_that_is_cancelled_twice_does_not_wait_for_the_grace_period(site: QueueFixture) -> None:
    tasks, began = TaskRegistry(), threading.Event()

    @tasks.task
    async def work(payload: Any) -> None:
        began.set()
        await asyncio.Event().wait()

    async def serving() -> None:
        async with runner(site, tasks, settings=WorkerSettings(grace_period=ms(600_000))):
            await asyncio.Event().wait()

    async def program() -> None:
        site.client.add("work")
        server = asyncio.create_task(serving())
        await until(began.is_set)
        server.cancel()
        await asyncio.sleep(0)
        while not server.done():
            server.cancel()
            await asyncio.sleep(0.05)
        assert server.cancelled()

    on_loop(program)

    (job,) = site.jobs()
    assert (job["attempts"], job["locked_by"]) == (0, None)


def test_a_program_that_is_cancelled_twice_while_its_runner_starts_leaves_no_worker(site: QueueFixture) -> None:
    tasks, opening, opened, closed = TaskRegistry(), threading.Event(), threading.Event(), threading.Event()
    tasks.register("work", lambda payload: None)

    class Slow(Plugin):
        def on_start(self) -> None:
            opening.set()
            assert opened.wait(DEADLINE)

        def on_stop(self) -> None:
            closed.set()

    starting = runner(site, tasks, plugins=[Slow()])

    async def serving() -> None:
        async with starting:
            pytest.fail("it was cancelled before")

    async def program() -> None:
        server = asyncio.create_task(serving())
        await until(opening.is_set)
        while not server.done():
            server.cancel()
            await asyncio.sleep(0.01)
        opened.set()
        await until(closed.is_set)

    on_loop(program)


def test_jobs_return_when_the_program_cancels_all_that_runs_on_its_loop(site: QueueFixture) -> None:
    tasks, running = TaskRegistry(), []

    @tasks.task
    async def work(payload: Any) -> None:
        running.append(asyncio.current_task())
        await asyncio.Event().wait()

    async def program() -> None:
        site.client.add("work")
        async with runner(site, tasks) as own:
            recorded = EventRecorder(own.events)
            await until(lambda: running)
            running[0].cancel()
            await until(lambda: recorded.of(JobReturned))

    on_loop(program)

    (job,) = site.jobs()
    assert (job["attempts"], job["locked_by"], job["last_error"]) == (0, None, None)


def test_a_job_returns_when_the_loop_of_its_runner_is_closed(site: QueueFixture) -> None:
    loop, tasks = asyncio.new_event_loop(), TaskRegistry()

    @tasks.task
    async def work(payload: Any) -> None: ...

    own = runner(site, tasks, event_loop=loop)
    loop.close()
    site.client.add("work")
    reasons: list[str] = []
    own.events.on(JobReturned, lambda event: reasons.append(event.reason))
    own.run_once()

    assert reasons == ["the event loop that the program gave to the runner is closed"]
    assert site.jobs()[0]["attempts"] == 0


def test_an_object_of_another_loop_fails_the_task_with_the_rule_it_broke(site: QueueFixture) -> None:
    tasks, errors = TaskRegistry(), []
    program, serving = asyncio.new_event_loop(), threading.Event()
    thread = threading.Thread(target=lambda: (program.call_soon(serving.set), program.run_forever()))
    thread.start()
    assert serving.wait(DEADLINE)
    lock = asyncio.Lock()

    async def hold() -> None:
        await lock.acquire()
        waiting = asyncio.create_task(lock.acquire())
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run_coroutine_threadsafe(hold(), program).result(DEADLINE)

    @tasks.task
    async def work(payload: Any) -> None:
        await lock.acquire()

    site.client.add("work")
    own = runner(site, tasks)
    own.events.on(JobErrored, lambda event: errors.append(str(event.error)))
    own.run_once()
    program.call_soon_threadsafe(program.stop)
    thread.join(DEADLINE)
    program.close()

    (error,) = errors
    assert error.startswith("the task uses an object of another event loop, such as an engine")
    assert "bound to a different event loop" in site.jobs()[0]["last_error"]


def test_a_client_rejects_a_second_loop_while_the_first_one_is_open(site: QueueFixture) -> None:
    tasks = TaskRegistry()
    queue = AsyncClient(site.url)

    @tasks.task
    async def work(payload: Any) -> None:
        await queue.add("later")

    first = asyncio.new_event_loop()
    first.run_until_complete(queue.add("work"))
    run_once(site.url, tasks=tasks)
    first.run_until_complete(queue.close())

    assert "this AsyncClient belongs to another event loop" in site.jobs()[0]["last_error"]
    asyncio.run(_twice(queue))
    first.close()
    assert Counter(job.task for job in enqueued(site.hands)) == {"later": 2, "work": 1}


async def _twice(queue: AsyncClient) -> None:
    await asyncio.gather(queue.add("later"), queue.add("later"))
    await queue.close()


def test_a_step_that_blocks_the_loop_is_logged_with_its_job(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gw_core.execution.event_loop.BLOCKED_SECONDS", 0.05)
    tasks, log = TaskRegistry(), LogRecorder()

    @tasks.task
    async def slow(payload: Any) -> None:
        await asyncio.sleep(0)
        time.sleep(0.06)

    job = site.client.add(slow, {})
    runner(site, tasks, logger=log.logger).run_once()

    (record,) = (each for each in log.records if each.levelname == "WARNING")
    assert "blocked the event loop for 0.1 s; call what blocks with asyncio.to_thread" in record.getMessage()
    assert vars(record)["job_id"] == job.id


# -- hooks ------------------------------------------------------------------------------------------------------------


class Pool(Plugin):
    """Opens a pool for async tasks on their loop."""

    def __init__(self, site: QueueFixture) -> None:
        self._site = site
        self.pool: psycopg_pool.AsyncConnectionPool[psycopg.AsyncConnection[Any]]
        self.notes: list[str] = []

    async def on_start(self) -> None:
        self.pool = psycopg_pool.AsyncConnectionPool(self._site.url, min_size=1, max_size=2, open=False)
        await self.pool.open()
        self.notes.append("open")

    async def on_stop(self) -> None:
        await self.pool.close()
        self.notes.append("closed")


class Threads(Plugin):
    """Opens something for tasks in threads."""

    def __init__(self, name: str, notes: list[str], fails_in: str = "") -> None:
        self._name = name
        self._notes = notes
        self._fails_in = fails_in

    def on_start(self) -> None:
        self._do("start")

    def on_stop(self) -> None:
        self._do("stop")

    def _do(self, what: str) -> None:
        if what == self._fails_in:
            raise ConnectionError(f"{self._name} cannot {what}")
        self._notes.append(f"{self._name} {what}")


@pytest.mark.parametrize("loop", ["its own", "the program's"])
def test_plugins_open_what_async_tasks_need_on_their_loop(site: QueueFixture, loop: str) -> None:
    tasks, plugin = TaskRegistry(), Pool(site)

    @tasks.task
    async def work(payload: Any) -> None:
        async with plugin.pool.connection() as connection:
            plugin.notes.append(str((await (await connection.execute("select 7")).fetchone() or [])[0]))

    site.client.add("work")
    own = runner(site, tasks, plugins=[plugin])
    if loop == "its own":
        own.run_once()
    else:

        async def program() -> None:
            async with own:
                await until(lambda: "7" in plugin.notes)

        on_loop(program)

    assert plugin.notes == ["open", "7", "closed"]


def test_hooks_run_before_the_first_job_and_after_the_last_in_the_opposite_order(site: QueueFixture) -> None:
    notes: list[str] = []
    site.add()

    site.run_once({"work": lambda payload: notes.append("task")}, plugins=[Threads("a", notes), Threads("b", notes)])

    assert notes == ["a start", "b start", "task", "b stop", "a stop"]


def test_a_hook_that_fails_ends_the_start_and_closes_what_was_opened(site: QueueFixture) -> None:
    notes: list[str] = []
    own, _, _ = site.runner(
        {"work": lambda payload: None}, plugins=[Threads("a", notes), Threads("b", notes, fails_in="start")]
    )

    with pytest.raises(ConnectionError, match="b cannot start"):
        own.run_once()

    assert notes == ["a start", "a stop"]


def test_a_hook_that_fails_at_the_end_is_logged_and_the_others_run(site: QueueFixture) -> None:
    notes: list[str] = []
    own, _, log = site.runner(
        {"work": lambda payload: None}, plugins=[Threads("a", notes), Threads("b", notes, fails_in="stop")]
    )

    own.run_once()

    assert notes == ["a start", "b start", "a stop"]
    assert "on_stop of the plugin Threads failed: b cannot stop" in log.of("error")
