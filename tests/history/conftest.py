"""What the tests of history share."""

from __future__ import annotations

import pytest
from support.queue_fixture import QueueFixture

PARTITIONS = """
select inhrelid::regclass::text
  from pg_inherits
 where inhparent = '_private_gw_history'::regclass
   and inhrelid <> '_private_gw_history_default'::regclass
"""


@pytest.fixture
def site(site: QueueFixture) -> QueueFixture:
    """The shared database without the partitions of tests before."""
    for (name,) in site.rows(PARTITIONS):
        site.run(f"drop table {name}")
    return site
