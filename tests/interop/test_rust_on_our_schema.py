"""graphile_worker_rs, Node.js and we on one schema, installed in every order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Final

import psycopg
import pytest
from mixed_workers import NOTES, MixedQueue, by_node
from support.catalog import catalog
from support.databases import install_schema
from support.node_worker import node_worker
from support.rust_schema import RETIREMENTS, WORKERS
from support.rust_worker import BESIDE_OURS, NEWEST, VERSIONS, WITHOUT_RETIREMENTS, RustWorker, rust_worker
from support.waiting import wait_until

from gw_core import Client
from gw_core.front_ends import SchemaState, SchemaStatus

pytestmark = [pytest.mark.interop, pytest.mark.once]

OURS: Final = {"for_python": NOTES["python"]}
NODES: Final = {"for_node": NOTES["node"]}
FOREVER: Final = {"heartbeat_ms": 600_000, "sweep_ms": 600_000, "threshold_ms": 3_600_000, "delay_ms": 0}
"""Recovery that is on, and disturbs nothing."""

QUICK: Final = (("gw", "node", "rust"), ("node", "rust", "gw"), ("rust", "gw", "node"))
ORDERS: Final = [
    pytest.param(
        order,
        version,
        id=f"{'-'.join(order)}-{version}",
        marks=() if order in QUICK and version == NEWEST else pytest.mark.slow,
    )
    for version in VERSIONS
    for order in permutations(("gw", "node", "rust"))
]

Install = Callable[[str], object]


def installers(rust: RustWorker) -> dict[str, Install]:
    return {"gw": install_schema, "node": node_worker().install_schema, "rust": rust.install_schema}


def state_of(url: str) -> SchemaState:
    with Client(url) as client:
        return client.migration_plan().state


# -- every order ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("order", "version"), ORDERS)
def test_each_runs_what_each_adds_in_whatever_order_they_install(
    empty_database_url: str, order: tuple[str, ...], version: str
) -> None:
    rust = rust_worker(version)
    for name in order:
        installers(rust)[name](empty_database_url)
    with MixedQueue(empty_database_url) as site:
        tasks = ("for_python", "for_node", "for_rust")
        by_node(site, node_worker(), "for (const task of input.tasks) await utils.addJob(task, {});", tasks=tasks)
        for task in tasks:
            site.client.add(task)
            rust.add(site.url, task, {})
        rust.run_once(site.url, ["for_rust"])
        site.gw_run_once(OURS)
        node_worker().run_once(site.url, NODES)

        assert [(entry["task"], entry["side"]) for entry in site.ledger("ended is not null")] == [
            *[("for_rust", "rust")] * 3,
            *[("for_python", "python")] * 3,
            *[("for_node", "node")] * 3,
        ]
        assert (site.jobs(), site.locks()) == ([], [])
        assert state_of(site.url).status is SchemaStatus.CURRENT
        assert "warning" not in site.gw("doctor")


@pytest.mark.parametrize("version", BESIDE_OURS)
def test_our_functions_are_the_same_after_graphile_worker_rs_replaced_them(
    database_url: str, empty_database_url: str, version: str
) -> None:
    def repaired(url: str) -> list[str]:
        found = catalog(url, with_bodies=True)
        ours = [line for line in found["body"] if line.split()[0] in ("add_job", "add_jobs", "remove_job")]
        return ours + [line for line in found["function"] if line.startswith(("add_", "remove_"))]

    install_schema(empty_database_url)
    rust_worker(version).install_schema(empty_database_url)
    with MixedQueue(empty_database_url) as site:
        site.client.add("for_python")
        output = site.gw_run_once(OURS)

    assert repaired(empty_database_url) == repaired(database_url)
    assert ("gw_0002_functions ran again" in output) == (version != WITHOUT_RETIREMENTS)
    rust_worker(version).install_schema(empty_database_url)
    assert state_of(empty_database_url).status is SchemaStatus.CURRENT


def test_our_schema_and_that_of_graphile_worker_rs_installed_together_both_come_up(empty_database_url: str) -> None:
    rust = rust_worker()
    for number in range(3):
        schema = f"together_{number}"
        with ThreadPoolExecutor(2) as threads:
            installing = threads.submit(rust.install_schema, empty_database_url, schema)
            with psycopg.connect(empty_database_url, autocommit=True) as connection:
                wait_until(
                    lambda connection=connection, schema=schema: connection.execute(
                        "select to_regclass(%s) is not null", (f"{schema}.migrations",)
                    ).fetchone()[0],
                    what="the first step of graphile_worker_rs",
                    every=0.001,
                )
            threads.submit(install_schema, empty_database_url, schema).result(timeout=120)
            installing.result(timeout=120)

        with Client(empty_database_url, schema=schema) as client:
            assert client.migrate().after.status is SchemaStatus.CURRENT
            assert client.migration_plan().steps == ()


# -- what it adds -----------------------------------------------------------------------------------------------------


def test_what_other_tests_take_for_its_tables_is_what_it_makes(database_url: str, empty_database_url: str) -> None:
    def its_tables(url: str) -> list[str]:
        found = catalog(url)
        kinds = ("relation", "column", "constraint", "index")
        return [line for kind in kinds for line in found[kind] if "_private_workers" in line or "_retirements" in line]

    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("set search_path = graphile_worker")
        connection.execute(WORKERS)
        connection.execute(RETIREMENTS)
    rust_worker(NEWEST).install_schema(empty_database_url)

    assert its_tables(database_url) == its_tables(empty_database_url)
    assert state_of(database_url).revision == state_of(empty_database_url).revision


# -- its recovery needs objects that not every version installs -------------------------------------------------------


@pytest.mark.parametrize("first", ["gw", "node", "rust"])
def test_a_worker_with_recovery_starts_on_a_schema_of_any_program(empty_database_url: str, first: str) -> None:
    rust = rust_worker(NEWEST)
    installers(rust)[first](empty_database_url)
    with MixedQueue(empty_database_url) as site, rust.running(site.url, ["for_rust"], recovery=FOREVER):
        site.wait_until_rust_listens()
        assert len(site.run("select id from _private_workers")) == 1


@pytest.mark.parametrize(("first", "starts"), [("gw", False), ("node", False), ("rust", True)])
def test_version_0_13_5_with_recovery_needs_a_schema_that_it_installed(
    empty_database_url: str, first: str, starts: bool
) -> None:
    rust = rust_worker(WITHOUT_RETIREMENTS)
    installers(rust)[first](empty_database_url)
    install_schema(empty_database_url)
    with (
        MixedQueue(empty_database_url) as site,
        rust.running(site.url, ["for_rust"], recovery=FOREVER, check=starts) as worker,
    ):
        if starts:
            site.wait_until_rust_listens()
        else:
            assert worker.wait_until_ended() == 1
            assert "worker_heartbeat(text, json) does not exist" in worker.output
