"""What became of an action, job by job; and how far a long one has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import ProgressBar, Static

from gw_tui.actions import Result
from gw_tui.actions.outcome import ActionOutcome
from gw_tui.dialogs.framed import Framed, FramedText
from gw_tui.text import sanitize, symbols

if TYPE_CHECKING:
    from gw_tui.actions import Action, SkippedItem

MAX_SHOWN: Final = 20
"""Reasons for skipping that are listed, the most frequent first."""
MAX_NAMED: Final = 5
"""Jobs that are named for each reason."""


class ResultDialog(Framed[None]):
    """Shows what was done, and what was skipped and why."""

    DEFAULT_CSS = "ResultDialog .framed { width: 76; }"

    def __init__(self, outcome: ActionOutcome) -> None:
        super().__init__()
        self._outcome = outcome

    def compose(self) -> ComposeResult:
        with FramedText(classes="framed") as panel:
            panel.border_title = "Result"
            panel.border_subtitle = "esc closes"
            yield Static(self._content(), markup=False)

    def _content(self) -> Content:
        failure, skipped = self._outcome.failure, self._outcome.result.skipped
        lines = [Content.styled(headline, "bold")] if (headline := self._outcome.headline) else []
        if failure:
            lines.append(Content.styled(symbols.ALARM.before(sanitize.line(failure, 400)), "$error"))
        groups = _by_reason(skipped)
        lines += [_group(why, names) for why, names in groups[:MAX_SHOWN]]
        if len(groups) > MAX_SHOWN:
            lines.append(Content.styled(f"… {len(groups) - MAX_SHOWN:,} more reasons", "$quiet"))
        return Content("\n").join(lines)


def _by_reason(skipped: Sequence[SkippedItem]) -> list[tuple[str, list[str]]]:
    """Return what was skipped by the reason, the most frequent one first."""
    found: dict[str, list[str]] = {}
    for each in skipped:
        found.setdefault(each.why, []).append(each.what)
    return sorted(found.items(), key=lambda group: -len(group[1]))


def _group(why: str, names: Sequence[str]) -> Content:
    shown = ", ".join(sanitize.line(each, 64) for each in names[:MAX_NAMED])
    more = ", …" if len(names) > MAX_NAMED else ""
    count = f"{len(names):,} " if len(names) > 1 else ""
    return Content.assemble(f"  {count}{sanitize.line(why, 200)}  ", (f"{shown}{more}", "$quiet"))


class ProgressDialog(Framed[None]):
    """Shows how far an action in batches has come; esc stops it after the current one."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "halt", "Stop", show=False)]

    DEFAULT_CSS = """
    ProgressDialog .framed { width: 60; max-height: 100%; }
    ProgressDialog ProgressBar { width: 1fr; }
    ProgressDialog Bar { width: 1fr; }
    """

    def __init__(self, action: Action, stop: Callable[[], None]) -> None:
        super().__init__()
        self.action = action
        self._result = Result()
        self._stop = stop

    def compose(self) -> ComposeResult:
        with Vertical(id="progress", classes="framed") as panel:
            panel.border_subtitle = "esc stops after this batch"
            yield Static("", id="so-far", markup=False)
            yield ProgressBar(total=len(self.action.ids), show_eta=False)

    def on_mount(self) -> None:
        self.follow(self._result)

    def follow(self, result: Result) -> None:
        """Show how far the action has come."""
        self._result = result
        if self.is_mounted and self.query("#so-far"):
            self.query_one("#so-far", Static).update(Content(ActionOutcome(self.action, result).so_far))
            self.query_one(ProgressBar).update(progress=len(result.done) + len(result.skipped))

    def action_halt(self) -> None:
        """Let the current batch be the last."""
        self._stop()
        self.query_one("#progress", Vertical).border_subtitle = "stopping"
