"""The input line of a filter: it shows errors with their position, the cost, and completions of a term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Blur
from textual.message import Message
from textual.widgets import Input, Static

from gw_core import Selection
from gw_core.errors import SelectionError
from gw_core.front_ends import EVERYTHING, Cost, Suggestion, suggest
from gw_core.selection import parse
from gw_tui.text.sanitize import UNSAFE, line

LONGEST: Final = 1_000
MAX_SHOWN: Final = 6
MARGINS: Final = 2
COSTS: Final = {
    Cost.INDEX: "uses an index",
    Cost.WINDOW: "reads jobs in chunks",
    Cost.SCAN: "reads long texts of many jobs; esc stops it",
}


class FilterBar(Vertical):
    """Shows a filter, and lets it be edited; posts `Submitted` with the filter, or `Left` when editing was given up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", "Complete", show=False),
        Binding("down", "choose(1)", "Next suggestion", show=False),
        Binding("up", "choose(-1)", "Previous suggestion", show=False),
        Binding("escape", "leave", "Leave", show=False),
    ]
    DEFAULT_CSS = """
    FilterBar { height: auto; }
    FilterBar > Input, FilterBar > Input:focus { height: 1; border: none; padding: 0 1; background: $panel; }
    FilterBar > #shown { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    FilterBar > #hint { height: auto; padding: 0 1; display: none; text-wrap: nowrap; text-overflow: ellipsis; }
    FilterBar.-editing > #hint { display: block; }
    FilterBar.-editing > #shown { display: none; }
    """

    @dataclass
    class Submitted(Message):
        """A filter was typed and understood."""

        wanted: Selection

    class Left(Message):
        """Editing was given up; the filter is what it was."""

    class Began(Message):
        """Editing began: now names to suggest are worth having."""

    def __init__(self, wanted: Selection = EVERYTHING) -> None:
        super().__init__()
        self.wanted = wanted
        """The filter in force."""
        self._names: Mapping[str, Sequence[str]] = {}
        self._suggestions: list[Suggestion] = []
        self._chosen = 0
        self._error: SelectionError | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="shown")
        entry = Input(max_length=LONGEST, select_on_focus=False)
        entry.cursor_blink = False
        entry.display = False
        yield entry
        yield Static(id="hint")

    def on_click(self) -> None:
        if not self.is_editing:
            self.edit()

    def on_mount(self) -> None:
        self.show(self.wanted)

    def on_resize(self) -> None:
        """Lay an error out again: its reason stands beside its mark only where there is room."""
        if self._error is not None:
            self._report(self._error)

    @property
    def is_editing(self) -> bool:
        """True while a filter is typed."""
        return self.has_class("-editing")

    def show(self, wanted: Selection) -> None:
        self.wanted = wanted
        text = line(wanted, LONGEST)
        content = Content.assemble(("/ ", "$quiet"), (text, "bold") if text else ("all jobs", "$quiet"))
        for shown in self.query("#shown").results(Static):  # none before the first layout, which shows it then
            shown.update(content, layout=False)

    def know(self, names: Mapping[str, Sequence[str]]) -> None:
        """Suggest these names of tasks, queues and workers."""
        self._names = names
        if self.is_editing:
            self._hint()

    def edit(self) -> None:
        """Begin to type."""
        self.add_class("-editing")
        entry = self.query_one(Input)
        entry.display = True
        text = f"{self.wanted} " if self.wanted.conditions else ""
        entry.value = text
        entry.cursor_position = len(text)
        # Not `focus()`, which takes effect later: the next letters must not go to the list, where they are commands.
        self.screen.set_focus(entry)
        self.post_message(self.Began())
        self._hint()

    # -- typing ----------------------------------------------------------------------------------------------------

    def on_input_changed(self, event: Input.Changed) -> None:
        """Say how it stands with what was typed so far."""
        event.stop()
        cleaned = UNSAFE.sub(" ", event.value)  # what was pasted may hold anything
        if cleaned != event.value:
            event.input.value = cleaned
            return
        self._chosen = 0
        self._hint()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Take the filter over when it is understood; else say where it is not."""
        event.stop()
        try:
            wanted = parse(event.value)
        except SelectionError as error:
            event.input.cursor_position = min(error.position, len(event.value))
            self._suggestions = []
            self._report(error)
            return
        self._end()
        self.show(wanted)
        self.post_message(self.Submitted(wanted))

    def action_complete(self) -> None:
        if self._suggestions:
            taken = self._suggestions[self._chosen]
            entry = self.query_one(Input)
            entry.value = taken.text
            entry.cursor_position = taken.cursor

    def action_choose(self, step: int) -> None:
        if self._suggestions:
            self._chosen = (self._chosen + step) % len(self._suggestions)
            self._hint()

    def action_leave(self) -> None:
        self._end()
        self.post_message(self.Left())

    def on_descendant_blur(self, event: Blur) -> None:
        """Typing ends when something else is focused, as by the mouse."""
        if self.is_editing and self.app.focused is not self.query_one(Input) and self.app.app_focus:
            self.action_leave()

    def _end(self) -> None:
        self.remove_class("-editing")
        self.query_one(Input).display = False
        self._chosen = 0

    # -- the hint --------------------------------------------------------------------------------------------------

    def _hint(self) -> None:
        entry = self.query_one(Input)
        self._suggestions = suggest(entry.value, entry.cursor_position, self._names)
        if self._suggestions:
            self._offer()
            return
        try:
            self._report(parse(entry.value))
        except SelectionError as error:
            self._report(error)

    def _offer(self) -> None:
        self._error = None
        self._chosen = min(self._chosen, len(self._suggestions) - 1)
        first = max(0, min(self._chosen - MAX_SHOWN + 1, len(self._suggestions) - MAX_SHOWN))
        shown = self._suggestions[first : first + MAX_SHOWN]
        lines = [self._offered(each, is_chosen=first + place == self._chosen) for place, each in enumerate(shown)]
        left = len(self._suggestions) - len(shown)
        keys = f"tab completes · ↑↓ choose · {left} more" if left else "tab completes · ↑↓ choose"
        self._write(Content("\n").join([*lines, Content.styled(keys, "$quiet")]))

    def _offered(self, each: Suggestion, *, is_chosen: bool) -> Content:
        return Content.assemble(
            ("> " if is_chosen else "  ", "bold"),
            (f"{line(each.shown):<16}", "reverse" if is_chosen else ""),
            (f" {line(each.help)}", "$quiet"),
        )

    def _report(self, found: Selection | SelectionError) -> None:
        if isinstance(found, SelectionError):
            self._error = found
            self._write(Content.styled(_pointed(found, self.size.width - MARGINS), "bold $error"))
        else:
            self._error = None
            self._write(Content.styled(f"enter shows · {COSTS[found.cost]}", "$quiet"))

    def _write(self, words: Content) -> None:
        self.query_one("#hint", Static).update(words)


def _pointed(error: SelectionError, width: int) -> str:
    """Return what is wrong below a mark at its place, beside the mark where there is room."""
    mark, reason = " " * min(error.position, width - 1) + "^", line(error.reason)
    beside = f"{mark} {reason}"
    return beside if len(beside) <= width else f"{mark}\n{reason}"
