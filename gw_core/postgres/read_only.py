"""Read in one trip there and back, under manners that hold nobody up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

import psycopg
from psycopg.rows import tuple_row

from gw_core.domain.session_limits import milliseconds
from gw_core.postgres.connections import ConnectionSource
from gw_core.postgres.database import answered_within, in_one_trip
from gw_core.postgres.error_mapping import rows_hidden, translate
from gw_core.postgres.statements import query

Rows = list[tuple[Any, ...]]
Question = tuple[str, Mapping[str, Any]]
"""The name of a statement, and its values."""


OF_THE_CATALOG: Final = frozenset({"snapshot_place", "snapshot_counters"})
"""Statements that read no rows of the queue, so that row security hides nothing from them."""


class PlanMode(StrEnum):
    """When the server plans a statement that is run again and again; planning often takes longer than running."""

    ONCE = "force_generic_plan"
    """No value leads to another plan."""
    ANEW = "force_custom_plan"
    """Each time, for the values decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """How long a statement may take and wait, and when it is planned."""

    statement: timedelta
    lock: timedelta
    plans: PlanMode


def read(lender: ConnectionSource, schema: str, questions: Sequence[Question], bounds: ReadLimits) -> list[Rows]:
    """Run statements that only read, and return the rows of each; when one fails, all do."""
    with lender.connection() as connection:
        own = lender.database.manners
        manners = {
            "statement_timeout": milliseconds(own.within_statement(bounds.statement)),
            "lock_timeout": milliseconds(own.within_lock(bounds.lock)),
            "plans": bounds.plans,
        }
        try:
            # What is sent as a whole is one transaction, without a word to begin and end it: the settings end with it,
            # poolers see one unit, and the server never waits for us with a transaction open.
            with answered_within(connection, bounds.statement * (len(questions) + 1)), in_one_trip(connection):
                limits = connection.execute(query("session_limits", schema), {**manners, "schema": schema})
                cursors = [
                    connection.cursor(binary=True, row_factory=tuple_row).execute(query(name, schema), values)
                    for name, values in questions
                ]
            row = limits.fetchone()
            if row is not None and row[0] is not None and not OF_THE_CATALOG.issuperset(name for name, _ in questions):
                raise rows_hidden(row[0], schema)
            return [cursor.fetchall() for cursor in cursors]
        except psycopg.Error as error:
            raise translate(error, schema=schema) from error
