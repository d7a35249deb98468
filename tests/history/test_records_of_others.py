"""`gw record-others`: jobs that Node.js completes, and jobs that are removed, appear in history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support.node_worker import NEWEST, node_worker
from support.queue_fixture import QueueFixture
from support.waiting import wait_until

from gw_core import Client, TaskRegistry
from gw_core.errors import InvalidInputError, PermissionDeniedError, ResultUnavailableError
from gw_core.events import JobCompleted
from gw_core.front_ends import LockTimeoutError

WEEK = timedelta(days=7)


@pytest.fixture
def site(site: QueueFixture) -> Iterator[QueueFixture]:
    """The site, with the trigger on it."""
    site.client.history.record_others(WEEK)
    yield site
    site.client.history.record_others(None)


def history(site: QueueFixture) -> list[dict[str, Any]]:
    return site.run("select * from _private_gw_history order by job_id")


@pytest.mark.interop
def test_a_job_that_node_completes_is_recorded_without_a_result(site: QueueFixture) -> None:
    done = site.add("in_node", {"n": 1}, queue_name="q", job_key="k")
    failing = site.add("fails_in_node")

    node_worker(NEWEST).run_once(
        site.url, {"in_node": "return 42;", "fails_in_node": "throw new Error('no');"}, "--no-prepared-statements"
    )

    (row,) = history(site)
    expected = {
        "job_id": done,
        "attempt": 1,
        "task": "in_node",
        "queue_name": "q",
        "key": "k",
        "state": "completed",
        "final": True,
        "result": None,
        "error": None,
        "payload": None,
    }
    assert {name: row[name] for name in expected} == expected
    assert not row["worker_id"].startswith("gw-")
    assert row["created_at"] < row["started_at"] < row["finished_at"]
    assert row["expires_at"] - row["finished_at"] == WEEK
    with pytest.raises(ResultUnavailableError) as caught:
        site.client.result(done)
    assert caught.value.reason == "not kept"
    assert [job["id"] for job in site.jobs()] == [failing]


@pytest.mark.interop
def test_a_job_that_cannot_be_recorded_completes_and_the_doctor_reports_why(site: QueueFixture) -> None:
    site.run("alter table _private_gw_history detach partition _private_gw_history_default")
    (found,) = (each for each in site.client.doctor.findings() if "detached" in each.message)
    site.add("in_node")
    node_worker(NEWEST).run_once(site.url, {"in_node": "return 42;"}, "--no-prepared-statements")
    assert (site.jobs(), history(site)) == ([], [])
    site.add(job_key="k")
    assert site.client.remove("k") is not None

    assert (found.check, found.status) == ("history", "error")
    site.run(str(found.fix))
    site.add("in_node")
    node_worker(NEWEST).run_once(site.url, {"in_node": "return 42;"}, "--no-prepared-statements")
    assert [row["task"] for row in history(site)] == ["in_node"]


def test_a_job_that_is_removed_is_recorded(site: QueueFixture) -> None:
    job_id = site.add(job_key="k")
    site.client.remove("k")

    (row,) = history(site)

    assert (row["job_id"], row["state"], row["final"], row["worker_id"]) == (job_id, "removed", True, None)
    with pytest.raises(ResultUnavailableError, match="was removed before it completed"):
        site.client.result(job_id)


def test_what_our_workers_settle_is_not_recorded_twice(site: QueueFixture) -> None:
    tasks = TaskRegistry()
    tasks.task("kept", keep=WEEK)(lambda payload: None)
    tasks.task("not_kept")(lambda payload: None)
    kept, _ = site.add("kept"), site.add("not_kept")
    with site.running(tasks) as running:
        running.recorded.wait_for(JobCompleted, count=2)

    assert [(row["job_id"], row["state"]) for row in history(site)] == [(kept, "completed")]


def test_without_the_trigger_nothing_is_recorded(site: QueueFixture) -> None:
    site.client.history.record_others(None)
    site.add(job_key="k")
    site.client.remove("k")

    assert history(site) == []


def test_the_status_says_for_how_long(site: QueueFixture) -> None:
    assert site.client.history.status().records_others == WEEK
    site.client.history.record_others(timedelta(hours=36))
    assert site.client.history.status().records_others == timedelta(hours=36)
    site.client.history.record_others(None)
    assert site.client.history.status().records_others is None


def test_a_worker_makes_the_partitions_of_the_trigger_s_period(site: QueueFixture) -> None:
    site.client.history.record_others(timedelta(days=40))
    tasks = TaskRegistry()
    tasks.task("kept", keep=WEEK)(lambda payload: None)
    (expected,) = site.run("select to_char((now() + interval '40 days') at time zone 'UTC', 'YYYYMMDD') as day")
    name = f"_private_gw_history_{expected['day']}"
    with site.running(tasks):
        wait_until(lambda: site.run("select to_regclass(%s) as found", name)[0]["found"] is not None)


@pytest.mark.parametrize("period", [timedelta(0), timedelta(days=-1), timedelta(days=40_000)], ids=str)
def test_a_period_that_is_none_is_an_error(site: QueueFixture, period: timedelta) -> None:
    with pytest.raises(InvalidInputError):
        site.client.history.record_others(period)


def test_a_table_in_use_is_an_error_after_two_seconds(site: QueueFixture) -> None:
    with psycopg.connect(site.url) as other:
        other.execute("insert into graphile_worker._private_tasks (identifier) values ('x')")
        other.execute("lock table graphile_worker._private_jobs in row exclusive mode")
        with pytest.raises(LockTimeoutError):
            site.client.history.record_others(WEEK)


def role_of(site: QueueFixture, kind: str) -> str:
    """Return a name that no other process uses: all databases of a server share its roles."""
    return f"{site.value('select current_database()')}_{kind}"


@pytest.fixture
def worker_role(site: QueueFixture) -> Iterator[str]:
    """The connection of a role with the rights of a worker, as the manual grants them."""
    role = role_of(site, "worker")
    site.run(f"create role {role} login bypassrls")
    site.run(f"grant usage on schema graphile_worker to {role}")
    site.run(f"grant select, insert, update, delete on all tables in schema graphile_worker to {role}")
    site.run(f"grant usage, select on all sequences in schema graphile_worker to {role}")
    for function in ("_private_gw_make_history_partition(date)", "_private_gw_expire_history()"):
        site.run(f"grant execute on function graphile_worker.{function} to {role}")
    yield make_conninfo(site.url, user=role)
    site.run(f"drop owned by {role}")
    site.run(f"drop role {role}")


@pytest.fixture
def login_of_worker(site: QueueFixture, worker_role: str) -> Iterator[str]:
    """The connection of a role without rights of its own, whose sessions begin with `set role` to the worker's."""
    login, worker = role_of(site, "login"), role_of(site, "worker")
    site.run(f"create role {login} login noinherit in role {worker}")
    site.run(f"alter role {login} set role {worker}")
    yield make_conninfo(site.url, user=login)
    site.run(f"drop role {login}")


@pytest.mark.parametrize("connection", ["worker_role", "login_of_worker"])
def test_a_worker_that_does_not_own_the_queue_makes_and_drops_partitions(
    site: QueueFixture, connection: str, request: pytest.FixtureRequest
) -> None:
    url: str = request.getfixturevalue(connection)
    site.run(
        "create table _private_gw_history_20200101 partition of _private_gw_history "
        "for values from ('2020-01-01+00') to ('2020-01-02+00')"
    )
    tasks = TaskRegistry()
    tasks.task("kept", keep=timedelta(days=20))(lambda payload: None)
    site.add("kept")
    with site.running(tasks, url=url) as running:
        running.recorded.wait_for(JobCompleted)
        wait_until(lambda: site.run("select to_regclass('_private_gw_history_20200101') as r")[0]["r"] is None)
    owners = site.run("select distinct tableowner from pg_tables where tablename like '\\_private\\_gw\\_history%%'")
    assert len(owners) == 1
    assert [row["task"] for row in history(site)] == ["kept"]


def test_a_worker_that_does_not_own_the_queue_cannot_add_the_trigger(site: QueueFixture, worker_role: str) -> None:
    with Client(worker_role) as client, pytest.raises(PermissionDeniedError):
        client.history.record_others(WEEK)


def test_a_role_that_may_only_add_jobs_cannot_change_partitions(site: QueueFixture) -> None:
    role = role_of(site, "adder")
    site.run(f"create role {role} login")
    site.run(f"grant usage on schema graphile_worker to {role}")
    try:
        with psycopg.connect(site.url, user=role, autocommit=True) as adder:
            for call in ("_private_gw_expire_history()", "_private_gw_make_history_partition(current_date + 5)"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    adder.execute(f"select graphile_worker.{call}")  # type: ignore[call-overload]
    finally:
        site.run(f"drop owned by {role}")
        site.run(f"drop role {role}")
