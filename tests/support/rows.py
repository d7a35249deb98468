"""The rows of a queue: a session beside gw that arranges and reads them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Self, cast

import psycopg
from psycopg.rows import dict_row

from gw_core import Client
from support import spare_sessions

SCHEMA = "graphile_worker"

# Each table to truncate costs new files, for its indexes too, so tables without a page are left out.
TABLES_WITH_PAGES = """
select oid::regclass::text from pg_class
 where relnamespace = %s::regnamespace and relkind = 'r' and pg_relation_size(oid) > 0
   and relname not in ('migrations', '_private_gw_migrations')
"""


class Rows:
    """A schema of jobs: a session on its tables, and a client that adds jobs.

    The client uses `url`, which may lead through a pooler; the session connects directly.
    """

    def __init__(self, url: str, *, direct: str | None = None, schema: str = SCHEMA, **options: Any) -> None:
        self.url = url
        self.direct = direct or url
        self.schema = schema
        self.client = Client(url, schema=schema, **options)
        self.hands = spare_sessions.take(self.direct)
        self._use_schema(self.hands)

    @property
    def is_pooled(self) -> bool:
        """Whether `url` leads through a pooler."""
        return self.direct != self.url

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.client.close()
        spare_sessions.leave(self.direct, self.hands)

    def run(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        """Run a statement and return its rows by column."""
        cursor = self.hands.cursor(row_factory=dict_row).execute(cast(Any, statement), values)
        return cursor.fetchall() if cursor.description else []

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows; without values, a percent sign is one."""
        cursor = self.hands.execute(cast(Any, statement), values or None)
        return cursor.fetchall() if cursor.description else []

    def value(self, statement: str, *values: Any) -> Any:
        """Return the only value of a statement."""
        return self.rows(statement, *values)[0][0]

    def now(self) -> datetime:
        """The time by the server's clock."""
        return cast(datetime, self.value("select clock_timestamp()"))

    def empty(self) -> Self:
        """Delete all rows but those of the migrations."""
        if tables := [name for (name,) in self.rows(TABLES_WITH_PAGES, self.schema)]:
            self.rows(f"truncate {', '.join(tables)} cascade")
        return self

    # -- jobs

    def drop_history_partitions(self) -> None:
        """Drop the partitions of history that tests before have left, apart from the default one."""
        partitions = self.rows(
            "select inhrelid::regclass::text from pg_inherits where inhparent = '_private_gw_history'::regclass"
            " and inhrelid <> '_private_gw_history_default'::regclass"
        )
        for (name,) in partitions:
            self.run(f"drop table {name}")

    def add(self, task: str = "work", payload: object = None, **options: Any) -> int:
        job = self.client.add(task, payload, **options)
        assert job is not None
        return job.id

    def jobs(self) -> list[dict[str, Any]]:
        return self.run("select * from _private_jobs order by id")

    def job(self, job_id: int) -> dict[str, Any]:
        (row,) = self.run("select * from _private_jobs where id = %s", job_id)
        return row

    def ids(self) -> list[int]:
        return [row["id"] for row in self.jobs()]

    def change(self, job_id: int, **columns: Any) -> None:
        """Set columns of a job; a value that starts with `=` is an expression."""
        self._change("_private_jobs", "id", job_id, columns)

    def change_queue(self, name: str, **columns: Any) -> None:
        """Set columns of a named queue, as `change` does of a job."""
        self._change("_private_job_queues", "queue_name", name, columns)

    @contextmanager
    def locking(self, statement: str, *values: Any) -> Iterator[None]:
        """Keep a transaction open in which another session has run the statement."""
        with psycopg.connect(self.direct) as other:
            self._use_schema(other)
            other.execute(cast(Any, statement), values)
            yield
            other.rollback()

    def _change(self, table: str, column: str, wanted: object, columns: dict[str, Any]) -> None:
        parts = [
            f"{name} = {value[1:]}" if isinstance(value, str) and value.startswith("=") else f"{name} = %({name})s"
            for name, value in columns.items()
        ]
        statement = f"update {table} set {', '.join(parts)} where {column} = %(wanted)s"
        self.hands.execute(cast(Any, statement), {**columns, "wanted": wanted})

    def _use_schema(self, connection: psycopg.Connection[Any]) -> None:
        name = '"' + self.schema.replace('"', '""') + '"'
        connection.execute("select set_config('search_path', %s, false)", (name,))
