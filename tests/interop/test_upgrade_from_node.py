"""Databases that old versions of the Node.js worker filled are brought forward with everything in them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from support.catalog import catalog
from support.databases import install_schema
from support.node_worker import NEWEST, node_worker
from support.schema_fixture import Row, SchemaFixture, connected
from support.waiting import wait_until

from gw_core import Client
from gw_core.front_ends import LockedJobsError

pytestmark = pytest.mark.interop

BREAKING_AHEAD = ["0.14.0-rc.0", pytest.param("0.15.1", marks=pytest.mark.slow), "0.16.6"]
UPGRADED = [*BREAKING_AHEAD, pytest.param("0.17.3", marks=pytest.mark.slow), NEWEST]

FILL = """
    const later = new Date("2099-01-02T03:04:05Z");
    await utils.addJob("mail", { n: 1 });
    await utils.addJob("mail", { n: 2 }, { queueName: "outbox", runAt: later, priority: -3, maxAttempts: 7 });
    await utils.addJob("reports/weekly", [1, 2], { jobKey: "weekly", flags: ["heavy", "slow"] });
    const long = { jobKey: "k".repeat(512), queueName: "q".repeat(128) };
    await utils.addJob("mail", { text: "größe \\u2028 \\ud83d\\ude00" }, long);
    await utils.addJob("mail", { n: 5 });
    await utils.addJob("mail", { n: 6 }, { queueName: "outbox" });
    await utils.addJob("mail", { n: 7 }, { jobKey: "stale" });
"""


class NodeDatabase:
    """A database that a version of Node filled; its tables may still have their old names."""

    def __init__(self, schema: SchemaFixture, version: str) -> None:
        self.schema = schema
        self.prefix = "" if version in ("0.14.0-rc.0", "0.15.1") else "_private_"

    def rows(self, table: str) -> list[Row]:
        return self.schema.run(f"select * from :S.{self.prefix}{table} order by 1")

    def everything(self) -> dict[str, list[Row]]:
        return {table: self.rows(table) for table in ("jobs", "job_queues", "tasks", "known_crontabs")}

    def run(self, statement: str, *values: Any) -> None:
        self.schema.run(statement.replace(":T", f":S.{self.prefix}"), *values)


@pytest.fixture
def filled(empty_database_url: str, version: str) -> Iterator[NodeDatabase]:
    node = node_worker(version)
    node.install_schema(empty_database_url)
    node.with_utils(empty_database_url, FILL)
    with connected(empty_database_url) as schema:
        database = NodeDatabase(schema, version)
        database.run("update :Tjobs set attempts = 3, last_error = 'broken' where id = 5")
        database.run("update :Tjobs set attempts = max_attempts, last_error = 'given up' where id = 6")
        database.run("update :Tjobs set locked_at = now() - interval '5 hours', locked_by = 'dead' where id = 7")
        database.run(
            "insert into :Tknown_crontabs values ('weekly', now() - interval '9 days', now()), ('new', now(), null)"
        )
        yield database


@pytest.mark.parametrize("version", UPGRADED)
def test_jobs_queues_tasks_and_schedules_are_kept_and_alive(
    filled: NodeDatabase, empty_database_url: str, version: str
) -> None:
    before = filled.everything()
    assert [len(rows) for rows in before.values()] == [7, 2, 2, 2]

    install_schema(empty_database_url)

    filled.prefix = "_private_"
    assert filled.everything() == before

    schema = filled.schema
    assert schema.add_job("new", queue_name="new")["id"] > 7
    gathered = schema.add_jobs({"identifier": "reports/weekly", "job_key": "weekly", "payload": [3]})[0]
    assert (gathered["id"], gathered["payload"], gathered["revision"]) == (3, [1, 2, 3], 1)
    assert schema.call("remove_job", job_key="k" * 512)[0]["id"] == 4
    schema.call("force_unlock_workers", worker_ids=["dead"])
    tasks = {"mail": "", "new": "", "reports/weekly": ""}
    node_worker(NEWEST).run_once(empty_database_url, tasks)
    assert [job["id"] for job in schema.jobs()] == [2, 6], "the one for 2099 and the one given up are left"


@pytest.mark.parametrize("version", BREAKING_AHEAD)
def test_locked_jobs_and_queues_are_rejected_and_nothing_is_changed(
    filled: NodeDatabase, empty_database_url: str, version: str
) -> None:
    for table in ("jobs", "job_queues"):
        filled.run(f"update :T{table} set locked_at = now() - interval '1 hour', locked_by = 'alive' where id = 1")
        before, objects = filled.everything(), catalog(empty_database_url, with_bodies=True)

        with pytest.raises(LockedJobsError, match=r"stop all workers gracefully and run gw migrate again"):
            install_schema(empty_database_url)

        assert catalog(empty_database_url, with_bodies=True) == objects
        assert filled.everything() == before
        filled.run(f"update :T{table} set locked_at = null, locked_by = null")

    assert install_schema(empty_database_url).after.status == "current"


def test_a_schema_between_two_names_is_seen_as_what_it_is(empty_database_url: str) -> None:
    node_worker("0.15.1").install_schema(empty_database_url)

    with Client(empty_database_url) as client:
        state = client.migration_plan().state

    assert (state.revision, state.breaking_known, state.status) == (14, False, "behind")


def test_gw_and_node_started_together_on_an_empty_database_both_come_up(empty_database_url: str) -> None:
    for number in range(3):
        schema = f"together_{number}"
        with ThreadPoolExecutor(2) as threads:
            node = threads.submit(node_worker(NEWEST).install_schema, empty_database_url, schema)
            # A gw that comes first leaves nothing to meet, so it comes when the first of Node's steps is there.
            with psycopg.connect(empty_database_url, autocommit=True) as connection:
                wait_until(
                    lambda connection=connection, schema=schema: connection.execute(
                        "select to_regclass(%s) is not null", (f"{schema}.migrations",)
                    ).fetchone()[0],
                    what="Node's first step",
                    every=0.001,
                )
            report = threads.submit(install_schema, empty_database_url, schema).result(timeout=120)
            node.result(timeout=120)

        assert report.after.status == "current"
