"""The keys that mean something on the screen below, and what they do: from the live bindings."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from gw_tui.dialogs.framed import Framed, FramedText
from gw_tui.rules.commands import BY_ID, ConsoleCommand, Risk
from gw_tui.widgets.key_bar import key_label

if TYPE_CHECKING:
    from textual.binding import ActiveBinding

INDENT: Final = 16
WIDEST: Final = 76
FRAME: Final = 5
"""What border, padding and scrollbar take of the width."""

MOVING: Final = (
    ("↑ ↓ j k", "Move."),
    ("pgup pgdn g G", "Move by a page, to the first or the last row."),
    ("tab", "Go to the next panel."),
)


class HelpScreen(Framed[None]):
    """Lists the keys of one screen."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,f1", "leave", show=False)]
    DEFAULT_CSS = "HelpScreen .framed { width: 76; height: 90%; scrollbar-size-vertical: 1; }"

    def __init__(self, title: str, about: str, bindings: dict[str, ActiveBinding]) -> None:
        super().__init__()
        self._title = title
        self._about = about
        self._keys = bindings

    def compose(self) -> ComposeResult:
        with FramedText(classes="framed") as panel:
            panel.border_title = f"Help: {self._title}"
            panel.border_subtitle = "esc closes"
            yield Static(id="keys", markup=False)

    def on_resize(self, event: events.Resize) -> None:
        """Let what a key does go on below where it began."""
        self.query_one("#keys", Static).update(self._content(min(WIDEST, event.size.width) - FRAME))

    def _content(self, width: int = 1_000) -> Content:
        here = [line for command, line in self._lines(width) if not command.is_everywhere]
        everywhere = [line for command, line in self._lines(width) if command.is_everywhere]
        moving = [_line(keys, words, "$foreground", width) for keys, words in MOVING]
        blocks = [
            Content(self._about),
            *_block("Here", here),
            *_block("Moving", moving),
            *_block("Everywhere", everywhere),
        ]
        return Content("\n").join(blocks)

    def _lines(self, width: int) -> Iterable[tuple[ConsoleCommand, Content]]:
        keys: dict[str, list[str]] = {}
        for key, active in self._keys.items():
            if active.binding.id is not None and active.binding.id in BY_ID:
                keys.setdefault(active.binding.id, []).append(key_label(key))
        for name, command in BY_ID.items():
            if name in keys:
                style = "$warning" if command.risk is Risk.DESTROYS else "$foreground"
                words = f"{command.label}: {command.help}" if name.startswith("go_") else command.help
                yield command, _line(" ".join(keys[name]), words, style, width)


def _block(title: str, lines: list[Content]) -> list[Content]:
    return [Content(""), Content.styled(title, "bold $primary"), *lines] if lines else []


def _line(keys: str, words: str, style: str, width: int) -> Content:
    first, *rest = textwrap.wrap(words, max(INDENT, width - INDENT))
    lines = [first, *(" " * INDENT + each for each in rest)]
    return Content.assemble((f"  {keys:<{INDENT - 2}}", "bold"), ("\n".join(lines), style))
