"""Saved views of the console in `gw.toml`: tables `[[tui.views]]`, each a screen with a selection and an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gw_cli.sanitize import quoted
from gw_cli.settings.kinds import Kind, checked_table, read_tables, tables_schema

SCREENS: Final = ("overview", "jobs", "queues", "workers", "cron", "locks", "events", "tasks", "errors", "history")
View = Mapping[str, object]
"""A view by its keys, apart from its name."""

_KEYS: Final[Mapping[str, type]] = {"name": str, "screen": str, "selection": str, "sort": str, "columns": list}


def _read_views(raw: object) -> Mapping[str, View]:
    views: dict[str, View] = {}

    def read(table: Mapping[str, object]) -> None:
        view = {"screen": "jobs", **checked_table(table, _KEYS, "name")}
        _check_screen(view["screen"], view.get("selection", ""))
        if (name := view.pop("name")) in views:
            raise ValueError(f"the name {quoted(name)} appears twice; keep one")
        views[name] = view

    read_tables(raw, "view", "tui.views", read)
    return views


def _check_screen(screen: str, selection: str) -> None:
    """Check a screen and its selection of jobs or of history; on other screens it is a name.

    The console checks the columns, which it knows.
    """
    from gw_core.selection import HISTORY_TERMS, parse

    if screen not in SCREENS:
        raise ValueError(f"the screen {quoted(screen)} is unknown; screens are {', '.join(SCREENS)}")
    try:
        if screen == "jobs":
            parse(selection)
        elif screen == "history":
            parse(selection, HISTORY_TERMS)
    except ValueError as error:
        raise ValueError(f"selection: {error}") from None


VIEWS: Final = Kind(read=_read_views, write=", ".join, schema=tables_schema(_KEYS, "name"))
VIEWS.schema["items"]["properties"]["screen"] = {"enum": list(SCREENS)}  # type: ignore[index]
