"""Cron items in `gw.toml`: tables `[[cron]]`, which have what a line of a crontab has, and a time zone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from gw_cli.settings.kinds import Kind, checked_table, read_tables, tables_schema
from gw_core.operations import parse_duration

if TYPE_CHECKING:
    from gw_core import CronItem

_KEYS: Final[Mapping[str, type]] = {
    "schedule": str,
    "task": str,
    "tz": str,
    "id": str,
    "fill": str,
    "max-attempts": int,
    "queue": str,
    "job-key": str,
    "job-key-mode": str,
    "priority": int,
    "payload": dict,
}
_REQUIRED: Final = ("schedule", "task")
_PARAMETERS: Final = {"schedule": "when", "queue": "queue_name"}
"""The parameters of `cron_item` with other names than their keys."""


def _read_items(raw: object) -> Sequence[CronItem]:
    from gw_core.crontab import reject_duplicates

    return reject_duplicates(read_tables(raw, "item", "cron", _read_item))


def _read_item(table: Mapping[str, object]) -> CronItem:
    from gw_core import cron_item

    values = checked_table(table, _KEYS, *_REQUIRED)
    if "fill" in values:
        values["fill"] = parse_duration(values["fill"])
    return cron_item(**{_PARAMETERS.get(key, key.replace("-", "_")): value for key, value in values.items()})


CRON_ITEMS: Final = Kind(
    read=_read_items,
    write=lambda items: ", ".join(item.identifier for item in items),
    schema=tables_schema(_KEYS, *_REQUIRED),
)
