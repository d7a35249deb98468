"""What the tests of history share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from psycopg.rows import tuple_row
from support.queue_fixture import QueueFixture

PARTITIONS = """
select inhrelid::regclass::text
  from pg_inherits
 where inhparent = '_private_gw_history'::regclass
   and inhrelid <> '_private_gw_history_default'::regclass
"""


@pytest.fixture(scope="session")
def history_url(databases: Any, template: str) -> Iterator[str]:
    """One database for all these tests, emptied before each."""
    name = f"{databases.run.prefix}{databases.worker}_history"
    databases.create(name, template=template)
    yield databases.url(name)
    databases.drop(name)


@pytest.fixture
def site(history_url: str) -> Iterator[QueueFixture]:
    """A database with the newest schema and nothing in it."""
    site = QueueFixture(history_url)
    for (name,) in site.hands.cursor(row_factory=tuple_row).execute(PARTITIONS):
        site.run(f"drop table {name}")
    site.run("truncate _private_jobs, _private_job_queues, _private_tasks, _private_gw_workers, _private_gw_history")
    yield site
    site.close()
