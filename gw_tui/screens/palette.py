"""The command palette: every command of the screen below that is possible now, and the themes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from gw_tui.rules.commands import ConsoleCommand, known_on, written
from gw_tui.screens.base import ConsoleScreen

if TYPE_CHECKING:
    from gw_tui.console import Console


class ConsoleCommands(Provider):
    """Finds commands by their names and their help."""

    async def discover(self) -> Hits:
        """Offer everything before a letter was typed."""
        for title, words, run in self._all():
            yield DiscoveryHit(title, run, help=words)

    async def search(self, query: str) -> Hits:
        """Offer what matches."""
        matcher = self.matcher(query)
        for title, words, run in self._all():
            if (score := max(matcher.match(title), matcher.match(words) / 2)) > 0:
                yield Hit(score, matcher.highlight(title), run, text=title, help=words)

    def _all(self) -> Iterator[tuple[str, str, Any]]:
        screen, app = self.screen, cast("Console", self.app)
        place = screen.SCREEN_ID if isinstance(screen, ConsoleScreen) else ""
        for command in known_on(place):
            where = self.app if command.is_everywhere else screen
            if command.id != "palette" and where.check_action(command.id, ()):
                run = partial(app.run_action, command.action, default_namespace=where)
                yield _title(command), _help(command, app.options.keys), run
        for name in app.theme_names:
            yield f"Theme {name}", "Show everything in these colours.", partial(app.use_theme, name)


def _help(command: ConsoleCommand, chosen: Mapping[str, str]) -> str:
    """Return what a command does, after its keys."""
    keys = chosen[command.id].split() if command.id in chosen else command.keys
    return f"{' '.join(map(written, keys))} · {command.help}" if keys else command.help


def _title(command: ConsoleCommand) -> str:
    return f"Go to {command.label}" if command.id.startswith("go_") else command.label
