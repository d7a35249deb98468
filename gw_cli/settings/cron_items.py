"""Cron items in `gw.toml`: tables `[[cron]]`, which have what a line of a crontab has, and a time zone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from gw_cli.sanitize import quoted
from gw_cli.settings.kinds import Kind
from gw_core.errors import InvalidInputError
from gw_core.operations import parse_duration

if TYPE_CHECKING:
    from gw_core import CronItem

# The key in the file, the parameter of `cron_item` and the type of the value.
_TEXT: Final[tuple[type, str]] = (str, "a text")
_NUMBER: Final[tuple[type, str]] = (int, "a number")
_KEYS: Final[Mapping[str, tuple[str, tuple[type, str]]]] = {
    "schedule": ("when", _TEXT),
    "task": ("task", _TEXT),
    "tz": ("tz", _TEXT),
    "id": ("id", _TEXT),
    "fill": ("fill", _TEXT),
    "max-attempts": ("max_attempts", _NUMBER),
    "queue": ("queue_name", _TEXT),
    "job-key": ("job_key", _TEXT),
    "job-key-mode": ("job_key_mode", _TEXT),
    "priority": ("priority", _NUMBER),
    "payload": ("payload", (dict, "a table")),
}
_REQUIRED: Final = ("schedule", "task")
_JSON_TYPES: Final = {str: "string", int: "integer", dict: "object"}


def _read_items(raw: object) -> Sequence[CronItem]:
    from gw_core.crontab import reject_duplicates

    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        raise ValueError("give each item as a table below [[cron]]")
    items = [_read_item(number, table) for number, table in enumerate(raw, 1)]
    try:
        return reject_duplicates(items)
    except InvalidInputError as error:
        raise ValueError(str(error)) from None


def _read_item(number: int, table: Mapping[str, object]) -> CronItem:
    from gw_core import cron_item

    try:
        return cron_item(**_options(table))
    except InvalidInputError as error:
        raise ValueError(f"item {number}: {error}") from None


def _options(table: Mapping[str, object]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in _KEYS:
            raise InvalidInputError(f"the key {quoted(key)} is unknown; valid keys are {', '.join(_KEYS)}")
        parameter, (kind, expected) = _KEYS[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise InvalidInputError(f"{name} must be {expected}")
        options[parameter] = _duration(value) if name == "fill" else value
    missing = [key for key in _REQUIRED if _KEYS[key][0] not in options]
    if missing:
        raise InvalidInputError(f"the key {missing[0]} is missing")
    return options


def _duration(value: object) -> timedelta:
    return parse_duration(str(value))


CRON_ITEMS: Final = Kind(
    read=_read_items,
    write=lambda items: ", ".join(item.identifier for item in items),
    schema={
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": list(_REQUIRED),
            "properties": {key: {"type": _JSON_TYPES[kind]} for key, (_, (kind, _)) in _KEYS.items()},
        },
    },
)
