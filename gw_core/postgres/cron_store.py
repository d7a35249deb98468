"""Recurring tasks in the database: where all workers of all languages agree who adds a minute's jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from gw_core.domain.cron_item import KnownCronItem
from gw_core.domain.job import JobSpec, encode_payload
from gw_core.postgres.statement_runner import Store


class CronStore(Store):
    """Registers identifiers and schedules their runs over one connection. Raises our errors, not the driver's."""

    def register(self, identifiers: Sequence[str], *, known_since: datetime) -> dict[str, KnownCronItem]:
        """Make identifiers known from `known_since` on, unless they are, and return what is remembered of them."""
        rows = self._rows("register_cron_items", identifiers=list(identifiers), known_since=known_since)
        return {row[0]: KnownCronItem(*row) for row in rows}

    def schedule(self, timestamp: datetime, runs: Mapping[str, JobSpec | None]) -> dict[str, int | None]:
        """Add the jobs of one minute by identifier, and return the ids of those this call was first to add.

        A run of `None` marks the minute as done and adds nothing, here or elsewhere.
        """
        columns = _columns(list(runs.values()))
        rows = self._rows("schedule_cron_items", timestamp=timestamp, identifiers=list(runs), **columns)
        return {row[0]: row[1] for row in rows}

    def known(self) -> list[KnownCronItem]:
        """Return everything the database remembers, in order of identifiers."""
        return [KnownCronItem(*row) for row in self._rows("list_cron_items")]

    def forget(self, identifier: str) -> KnownCronItem | None:
        """Forget an identifier and return what was remembered, or None when it was unknown."""
        rows = self._rows("delete_cron_item", identifier=identifier)
        return KnownCronItem(*rows[0]) if rows else None


def _columns(specs: Sequence[JobSpec | None]) -> dict[str, list[Any]]:
    return {
        "tasks": [spec and spec.task for spec in specs],
        "payloads": [spec and encode_payload(spec.payload) for spec in specs],
        "queue_names": [spec and spec.queue_name for spec in specs],
        "max_attempts": [spec and spec.max_attempts for spec in specs],
        "job_keys": [spec and spec.job_key for spec in specs],
        "priorities": [spec and spec.priority for spec in specs],
        "flags": [msgspec.json.encode(spec.flags).decode() if spec and spec.flags else None for spec in specs],
        "job_key_modes": [spec and spec.job_key_mode.value for spec in specs],
        "run_ats": [spec and spec.run_at for spec in specs],
    }
