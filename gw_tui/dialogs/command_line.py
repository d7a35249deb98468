"""A line for commands at the bottom of the screen, with what can be typed above it, completion and history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from gw_tui.rules.command_line import Completion, Destination, completions, parse_line
from gw_tui.rules.commands import ConsoleCommand
from gw_tui.rules.options import Options
from gw_tui.text import sanitize
from gw_tui.text.symbols import SHOWN as MARK

MAX_LENGTH: Final = 1_000
MAX_SHOWN: Final = 10
"""Lines above the one that is typed."""


class CommandLine(ModalScreen[Destination | None]):
    """Asks for a command; `history` has earlier lines, the oldest first, and gets the new one.

    It lists the commands offered that match what is typed; tab takes one after the other.
    """

    AUTO_FOCUS = "Input"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False, priority=True),
        Binding("up", "recall(-1)", show=False, priority=True),
        Binding("down", "recall(1)", show=False, priority=True),
        Binding("tab", "complete(1)", show=False, priority=True),
        Binding("shift+tab", "complete(-1)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    CommandLine { background: transparent; align: left bottom; }
    CommandLine Horizontal { height: 1; background: $panel; }
    CommandLine #prompt { width: 2; padding: 0; text-style: bold; }
    CommandLine Input, CommandLine Input:focus {
        width: 1fr; height: 1; border: none; padding: 0; background: $panel;
    }
    CommandLine #found { height: auto; background: $panel; text-wrap: nowrap; text-overflow: ellipsis; }
    CommandLine #wrong { height: auto; background: $panel; color: $error; display: none; }
    CommandLine #wrong.-shown { display: block; }
    """

    def __init__(self, history: list[str], options: Options, offered: Sequence[ConsoleCommand]) -> None:
        super().__init__()
        self._options = options
        self._offered = offered
        self._found: Sequence[Completion] = ()
        self._taken = -1  # the place of the completion that was taken
        self._history = history
        self._place = len(history)

    def compose(self) -> ComposeResult:
        yield Static("", id="found", markup=False)
        yield Static("", id="wrong", markup=False)
        with Horizontal():
            yield Static(" :", id="prompt", markup=False)
            entry = Input(max_length=MAX_LENGTH, select_on_focus=False)
            entry.cursor_blink = False
            yield entry

    def on_key(self, event: events.Key) -> None:
        """Keep what was typed before the line had the focus; later the line takes it itself."""
        if event.is_printable and event.character is not None:
            event.stop()
            self.query_one(Input).insert_text_at_cursor(event.character)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer, or show what is wrong."""
        if not event.value.strip():
            self.dismiss(None)
            return
        try:
            found = parse_line(event.value, self._options)
        except ValueError as error:
            wrong = self.query_one("#wrong", Static)
            wrong.update(f" {sanitize.line(error, 300)}")
            wrong.add_class("-shown")
            return
        self._history.append(event.value.strip())
        self.dismiss(found)

    def action_leave(self) -> None:
        self.dismiss(None)

    def action_recall(self, step: int) -> None:
        """Show an earlier or a later line of the history."""
        self._place = min(max(0, self._place + step), len(self._history))
        self._show([*self._history, ""][self._place])

    def on_mount(self) -> None:
        self._find("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """List what matches, unless the text is one of the list."""
        if event.value not in {each.line for each in self._found[self._taken : self._taken + 1]}:
            self._find(event.value)

    def _find(self, text: str) -> None:
        self._found, self._taken = completions(text, self._options, self._offered), -1
        self._draw_found()

    def _draw_found(self) -> None:
        first = max(0, self._taken - MAX_SHOWN + 1)
        shown = self._found[first : first + MAX_SHOWN]
        lines = [
            Content.assemble(
                (f"{MARK if place == self._taken else ' '} {sanitize.line(each.line, 60):<24}", "bold"),
                f"{each.keys:<8}",
                (each.help, "$quiet"),
            )
            for place, each in enumerate(shown, first)
        ]
        if (more := len(self._found) - first - len(shown)) > 0:
            lines.append(Content.styled(f"  … {more} more; tab takes the next", "$quiet"))
        self.query_one("#found", Static).update(Content("\n").join(lines))

    def action_complete(self, step: int) -> None:
        """Take the next line of the list, or the one before."""
        if self._found:
            start = self._taken if step > 0 or self._taken >= 0 else 0
            self._taken = (start + step) % len(self._found)
            self._show(self._found[self._taken].line)
            self._draw_found()

    def _show(self, text: str) -> None:
        entry = self.query_one(Input)
        entry.value = text
        entry.cursor_position = len(text)
