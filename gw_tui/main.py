"""Start the console on this terminal, and leave the terminal as it was."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

from gw_core.errors import InvalidSettingError
from gw_tui.app import ConsoleApp, screen_of
from gw_tui.data.source import DataSource
from gw_tui.rules.commands import SCREEN_BY_ID, with_keys
from gw_tui.rules.options import Options
from gw_tui.rules.preferences import SavedView
from gw_tui.screens.list_screen import ListScreen
from gw_tui.watchdog import Watch


def run(sources: Mapping[str, Callable[[], DataSource]], options: Options) -> int:
    """Show the console until the operator leaves, and return the exit code.

    The sources are opened by the names of their contexts, one at a time.
    """
    check(options)
    # An empty value means colours; the framework takes any value as a request for none.
    if os.environ.get("NO_COLOR") == "":
        del os.environ["NO_COLOR"]
    while True:
        app = ConsoleApp(sources[options.context](), options)
        if options.theme not in app.theme_names:
            raise InvalidSettingError(f"unknown theme {options.theme!r}; themes are {', '.join(app.theme_names)}")
        asyncio.run(_run(app, mouse=options.mouse))
        if app.failure is not None:
            raise app.failure
        if app.return_value is None:
            return app.return_code or 0
        options = app.return_value


def check(options: Options) -> None:
    """Reject invalid options: raises `InvalidSettingError`."""
    if options.screen not in SCREEN_BY_ID:
        raise InvalidSettingError(f"unknown screen {options.screen!r}; screens are {', '.join(SCREEN_BY_ID)}")
    for name, view in options.preferences.views.items():
        _check_columns(name, view)
    try:
        with_keys(options.preferences.keys)
    except ValueError as error:
        raise InvalidSettingError(f"tui.keys: {error}") from None


def _check_columns(name: str, view: SavedView) -> None:
    screen = screen_of(SCREEN_BY_ID[view.screen])
    known = [each.key for each in screen.all_columns] if isinstance(screen, ListScreen) else []
    for column in view.column_names:
        if column not in known:
            valid = f"columns are {', '.join(known)}" if known else "this screen has none to choose"
            raise InvalidSettingError(f"tui.views: view {name!r}: unknown column {column!r}; {valid}")


async def _run(app: ConsoleApp, *, mouse: bool) -> None:
    with Watch(asyncio.get_running_loop(), lambda code: app.exit(None, code)):
        await app.run_async(mouse=mouse)
