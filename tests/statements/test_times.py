"""Times leave the database as seconds: drivers have no value for infinity, and fail with the whole result."""

from __future__ import annotations

import psycopg
from support.every_statement import NEIGHBOURS, STATEMENTS, prepare

TIMES = {psycopg.adapters.types[name].oid for name in ("date", "timestamp", "timestamptz")}
CLOCKS = {("cleanup_high_water_mark", "now"), ("limit_room", "now"), ("selection_names", "now")}
"""The columns that have the time of the server."""


def test_no_statement_returns_a_time_that_drivers_may_not_know(database_url: str) -> None:
    found = set()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(NEIGHBOURS)
        connection.execute("set search_path = pg_catalog, pg_temp")
        prepare(connection)
        for name in STATEMENTS:
            described = connection.pgconn.describe_prepared(name.encode())
            columns = range(described.nfields)
            found |= {(name, described.fname(each)) for each in columns if described.ftype(each) in TIMES}

    assert found == {(name, column.encode()) for name, column in CLOCKS}
