"""Read task files again when they change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, Final

from gw_core.domain.errors import TaskLoadError
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import TasksReloaded
from gw_core.runtime.service import Service
from gw_core.tasks.loading import LoadedTasks
from gw_core.tasks.registry import TaskRegistry

_POLL_INTERVAL: Final = timedelta(milliseconds=500)
"""How long the watching library may wait before it comes back to see whether we are to stop."""


class TaskWatcher(Service):
    """Hands a new registry to `swap` whenever a file of the loaded folder has changed.

    Running jobs finish with the task they started with. A file that can no longer be loaded keeps its tasks; the
    `TasksReloaded` event reports it. Raises `TaskLoadError` when the package `watchfiles` is not installed.
    """

    def __init__(self, loaded: LoadedTasks, swap: Callable[[TaskRegistry], object], events: Events) -> None:
        super().__init__("gw-watch")
        self.loaded = loaded
        self._swap = swap
        self._events = events
        self._watch = _watch_function()
        self._changes: Iterator[Any] = iter(())

    def setup(self) -> None:
        """Begin to watch, and see what changed since the folder was loaded."""
        self._changes = self._watch(
            # A single file is watched through its folder, since editors replace a file rather than write to it.
            self.loaded.root if self.loaded.root.is_dir() else self.loaded.root.parent,
            stop_event=self._stopping,
            rust_timeout=int(_POLL_INTERVAL / timedelta(milliseconds=1)),
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        # The watch begins with the first answer; only what changes after that is seen by it.
        next(self._changes, None)
        self.reload()

    def step(self) -> timedelta:
        """Wait briefly for a change, and load what changed."""
        if next(self._changes, None):
            self.reload()
        return timedelta(0)

    def reload(self) -> bool:
        """Load what changed and hand it over; returns whether anything did."""
        after = self.loaded.reload()
        if after is self.loaded:
            return False
        self.loaded = after
        self._swap(after.registry)
        self._events.emit(
            TasksReloaded(tasks=after.registry.identifiers, errors=tuple(str(each) for each in after.errors))
        )
        return True


def _watch_function() -> Callable[..., Iterator[Any]]:
    try:
        from watchfiles import watch  # in an extra, and loaded by those who watch
    except ImportError as error:
        raise TaskLoadError(
            "watching task files needs the package watchfiles; install it with: pip install 'graphile-worker[watch]'"
        ) from error
    return watch
