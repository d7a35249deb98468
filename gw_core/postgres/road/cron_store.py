"""Recurring tasks in the database: where all workers of all languages agree who adds a minute's jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

import msgspec

from gw_core.domain.cron.cron_item import KnownCronItem
from gw_core.domain.job.job import END_OF_TIME, JobSpec, timestamp
from gw_core.postgres.connection.callers_connection import Rows
from gw_core.postgres.connection.row_mapping import optional_timestamp
from gw_core.postgres.connection.statement_runner import Store
from gw_core.postgres.connection.statement_steps import Operation, Steps, Unit
from gw_core.postgres.road.action_records import check_by, recording
from gw_core.postgres.road.add_calls import Call, job_element
from gw_core.postgres.road.pauses import pause_of
from gw_core.postgres.schema.schema_state import TABLES_STEP, checked

CRON_PAUSES: Final = Call("cron_pause_list")


class CronStore(Store):
    """Registers identifiers and schedules their runs over one connection. Raises our errors, not the driver's."""

    def register(self, identifiers: Sequence[str], *, known_since: datetime) -> dict[str, KnownCronItem]:
        """Make identifiers known from `known_since` on, unless they are, and return what is remembered of them."""
        rows = self._rows("register_cron_items", identifiers=list(identifiers), known_since=known_since)
        return {row[0]: known_cron_item(row) for row in rows}

    def schedule(self, minute: datetime, runs: Mapping[str, JobSpec | None]) -> dict[str, int | None]:
        """Add the jobs of one minute by identifier, and return the ids of those this call was first to add.

        Paused items are left out. A run of `None` marks the minute as done and adds nothing, here or elsewhere.
        """
        jobs: list[object] = [
            {} if spec is None else job_element(spec, mode=spec.job_key_mode) for spec in runs.values()
        ]
        document = msgspec.json.encode(jobs).decode()
        rows = self._rows("schedule_cron_items", timestamp=minute, identifiers=list(runs), jobs=document)
        return {row[0]: row[1] for row in rows}


def known_items(schema: str) -> Steps[Sequence[KnownCronItem]]:
    """Return everything the database remembers, in order of identifiers."""
    state = yield from checked(schema)
    known = yield Call("list_cron_items")
    pauses = (yield CRON_PAUSES) if TABLES_STEP in state.own_present else []
    return known_cron_items(known, pauses)


def known_cron_items(known: Rows, pauses: Rows) -> Sequence[KnownCronItem]:
    """Return what is remembered, from the rows of list_cron_items.sql and cron_pause_list.sql."""
    found = {name: (kind, name, *rest) for kind, name, *rest in pauses}
    return [_with_pause(known_cron_item(row), found.get(row[0])) for row in known]


def _with_pause(item: KnownCronItem, row: Sequence[Any] | None) -> KnownCronItem:
    if row is None:
        return item
    *pause, is_active = row
    found = pause_of(*pause)
    skipped_until = END_OF_TIME if found.until is None else found.until
    return msgspec.structs.replace(item, pause=found if is_active else None, skipped_until=skipped_until)


def forgetting(identifier: str, schema: str, by: str | None) -> Operation[KnownCronItem | None]:
    """Forget an identifier and return what was remembered, or None when it was unknown; `by` is who is recorded."""
    check_by(by)
    if by is None:
        return (yield from _forgetting(identifier, schema, None))
    forgotten: KnownCronItem | None = yield Unit(partial(_forgetting, identifier, schema, by), is_atomic=True)
    return forgotten


def _forgetting(identifier: str, schema: str, by: str | None) -> Steps[KnownCronItem | None]:
    rows = yield Call("delete_cron_item", {"identifier": identifier})
    yield from recording("forget", by, schema, targets=[f"cron:{identifier}" for _ in rows])
    return known_cron_item(rows[0]) if rows else None


def known_cron_item(row: Sequence[Any]) -> KnownCronItem:
    """Return what is remembered of an identifier, from a row of list_cron_items.sql or register_cron_items.sql."""
    identifier, known_since, last_execution, *skipped_until = row
    return KnownCronItem(
        identifier,
        timestamp(known_since),
        optional_timestamp(last_execution),
        skipped_until=optional_timestamp(skipped_until[0]) if skipped_until else None,
    )
