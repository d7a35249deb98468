"""Have actions done part by part, say what became of them, and keep what can be undone."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from gw_tui.actions.actions import Action, Restore, Result
from gw_tui.actions.batch import ActionBatch, split
from gw_tui.dialogs.result import ProgressDialog, ResultDialog
from gw_tui.rules.journal import EntryKind
from gw_tui.text import sanitize

if TYPE_CHECKING:
    from gw_core import Job
    from gw_tui.console import Console

MAX_UNDO: Final = 20
"""This many removals can be taken back, the last one first."""


class ActionRunner:
    """Runs one batch at a time for a console; the action thread runs the actions."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._under_way: ActionBatch | None = None
        self._removed: deque[tuple[Job, ...]] = deque(maxlen=MAX_UNDO)

    @property
    def is_busy(self) -> bool:
        """True while something is under way."""
        return self._under_way is not None

    def begin(self, action: Action) -> asyncio.Future[Result | None]:
        """Run an action in parts, and return its result to come: None when it fails, or when another one is running."""
        done: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()
        if self._under_way is not None:
            self._console.notify("Another action is running", severity="warning")
            done.set_result(None)
        else:
            self._under_way = split(action)
            self._console.run_worker(self._run(self._under_way, done))
        return done

    def stop_batch(self) -> None:
        """Let the part under way be the last."""
        if self._under_way is not None:
            self._under_way = self._under_way.stopped()

    def undo(self) -> None:
        """Restore the jobs completed last."""
        if not self._removed:
            self._console.notify("Nothing to restore: U restores completed and removed jobs, and r retries failed ones")
            return
        self.begin(Restore(jobs=self._removed[-1]))

    async def _run(self, batch: ActionBatch, done: asyncio.Future[Result | None]) -> None:
        batch = await self._run_parts(batch)
        self._under_way = None
        if not batch.action.reads_only or batch.failure:
            self._report(batch)
        if not done.done():  # the screen that waited for it may be gone
            done.set_result(None if batch.failure else batch.result)

    async def _run_parts(self, batch: ActionBatch) -> ActionBatch:
        """Run the parts one after the other, until one fails or the operator stops the batch."""
        progress = ProgressDialog(batch, self.stop_batch)
        if len(batch.parts) > 1:
            self._console.push_screen(progress)
        while (part := batch.next_action) is not None:
            outcome = await self._console.submit(part)
            batch = (self._under_way or batch).absorbed(outcome.result, outcome.reason)
            self._under_way = batch
            progress.follow(batch)
        if len(batch.parts) > 1:
            progress.dismiss()
        return batch

    def _report(self, batch: ActionBatch) -> None:
        self._keep(batch)
        if batch.is_plain and not batch.is_stopped:
            self._console.notify(f"✔ {self._words(batch)}")
        else:
            self._console.push_screen(ResultDialog(batch))

    def _keep(self, batch: ActionBatch) -> None:
        """Note a batch in the journal, and for `undo` what was removed or restored."""
        if batch.can_be_undone:
            self._removed.append(tuple(batch.result.removed))
        elif isinstance(batch.action, Restore) and not batch.failure:
            self._removed.pop()
        words = sanitize.line(batch.failure) if batch.failure else batch.headline
        self._console.note(EntryKind.ACTION, words, is_bad=bool(batch.failure))

    def _words(self, batch: ActionBatch) -> str:
        done = batch.result.done
        is_one = len(done) == 1 and not batch.result.message
        words = f"{batch.action.thing} {done[0]} {batch.action.done_words}" if is_one else batch.headline
        hint = " · U restores it" if batch.can_be_undone else ""
        return f"{sanitize.line(words, 120)}{hint}"
