"""Have actions done, say what became of them, and keep what can be undone."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from gw_tui.actions import Action, Restore, Result
from gw_tui.actions.outcome import ActionOutcome
from gw_tui.data.messages import ActionProgressed
from gw_tui.dialogs.result import ProgressDialog, ResultDialog
from gw_tui.rules.connection_state import FailureKind
from gw_tui.rules.journal import EntryKind
from gw_tui.text import sanitize

if TYPE_CHECKING:
    from gw_core import Job
    from gw_tui.console import Console
    from gw_tui.data.messages import ActionFinished
    from gw_tui.data.poller import ActionThread

MAX_UNDO: Final = 20
"""This many removals can be taken back, the last one first."""


class ActionRunner:
    """Has one action at a time run for a console, by the action thread."""

    def __init__(self, console: Console, thread: ActionThread) -> None:
        self._console = console
        self._thread = thread
        self.last: ActionFinished | None = None
        """The outcome of the action that ended last."""
        self._submitted: dict[int, asyncio.Future[ActionFinished]] = {}
        self._progress: ProgressDialog | None = None  # of the action under way, shown if that is long
        self._removed: deque[tuple[Job, ...]] = deque(maxlen=MAX_UNDO)

    @property
    def is_busy(self) -> bool:
        """True while an action is under way."""
        return self._progress is not None

    def begin(self, action: Action) -> asyncio.Future[Result | None]:
        """Run an action, and return its result to come: None when it fails, or when another one is running."""
        done: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()
        if self.is_busy:
            self._console.notify("Another action is running", severity="warning")
            done.set_result(None)
        else:
            self._progress = ProgressDialog(action, lambda: self._thread.halt(action))
            self._console.run_worker(self._run(action, self._progress, done))
        return done

    def submit(self, action: Action) -> asyncio.Future[ActionFinished]:
        """Run an action after those submitted before, without showing it, and return its outcome to come."""
        self._submitted[id(action)] = outcome = asyncio.get_running_loop().create_future()
        self._thread.do(action)
        return outcome

    def take_outcome(self, message: ActionFinished) -> None:
        """Resolve what `submit` returned for an action."""
        self.last = message
        outcome = self._submitted.pop(id(message.action), None)
        if outcome is not None and not outcome.done():  # the screen that waited for it may be gone
            outcome.set_result(message)

    def follow(self, message: ActionProgressed) -> None:
        """Show how far the action has come."""
        if self._progress is not None and self._progress.action is message.action:
            self._progress.follow(message.result)

    def undo(self) -> None:
        """Restore the jobs removed last, or the rest of them after a restore that was stopped or failed."""
        if not self._removed:
            self._console.notify("Nothing to restore: U restores completed and removed jobs, and r retries failed ones")
            return
        self.begin(Restore(jobs=self._removed[-1]))

    async def _run(self, action: Action, progress: ProgressDialog, done: asyncio.Future[Result | None]) -> None:
        if action.is_long:
            self._console.push_screen(progress)
        message = await self.submit(action)
        if action.is_long:
            progress.dismiss()
        self._progress = None
        is_lost = message.failure is FailureKind.LOST
        outcome = ActionOutcome(action, message.result, message.reason, is_lost)
        if not action.reads_only or outcome.failure:
            self._report(outcome)
        if not done.done():  # the screen that waited for it may be gone
            done.set_result(None if outcome.failure else outcome.result)

    def _report(self, outcome: ActionOutcome) -> None:
        self._keep(outcome)
        if outcome.is_plain:
            self._console.notify(f"✔ {_words(outcome)}")
        else:
            self._console.push_screen(ResultDialog(outcome))

    def _keep(self, outcome: ActionOutcome) -> None:
        """Note an outcome in the journal, and for `undo` what was removed or restored."""
        if isinstance(outcome.action, Restore):
            self._removed.pop()
        if outcome.to_restore:
            self._removed.append(tuple(outcome.to_restore))
        words = sanitize.line(outcome.failure) if outcome.failure else outcome.headline
        self._console.state.note(EntryKind.ACTION, words, is_bad=bool(outcome.failure))


def _words(outcome: ActionOutcome) -> str:
    done, action = outcome.result.done, outcome.action
    is_one = len(done) == 1 and not outcome.result.message and not isinstance(action, Restore)
    words = f"{action.thing} {done[0]} {action.done_words}" if is_one else outcome.headline
    hint = f" · U restores {'it' if len(done) == 1 else 'them'}" if outcome.can_be_undone else ""
    return f"{sanitize.line(words, 120)}{hint}"
