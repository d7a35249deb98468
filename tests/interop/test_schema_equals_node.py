"""The schema we make is, object for object, the one that the Node.js worker makes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import psycopg
import pytest
from support.catalog import Lines, catalog, without_our_line
from support.databases import Databases, install_schema
from support.node_worker import NEWEST, VERSIONS, node_worker

pytestmark = pytest.mark.interop

OLD_REVISIONS = [11, *(pytest.param(revision, marks=pytest.mark.slow) for revision in range(12, 19))]
"""An upgrade from the oldest runs every step; from a later one it runs the last of them."""


BETWEEN = ("0.15.1", "0.17.3")
INSTALLED = [pytest.param(each, marks=[pytest.mark.slow] if each in BETWEEN else []) for each in VERSIONS]


class NodeSchema(NamedTuple):
    """A schema that Node made."""

    catalog: dict[str, Lines]
    ledger: list[tuple[object, ...]]


@pytest.fixture(scope="module")
def nodes(databases: Databases) -> Iterator[NodeSchema]:
    """What the newest version of Node installs."""
    name = f"{databases.run.prefix}{databases.worker}_nodes"
    databases.create(name)
    url = databases.url(name)
    node_worker(NEWEST).install_schema(url)
    yield NodeSchema(catalog(url), ledger(url, "graphile_worker"))
    databases.drop(name)


def test_a_fresh_install_equals_nodes(database_url: str, nodes: NodeSchema) -> None:
    assert (len(nodes.catalog["column"]), len(nodes.catalog["function"])) == (53, 7)
    assert without_our_line(catalog(database_url)) == nodes.catalog
    assert ledger(database_url, "graphile_worker") == nodes.ledger


@pytest.mark.parametrize("version", INSTALLED)
def test_an_upgrade_of_what_a_version_of_node_installed_equals_nodes(
    empty_database_url: str, nodes: NodeSchema, version: str
) -> None:
    node_worker(version).install_schema(empty_database_url)

    assert install_schema(empty_database_url).after.status == "current"

    assert without_our_line(catalog(empty_database_url)) == nodes.catalog
    assert ledger(empty_database_url, "graphile_worker") == nodes.ledger
    assert_functions_are_those_of_a_fresh_install(empty_database_url)


@pytest.mark.parametrize("revision", OLD_REVISIONS)
def test_an_upgrade_from_any_revision_equals_nodes(empty_database_url: str, nodes: NodeSchema, revision: int) -> None:
    node_worker("0.16.6").install_schema(empty_database_url, revision=revision)
    assert ledger(empty_database_url, "graphile_worker")[-1][0] == revision

    install_schema(empty_database_url)

    assert without_our_line(catalog(empty_database_url)) == nodes.catalog
    assert_functions_are_those_of_a_fresh_install(empty_database_url)


def assert_functions_are_those_of_a_fresh_install(url: str) -> None:
    install_schema(url, "fresh")
    kept_from_node = {"complete_jobs", "permanently_fail_jobs", "reschedule_jobs", "remove_job", "force_unlock_workers"}
    assert bodies(url, "graphile_worker", kept_from_node) == bodies(url, "fresh", kept_from_node)


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
