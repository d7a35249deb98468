"""Show another database: this console ends, and a new one begins there, so that nothing mixes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gw_tui.dialogs.choose import Choice, Choose
from gw_tui.rules.commands import SCREEN_BY_ID, SCREENS

if TYPE_CHECKING:
    from textual.app import App

    from gw_tui.action_runner import ActionRunner
    from gw_tui.rules.options import Options
    from gw_tui.state import ConsoleState


class Contexts:
    """The databases between which an operator switches. `choose` runs in a worker of the app."""

    def __init__(self, app: App[Options], state: ConsoleState, runner: ActionRunner) -> None:
        self._app = app
        self._state = state
        self._runner = runner

    async def choose(self) -> None:
        """Ask which database to show."""
        options = self._state.options
        choices = [Choice(name, name, "shown" * (name == options.context)) for name in options.contexts]
        if not choices:
            self._app.notify("The console shows a single database; others are named by --shard or tui.contexts")
        elif (name := await self._app.push_screen_wait(Choose("Show another database", choices))) is not None:
            self.switch_to(name)

    def switch_to(self, context: str) -> None:
        """End this console; another one begins with the same screen, theme and interval."""
        app, state, options = self._app, self._state, self._state.options
        if context == options.context:
            return
        if self._runner.is_busy:
            app.notify("Wait for the running action, or stop it with esc", severity="warning")
        elif options.is_served:
            app.notify("A browser shows one database: gw tui --serve --context NAME", severity="warning")
        else:
            screen = app.current_mode if app.current_mode in SCREEN_BY_ID else SCREENS[0].id
            here = replace(options, screen=screen, filter="", open="", theme=app.theme, period=state.period)
            app.exit(replace(here, context=context, typed=tuple(state.typed)))
