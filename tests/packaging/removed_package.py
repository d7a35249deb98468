"""A worker whose package is removed while it runs: it uses much of gw, and prints what it imported after that."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import threading
from datetime import timedelta
from typing import Any

import psycopg

from gw_core import Client, GiveUp, JobContext, JobSpec, RetryAfter, Runner, Snooze, TaskRegistry, WorkerSettings
from gw_core.events import JobCompleted, JobReturned

PLACE, URL = sys.argv[1:]
WEEK, HOUR, SHORT = timedelta(days=7), timedelta(hours=1), timedelta(milliseconds=50)
registry = TaskRegistry()
begun = {name: threading.Event() for name in ("slow", "last")}


def double(number: int) -> int:
    return 2 * number


async def double_later(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


@registry.task("plain", result=True)
def plain(payload: Any, context: JobContext) -> int:
    context.logger.info("runs")
    context.query("select 1")
    with context.connection() as connection, connection.transaction():
        context.step("in a transaction", double, 3, conn=connection)
        context.add("sink", conn=connection)
    with context.step("rows") as step:
        step.save(3)
    context.add_many([JobSpec(task="sink"), JobSpec(task="sink", unique_for=HOUR, job_key="u")])
    context.add("sink", job_key="k", slots="a:2", expires_at=HOUR)
    return context.step("double", double, 2)


@registry.task("async")
async def on_loop(payload: Any, context: JobContext) -> None:
    await context.step("double", double_later, 2)
    async with context.step("rows") as step:
        await step.save(3)
    async with await psycopg.AsyncConnection.connect(URL) as connection:
        await context.step("in a transaction", double_later, 3, conn=connection)
    context.add("sink")


@registry.task("results")
def results(payload: Any, context: JobContext) -> None:
    assert set(context.results()) == {4}


@registry.task("sink")
def sink(payload: Any) -> None:
    pass


@registry.task("batch")
def batch(payloads: list[Any], context: JobContext) -> list[Any]:
    return payloads


ENDS = {"give up": GiveUp("no"), "snooze": Snooze(HOUR), "retry": RetryAfter(HOUR), "raise": ValueError("no")}


@registry.task("ends")
def ends(payload: str) -> None:
    raise ENDS[payload]


@registry.task("slow")
def slow(payload: Any, context: JobContext) -> None:
    begun["slow"].set()
    context.should_stop.wait()


@registry.task("overdue", timeout=SHORT)
def overdue(payload: Any, context: JobContext) -> None:
    context.should_stop.wait()


@registry.task("last")
def last(payload: Any, context: JobContext) -> None:
    begun["last"].set()
    while True:
        context.checkpoint()
        context.should_stop.wait(0.01)


@registry.task("client")
def with_client(payload: int, context: JobContext) -> None:
    with Client(URL) as client:
        first = client.add("plain")
        group = client.groups.add([JobSpec(task="plain"), JobSpec(task="plain")], then=JobSpec(task="results"))
        client.add("results", after=[first])
        client.jobs.cancel(payload, by="a task")
        client.jobs.reschedule([group.id], priority=3)
        client.jobs.retry("state:failed task:none")
        client.add_many([JobSpec(task="sink", job_key="r")])
        client.remove("r")
        client.pauses.pause("task:none")
        client.limits.set("none", running=1)
        assert client.result(first.id, timeout=timedelta(minutes=1)) == 4
        client.history.attempts(first.id)
        client.history.list("task:plain")
        client.jobs.list("state:failed")
        client.jobs.show(first.id)
        for part in (client.cron, client.limits, client.pauses, client.queues, client.tasks, client.workers):
            part.list()
        client.counts()


def add(connection: Any, task: str, payload: Any = None) -> int:
    statement = "select (graphile_worker.add_job(%s, %s::json, max_attempts => 2)).id"
    return int(connection.execute(statement, (task, json.dumps(payload))).fetchone()[0])


def main() -> None:
    runner = Runner(
        URL,
        tasks=registry,
        settings=WorkerSettings(concurrency=5, statistics=WEEK, history=WEEK, keep_failed=WEEK),
        crontab="* * * * * sink ?fill=1h",
        handle_signals=False,
    )
    ended: set[int] = set()
    changed = threading.Condition()

    def end(event: JobCompleted | JobReturned) -> None:
        with changed:
            ended.add(event.job.id)
            changed.notify_all()

    runner.events.on(JobCompleted, end)
    runner.events.on(JobReturned, end)
    runner.start()
    for thread in threading.enumerate():
        if thread.name == "gw-late-modules":
            thread.join(60)
    shutil.rmtree(PLACE)
    known, imported = set(sys.modules), set[str]()
    sys.addaudithook(lambda event, arguments: imported.add(arguments[0]) if event == "import" else None)
    with psycopg.connect(URL, autocommit=True) as connection:
        running = add(connection, "slow")
        begun["slow"].wait(60)
        jobs = {running, add(connection, "client", running), add(connection, "batch", [1, 2])}
        jobs |= {add(connection, task) for task in ("plain", "async", "overdue")}
        jobs |= {add(connection, "ends", each) for each in ENDS}
        unended = "select 1 from graphile_worker.jobs where task_identifier in ('plain', 'results', 'client')"
        with changed:
            assert changed.wait_for(lambda: jobs <= ended, 100), jobs - ended
        while connection.execute(unended).fetchall() and len(ended) < 100:
            with changed:
                changed.wait(1)
        add(connection, "last")
        begun["last"].wait(60)
        runner.stop()
        left = (
            "select task_identifier, attempts, last_error from graphile_worker.jobs where last_error is not null"
            " or task_identifier = 'last'"
        )
        code = runner.wait().exit_code
        rows = sorted(connection.execute(left).fetchall())
    late = sorted(name for name in imported - known if name.partition(".")[0] in ("gw_core", "psycopg", "psycopg_pool"))
    print(json.dumps({"code": code, "left": rows, "late": late}))


main()
