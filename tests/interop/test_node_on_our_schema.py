"""The Node.js worker works on a schema that we made as on its own."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from support.catalog import catalog
from support.databases import install_schema
from support.node_worker import (
    FIRST_VERSION_WITH_BATCHES,
    NEWEST,
    ON_OUR_SCHEMA,
    NodeWorker,
    node_worker,
    wait_until_node_listens,
)
from support.schema_fixture import connected
from support.waiting import wait_until

pytestmark = pytest.mark.interop

NEWER_REVISION = "Database is using Graphile Worker schema revision 20"

# The task records its arguments for the test.
NOTE = """
    await helpers.query("insert into public.notes (task, payload) values ($1, $2)",
                        [helpers.job.task_identifier, JSON.stringify(payload)]);
"""


@pytest.fixture
def node(version: str) -> NodeWorker:
    return node_worker(version)


@pytest.fixture
def notes_url(database_url: str) -> str:
    """A database with our schema and a table for what tasks record."""
    with psycopg.connect(database_url) as connection:
        connection.execute("create table public.notes (id serial, task text, payload json)")
    return database_url


def notes(url: str) -> list[tuple[str, object]]:
    with psycopg.connect(url) as connection:
        return connection.execute("select task, payload from public.notes order by id").fetchall()


@pytest.mark.parametrize("version", ON_OUR_SCHEMA)
def test_node_runs_what_sql_added(node: NodeWorker, notes_url: str, version: str) -> None:
    with connected(notes_url) as schema:
        schema.add_job("note", payload={"n": 1})
        schema.add_job("note", payload={"n": 2}, job_key="k", queue_name="q")
        schema.add_job("note", payload={"n": 3}, job_key="k", queue_name="q")

        node.run_once(notes_url, {"note": NOTE})

        assert sorted(str(payload) for _, payload in notes(notes_url)) == ["{'n': 1}", "{'n': 3}"]
        assert schema.jobs() == []


@pytest.mark.parametrize("version", ON_OUR_SCHEMA)
def test_node_finds_nothing_to_migrate(node: NodeWorker, database_url: str, version: str) -> None:
    before = catalog(database_url, with_bodies=True)

    output = node.install_schema(database_url) + node.run_once(database_url, {"note": ""})

    assert catalog(database_url, with_bodies=True) == before
    # 0.17 ends at revision 19 and reports it; the newest reports nothing.
    assert (NEWER_REVISION in output) is (version == FIRST_VERSION_WITH_BATCHES)
    assert ("WARN" in output) is (version == FIRST_VERSION_WITH_BATCHES)
    assert "ERROR" not in output
    assert install_schema(database_url).applied == ()


@pytest.mark.parametrize("version", ON_OUR_SCHEMA)
def test_a_job_added_by_sql_wakes_a_running_node_worker(node: NodeWorker, notes_url: str, version: str) -> None:
    with (
        node.running(notes_url, {"note": NOTE}, "--poll-interval", "3600000") as worker,
        connected(notes_url) as schema,
    ):
        # The worker announces itself before its LISTEN is through, so jobs are added until one wakes it.
        wait_until(
            lambda: schema.add_job("note", payload={"n": 1}) and notes(notes_url), what="a job to run", every=0.2
        )
        count = len(notes(notes_url))

        schema.add_jobs({"identifier": "note", "payload": {"last": True}})

        wait_until(
            lambda: ("note", {"last": True}) in notes(notes_url), deadline_seconds=60, what="the last job to run"
        )
        assert count >= 1
    assert "ERROR" not in worker.output


@pytest.mark.parametrize("version", ON_OUR_SCHEMA)
def test_nodes_own_way_of_adding_works(node: NodeWorker, database_url: str, version: str) -> None:
    added = node.with_utils(
        database_url,
        """
        const one = await utils.addJob("mail", [1], { jobKey: "k", queueName: "q", priority: 2, flags: ["f"] });
        const two = await utils.addJob("mail", [2], { jobKey: "k", jobKeyMode: "preserve_run_at" });
        const many = await utils.addJobs([{ identifier: "sms", payload: {} }, { identifier: "sms", jobKey: "k" }]);
        return { one, two, many };
        """,
    )

    assert added["one"]["id"] == added["two"]["id"] == added["many"][1]["id"]
    assert (added["two"]["payload"], added["two"]["revision"]) == ([1, 2], 1)
    assert added["many"][0]["task_identifier"] == "sms"
    with connected(database_url) as schema:
        assert len(schema.jobs()) == 2


@pytest.mark.parametrize("version", ON_OUR_SCHEMA)
def test_a_task_of_node_adds_a_job_and_fails_on_our_schema(node: NodeWorker, database_url: str, version: str) -> None:
    with connected(database_url) as schema:
        failing = schema.add_job("failing", queue_name="q")

        node.run_once(
            database_url,
            {"failing": 'await helpers.addJob("next", { from: helpers.job.id }); throw new Error("oops");'},
        )

        left = {schema.task_of(job): job for job in schema.jobs()}
        assert left["next"]["payload"] == {"from": str(failing["id"])}
        assert (left["failing"]["attempts"], left["failing"]["last_error"]) == (1, "oops")
        assert (left["failing"]["locked_by"], left["failing"]["is_available"]) == (None, True)
        assert left["failing"]["run_at"] > failing["run_at"]


# -- the other way round: Node migrates what we made, or at the same time


def test_functions_that_nodes_migration_replaced_are_repaired_and_reported(empty_database_url: str) -> None:
    node_worker("0.17.3").install_schema(empty_database_url)
    install_schema(empty_database_url)
    ours = catalog(empty_database_url, with_bodies=True)
    with psycopg.connect(empty_database_url) as connection:
        # As if we had repaired the functions when revision 20 was not there yet.
        connection.execute("delete from graphile_worker.migrations where id = 20")

    node_worker(NEWEST).install_schema(empty_database_url)
    assert catalog(empty_database_url, with_bodies=True) != ours
    report = install_schema(empty_database_url)

    assert [step.name for step in report.applied] == ["gw_0002_functions"]
    assert "gw_0002_functions ran again" in report.warnings[0]
    assert catalog(empty_database_url, with_bodies=True) == ours


def test_node_and_we_may_install_at_the_same_time(empty_database_url: str) -> None:
    node = node_worker(NEWEST)
    with ThreadPoolExecutor(4) as threads:
        started: list[Future[Any]] = []
        for _ in range(2):
            started += [
                threads.submit(node.install_schema, empty_database_url),
                threads.submit(install_schema, empty_database_url),
            ]
        for done in started:
            done.result(timeout=200)

    assert install_schema(empty_database_url).after.status == "current"
    with connected(empty_database_url) as schema:
        rows = schema.run("select id from :S.migrations order by id")
        assert [row["id"] for row in rows] == list(range(1, 21))


def test_a_running_old_node_worker_is_warned_of_a_breaking_step(empty_database_url: str) -> None:
    node = node_worker("0.16.6")
    node.install_schema(empty_database_url)
    with node.running(empty_database_url, {"note": ""}) as worker, connected(empty_database_url) as schema:
        schema.listen("worker:migrate")
        wait_until_node_listens(schema.connection, 1)

        install_schema(empty_database_url)

        notifications = [json.loads(note.payload) for note in schema.connection.notifies(timeout=200, stop_after=2)]
        assert notifications[0] == {"migrationNumber": 19, "breaking": True}
        assert worker.wait_until_ended() == 57
    assert "breaking migration to database schema revision '19'" in worker.output
