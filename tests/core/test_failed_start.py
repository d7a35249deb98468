"""A runner that cannot begin, or cannot go on, reports it and leaves nothing behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from threading import Timer

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from support.database_proxy import DatabaseProxy
from support.databases import Databases
from support.postgres_server import Server
from support.queue_fixture import QueueFixture, RunRecord, a_registry, in_time, ms
from support.waiting import free_port, wait_until

from gw_core import Client, Runner, run_once
from gw_core.errors import DatabaseUnavailableError, InvalidSettingError, SchemaMissingError
from gw_core.events import JobCompleted, PoolConnectionLost, PoolConnectionRestored
from gw_core.front_ends import AuthenticationError, ReadOnlyError
from gw_core.postgres.road import permissions

DENIED = [
    pytest.param("nologin", "not permitted to log in", id="no login"),
    pytest.param("outsider", "no pg_hba.conf entry", id="no entry in pg_hba.conf"),
]

OURS = "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'gw%'"


@pytest.fixture(scope="module")
def strict_server() -> Iterator[Server]:
    with Server() as server:
        server.run("create role nologin nologin; create role outsider login")
        server.run("create role worker login superuser")
        (server.folder / "data" / "pg_hba.conf").write_text("host all postgres,nologin,worker all trust\n")
        server.run("select pg_reload_conf()")
        wait_until(lambda: server.run("select count(*) from pg_hba_file_rules") == [(1,)], what="the entry")
        yield server


@pytest.mark.direct("it counts sessions of the server, which the pooler keeps")
def test_a_failed_start_leaves_no_connection_open(empty_database_url: str) -> None:
    runner = Runner(empty_database_url, tasks=a_registry({"work": RunRecord()}), handle_signals=False, migrate=False)

    with pytest.raises(SchemaMissingError):
        runner.start()

    with psycopg.connect(empty_database_url, autocommit=True) as hands:
        # The server takes some time to notice that a client has hung up.
        wait_until(lambda: hands.execute(OURS).fetchone() == (0,))


# -- a database that is away at the start -----------------------------------------------------------------------------


def test_a_run_waits_for_a_database_that_is_away_at_its_start(site: QueueFixture) -> None:
    proxy = DatabaseProxy(site.url)
    proxy.cut()
    site.fill(1)
    runner, recorded, log = site.runner({"work": RunRecord()}, url=proxy.url)
    running = threading.Thread(target=runner.run, daemon=True)
    running.start()
    wait_until(lambda: "Cannot start yet" in str(log.of("warning")), what="the runner to report what it waits for")
    assert recorded.all == []
    proxy.restore()
    recorded.wait_for(JobCompleted)
    runner.stop()
    running.join(60)
    proxy.close()

    warnings = [each for each in log.of("warning") if each.startswith("Cannot start yet")]
    assert len(warnings) == 1
    assert warnings[0].startswith("Cannot start yet: the database cannot be reached")


def test_a_run_that_waits_for_its_database_can_be_stopped() -> None:
    runner = Runner(f"host=127.0.0.1 port={free_port()} dbname=x", tasks=a_registry({"work": RunRecord()}))
    Timer(0.2, runner.stop).start()

    assert in_time(runner.run).exit_code == 0


@pytest.mark.parametrize(
    ("conninfo", "error"),
    [
        pytest.param("dbname=gw_no_such_database", AuthenticationError, id="no such database"),
        pytest.param(
            "user=gw_no_such_user",
            AuthenticationError,
            id="no such user",
            marks=pytest.mark.direct("PgBouncer logs in with one user"),
        ),
        pytest.param("port=99999", InvalidSettingError, id="no such port"),
        pytest.param("sslmode=foo", InvalidSettingError, id="no such mode"),
    ],
)
def test_a_run_does_not_wait_for_what_waiting_cannot_bring(
    site: QueueFixture, conninfo: str, error: type[Exception]
) -> None:
    runner, _, _ = site.runner({"work": RunRecord()}, url=make_conninfo(site.url, **conninfo_to_dict(conninfo)))

    with pytest.raises(error):
        in_time(runner.run)


@pytest.mark.parametrize(("role", "text"), DENIED)
def test_a_run_does_not_wait_for_access_that_is_denied(strict_server: Server, role: str, text: str) -> None:
    url = f"postgres://{role}@127.0.0.1:{strict_server.port}/postgres"
    runner = Runner(url, tasks=a_registry({"work": RunRecord()}))

    with pytest.raises(AuthenticationError, match=text):
        in_time(runner.run)


def test_a_worker_outlives_access_that_is_denied_for_a_time(strict_server: Server) -> None:
    url = f"postgres://worker@127.0.0.1:{strict_server.port}/postgres"
    ran = RunRecord()
    runner = Runner(url, tasks=a_registry({"work": ran}), handle_signals=False)
    log = strict_server.folder / "log"
    denied = log.read_text().count('"worker" is not permitted')
    with Client(strict_server.url) as client:
        client.migrate()
        runner.start()
        strict_server.run("alter role worker nologin")
        strict_server.run("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'worker'")
        wait_until(lambda: log.read_text().count('"worker" is not permitted') > denied + 3, what="denied connections")
        strict_server.run("alter role worker login")
        client.add("work", {"n": 1})
        wait_until(lambda: ran.entries == [1], what="the job to run")
    runner.stop()
    assert runner.wait().exit_code == 0


def test_a_single_run_does_not_wait_for_a_database_that_is_away() -> None:
    runner = Runner(f"host=127.0.0.1 port={free_port()} dbname=x", tasks=a_registry({"work": RunRecord()}))

    with pytest.raises(DatabaseUnavailableError):
        in_time(runner.run_once)


# -- a database that does not do what it should -----------------------------------------------------------------------


@pytest.mark.direct("PgBouncer rejects startup options")
def test_a_single_run_on_a_server_that_takes_no_writes_ends(own_site: QueueFixture) -> None:
    own_site.fill(1)
    read_only = make_conninfo(own_site.url, options="-c default_transaction_read_only=on")
    runner, _, _ = own_site.runner({"work": RunRecord()}, url=read_only)

    with pytest.raises(ReadOnlyError, match="the database is read-only"):
        in_time(runner.run_once)


def test_a_single_run_whose_database_stays_away_gives_up(site: QueueFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gw_core.runner.runner.MAX_OUTAGE", ms(200))
    proxy = DatabaseProxy(site.url)
    site.fill(1)
    runner, recorded, log = site.runner({"work": lambda payload: proxy.cut()}, url=proxy.url, grace_period=ms(100))

    result = in_time(runner.run_once)
    proxy.close()

    assert recorded.of(PoolConnectionLost)
    assert result.exit_code == 3
    assert [each for each in log.of("error") if each.startswith("Giving up: cannot ")]


def test_a_single_run_whose_database_comes_back_does_not_give_up(site: QueueFixture) -> None:
    def work(payload: object) -> None:
        if not recorded.of(PoolConnectionLost):
            site.kill_connections("gw:claim")
            site.kill_connections("gw:settle")
            recorded.wait_for(PoolConnectionRestored)
        wait_until(lambda: not limits_of_outages(), what="nothing that would end the run")

    site.fill(2)
    runner, recorded, _ = site.runner({"work": work}, concurrency=1)

    result = in_time(runner.run_once)

    assert (result.exit_code, result.completed) == (0, 2)
    assert recorded.of(PoolConnectionLost)


def limits_of_outages() -> list[threading.Thread]:
    """Return the timers that end a run whose database stays away."""
    return [each for each in threading.enumerate() if isinstance(each, Timer)]


def test_a_start_reports_that_it_waits_for_a_locked_table(site: QueueFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permissions, "LOCK_TIMEOUT", ms(50))
    site.fill(1)
    runner, recorded, log = site.runner({"work": RunRecord()})
    running = threading.Thread(target=runner.run, daemon=True)
    with site.hands.transaction():
        site.run("lock table _private_jobs in access exclusive mode")
        running.start()
        wait_until(lambda: "keeps a table of the queue locked" in str(log.of("warning")), what="a warning")
        assert not recorded.of(JobCompleted)
    recorded.wait_for(JobCompleted)
    runner.stop()
    running.join(60)


# -- encodings --------------------------------------------------------------------------------------------------------


def test_every_connection_speaks_utf8_whatever_the_environment_asks_for(
    site: QueueFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    done = RunRecord()
    with Client(make_conninfo(site.url, client_encoding="LATIN1")) as client:
        client.add("work", {"n": "\u65e5\u672c"})
        client.add("work", {"n": "plain"})

    assert site.run_once({"work": done}, concurrency=1).completed == 2
    assert sorted(done.entries) == ["plain", "\u65e5\u672c"]


def test_a_database_in_sql_ascii_is_rejected_in_one_message(databases: Databases) -> None:
    name = f"{databases.run.prefix}{databases.worker}_ascii"
    with psycopg.connect(databases.conninfo, autocommit=True) as server:
        encoding = "encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'"
        if server.info.server_version >= 15_00_00:  # the server's default may be a provider that knows UTF-8 alone
            encoding += " locale_provider libc"
        server.execute(f'create database "{name}" {encoding} template template0')
    try:
        with Client(databases.url(name)) as client, pytest.raises(InvalidSettingError, match="encoding SQL_ASCII"):
            client.migrate()
    finally:
        databases.drop(name)


# -- forbidden flags --------------------------------------------------------------------------------------------------


def _raise() -> list[str]:
    raise OSError("the list of flags is away")


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        pytest.param(_raise, "the list of flags is away", id="it raises"),
        pytest.param(lambda: "slow", "it must return a list of names", id="it returns a text"),
    ],
)
def test_a_run_once_ends_when_forbidden_flags_are_not_given(
    site: QueueFixture, flags: Callable[[], list[str]], reason: str
) -> None:
    done = RunRecord()
    site.fill(1)

    result = site.run_once({"work": done}, forbidden_flags=flags, poll_interval=ms(10))

    assert (result.exit_code, reason in result.reason, done.entries, site.held()) == (1, True, [], [])


def test_a_function_that_fails_now_and_then_ends_no_run(site: QueueFixture) -> None:
    done, failures = RunRecord(), [OSError("not now"), OSError("not now")]
    site.fill(1)

    def flags() -> list[str]:
        if failures:
            raise failures.pop()
        return []

    result = site.run_once({"work": done}, forbidden_flags=flags, poll_interval=ms(10))

    assert (result.exit_code, done.entries) == (0, [1])


def test_a_text_in_place_of_forbidden_flags_is_rejected() -> None:
    with pytest.raises(InvalidSettingError, match=r"use \['slow'\]"):
        Runner("postgres://nowhere", tasks=a_registry({"work": RunRecord()}), forbidden_flags="slow")


@pytest.mark.parametrize("tasks", [None, 5, {"work": print}])
def test_tasks_of_another_type_are_rejected(tasks: object) -> None:
    with pytest.raises(InvalidSettingError, match="must be a TaskRegistry or a folder"):
        run_once("postgres://nowhere", tasks=tasks)  # type: ignore[arg-type]


# -- a stop before the start ------------------------------------------------------------------------------------------


def test_a_stop_forced_before_the_start_returns_jobs_immediately(site: QueueFixture) -> None:
    site.fill(1)
    gate = site.gate()
    runner, _, _ = site.runner({"work": gate}, grace_period=ms(600_000))
    runner.stop("too early")
    runner.force()
    runner.start()
    gate.wait_for(1)

    assert in_time(runner.wait).reason == "too early"
    gate.open()
    assert site.held() == []


def test_async_forbidden_flags_are_rejected_when_the_runner_is_made() -> None:
    async def flags() -> list[str]:
        return ["slow"]

    with pytest.raises(InvalidSettingError, match="must not be an async function"):
        Runner("postgres://nowhere", tasks=a_registry({"work": RunRecord()}), forbidden_flags=flags)  # type: ignore[arg-type]
