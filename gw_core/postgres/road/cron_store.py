"""Recurring tasks in the database: where all workers of all languages agree who adds a minute's jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from gw_core.domain.cron.cron_item import KnownCronItem
from gw_core.domain.job.job import JobSpec, timestamp
from gw_core.postgres.connection.row_mapping import optional_timestamp
from gw_core.postgres.connection.statement_runner import Store
from gw_core.postgres.connection.statement_steps import Steps
from gw_core.postgres.road.add_calls import Call, job_element


class CronStore(Store):
    """Registers identifiers and schedules their runs over one connection. Raises our errors, not the driver's."""

    def register(self, identifiers: Sequence[str], *, known_since: datetime) -> dict[str, KnownCronItem]:
        """Make identifiers known from `known_since` on, unless they are, and return what is remembered of them."""
        rows = self._rows("register_cron_items", identifiers=list(identifiers), known_since=known_since)
        return {row[0]: known_cron_item(row) for row in rows}

    def schedule(self, minute: datetime, runs: Mapping[str, JobSpec | None]) -> dict[str, int | None]:
        """Add the jobs of one minute by identifier, and return the ids of those this call was first to add.

        A run of `None` marks the minute as done and adds nothing, here or elsewhere.
        """
        jobs: list[object] = [
            {} if spec is None else job_element(spec, mode=spec.job_key_mode) for spec in runs.values()
        ]
        document = msgspec.json.encode(jobs).decode()
        rows = self._rows("schedule_cron_items", timestamp=minute, identifiers=list(runs), jobs=document)
        return {row[0]: row[1] for row in rows}


def known_items() -> Steps[Sequence[KnownCronItem]]:
    """Return everything the database remembers, in order of identifiers."""
    return [known_cron_item(row) for row in (yield Call("list_cron_items"))]


def forgetting(identifier: str) -> Steps[KnownCronItem | None]:
    """Forget an identifier and return what was remembered, or None when it was unknown."""
    rows = yield Call("delete_cron_item", {"identifier": identifier})
    return known_cron_item(rows[0]) if rows else None


def known_cron_item(row: Sequence[Any]) -> KnownCronItem:
    """Return what is remembered of an identifier, from a row of list_cron_items.sql."""
    identifier, known_since, last_execution = row
    return KnownCronItem(identifier, timestamp(known_since), optional_timestamp(last_execution))
