"""`drain` runs the jobs of a transaction on its connection."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from gw_core import Client, GiveUp, Job, JobContext, Plugin, RetryAfter, Snooze, TaskRegistry
from gw_core.errors import InvalidInputError, TaskTimeoutError
from gw_core.testing import Clock, DrainLimitError, drain, enqueued

Connection = psycopg.Connection[Any]


def test_a_drain_runs_uncommitted_jobs_and_a_rollback_undoes_it(
    client: Client, conn: Connection, tasks: TaskRegistry, ran: list[Any]
) -> None:
    client.add("work", {"n": 1}, conn=conn)

    result = drain(conn, tasks=tasks)

    assert ran == [1]
    assert [job.task for job in result.completed] == ["work"]
    assert enqueued(conn) == []
    conn.rollback()
    assert enqueued(conn) == []


def test_jobs_of_one_transaction_run_in_the_order_of_a_worker(
    client: Client, conn: Connection, tasks: TaskRegistry, ran: list[Any]
) -> None:
    for n, options in enumerate(({}, {}, {"queue_name": "q"}, {"priority": -5}, {"queue_name": "q"}, {})):
        client.add("work", {"n": n}, conn=conn, **options)  # type: ignore[arg-type]

    drain(conn, tasks=tasks)

    assert ran[0] == 3
    assert [n for n in ran if n in (0, 1, 5)] == [0, 1, 5]
    assert [n for n in ran if n in (2, 4)] == [2, 4]


def test_jobs_that_a_task_adds_run_too(client: Client, conn: Connection, tasks: TaskRegistry, ran: list[Any]) -> None:
    @tasks.task("parent")
    def parent(payload: Any, context: JobContext) -> None:
        context.add("work", {"n": 7})
        context.add_many([])

    client.add("parent", conn=conn)

    assert len(drain(conn, tasks=tasks)) == 2
    assert ran == [7]


@pytest.mark.parametrize("adds", ["in its transaction", "through its context"])
def test_jobs_that_a_task_lets_wait_for_its_own_run_too(
    client: Client, conn: Connection, tasks: TaskRegistry, ran: list[Any], adds: str
) -> None:
    @tasks.task("parent")
    def parent(payload: Any, context: JobContext) -> None:
        if adds == "through its context":
            context.add("work", {"n": 7}, after=[context.job])
        else:
            client.add("work", {"n": 7}, after=[context.job], conn=conn)

    client.add("parent", conn=conn)

    assert len(drain(conn, tasks=tasks)) == 2
    assert ran == [7]


def test_a_task_uses_the_transaction_through_its_context(client: Client, conn: Connection) -> None:
    psycopg.ClientCursor(conn).execute("create temp table items (n int)")
    tasks = TaskRegistry()

    @tasks.task("store")
    def store(payload: dict[str, int], context: JobContext) -> None:
        context.query("insert into items values (41)")
        assert context.query("select n from items") == [(41,)]

    client.add("store", conn=conn)
    drain(conn, tasks=tasks)

    assert psycopg.ClientCursor(conn).execute("select count(*) from items").fetchone() == (1,)


def test_a_failure_raises_the_exception_of_the_task(client: Client, conn: Connection) -> None:
    tasks = TaskRegistry()

    @tasks.task("divide")
    def divide(payload: dict[str, int]) -> float:
        return 1 / payload["by"]

    client.add("divide", {"by": 0}, conn=conn)

    with pytest.raises(ZeroDivisionError) as failure:
        drain(conn, tasks=tasks)
    assert "divide" in [entry.name for entry in failure.traceback]
    [job] = enqueued(conn)
    assert job.attempts == 1
    assert job.last_error is not None
    assert job.last_error.startswith("ZeroDivisionError: division by zero")


def test_an_sql_error_undoes_one_task_and_no_other(client: Client, conn: Connection) -> None:
    psycopg.ClientCursor(conn).execute("create temp table items (n int primary key)")
    tasks = TaskRegistry()

    @tasks.task("store")
    def store(payload: dict[str, Any], context: JobContext) -> None:
        for n in payload["ns"]:
            context.query(f"insert into items values ({n})")

    for ns in ([1, 2], [3, 1], [4]):
        client.add("store", {"ns": ns}, conn=conn)
    result = drain(conn, tasks=tasks, raises=False)

    assert [type(each.error) for each in result.failed] == [psycopg.errors.UniqueViolation]
    stored = psycopg.ClientCursor(conn).execute("select n from items order by n").fetchall()
    assert [tuple(row) for row in stored] == [(1,), (2,), (4,)]


def test_outcomes_are_settled_as_by_a_worker(client: Client, conn: Connection) -> None:
    tasks = TaskRegistry()

    @tasks.task("end")
    def end(payload: dict[str, str]) -> None:
        raise {
            "give up": GiveUp("no"),
            "retry": RetryAfter(timedelta(days=1)),
            "snooze": Snooze(timedelta(days=2)),
            "exit": SystemExit(3),
        }[payload["how"]]

    for how in ("give up", "retry", "snooze", "exit"):
        client.add("end", {"how": how}, conn=conn, queue_name="ends")
    result = drain(conn, tasks=tasks, raises=False)

    assert [type(each.error) for each in result.failed] == [GiveUp, RetryAfter, SystemExit]
    assert len(result.returned) == 1
    exited, retried, snoozed = enqueued(conn)
    assert (exited.attempts, retried.attempts, snoozed.attempts) == (1, 1, 0)
    assert timedelta(days=1) <= retried.run_at - retried.created_at < timedelta(days=1, minutes=10)
    assert timedelta(days=2) <= snoozed.run_at - snoozed.created_at < timedelta(days=2, minutes=10)


def test_a_timeout_fails_the_attempt(client: Client, conn: Connection) -> None:
    tasks = TaskRegistry()

    @tasks.task("slow", timeout=0.01)
    def slow(payload: Any, context: JobContext) -> None:
        assert context.should_stop.wait(60)

    client.add("slow", conn=conn)
    with pytest.raises(TaskTimeoutError):
        drain(conn, tasks=tasks)


def test_jobs_of_later_wait_unless_asked_for(
    client: Client, conn: Connection, tasks: TaskRegistry, ran: list[Any]
) -> None:
    client.add("work", {"n": 1}, conn=conn, run_at=timedelta(hours=1))
    assert not drain(conn, tasks=tasks)
    drain(conn, tasks=tasks, with_scheduled=True)
    assert ran == [1]


def test_a_clock_makes_jobs_of_later_due(client: Client, conn: Connection, tasks: TaskRegistry, ran: list[Any]) -> None:
    clock = Clock()
    client.add("work", {"n": 1}, conn=conn, run_at=timedelta(hours=1))
    clock.advance(timedelta(minutes=30))
    assert not drain(conn, tasks=tasks, now=clock)
    clock.advance(timedelta(minutes=31))
    assert drain(conn, tasks=tasks, now=clock)
    assert ran == [1]


def test_a_client_with_the_plugin_of_a_clock_adds_jobs_at_its_time(
    database_url: str, conn: Connection, tasks: TaskRegistry
) -> None:
    clock = Clock(datetime(2020, 2, 29, 12, tzinfo=UTC))
    with Client(database_url, plugins=[clock.plugin]) as client:
        job = client.add("work", {"n": 1}, conn=conn, run_at=timedelta(hours=1))
    assert job is not None
    assert job.run_at == datetime(2020, 2, 29, 13, tzinfo=UTC)
    assert not drain(conn, tasks=tasks, now=clock)
    clock.set(job.run_at)
    assert len(drain(conn, tasks=tasks, now=clock)) == 1


def test_a_job_expires_by_the_clock(database_url: str, conn: Connection, tasks: TaskRegistry, ran: list[Any]) -> None:
    clock = Clock(datetime(2020, 2, 29, 12, tzinfo=UTC))
    with Client(database_url, plugins=[clock.plugin]) as client:
        for n in (1, 2):
            client.add("work", {"n": n}, conn=conn, expires_at=timedelta(hours=n))
    clock.advance(timedelta(minutes=90))
    result = drain(conn, tasks=tasks, now=clock, raises=False)
    assert ran == [2]
    assert [each.job.payload for each in result.failed] == [{"n": 1}]
    assert "expired: did not start by 2020-02-29T13:00:00Z" in str(result.failed[0])


def test_a_drain_can_be_held_to_one_task(client: Client, conn: Connection, tasks: TaskRegistry, ran: list[Any]) -> None:
    tasks.register("other", lambda payload: ran.append("other"))
    client.add("other", conn=conn)
    client.add("work", {"n": 1}, conn=conn)
    drain(conn, tasks=tasks, task="work")
    assert ran == [1]


def test_a_task_that_adds_itself_reaches_the_limit(client: Client, conn: Connection) -> None:
    tasks = TaskRegistry()
    tasks.register("again", lambda payload, context: context.add("again"))
    client.add("again", conn=conn)
    with pytest.raises(DrainLimitError, match="20 jobs have run"):
        drain(conn, tasks=tasks, limit=20)


def test_plugins_take_part(client: Client, conn: Connection, tasks: TaskRegistry) -> None:
    seen: list[str] = []

    class Recorder(Plugin):
        def around_run(self, job: Job, context: Any, run: Any) -> object:
            seen.append(job.task)
            return run()

    client.add("work", conn=conn)
    drain(conn, tasks=tasks, plugins=[Recorder()])
    assert seen == ["work"]


def test_async_tasks_run(client: Client, conn: Connection) -> None:
    tasks, ran = TaskRegistry(), []

    @tasks.task("wait")
    async def wait(payload: Any) -> None:
        ran.append(payload)

    client.add("wait", {"n": 1}, conn=conn)
    drain(conn, tasks=tasks)
    assert ran == [{"n": 1}]


def test_a_drain_restores_the_settings_of_the_session(client: Client, conn: Connection, tasks: TaskRegistry) -> None:
    def settings() -> Any:
        names = "name like 'enable%' or name in ('jit', 'plan_cache_mode', 'statement_timeout', 'search_path')"
        found = psycopg.ClientCursor(conn).execute(f"select name, setting from pg_settings where {names} order by 1")
        return found.fetchall()

    before = settings()
    client.add("work", conn=conn)
    drain(conn, tasks=tasks)
    assert settings() == before


def test_a_connection_in_autocommit_mode_drains_what_is_committed(
    client: Client, database_url: str, tasks: TaskRegistry, ran: list[Any]
) -> None:
    tasks.register("fail", lambda payload, context: context.query("select 1/0"))
    client.add("work", {"n": 1}, queue_name="q")
    client.add("fail")
    with psycopg.connect(database_url, autocommit=True) as conn:
        result = drain(conn, tasks=tasks, raises=False)
        assert conn.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    assert (ran, len(result.failed)) == ([1], 1)
    with psycopg.connect(database_url) as other:
        assert [job.task for job in enqueued(other)] == ["fail"]


def test_a_task_that_commits_is_settled_in_the_next_transaction(client: Client, conn: Connection) -> None:
    tasks = TaskRegistry()
    tasks.register("commit", lambda payload: conn.commit())
    client.add("commit", conn=conn)
    assert len(drain(conn, tasks=tasks).completed) == 1


def test_a_task_that_rolls_back_the_transaction_is_reported(client: Client, conn: Connection) -> None:
    tasks = TaskRegistry()
    tasks.register("undo", lambda payload: conn.rollback())
    client.add("undo", conn=conn)
    with pytest.raises(InvalidInputError, match="'undo' rolled back the transaction"):
        drain(conn, tasks=tasks)


def test_a_connection_of_another_driver_is_rejected(database_url: str, tasks: TaskRegistry) -> None:
    psycopg2 = pytest.importorskip("psycopg2")
    conn = psycopg2.connect(database_url)
    with pytest.raises(
        InvalidInputError, match=r"jobs cannot run on a connection of psycopg2\S+; use one of psycopg 3"
    ):
        drain(conn, tasks=tasks)
    conn.close()


@pytest.mark.slow
def test_draining_one_job_takes_at_most_five_milliseconds(
    client: Client, conn: Connection, tasks: TaskRegistry
) -> None:
    def seconds() -> float:
        client.add("work", conn=conn)
        began = time.perf_counter()
        assert len(drain(conn, tasks=tasks)) == 1
        return time.perf_counter() - began

    # The machine may be busy with other tests, but not all the time.
    deadline = time.monotonic() + 60
    while (quickest := seconds()) > 0.005 and time.monotonic() < deadline:
        pass
    assert quickest <= 0.005


def test_a_drain_keeps_steps_in_the_transaction_and_drops_them_with_their_job(client: Client, conn: Connection) -> None:
    charged: list[int] = []

    def work(payload: Any, context: JobContext) -> None:
        context.step("charge", charged.append, 1)
        if context.job.attempts == 1:
            raise RetryAfter(0)

    tasks = TaskRegistry()
    tasks.register("work", work)
    job = client.add("work", conn=conn)
    assert len(drain(conn, tasks=tasks, raises=False, with_scheduled=True)) == 2
    assert charged == [1]
    assert client.jobs.steps(job.id, conn=conn) == []
