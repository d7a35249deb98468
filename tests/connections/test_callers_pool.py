"""A client and a runner on a pool of the caller's, and with a password that changes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import psycopg_pool
import pytest
from psycopg.rows import dict_row
from support.postgres_server import Server
from support.waiting import wait_until

from gw_core import AsyncClient, Client, JobContext, JobSpec, Runner, TaskRegistry, WorkerSettings
from gw_core.errors import DatabaseUnavailableError

Pool = psycopg_pool.ConnectionPool[psycopg.Connection[dict[str, Any]]]


@pytest.fixture
def pool(database_url: str) -> Iterator[Pool]:
    """A pool as an application configures it for itself."""
    options = {"row_factory": dict_row, "cursor_factory": psycopg.ClientCursor}
    with psycopg_pool.ConnectionPool(database_url, kwargs=options, min_size=1, max_size=2, open=True) as pool:
        yield pool


def test_a_client_uses_the_pool_and_leaves_its_connections_as_they_were(pool: Pool) -> None:
    with Client(pool=pool) as client:
        client.add_many([JobSpec(task="mail", payload={"n": n}) for n in range(3)])
        assert len(client.jobs.list().jobs) == 3
        assert client.jobs.complete("state:ready").changed != ()

    with pool.connection() as connection:
        assert connection.autocommit is False
        assert connection.row_factory is dict_row
        assert connection.cursor_factory is psycopg.ClientCursor
        found = connection.execute("select count(*) as jobs from graphile_worker._private_jobs").fetchone()
        assert found == {"jobs": 0}
    assert pool.closed is False


def test_tasks_of_a_runner_use_the_pool(pool: Pool) -> None:
    tasks = TaskRegistry()
    found: list[int] = []

    @tasks.task
    def run(payload: Any, context: JobContext) -> None:
        with context.connection() as connection:
            found.append(connection.info.backend_pid)

    with Client(pool=pool) as client:
        client.add(run, None)
    ended = Runner(pool=pool, tasks=tasks).run_once()

    with pool.connection() as one, pool.connection() as other:
        pids = {one.info.backend_pid, other.info.backend_pid}
    assert ended.completed == 1
    assert set(found) <= pids


@pytest.fixture(scope="module")
def server_with_passwords() -> Iterator[Server]:
    with Server() as server:
        server.run("create role shop login superuser password 'first'")
        hba = server.folder / "data" / "pg_hba.conf"
        hba.write_text("host all postgres all trust\nhost all shop all scram-sha-256\n")
        server.run("select pg_reload_conf()")
        yield server


def test_each_connection_asks_for_the_password_of_its_time(server_with_passwords: Server) -> None:
    server = server_with_passwords
    url = f"postgres://shop@127.0.0.1:{server.port}/postgres"
    current = ["first"]

    with Client(url, password=lambda: current[0], max_pool_size=2) as client:
        client.migrate()
        client.add("mail")
        server.run("alter role shop password 'second'")
        current[0] = "second"
        server.run("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'shop'")
        client.add("mail")
        assert len(client.jobs.list().jobs) == 2


@pytest.mark.parametrize("is_of_a_pool", [False, True], ids=["by a function", "of a pool"])
def test_a_runner_outlives_a_change_of_the_password(server_with_passwords: Server, is_of_a_pool: bool) -> None:
    server = server_with_passwords
    url = f"postgres://shop@127.0.0.1:{server.port}/postgres"
    schema = f"changing_{is_of_a_pool}".lower()
    server.run("alter role shop password 'third'")
    current = ["third"]
    tasks = TaskRegistry()

    @tasks.task
    def change(payload: Any) -> None:
        server.run("alter role shop password 'fourth'")
        current[0] = "fourth"
        server.run("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'shop'")

    with ExitStack() as stack:
        where: dict[str, Any] = {"conninfo": url, "password": lambda: current[0]}
        if is_of_a_pool:
            pool = psycopg_pool.ConnectionPool(
                url, kwargs=lambda: {"password": current[0]}, min_size=1, max_size=3, open=True
            )
            where = {"pool": stack.enter_context(pool)}
        with Client(**where, schema=schema) as client:
            client.migrate()
            client.add(change, None)
        ended = Runner(**where, schema=schema, tasks=tasks).run_once()

    assert ended.completed == 1


ISOLATED = """
import os
from pathlib import Path
from gw_core import task

SECRET = Path(__file__).parents[1] / "secret"

def disconnect(context):
    context.query(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where usename = 'shop' and pid <> pg_backend_pid() and application_name like '%:task'"
    )

@task(isolation="process")
def rotates(payload, context):
    for own in ("cmdline", "environ"):
        assert b"sixth" not in Path(f"/proc/self/{own}").read_bytes()
    with context.connection() as held:
        held.execute("alter role shop password 'seventh'")
        SECRET.write_text("seventh")
        context.query("select 'on a second connection'")
        held.execute("alter role shop password 'eighth'")
        SECRET.write_text("eighth")

@task(isolation="process")
def connects_again(payload, context):
    disconnect(context)
    context.query("select 1")

@task(isolation="process")
def forks(payload, context):
    child = os.fork()
    if child == 0:
        context.query("select 1")
        return
    assert os.waitpid(child, 0)[1] == 0

@task(isolation="process")
def leaves(payload):
    os._exit(3)

@task(isolation="process")
def starts_later(payload, context):
    context.query("select 1")
"""


def test_isolated_tasks_outlive_changes_of_the_password(
    server_with_passwords: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One opens further connections after changes, one runs in a process that was idle, one in a new process."""
    server = server_with_passwords
    url = f"postgres://shop@127.0.0.1:{server.port}/postgres"
    server.run("alter role shop password 'sixth'")
    secret = tmp_path / "secret"
    secret.write_text("sixth")
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "work.py").write_text(ISOLATED)
    caplog.set_level("DEBUG")

    with Client(url, password=secret.read_text, schema="isolated") as client:
        client.migrate()
        for number, name in enumerate(("rotates", "connects_again", "forks", "leaves", "starts_later")):
            client.add(name, priority=number, max_attempts=1)
        settings = WorkerSettings(concurrency=1)
        Runner(url, password=secret.read_text, schema="isolated", tasks=folder, settings=settings).run_once()
        left = {each.job.task: each.job.last_error for each in client.jobs.list().jobs}

    assert left == {"leaves": "IsolatedProcessError: the task's process ended with exit code 3"}
    assert not {"sixth", "seventh", "eighth"} & set(re.findall(r"\w+", caplog.text))


FORKING = """
import os
import threading
import time
from pathlib import Path
from gw_core import task

HERE = Path(__file__).parents[1]

@task(isolation="process")
def forks_while_a_thread_asks(payload, context):
    thread = threading.Thread(target=context.query, args=("select 1",))
    thread.start()
    while not (HERE / "asked").exists():
        time.sleep(0.01)
    child = os.fork()
    if child == 0:
        context.query("select 1")
        return
    deadline = time.monotonic() + 30
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    (HERE / "may-answer").touch()
    thread.join()
    assert os.waitstatus_to_exitcode(ended[1]) == 1, "the child waited for the lock of a thread of its parent"
"""


def test_a_forked_child_does_not_wait_for_the_answer_that_a_thread_of_its_parent_waits_for(
    database_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    (folder / "work.py").write_text(FORKING)

    def password() -> str:
        if threading.current_thread().name.startswith("gw-worker"):
            (tmp_path / "asked").touch()
            wait_until((tmp_path / "may-answer").exists, what="the task to let the answer come")
        return ""

    with Client(database_url) as client:
        client.add("forks_while_a_thread_asks", max_attempts=1)
        ended = Runner(database_url, password=password, tasks=folder, settings=WorkerSettings(concurrency=1)).run_once()
        errors = [each.job.last_error for each in client.jobs.list().jobs]

    assert (ended.completed, errors) == (1, [])


def no_password() -> str:
    raise RuntimeError("the vault is sealed")


def test_a_password_that_cannot_be_read_is_an_outage(database_url: str) -> None:
    with (
        Client(database_url, password=no_password) as client,
        pytest.raises(DatabaseUnavailableError, match="the password could not be read: the vault is sealed"),
    ):
        client.add("mail")


def test_an_async_client_asks_for_the_password_too(server_with_passwords: Server) -> None:
    import asyncio

    server = server_with_passwords
    server.run("alter role shop password 'fifth'")

    async def add() -> None:
        url = f"postgres://shop@127.0.0.1:{server.port}/postgres"
        async with AsyncClient(url, schema="asynchronous", password=lambda: "fifth") as client:
            await client.add("mail")

    with Client(server.url, schema="asynchronous") as client:
        client.migrate()
    asyncio.run(add())
