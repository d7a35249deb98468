"""Is that meant? Yes or no; or, where much would be hit, a word to type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Input, Static

from gw_core.operations import FoundJob
from gw_tui.dialogs.base import Dialog
from gw_tui.text import formatting, sanitize, symbols

if TYPE_CHECKING:
    from gw_tui.actions.actions import Act

NAMED: Final = 6
"""Jobs named one by one; of more the tasks are counted."""

ASKED_TO_TYPE: Final = 100
"""An act that destroys more jobs than this asks for their number to be typed."""


class Confirm(Dialog[str]):
    """Asks before something is done; answers with what was typed, or with an empty text.

    `to_type` is what has to be typed; `asks_for` names a text that may be given, such as a reason. `act` is what would
    be done, or makes it of that text: to be copied as what could be typed instead.
    """

    def __init__(
        self,
        title: str,
        words: str,
        *,
        ok: str,
        destroys: bool = True,
        to_type: str = "",
        asks_for: str = "",
        act: Act | Callable[[str], Act] | None = None,
    ) -> None:
        super().__init__(title, words, ok=ok, destroys=destroys)
        self._act = act
        self.writes_down = act is not None  # type: ignore[misc] # one dialog's own
        self._to_type = to_type
        self._asks_for = asks_for
        if to_type or asks_for:
            self.AUTO_FOCUS = "#typed" if to_type else "#cancel"  # type: ignore[misc] # one dialog's own

    def fields(self) -> ComposeResult:
        """Lay out the field, if there is one."""
        if self._to_type:
            yield Static(Content(f"Type {sanitize.line(self._to_type, 64)} to go on:"), markup=False)
            yield Input(id="typed", select_on_focus=False, compact=True)
        elif self._asks_for:
            yield Static(Content(f"{self._asks_for}:"), markup=False)
            yield Input(id="typed", select_on_focus=False, compact=True)

    def answer(self) -> str:
        """Return what was typed."""
        typed = self.query_one("#typed", Input).value.strip() if self.query("#typed") else ""
        if self._to_type and typed != sanitize.line(self._to_type, 64):
            raise ValueError(f"That is not {self._to_type}.")
        return typed

    def meant(self) -> Act | None:
        """Return what would be done."""
        typed = self.query_one("#typed", Input).value.strip() if self._asks_for and not self._to_type else ""
        return self._act(typed) if callable(self._act) else self._act


def named(jobs: Sequence[FoundJob]) -> str:
    """Return jobs in words: one by one when they are few, else how many of which task."""
    if len(jobs) <= NAMED:
        return "\n".join(
            f"  {each.job.id}  {symbols.state(each.state)}  {sanitize.line(each.job.task_identifier, 40)}"
            f"  attempt {each.job.attempts} of {each.job.max_attempts}"
            for each in jobs
        )
    by_task: dict[str, int] = {}
    for each in jobs:
        by_task[each.job.task_identifier] = by_task.get(each.job.task_identifier, 0) + 1
    most = sorted(by_task.items(), key=lambda item: -item[1])
    lines = [f"  {count:>6,}  {sanitize.line(task, 50)}" for task, count in most[:NAMED]]
    if len(most) > NAMED:
        lines.append(f"  {sum(count for _, count in most[NAMED:]):>6,}  of {len(most) - NAMED} other tasks")
    return "\n".join([f"{formatting.counted(len(jobs), 'job')}:", *lines])
