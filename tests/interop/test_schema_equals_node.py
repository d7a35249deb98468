"""The schema we make is, object for object, the one that the Node.js worker makes."""

from __future__ import annotations

import psycopg
import pytest
from support.catalog import catalog, without_our_line
from support.node_worker import NEWEST, VERSIONS, node_worker

from gw_core.postgres.migrations import SchemaStatus, migrate

pytestmark = pytest.mark.interop

OLD_REVISIONS = range(11, 19)


def test_a_fresh_install_equals_nodes(empty_database_url: str) -> None:
    node_worker(NEWEST).install_schema(empty_database_url, "nodes")
    migrate(empty_database_url, "ours")

    nodes = catalog(empty_database_url, "nodes")
    assert (len(nodes["column"]), len(nodes["function"])) == (53, 7)
    assert without_our_line(catalog(empty_database_url, "ours")) == nodes
    assert ledger(empty_database_url, "ours") == ledger(empty_database_url, "nodes")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upgrade_of_what_a_version_of_node_installed_equals_nodes(empty_database_url: str, version: str) -> None:
    node_worker(version).install_schema(empty_database_url, "upgraded")
    node_worker(NEWEST).install_schema(empty_database_url, "nodes")

    assert migrate(empty_database_url, "upgraded").after.status is SchemaStatus.CURRENT

    assert without_our_line(catalog(empty_database_url, "upgraded")) == catalog(empty_database_url, "nodes")
    assert ledger(empty_database_url, "upgraded") == ledger(empty_database_url, "nodes")


@pytest.mark.parametrize("revision", OLD_REVISIONS)
def test_an_upgrade_from_any_revision_equals_nodes(empty_database_url: str, revision: int) -> None:
    node_worker("0.16.6").install_schema(empty_database_url, "upgraded", revision=revision)
    assert ledger(empty_database_url, "upgraded")[-1][0] == revision
    node_worker(NEWEST).install_schema(empty_database_url, "nodes")

    migrate(empty_database_url, "upgraded")

    assert without_our_line(catalog(empty_database_url, "upgraded")) == catalog(empty_database_url, "nodes")


@pytest.mark.parametrize("revision", [*OLD_REVISIONS, 20])
def test_whatever_it_comes_from_a_schema_ends_with_the_same_functions(empty_database_url: str, revision: int) -> None:
    if revision == 20:
        node_worker(NEWEST).install_schema(empty_database_url, "upgraded")
    else:
        node_worker("0.16.6").install_schema(empty_database_url, "upgraded", revision=revision)
    migrate(empty_database_url, "upgraded")
    migrate(empty_database_url, "fresh")

    kept_from_node = {"complete_jobs", "permanently_fail_jobs", "reschedule_jobs", "remove_job", "force_unlock_workers"}
    assert bodies(empty_database_url, "upgraded", kept_from_node) == bodies(empty_database_url, "fresh", kept_from_node)


def bodies(url: str, schema: str, leave_out: set[str]) -> list[str]:
    found = catalog(url, schema, with_bodies=True)["body"]
    return [
        line.replace(f'"{schema}"', "S").replace(f"E'{schema}'", "S")
        for line in found
        if line.split()[0] not in leave_out
    ]


def ledger(url: str, schema: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(
            f"select id, to_jsonb(m)->>'breaking' from {schema}.migrations m order by id"
        ).fetchall()
