"""Pause and resume what is under the cursor, limit its task, and end a session that blocks others."""

from __future__ import annotations

from typing import ClassVar

from textual import work

from gw_core.front_ends import BackendSession
from gw_tui.actions import Action, EndSession, FindPause, Pause, Resume
from gw_tui.dialogs.confirm import Confirm, confirmed
from gw_tui.dialogs.limit import LimitDialog
from gw_tui.screens.base import ConsoleScreen
from gw_tui.text import formatting, sanitize
from gw_tui.text.redact import masked


class PauseMixin(ConsoleScreen):
    """A screen whose `pause_target` can be paused and resumed."""

    PAUSE_WORDS: ClassVar[str] = "Running jobs finish and no further job of it starts, until it is resumed."
    """What a pause does."""

    def pause_target(self) -> str | None:
        """Return what is under the cursor, such as `task:mail`; None when there is nothing to pause."""
        return None

    @work
    async def action_pause(self) -> None:
        """Pause it, or resume it if it is paused."""
        if (target := self.pause_target()) is None:
            self.notify("Nothing here can be paused", severity="warning")
            return
        if (found := await self.action_runner.begin(FindPause(target=target))) is None:
            return
        name, pause = sanitize.line(target, 60), found.pause
        if pause is None:
            question = Confirm(
                f"Pause {name}?",
                self.PAUSE_WORDS,
                ok="Pause",
                destroys=False,
                asks_for="Reason (optional)",
                action=lambda reason: Pause(target=target, reason=reason or None),
            )
            if (reason := await self.app.push_screen_wait(question)) is not None:
                await self._begin(Pause(target=target, reason=reason or None))
            return
        resume = Resume(target=target)
        words = sanitize.line(f"It is {pause.description}.", 200)
        if await confirmed(self.console, resume, f"Resume {name}?", words, ok="Resume", destroys=False):
            await self._begin(resume)

    async def _begin(self, action: Action) -> None:
        await self.action_runner.begin(action)
        self.ask()


class LimitMixin(PauseMixin):
    """A screen whose `limit_target` can be limited."""

    def limit_target(self) -> tuple[str, str] | None:
        """Return the task under the cursor and its limit in words, if it has one."""
        return None

    @work
    async def action_limit(self) -> None:
        if (found := self.limit_target()) is None:
            self.notify("Nothing here can be limited", severity="warning")
        elif (action := await self.app.push_screen_wait(LimitDialog(*found))) is not None:
            await self._begin(action)


class SessionMixin(ConsoleScreen):
    """A screen whose `session_target` can be ended."""

    def session_target(self) -> BackendSession | None:
        """Return the session under the cursor."""
        return None

    @work
    async def action_end_session(self) -> None:
        if (session := self.session_target()) is None:
            self.notify("No session is selected", severity="warning")
            return
        age = formatting.duration(session.transaction_age or session.in_state_for)
        statement = masked(session.statement or "not visible to this role")
        words = (
            f"{sanitize.line(session, 100)}, for {age}:\n{sanitize.line(statement, 200)}\n"
            "Its transaction is rolled back and its program loses the connection."
        )
        action = EndSession(session=session)
        if await confirmed(self.console, action, f"End session {session.pid}?", words, ok="End session"):
            await self.action_runner.begin(action)
            self.ask()
