"""A large queue is upgraded without a pause: its indexes are built before, as in the guide."""

from __future__ import annotations

import re
from pathlib import Path
from typing import LiteralString, cast

from support.schema_fixture import SchemaFixture

from gw_core import Client

GUIDE = Path(__file__).parents[2] / "docs" / "operations" / "upgrading.md"
OURS = "select oid::int, pg_get_indexdef(oid) as definition from pg_class where relname ~ '^jobs_gw_' order by relname"
STEP = 4
"""gw_0004_indexes."""


def without_our_indexes(schema: SchemaFixture) -> None:
    for row in schema.run("select relname from pg_class where relname ~ '^jobs_gw_' and relkind = 'i'"):
        schema.run(f"drop index graphile_worker.{row['relname']}")
    schema.run("delete from :S._private_gw_migrations where id = %s", STEP)


def test_what_the_guide_builds_is_what_the_migration_wants(schema: SchemaFixture, database_url: str) -> None:
    wanted = [row["definition"] for row in schema.run(OURS)]
    without_our_indexes(schema)
    statements = re.findall(r"create index concurrently.*?;", GUIDE.read_text("utf-8"), flags=re.DOTALL)
    for statement in statements:
        schema.connection.execute(cast(LiteralString, statement))
    built = schema.run(OURS)

    with Client(database_url, max_pool_size=1) as client:
        report = client.migrate()

    assert [row["definition"] for row in built] == wanted
    assert [step.number for step in report.applied] == [STEP]
    assert schema.run(OURS) == built
