"""The keys that mean something here and now, from the live bindings; a click presses one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from textual.content import Content
from textual.keys import format_key
from textual.style import Style

from gw_tui.rules.commands import BY_ID, ESSENTIAL, ConsoleCommand, Risk, written
from gw_tui.widgets.line import Line

if TYPE_CHECKING:
    from textual.binding import ActiveBinding

ANY_OTHER: Final = (3, 0)
"""The weight from which on labels are not shortened to make room for a command."""
GAP: Final = 2
"""Columns between two keys."""


class BarEntry(NamedTuple):
    """A key with its command in words, and whether it can be given now."""

    command: ConsoleCommand
    key: str
    label: str
    is_possible: bool

    @property
    def words(self) -> str:
        """What stands in the bar."""
        return f"{self.key} {self.label}"

    @property
    def shortened(self) -> BarEntry:
        """The entry with the shortest label."""
        return self._replace(label=self.command.short or self.label)


class KeyBar(Line):
    """As many keys as fit: the actions on the row, the filter, the commands and the help first."""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.draw())
        self.draw()

    def content_for(self, width: int) -> Content:
        useless: frozenset[str] = getattr(self.screen, "useless_keys", frozenset())
        found = [each for each in live(self.screen.active_bindings) if each.command.id not in useless]
        shown = fitting(found, width)
        if any(each not in shown for each in found if each.command.weight < ANY_OTHER):
            shown = fitting([each.shortened for each in found], width)
        return Content(" " * GAP).join(map(_entry, shown))


def fitting(found: Iterable[BarEntry], width: int) -> list[BarEntry]:
    """Return the entries that fit, from the left to the right; none has a place that a weightier one lacks."""
    ranked = sorted(found, key=lambda each: each.command.weight)
    kept = [each for each in ranked if each.command.id in ESSENTIAL]
    for each in ranked:
        if each not in kept and sum(len(one.words) + GAP for one in (*kept, each)) - GAP > width:
            break
        kept += [each] if each not in kept else []
    return sorted(kept, key=lambda each: each.command.rank or 0)


def live(bindings: Mapping[str, ActiveBinding]) -> list[BarEntry]:
    """Return the commands that have a place in the bar, each under its shortest key."""
    found: dict[str, BarEntry] = {}
    for key, active in bindings.items():
        name, typed = active.binding.id or "", key_label(key)
        command = BY_ID.get(name)
        if command is None or command.rank is None:
            continue
        if name not in found or len(typed) < len(found[name].key):
            found[name] = BarEntry(command, typed, active.binding.description, active.enabled)
    return list(found.values())


def key_label(key: str) -> str:
    """Return the name Textual gives a key as people read it: `/` for `slash`."""
    character = format_key(key)
    return character if len(character) == 1 and "!" <= character <= "~" else written(key)


def _entry(entry: BarEntry) -> Content:
    command = entry.command
    if not entry.is_possible:
        return Content.styled(entry.words, "$quiet dim")
    label = "$foreground" if command.risk is not Risk.DESTROYS else "$warning"
    where = "app" if command.is_everywhere else "screen"
    link = Style.from_meta({"@click": f"{where}.{command.action}"})
    return Content.assemble((entry.key, "bold $primary"), (f" {entry.label}", label)).stylize(link)
