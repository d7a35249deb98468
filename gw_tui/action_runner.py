"""Have deeds done part by part, say what became of them, and keep what can be undone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gw_tui.actions import batch as deed_of
from gw_tui.actions.batch import ActionBatch
from gw_tui.dialogs.result import ProgressDialog, ResultDialog
from gw_tui.rules.journal import Kind
from gw_tui.text import sanitize

if TYPE_CHECKING:
    from gw_core import Job
    from gw_tui.app import ConsoleApp
    from gw_tui.data.messages import ActionFinished

MOST_UNDONE: Final = 20
"""So many removals can be taken back, the last one first."""

OnDone = Callable[[ActionBatch], None]


class ActionRunner:
    """One deed at a time; belongs to the thread of the screen. The acts themselves are done by the acting thread."""

    def __init__(self, console: ConsoleApp) -> None:
        self._console = console
        self._under_way: ActionBatch | None = None
        self._on_done: OnDone | None = None
        self._progress: ProgressDialog | None = None
        self._removed: deque[tuple[Job, ...]] = deque(maxlen=MOST_UNDONE)

    @property
    def is_busy(self) -> bool:
        """True while something is under way."""
        return self._under_way is not None

    def begin(self, deed: ActionBatch, on_done: OnDone | None = None) -> None:
        """Have a deed done; `on_done` is told when it is over, on whatever screen that is."""
        if self._under_way is not None:
            self._console.notify("Something else is being done; wait until it is over.", severity="warning")
            return
        self._under_way, self._on_done = deed, on_done
        if len(deed.parts) > 1:
            self._progress = ProgressDialog(deed)
            self._console.push_screen(self._progress)
        self._go_on(deed)

    def stop(self) -> None:
        """Let the part under way be the last."""
        if self._under_way is not None:
            self._under_way = self._under_way.stopped()

    def acted(self, message: ActionFinished) -> None:
        """Take what became of the part under way."""
        deed = self._under_way
        if deed is None or deed.next_part >= len(deed.parts) or deed.parts[deed.next_part] is not message.act:
            return
        self._under_way = deed = deed.absorbed(message.result, message.sentence)
        if self._progress is not None:
            self._progress.follow(deed)
        self._go_on(deed)

    def undo(self) -> None:
        """Bring back what was removed last."""
        if not self._removed:
            self._console.notify("Nothing was removed here that could be brought back.")
            return
        self.begin(deed_of.restore(self._removed[-1]), self._undone)

    def _undone(self, _: ActionBatch) -> None:
        self._removed.pop()

    def _go_on(self, deed: ActionBatch) -> None:
        if (act := deed.next_act) is not None:
            self._console.act(act)
        else:
            self._over(deed)

    def _over(self, deed: ActionBatch) -> None:
        on_done, self._on_done, self._under_way = self._on_done, None, None
        if self._progress is not None:
            self._progress.dismiss()
            self._progress = None
        if not deed.is_quiet or deed.failure:
            self._tell(deed)
        if on_done is not None and not deed.failure:
            on_done(deed)

    def _tell(self, deed: ActionBatch) -> None:
        self._keep(deed)
        if deed.is_plain and not deed.is_stopped:
            self._console.notify(f"✔ {self._words(deed)}", markup=False)
        else:
            self._console.push_screen(ResultDialog.of(deed))

    def _keep(self, deed: ActionBatch) -> None:
        """Note a deed in the journal, and what was removed for `undo`."""
        if deed.can_be_undone:
            self._removed.append(tuple(deed.result.removed))
        words = sanitize.line(deed.failure) if deed.failure else deed.headline
        self._console.note(Kind.ACT, words, is_bad=bool(deed.failure))

    def _words(self, deed: ActionBatch) -> str:
        done = deed.result.done
        is_one = len(done) == 1 and not deed.result.told
        words = f"{deed.thing} {done[0]} {deed.done_words}" if is_one else deed.headline
        return f"{sanitize.line(words, 120)}{self._hint(deed)}"

    def _hint(self, deed: ActionBatch) -> str:
        return " · U brings it back" if deed.can_be_undone else ""
