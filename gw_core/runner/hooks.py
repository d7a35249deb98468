"""Call what plugins do when a runner starts and when it has stopped."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from gw_core.domain.rules.plugins import Plugin, overrides
from gw_core.runtime.service import Service

if TYPE_CHECKING:
    from gw_core.runner.program_loop import RunnerLoop

_REST: Final = timedelta(hours=1)


class Hooks(Service):
    """Calls `on_start` of each plugin in the thread that starts the runner, and `on_stop` in a thread of its own.

    That thread waits for the end of the last job, so that a hook which hangs cannot keep the process alive.
    """

    stops_after_jobs = True

    def __init__(self, plugins: Sequence[Plugin], loop: RunnerLoop, log: logging.Logger) -> None:
        super().__init__("gw-hooks")
        self._plugins = [each for each in plugins if overrides(each, "on_start") or overrides(each, "on_stop")]
        self._loop = loop
        self._log = log
        self._open: list[Plugin] = []

    @property
    def services(self) -> Sequence[Service]:
        """The thread that closes the plugins, if one has to be closed."""
        return [self] if self._open else []

    def open(self) -> None:
        """Call `on_start` of each plugin. If one raises, those before it are closed."""
        try:
            for plugin in self._plugins:
                self._call(plugin.on_start)
                self._open.append(plugin)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Call `on_stop` of the plugins that were opened, the last one first. What one raises is logged."""
        while self._open:
            plugin = self._open.pop()
            try:
                self._call(plugin.on_stop)
            except Exception as error:  # noqa: BLE001 - user code: the other plugins are closed in any case
                self._log.exception("on_stop of the plugin %s failed: %s", type(plugin).__name__, error)

    def step(self) -> timedelta:
        """Wait for the end of the run."""
        return _REST

    def teardown(self) -> None:
        """Close the plugins."""
        self.close()

    def _call(self, hook: Callable[[], object]) -> None:
        result = hook()
        if isinstance(result, Awaitable):
            from gw_core.execution.event_loop import SHARED  # asyncio is loaded for those who use it

            (self._loop.tasks or SHARED).run(result)
