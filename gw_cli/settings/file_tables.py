"""Tables in `gw.toml`: cron items below `[[cron]]`, and saved views of the console below `[[tui.views]]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gw_cli.sanitize import quoted
from gw_cli.settings.kinds import Kind, type_name
from gw_core.front_ends import parse_duration

if TYPE_CHECKING:
    from gw_core import CronItem

T = TypeVar("T")

_TYPES: Final[Mapping[type, tuple[str, Mapping[str, object]]]] = {
    str: ("a text", {"type": "string"}),
    int: ("a number", {"type": "integer"}),
    dict: ("a table", {"type": "object"}),
    list: ("a list of texts", {"type": "array", "items": {"type": "string"}}),
}


def _read_tables(raw: object, what: str, place: str, read: Callable[[Mapping[str, object]], T]) -> list[T]:
    """Return what the tables `[[place]]` of a file mean; an error names the table by its number."""
    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        raise ValueError(f"give each {what} as a table below [[{place}]]")
    found: list[T] = []
    for number, each in enumerate(raw, 1):
        try:
            found.append(read(each))
        except ValueError as error:
            raise ValueError(f"{what} {number}: {error}") from None
    return found


def _checked(table: Mapping[str, object], keys: Mapping[str, type], *required: str) -> dict[str, Any]:
    """Return the values of a table; raises `ValueError` for an unknown key, a wrong type or a missing key."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("_", "-")
        if name not in keys:
            raise ValueError(f"the key {quoted(key)} is unknown; valid keys are {', '.join(keys)}")
        texts = value if isinstance(value, list) else ()
        if type(value) is not keys[name] or not all(isinstance(each, str) for each in texts):
            raise ValueError(f"{name} must be {_TYPES[keys[name]][0]}, not {type_name(value)}")
        values[name] = value
    for key in required:
        if not values.get(key):
            raise ValueError(f"the key {key} is missing")
    return values


def _schema(keys: Mapping[str, type], *required: str) -> dict[str, Any]:
    """Return the JSON Schema of a list of such tables."""
    properties = {key: _TYPES[kind][1] for key, kind in keys.items()}
    item = {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}
    return {"type": "array", "items": item}


# -- cron items --------------------------------------------------------------------------------------------------------

_ITEM_KEYS: Final[Mapping[str, type]] = {
    "schedule": str,
    "task": str,
    "tz": str,
    "id": str,
    "fill": str,
    "max-attempts": int,
    "queue-name": str,
    "job-key": str,
    "job-key-mode": str,
    "priority": int,
    "payload": dict,
}
_REQUIRED: Final = ("schedule", "task")
_PARAMETERS: Final = {"schedule": "when"}
"""The parameters of `cron_item` with other names than their keys."""


def _read_items(raw: object) -> Sequence[CronItem]:
    from gw_core.front_ends import reject_duplicates

    return reject_duplicates(_read_tables(raw, "item", "cron", _read_item))


def _read_item(table: Mapping[str, object]) -> CronItem:
    from gw_core import cron_item

    values = _checked(table, _ITEM_KEYS, *_REQUIRED)
    if "fill" in values:
        values["fill"] = parse_duration(values["fill"])
    return cron_item(**{_PARAMETERS.get(key, key.replace("-", "_")): value for key, value in values.items()})


CRON_ITEMS: Final = Kind(
    read=_read_items,
    write=lambda items: ", ".join(item.identifier for item in items),
    schema=_schema(_ITEM_KEYS, *_REQUIRED),
)


# -- views of the console ----------------------------------------------------------------------------------------------

SCREENS: Final = ("overview", "jobs", "queues", "workers", "cron", "locks", "events", "tasks", "errors", "history")
View = Mapping[str, object]
"""A view by its keys, apart from its name."""

_VIEW_KEYS: Final[Mapping[str, type]] = {"name": str, "screen": str, "selection": str, "sort": str, "columns": list}


def _read_views(raw: object) -> Mapping[str, View]:
    views: dict[str, View] = {}

    def read(table: Mapping[str, object]) -> None:
        view = {"screen": "jobs", **_checked(table, _VIEW_KEYS, "name")}
        _check_screen(view["screen"], view.get("selection", ""))
        if (name := view.pop("name")) in views:
            raise ValueError(f"the name {quoted(name)} appears twice; keep one")
        views[name] = view

    _read_tables(raw, "view", "tui.views", read)
    return views


def _check_screen(screen: str, selection: str) -> None:
    """Check a screen and its selection of jobs or of history; on other screens it is a name.

    The console checks the columns, which it knows.
    """
    from gw_core.front_ends import HISTORY_TERMS
    from gw_core.selection import parse

    if screen not in SCREENS:
        raise ValueError(f"the screen {quoted(screen)} is unknown; screens are {', '.join(SCREENS)}")
    try:
        if screen == "jobs":
            parse(selection)
        elif screen == "history":
            parse(selection, HISTORY_TERMS)
    except ValueError as error:
        raise ValueError(f"selection: {error}") from None


VIEWS: Final = Kind(read=_read_views, write=", ".join, schema=_schema(_VIEW_KEYS, "name"))
VIEWS.schema["items"]["properties"]["screen"] = {"enum": list(SCREENS)}  # type: ignore[index]
