"""The schema as a test sees it: its functions by name, and hands on its rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Json

Row = dict[str, Any]


class SchemaFixture:
    """One connection to one schema."""

    def __init__(self, connection: psycopg.Connection[DictRow], name: str = "graphile_worker") -> None:
        self.connection = connection
        self.name = name

    # -- the functions under test

    def call(self, function: str, **arguments: Any) -> list[Row]:
        """Call a function with named arguments; a row of nulls is what a composite null looks like."""
        given = sql.SQL(", ").join(
            sql.SQL("{} := {}").format(sql.Identifier(name), sql.Literal(_adapted(value)))
            for name, value in arguments.items()
        )
        statement = sql.SQL("select * from {}({})").format(sql.Identifier(self.name, function), given)
        return self.connection.execute(statement).fetchall()

    def add_job(self, identifier: str | None = "mail", **arguments: Any) -> Row:
        return self.call("add_job", identifier=identifier, **arguments)[0]

    def add_jobs(self, *specs: Row, preserve_run_at: bool | None = None) -> list[Row]:
        """Add jobs from partial specifications, e.g. `{"identifier": "mail", "job_key": "a"}`."""
        statement = sql.SQL(
            "select * from {}(array(select spec from json_populate_recordset(null::{}, {}) as spec), {})"
        ).format(
            sql.Identifier(self.name, "add_jobs"),
            sql.Identifier(self.name, "job_spec"),
            sql.Literal(Json([{"identifier": "mail", **spec} for spec in specs])),
            sql.Literal(preserve_run_at),
        )
        return self.connection.execute(statement).fetchall()

    # -- hands on the rows

    def jobs(self) -> list[Row]:
        return self.run("select * from :S._private_jobs order by id")

    def job(self, job_id: int) -> Row | None:
        found = self.run("select * from :S._private_jobs where id = %s", job_id)
        return found[0] if found else None

    def queue_of(self, job: Row) -> str | None:
        rows = self.run("select queue_name from :S._private_job_queues where id = %s", job["job_queue_id"])
        return str(rows[0]["queue_name"]) if rows else None

    def task_of(self, job: Row) -> str:
        rows = self.run("select identifier from :S._private_tasks where id = %s", job["task_id"])
        return str(rows[0]["identifier"])

    def change(self, job: Row, **columns: Any) -> None:
        """Set columns with SQL; a string that starts with `=` is an expression."""
        settings = ", ".join(
            f"{name} = {value[1:]}" if isinstance(value, str) and value.startswith("=") else f"{name} = %({name})s"
            for name, value in columns.items()
        )
        self.connection.execute(
            sql.SQL("update {} set " + settings + " where id = %(id)s").format(
                sql.Identifier(self.name, "_private_jobs")
            ),
            {**columns, "id": job["id"]},
        )

    def claim(self, job: Row, *, by: str = "pool-theirs", ago: str = "0") -> None:
        """Lock a job as a worker does that claimed it `ago`."""
        self.change(job, locked_by=by, locked_at=f"=now() - interval '{ago}'", attempts="=attempts + 1")

    def fail_permanently(self, job: Row) -> None:
        self.change(job, attempts="=max_attempts", last_error="broken")

    def run(self, statement: str, *values: Any) -> list[Row]:
        """Run a statement in which `:S` stands for the schema."""
        text = statement.replace(":S", '"' + self.name.replace('"', '""').replace("%", "%%") + '"')
        cursor = self.connection.execute(text, values)
        return cursor.fetchall() if cursor.description else []

    def notices(self, channel: str = "jobs:insert") -> list[Row]:
        """The notes on the channel that have come in, decoded; empty ones as `{}`."""
        found = list(self.connection.notifies(timeout=0))
        return [json.loads(note.payload or "{}") for note in found if note.channel == channel]

    def listen(self, channel: str = "jobs:insert") -> None:
        self.connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))


def _adapted(value: Any) -> Any:
    return Json(value) if isinstance(value, dict) else value


@contextmanager
def connected(url: str, name: str = "graphile_worker") -> Iterator[SchemaFixture]:
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        yield SchemaFixture(connection, name)
