"""Pause and resume what is under the cursor."""

from __future__ import annotations

from textual import work

from gw_core.operations import Pause
from gw_tui.actions import actions
from gw_tui.dialogs.confirm import Confirm, confirmed
from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import sanitize

WORDS = "Running jobs finish and no further job of it starts, until it is resumed."


class PauseMixin(ConsoleScreen):
    """A screen whose `pause_target` can be paused and resumed."""

    def pause_target(self) -> tuple[str, Pause | None] | None:
        """Return what is under the cursor, such as `task:mail`, with its pause; None when there is nothing."""
        return None

    @work
    async def action_pause_jobs(self) -> None:
        if (found := self.pause_target()) is None:
            return
        target, pause = found
        name = sanitize.line(target, 60)
        if pause is None:
            question = Confirm(
                f"Pause {name}?",
                WORDS,
                ok="Pause",
                asks_for="Reason (optional)",
                action=lambda reason: actions.Pause(target=target, reason=reason or None),
            )
            if (reason := await self.app.push_screen_wait(question)) is not None:
                await self._run(actions.Pause(target=target, reason=reason or None))
            return
        resume = actions.Resume(target=target)
        words = sanitize.line(f"It is {pause.description}.", 200)
        if await confirmed(self.console, resume, f"Resume {name}?", words, ok="Resume", destroys=False):
            await self._run(resume)

    async def _run(self, action: actions.Action) -> None:
        await self.action_runner.begin(action)
        self.ask()
