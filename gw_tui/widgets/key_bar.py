"""The keys that mean something here and now, from the live bindings; a click presses one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.keys import format_key
from textual.style import Style

from gw_tui.rules.commands import BY_ID, Risk, written
from gw_tui.widgets.line import Line

if TYPE_CHECKING:
    from textual.binding import ActiveBinding

ALWAYS: Final = ("help", "quit")
"""Named even where there is no room for anything else."""


class KeyBar(Line):
    """As many keys as fit, the most useful first."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.draw())
        self.draw()

    def content_for(self, width: int) -> Content:
        useless: frozenset[str] = getattr(self.screen, "useless_keys", frozenset())
        found = {name: each for name, each in live(self.screen.active_bindings).items() if name not in useless}
        left = width - 2 - sum(_size(name, found[name][0]) for name in ALWAYS if name in found)
        shown = []
        for name, (key, is_possible) in sorted(found.items(), key=lambda each: BY_ID[each[0]].rank or 0):
            size = _size(name, key)
            if name in ALWAYS or size <= left:
                shown.append(_entry(name, key, is_possible=is_possible))
                left -= 0 if name in ALWAYS else size
        return Content("  ").join(shown)


def live(bindings: dict[str, ActiveBinding]) -> dict[str, tuple[str, bool]]:
    """Return the commands that have a place in the bar, each with its key and whether it is possible now."""
    found: dict[str, tuple[str, bool]] = {}
    for key, active in bindings.items():
        name, typed = active.binding.id or "", key_label(key)
        command = BY_ID.get(name)
        if command is None or command.rank is None:
            continue
        if name not in found or len(typed) < len(found[name][0]):
            found[name] = (typed, active.enabled)
    return found


def key_label(key: str) -> str:
    """Return the name Textual gives a key as people read it: `/` for `slash`."""
    character = format_key(key)
    return character if len(character) == 1 and "!" <= character <= "~" else written(key)


def _size(name: str, key: str) -> int:
    return len(key) + len(BY_ID[name].label) + 3


def _entry(name: str, key: str, *, is_possible: bool) -> Content:
    command = BY_ID[name]
    if not is_possible:
        return Content.styled(f"{key} {command.label}", "$quiet dim")
    label = "$foreground" if command.risk is not Risk.DESTROYS else "$warning"
    where = "app" if command.is_everywhere else "screen"
    link = Style.from_meta({"@click": f"{where}.{command.action}"})
    return Content.assemble((key, "bold $primary"), (f" {command.label}", label)).stylize(link)
