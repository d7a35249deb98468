"""Saved views of the console in `gw.toml`: tables `[[tui.views]]`, each a screen with a selection and an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gw_cli.sanitize import quoted
from gw_cli.settings.kinds import Kind

SCREENS: Final = ("overview", "jobs", "queues", "workers", "cron", "locks", "events", "tasks", "errors", "history")
View = Mapping[str, object]
"""A view by its keys, apart from its name."""

_KEYS: Final[Mapping[str, tuple[type, str]]] = {
    "name": (str, "a text"),
    "screen": (str, "a text"),
    "selection": (str, "a text"),
    "sort": (str, "a text"),
    "columns": (list, "a list of texts"),
}
_JSON_TYPES: Final[Mapping[type, object]] = {
    str: {"type": "string"},
    list: {"type": "array", "items": {"type": "string"}},
}


def _read_views(raw: object) -> Mapping[str, View]:
    if not isinstance(raw, list) or not all(isinstance(each, dict) for each in raw):
        raise ValueError("give each view as a table below [[tui.views]]")
    views: dict[str, View] = {}
    for number, table in enumerate(raw, 1):
        try:
            _check(table)
        except ValueError as error:
            raise ValueError(f"view {number}: {error}") from None
        name = str(table["name"])
        if name in views:
            raise ValueError(f"view {number}: the name {quoted(name)} appears twice; keep one")
        views[name] = {"screen": "jobs", **{key: value for key, value in table.items() if key != "name"}}
    return views


def _check(table: Mapping[str, object]) -> None:
    """Check keys and values; the console checks the columns, which it knows."""
    for key, value in table.items():
        if key not in _KEYS:
            raise ValueError(f"the key {quoted(key)} is unknown; valid keys are {', '.join(_KEYS)}")
        kind, expected = _KEYS[key]
        is_text = not isinstance(value, list) or all(isinstance(each, str) for each in value)
        if not isinstance(value, kind) or not is_text:
            raise ValueError(f"{key} must be {expected}")
    if not table.get("name"):
        raise ValueError("the key name is missing")
    if (screen := table.get("screen", "jobs")) not in SCREENS:
        raise ValueError(f"the screen {quoted(str(screen))} is unknown; screens are {', '.join(SCREENS)}")
    _check_selection(str(screen), str(table.get("selection", "")))


def _check_selection(screen: str, selection: str) -> None:
    """Check a selection of jobs or of history; on other screens it is a name."""
    from gw_core.errors import InvalidInputError, SelectionError
    from gw_core.selection import HISTORY_TERMS, parse

    try:
        if screen == "jobs":
            parse(selection)
        elif screen == "history":
            parse(selection, HISTORY_TERMS)
    except (SelectionError, InvalidInputError) as error:
        raise ValueError(f"selection: {error}") from None


VIEWS: Final = Kind(
    read=_read_views,
    write=", ".join,
    schema={
        "type": "array",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name"],
            "properties": {
                **{key: _JSON_TYPES[kind] for key, (kind, _) in _KEYS.items()},
                "screen": {"enum": list(SCREENS)},
            },
        },
    },
)
