"""Run the statements of `sql/queries` over one connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any

import psycopg
from psycopg.rows import tuple_row
from psycopg.types.string import TextBinaryLoader

from gw_core.domain.errors import DatabaseError, GraphileWorkerError
from gw_core.postgres.connection.database import Connection, in_its_settings
from gw_core.postgres.connection.error_mapping import translate, was_rolled_back
from gw_core.postgres.connection.row_security import raise_if_hidden, uses_of, values_of_uses
from gw_core.postgres.connection.statements import numbered_query


class StatementRunner:
    """Runs statements by name and returns their rows as tuples. Raises our errors and not the driver's.

    One thread at a time uses it. With `prepares_early`, each statement is prepared at its first use.
    """

    def __init__(self, connection: Connection, schema: str, *, prepares_early: bool = False) -> None:
        self.connection = connection
        self.schema = schema
        self._prepares_early = prepares_early

    @cached_property
    def _cursor(self) -> psycopg.RawCursor[tuple[Any, ...]]:
        """The cursor of all statements: it remembers how to write values and read columns, half of their time."""
        cursor = psycopg.RawCursor(self.connection, row_factory=tuple_row)
        cursor.adapters.register_loader("json", TextBinaryLoader)  # read where it is needed, a payload by its task
        return cursor

    def rows(self, name: str, values: Mapping[str, Any], **variables: str) -> list[tuple[Any, ...]]:
        """Run `sql/queries/NAME.sql` with these values; `variables` replace those of the file."""
        statement, names = numbered_query(name, self.schema, **variables)
        prepare = None if not self._prepares_early else self.connection.prepare_threshold is not None
        cursor = self._cursor
        try:
            with in_its_settings(self.connection):
                cursor.execute(statement, [values[each] for each in names], prepare=prepare, binary=True)
            rows = cursor.fetchall()
            if (result := cursor.pgresult) is not None:
                result.clear()  # or the cursor would keep the payloads in memory
            return rows
        except (psycopg.Error, UnicodeEncodeError) as error:
            raise translate(error, schema=self.schema) from error


class _PassedOn(StatementRunner):
    """Passes statements on to a connection that runs them itself."""

    def rows(self, name: str, values: Mapping[str, Any], **variables: str) -> list[tuple[Any, ...]]:
        connection: Any = self.connection
        return list(connection.rows(name, values, variables))


def statements_over(connection: Connection, schema: str, *, prepares_early: bool = False) -> StatementRunner:
    """Return what runs statements over the connection."""
    kind = _PassedOn if hasattr(connection, "rows") else StatementRunner
    return kind(connection, schema, prepares_early=prepares_early)


class Store:
    """Base of classes whose methods run the statements of their names. Raises our errors and not the driver's."""

    def __init__(self, connection: Connection, schema: str) -> None:
        self.connection = connection
        self.schema = schema
        self._statements = statements_over(connection, schema)

    def _rows(self, name: str, variables: Mapping[str, str] | None = None, /, **values: Any) -> list[tuple[Any, ...]]:
        return self._statements.rows(name, values, **variables or {})

    def _rows_or_fewer(
        self, part: str, name: str, **values: Any
    ) -> tuple[list[tuple[Any, ...]], GraphileWorkerError | None]:
        """Run a statement; if it fails, run it without this part, and return that error too."""
        try:
            return self._rows(name, {part: "true"}, **values), None
        except DatabaseError as error:
            if not was_rolled_back(error):
                raise
            return self._rows(name, {part: "false"}, **values), error

    def _visible_rows(
        self, name: str, variables: Mapping[str, str] | None = None, /, **values: Any
    ) -> list[tuple[Any, ...]]:
        """As `_rows`, once it is certain that row security hides no row from the statement."""
        if uses := uses_of(name, **variables or {}):
            raise_if_hidden(self._rows("hidden_rows", **values_of_uses(uses, self.schema)), self.schema)
        return self._rows(name, variables, **values)


def array_text(items: Iterable[int | datetime]) -> str:
    """Return items as the text of an array; the driver adapts a list item by item, and takes 20 times as long."""
    return "{" + ",".join(map(str, items)) + "}"
