"""The race that loses a job on the schema as Node.js installs it does not on ours, side by side."""

from __future__ import annotations

import pytest
from support.databases import install_schema
from support.keyed_races import ADDED_AND_CLAIMED_CONCURRENTLY, CLAIMED_CONCURRENTLY, Race, add_against
from support.node_worker import NEWEST, node_worker
from support.schema_fixture import connected

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("race", [CLAIMED_CONCURRENTLY, ADDED_AND_CLAIMED_CONCURRENTLY], ids=str)
def test_a_job_lost_on_nodes_schema_is_not_lost_on_ours(empty_database_url: str, race: Race) -> None:
    node_worker(NEWEST).install_schema(empty_database_url, "nodes")
    install_schema(empty_database_url, "ours")

    lost = add_against(race, empty_database_url, "nodes")
    kept = add_against(race, empty_database_url, "ours")

    assert lost["id"] is None
    assert (kept["key"], kept["payload"], kept["is_available"]) == ("k", {"from": "us"}, True)
    with connected(empty_database_url, "nodes") as nodes, connected(empty_database_url, "ours") as ours:
        assert [job["payload"] for job in nodes.jobs()] == [{"from": "before"}]
        assert [job["payload"] for job in ours.jobs()] == [{"from": "before"}, {"from": "us"}]


def test_migrating_a_schema_of_node_repairs_it(empty_database_url: str) -> None:
    node_worker(NEWEST).install_schema(empty_database_url)
    assert add_against(CLAIMED_CONCURRENTLY, empty_database_url)["id"] is None

    install_schema(empty_database_url)

    with connected(empty_database_url) as schema:
        schema.run("truncate :S._private_jobs")
    assert add_against(CLAIMED_CONCURRENTLY, empty_database_url)["id"] is not None
