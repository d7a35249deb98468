"""What the tests of history share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.queue_fixture import QueueFixture


@pytest.fixture
def site(site: QueueFixture) -> QueueFixture:
    """The shared database without the partitions of tests before."""
    site.drop_history_partitions()
    return site


@pytest.fixture
def intruder(site: QueueFixture) -> Iterator[str]:
    """Return the name of an operator none of whose actions can be recorded."""
    site.run("alter table _private_gw_actions add constraint intruder check (by <> 'intruder')")
    try:
        yield "intruder"
    finally:
        site.run("alter table _private_gw_actions drop constraint intruder")


@pytest.fixture
def operator(own_site: QueueFixture, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a role that may change jobs, but has no rights on history, or all except for those of the parameter."""
    role, rights = "operator_without_history", getattr(request, "param", "all")
    own_site.run(f"create role {role} login bypassrls")
    own_site.run(f"grant usage on schema graphile_worker to {role}")
    own_site.run(f"grant all on all tables in schema graphile_worker to {role}")
    own_site.run(f"revoke {rights} on _private_gw_history from {role}")
    yield role
    own_site.run(f"drop owned by {role}")
    own_site.run(f"drop role {role}")
