"""Databases for every test: one server and one template for each run, one reused clone for each process."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support import postgres_versions, profiles, spare_sessions
from support.databases import (
    HOST,
    Databases,
    ReusedDatabase,
    Run,
    is_orphan,
    new_folder,
    running_server,
)
from support.pgbouncer import PgBouncer, bouncer_program

if TYPE_CHECKING:
    from support.console_queue import ConsoleQueue
    from support.database_proxy import DatabaseProxy
    from support.queue_fixture import QueueFixture

NUMBERS = count(1)

profiles.load()


# -- the run: made by the controlling process, handed to its xdist workers ----------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    # A shell lets its background processes ignore Ctrl-C, and programs that a test starts would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # nohup does the same with the signal of a terminal that closes.
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # The hundreds of processes that tests start would each compile what they import.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # With it, a program that forgets to flush what it prints passes here and hangs for its reader elsewhere.
    os.environ.pop("PYTHONUNBUFFERED", None)
    sys.dont_write_bytecode = False
    # gw ignores a configuration file that other users may write.
    os.umask(0o022)
    inherited: dict[str, Any] | None = getattr(config, "workerinput", None)
    if inherited is not None:
        config.stash[RUN] = Run(prefix=inherited["gw_prefix"], folder=Path(inherited["gw_folder"]))
        return
    prefix = f"gw_test_{HOST}_{os.getpid()}_{int(time.time())}_"
    config.stash[RUN] = Run(prefix=prefix, folder=new_folder())


RUN = pytest.StashKey[Run]()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Leave what is collected out of garbage collection: it stays until the end."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow tests, unless the profile is `nightly`, `-m slow` asks for them, or they are named."""
    is_named = any("::" in argument for argument in config.args)
    if profiles.IS_NIGHTLY or is_named or "slow" in config.option.markexpr:
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two for each processor: for more than half of their time the tests wait for a program or a server."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    run: Run = node.config.stash[RUN]
    node.workerinput["gw_prefix"] = run.prefix
    node.workerinput["gw_folder"] = str(run.folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    run = config.stash.get(RUN, None)
    if run is None or hasattr(config, "workerinput"):
        return
    given = os.environ.get("DATABASE_URL")
    if given and (run.folder / "used").exists():
        databases = Databases(given, run, "main")
        for name in databases.names():
            if name.startswith(run.prefix):
                databases.drop(name)
    shutil.rmtree(run.folder, ignore_errors=True)


# -- the fixtures ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def gw_run(request: pytest.FixtureRequest) -> Run:
    return request.config.stash[RUN]


@pytest.fixture(scope="session")
def server(gw_run: Run) -> Iterator[str]:
    """The conninfo of the server all tests use.

    `GW_TEST_POSTGRES=14` asks for that major version, from npm. Otherwise it is the server that `DATABASE_URL` names,
    or an embedded one of this run.
    """
    major = os.environ.get("GW_TEST_POSTGRES")
    given = os.environ.get("DATABASE_URL", "")
    if major is None and given and not given.startswith("embedded:"):
        yield given
        return
    folder = gw_run.folder / "postgres"
    with running_server(folder, pg_bin=postgres_versions.programs(major) if major else None) as conninfo:
        yield conninfo


@pytest.fixture(scope="session")
def databases(server: str, gw_run: Run, request: pytest.FixtureRequest) -> Iterator[Databases]:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    databases = Databases(server, gw_run, worker)
    with gw_run.alone("orphans"):
        used = gw_run.folder / "used"
        if not used.exists():
            for name in databases.names():
                if is_orphan(name, now=time.time()):
                    databases.drop(name)
            used.touch()
    yield databases
    spare_sessions.close_all()


@pytest.fixture(scope="session")
def template(databases: Databases) -> str:
    """The name of a database of this run that holds the newest schema; made once for all xdist workers."""
    return databases.made_template("this")


@pytest.fixture(scope="session")
def pooler(server: str) -> Iterator[PgBouncer | None]:
    """What all tests of this process connect through when `GW_TEST_PGBOUNCER` names a mode, such as `transaction`."""
    mode = os.environ.get("GW_TEST_PGBOUNCER")
    if not mode:
        yield None
        return
    with PgBouncer(server, bouncer_program(), mode=mode) as pooler:
        yield pooler


@pytest.fixture(autouse=True)
def _direct(request: pytest.FixtureRequest) -> None:
    """Skip a test that needs a session of its own on the server, when there is a pooler in between."""
    marker = request.node.get_closest_marker("direct")
    if marker is not None and os.environ.get("GW_TEST_PGBOUNCER"):
        pytest.skip(f"not behind PgBouncer: {marker.args[0]}")


def _entrance(pooler: PgBouncer | None, url: str) -> str:
    return pooler.through(url) if pooler else url


@pytest.fixture
def empty_database_url(databases: Databases, pooler: PgBouncer | None) -> Iterator[str]:
    """A new database without our schema, dropped when the test ends."""
    for url in _temporary(databases, template="template0"):
        yield _entrance(pooler, url)


@pytest.fixture(scope="session")
def reused_database(databases: Databases, template: str) -> Iterator[ReusedDatabase]:
    """The database of `database_url`."""
    reused = ReusedDatabase(databases, template)
    yield reused
    reused.drop()


@pytest.fixture
def database_url(reused_database: ReusedDatabase, pooler: PgBouncer | None) -> Iterator[str]:
    """A database with the newest schema and nothing else, whatever the tests before have done."""
    yield _entrance(pooler, reused_database.url())
    reused_database.empty()


@pytest.fixture(scope="session")
def second_reused_database(databases: Databases, template: str) -> Iterator[ReusedDatabase]:
    """The database of `second_database_url`."""
    reused = ReusedDatabase(databases, template, "second")
    yield reused
    reused.drop()


@pytest.fixture
def second_database_url(second_reused_database: ReusedDatabase, pooler: PgBouncer | None) -> Iterator[str]:
    """Another database like that of `database_url`, for a test that needs two."""
    yield _entrance(pooler, second_reused_database.url())
    second_reused_database.empty()


@pytest.fixture(scope="session")
def console_rows(databases: Databases) -> Iterator[ConsoleQueue]:
    """The queue that tests of the console show, made when the first one needs it."""
    from support.console_queue import ConsoleQueue

    name = f"{databases.run.prefix}{databases.worker}_console"
    databases.create(name)
    with ConsoleQueue.made(databases.url(name)) as queue:
        yield queue
    databases.drop(name)


@pytest.fixture
def console_queue(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let `QueueSource` find its queue; a test without one makes no database."""
    from support.console_source import showing

    with showing(lambda: request.getfixturevalue("console_rows")):
        yield


def _temporary(databases: Databases, *, template: str) -> Iterator[str]:
    name = f"{databases.run.prefix}{databases.worker}_{next(NUMBERS)}"
    databases.create(name, template=template)
    try:
        yield databases.url(name)
    finally:
        databases.drop(name)


@pytest.fixture(scope="session")
def shared_url(databases: Databases, template: str) -> Iterator[str]:
    """One database for all tests of this process that leave its schema as it is; a clone for each would be slow."""
    name = f"{databases.run.prefix}{databases.worker}_shared"
    databases.create(name, template=template)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def site(shared_url: str, pooler: PgBouncer | None) -> Iterator[QueueFixture]:
    """A database with the newest schema and nothing in it."""
    from support.queue_fixture import QueueFixture

    url = _entrance(pooler, shared_url)
    with QueueFixture(url, direct=shared_url) as site:
        yield site.empty()


@pytest.fixture
def proxy(site: QueueFixture) -> Iterator[DatabaseProxy]:
    """A way to that database which a test can break."""
    from support.database_proxy import DatabaseProxy

    proxy = DatabaseProxy(site.url)
    yield proxy
    proxy.close()


@pytest.fixture
def own_site(database_url: str, reused_database: ReusedDatabase, pooler: PgBouncer | None) -> Iterator[QueueFixture]:
    """The same in a database of the test's own, for tests that change more than its rows."""
    from support.queue_fixture import QueueFixture

    with QueueFixture(database_url, direct=reused_database.url()) as site:
        yield site


@pytest.fixture
def deleted_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the current folder be one that was deleted, as by a deployment."""
    folder = tmp_path / "release"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
