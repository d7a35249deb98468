"""The two lines at the top of every screen, and the banner below them when the database does not answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from gw_tui.rules.commands import SCREENS
from gw_tui.text import symbols
from gw_tui.widgets.line import Line

NAME: Final = " gw "
FORMS: Final = ((" ", "title", " "), (" ", "title", ""), ("", "title", ""), (" ", "short", ""), ("", "short", ""))
"""How tabs are written, the roomiest first: what follows the key, which word, and what follows that."""

Fact = tuple[int, str, str]
"""A part of the connection line: its rank, its text and its style. The largest rank is left out first."""


class TabBar(Line):
    """The screens with their keys, and with their long titles where they fit; a click goes there."""

    def __init__(self, active: str) -> None:
        super().__init__()
        self._active = active

    def content_for(self, width: int) -> Content:
        forms = [
            [(place, f" {place.key}", f"{gap}{getattr(place, name)}{end}") for place in SCREENS]
            for gap, name, end in FORMS
        ]
        form = next((each for each in forms if sum(len(key + title) for _, key, title in each) <= width), forms[-1])
        has_name = form is forms[0] and sum(len(key + title) for _, key, title in form) + len(NAME) <= width
        parts: list[Content | str] = [Content.styled(NAME, "bold")] if has_name else []
        for place, key, title in form:
            is_active = place.id == self._active
            styles = ("bold reverse", "bold reverse") if is_active else ("$primary", "$quiet")
            link = Style.from_meta({"@click": f"app.go('{place.id}')"})
            parts.append(Content.assemble(*zip((key, title), styles, strict=True)).stylize(link))
        return Content("").join(parts)


class ConnectionLine(Line):
    """How things stand: state, target, schema, mode, pace and the server's clock."""

    def __init__(self) -> None:
        super().__init__()
        self._facts: Sequence[Fact] = ()

    def show(self, facts: Iterable[Fact]) -> None:
        self._facts = tuple(facts)
        self.draw()

    def content_for(self, width: int) -> Content:
        return Content("  ").join(Content.styled(text, style) for _, text, style in _that_fit(self._facts, width - 2))


def _that_fit(facts: Sequence[Fact], width: int) -> Sequence[Fact]:
    kept = list(facts)
    while len(kept) > 1 and sum(len(text) + 2 for _, text, _ in kept) - 2 > width:
        kept.remove(max(kept))
    return kept


class Banner(Static):
    """Describes a connection problem and what happens next; empty without one."""

    def __init__(self) -> None:
        super().__init__("", markup=False)
        self._words = ""

    def show(self, words: str) -> None:
        if words == self._words:
            return
        self._words = words
        self.set_class(bool(words), "-shown")
        self.set_class(words.startswith(symbols.WARNING.sign), "-warns")
        self.update(Content(words))
