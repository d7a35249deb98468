"""Is that meant? Yes or no; or, where much would be hit, a word to type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, Static

from gw_core.front_ends import FoundJob, counted
from gw_tui.dialogs.base import Dialog, entry
from gw_tui.text import sanitize, symbols

if TYPE_CHECKING:
    from gw_tui.actions import Action
    from gw_tui.console import Console

NAMED: Final = 6
"""Jobs named one by one; of more the tasks are counted."""

ASKED_TO_TYPE: Final = 100
"""An action that destroys more jobs than this asks for their number to be typed."""


class Confirm(Dialog[str]):
    """Asks for confirmation; returns what was typed, or an empty text.

    `to_type` has to be typed. `asks_for` names an optional text, such as a reason. `action` is the pending action, or
    builds it from that text, so that its command can be copied.
    """

    has_preview = True

    def __init__(
        self,
        title: str,
        words: str,
        *,
        ok: str,
        destroys: bool = True,
        to_type: str = "",
        asks_for: str = "",
        leave: str = "Cancel",
        action: Action | Callable[[str], Action],
    ) -> None:
        super().__init__(title, words, ok=ok, leave=leave, destroys=destroys)
        self._act = action
        self._to_type = to_type
        self._asks_for = asks_for
        self._destroys = destroys
        # A text can be typed immediately, and enter confirms what destroys nothing.
        self.AUTO_FOCUS = "#typed" if to_type or asks_for else "#cancel" if destroys else "#ok"  # type: ignore[misc]

    def fields(self) -> ComposeResult:
        if self._to_type or self._asks_for:
            asked = f"Type {sanitize.line(self._to_type, 64)} to confirm" if self._to_type else self._asks_for
            yield Static(Content(f"{asked}:"), markup=False)
            yield entry("typed")

    def answer(self) -> str:
        typed = self.text_of("typed") if self.query("#typed") else ""
        if self._to_type and typed != sanitize.line(self._to_type, 64):
            raise ValueError(f"Type {self._to_type} exactly")
        return typed

    def submit_field(self) -> None:
        """Accept the answer; what destroys something is confirmed by a word to type, or by another enter."""
        if self._destroys and not self._to_type:
            self.query_one("#ok", Button).focus()
        else:
            self.action_accept()

    def pending_action(self) -> Action:
        typed = self.text_of("typed") if self._asks_for and not self._to_type else ""
        return self._act(typed) if callable(self._act) else self._act


async def confirmed(
    console: Console,
    action: Action,
    title: str,
    words: str,
    *,
    ok: str,
    destroys: bool = True,
    to_type: str = "",
    leave: str = "Cancel",
) -> bool:
    """Ask whether to run an action; the dialog can copy its command."""
    dialog = Confirm(title, words, ok=ok, destroys=destroys, to_type=to_type, leave=leave, action=action)
    return await console.push_screen_wait(dialog) is not None


def named(jobs: Sequence[FoundJob]) -> str:
    """Return jobs in words: one by one when they are few, else how many of which task."""
    if len(jobs) <= NAMED:
        return "\n".join(
            f"  {each.job.id}  {symbols.state(each.state)}  {sanitize.line(each.job.task, 40)}"
            f"  attempt {each.job.attempts} of {each.job.max_attempts}"
            for each in jobs
        )
    by_task: dict[str, int] = {}
    for each in jobs:
        by_task[each.job.task] = by_task.get(each.job.task, 0) + 1
    most = sorted(by_task.items(), key=lambda item: -item[1])
    lines = [f"  {count:>6,}  {sanitize.line(task, 50)}" for task, count in most[:NAMED]]
    if len(most) > NAMED:
        lines.append(f"  {sum(count for _, count in most[NAMED:]):>6,}  of {len(most) - NAMED} other tasks")
    return "\n".join([f"{counted(len(jobs), 'job')}:", *lines])
