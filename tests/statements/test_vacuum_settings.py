"""What the doctor reads of the jobs table's storage parameters."""

from __future__ import annotations

import psycopg
import pytest
from support.every_statement import prepare

from statements.statement_fixture import Queue

ALWAYS_ON = 140000
"""Before this version of PostgreSQL, vacuum leaves no index entries by default."""


@pytest.mark.parametrize(
    ("value", "is_on"),
    [("on", True), ("true", True), ("1", True), ("yes", True), ("off", False), ("false", False), (None, None)],
)
def test_whether_vacuum_removes_all_index_entries(queue: Queue, value: str | None, is_on: bool | None) -> None:
    if value is not None:
        queue.run(f"alter table _private_jobs set (vacuum_index_cleanup = {value})")
    with psycopg.connect(queue.url) as connection:
        expected = connection.info.server_version < ALWAYS_ON if is_on is None else is_on
        prepare(connection, ["doctor_tables"])
        rows = connection.execute("execute doctor_tables('graphile_worker')").fetchall()
    queue.run("alter table _private_jobs reset (vacuum_index_cleanup)")

    assert {row[0]: row[6] for row in rows}["_private_jobs"] is expected
