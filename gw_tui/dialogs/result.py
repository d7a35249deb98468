"""What became of an act, job by job; and how far a long one has come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Final, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import ProgressBar, Static

from gw_tui.actions.actions import SkippedItem
from gw_tui.text import sanitize

if TYPE_CHECKING:
    from gw_tui.actions.batch import ActionBatch
    from gw_tui.app import ConsoleApp

MOST_SHOWN: Final = 200


class ResultDialog(ModalScreen[None]):
    """Says what was done, and what was left alone and why."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "dismiss", "Close", show=False),
        Binding("j,down", "scroll(1)", show=False),
        Binding("k,up", "scroll(-1)", show=False),
    ]

    DEFAULT_CSS = """
    ResultDialog { align: center middle; background: $background 60%; }
    ResultDialog #result {
        width: 76; max-width: 100%; height: auto; max-height: 90%;
        border: round $primary; background: $panel; padding: 0 1;
    }
    """

    def __init__(
        self, headline: str, omitted: Sequence[SkippedItem] = (), *, words: str = "", failure: str = ""
    ) -> None:
        super().__init__()
        self._headline = headline
        self._omitted = omitted
        self._words = words
        self._failure = failure

    @classmethod
    def of(cls, deed: ActionBatch) -> ResultDialog:
        """Say what became of a deed."""
        return cls(deed.headline, deed.result.omitted, failure=deed.failure)

    def compose(self) -> ComposeResult:
        """Lay out the lines."""
        with VerticalScroll(id="result") as panel:
            panel.border_title = "Result"
            panel.border_subtitle = "esc closes"
            yield Static(self._content(), markup=False)

    def action_scroll(self, lines: int) -> None:
        """Scroll the lines."""
        self.query_one("#result").scroll_relative(y=lines, animate=False)

    def _content(self) -> Content:
        lines = [Content.styled(self._headline, "bold")]
        if self._failure:
            lines.append(Content.styled(f"✖ {sanitize.line(self._failure, 400)}", "$error"))
        if self._words:
            lines.append(Content(sanitize.block(self._words)))
        lines += [Content(f"  {sanitize.line(each.what, 64)}  {sanitize.line(each.why, 200)}") for each in self._shown]
        if len(self._omitted) > MOST_SHOWN:
            lines.append(Content.styled(f"… {len(self._omitted) - MOST_SHOWN:,} more left alone", "$quiet"))
        return Content("\n").join(lines)

    @property
    def _shown(self) -> Sequence[SkippedItem]:
        return self._omitted[:MOST_SHOWN]


class ProgressDialog(ModalScreen[None]):
    """Shows how far a deed in parts has come; esc stops it after the part under way."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "halt", "Stop", show=False)]

    DEFAULT_CSS = """
    ProgressDialog { align: center middle; background: $background 60%; }
    ProgressDialog #progress {
        width: 60; max-width: 100%; height: auto; border: round $primary; background: $panel; padding: 0 1;
    }
    ProgressDialog ProgressBar { width: 1fr; }
    ProgressDialog Bar { width: 1fr; }
    """

    def __init__(self, deed: ActionBatch) -> None:
        super().__init__()
        self._deed = deed

    def compose(self) -> ComposeResult:
        """Lay out the bar."""
        with Vertical(id="progress") as panel:
            panel.border_subtitle = "esc stops after this batch"
            yield Static("", id="so-far", markup=False)
            yield ProgressBar(total=self._deed.size, show_eta=False)

    def on_mount(self) -> None:
        """Show what is known at the beginning."""
        self.follow(self._deed)

    def follow(self, deed: ActionBatch) -> None:
        """Show how far the deed has come."""
        self._deed = deed
        if self.is_mounted and self.query("#so-far"):
            self.query_one("#so-far", Static).update(Content(deed.headline))
            self.query_one(ProgressBar).update(progress=deed.size - deed.untouched)

    def action_halt(self) -> None:
        """Let the part under way be the last."""
        cast("ConsoleApp", self.app).deeds.stop()
        self.query_one("#progress", Vertical).border_subtitle = "stopping"
