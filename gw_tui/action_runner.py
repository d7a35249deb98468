"""Have actions done part by part, say what became of them, and keep what can be undone."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gw_tui.actions.actions import Action, Restore, Result
from gw_tui.actions.batch import ActionBatch, split
from gw_tui.console import Console
from gw_tui.dialogs.result import ProgressDialog, ResultDialog
from gw_tui.rules.journal import EntryKind
from gw_tui.text import sanitize

if TYPE_CHECKING:
    from gw_core import Job
    from gw_tui.data.messages import ActionFinished
    from gw_tui.data.source import DataSource
    from gw_tui.rules.options import Options

MAX_UNDO: Final = 20
"""So many removals can be taken back, the last one first."""


class ActionRunner(Console):
    """A console that runs one batch at a time; the action thread runs the actions."""

    def __init__(self, source: DataSource, options: Options, clock: Callable[[], float]) -> None:
        super().__init__(source, options, clock)
        self._under_way: ActionBatch | None = None
        self._done: asyncio.Future[Result | None] | None = None
        self._progress: ProgressDialog | None = None
        self._removed: deque[tuple[Job, ...]] = deque(maxlen=MAX_UNDO)

    @property
    def is_busy(self) -> bool:
        """True while something is under way."""
        return self._under_way is not None

    def begin(self, action: Action) -> asyncio.Future[Result | None]:
        """Run an action in parts, and return its result to come: None when it fails, or when another one is running."""
        done: asyncio.Future[Result | None] = asyncio.get_running_loop().create_future()
        if self._under_way is not None:
            self.notify("Another action is running", severity="warning")
            done.set_result(None)
            return done
        batch = split(action)
        self._under_way, self._done = batch, done
        if len(batch.parts) > 1:
            self._progress = ProgressDialog(batch, self.stop_batch)
            self.push_screen(self._progress)
        self._go_on(batch)
        return done

    def stop_batch(self) -> None:
        """Let the part under way be the last."""
        if self._under_way is not None:
            self._under_way = self._under_way.stopped()

    def take_result(self, message: ActionFinished) -> None:
        """Take what became of the part under way."""
        batch = self._under_way
        if batch is None or batch.next_part >= len(batch.parts) or batch.parts[batch.next_part] is not message.action:
            return
        self._under_way = batch = batch.absorbed(message.result, message.reason)
        if self._progress is not None:
            self._progress.follow(batch)
        self._go_on(batch)

    def undo(self) -> None:
        """Restore the jobs completed last."""
        if not self._removed:
            self.notify("Nothing to restore")
            return
        self.begin(Restore(jobs=self._removed[-1]))

    def _go_on(self, batch: ActionBatch) -> None:
        if (action := batch.next_action) is not None:
            self.submit(action)
        else:
            self._over(batch)

    def _over(self, batch: ActionBatch) -> None:
        done, self._done, self._under_way = self._done, None, None
        if self._progress is not None:
            self._progress.dismiss()
            self._progress = None
        if not batch.action.reads_only or batch.failure:
            self._report(batch)
        if done is not None and not done.done():  # the screen that waited for it may be gone
            done.set_result(None if batch.failure else batch.result)

    def _report(self, batch: ActionBatch) -> None:
        self._keep(batch)
        if batch.is_plain and not batch.is_stopped:
            self.notify(f"✔ {self._words(batch)}")
        else:
            self.push_screen(ResultDialog(batch))

    def _keep(self, batch: ActionBatch) -> None:
        """Note a batch in the journal, and for `undo` what was removed or restored."""
        if batch.can_be_undone:
            self._removed.append(tuple(batch.result.removed))
        elif isinstance(batch.action, Restore) and not batch.failure:
            self._removed.pop()
        words = sanitize.line(batch.failure) if batch.failure else batch.headline
        self.note(EntryKind.ACTION, words, is_bad=bool(batch.failure))

    def _words(self, batch: ActionBatch) -> str:
        done = batch.result.done
        is_one = len(done) == 1 and not batch.result.message
        words = f"{batch.action.thing} {done[0]} {batch.action.done_words}" if is_one else batch.headline
        hint = " · U restores it" if batch.can_be_undone else ""
        return f"{sanitize.line(words, 120)}{hint}"
