"""A runner in a program with an event loop: where its async tasks run, and how the program waits for it."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

from gw_core.domain.errors import InvalidSettingError
from gw_core.execution.functions import is_coroutine_function
from gw_core.execution.task import called_function
from gw_core.runtime.running_loop import running_loop
from gw_core.runtime.thread_calls import started

if TYPE_CHECKING:
    import asyncio

    from gw_core.execution.context import TaskLoop
    from gw_core.execution.task import LoadedTask
    from gw_core.runner.run_result import RunResult

T = TypeVar("T")


class RunnerLoop:
    """The loop that a program gave to its runner, if it did, and what must not be done on a running loop."""

    def __init__(self, given: asyncio.AbstractEventLoop | None) -> None:
        self.tasks: TaskLoop | None = None
        """Where async tasks run; None: on a loop of gw's own."""
        self._given: asyncio.AbstractEventLoop | None = None
        self._is_made_on_loop = running_loop() is not None
        if given is not None:
            self._use(given)

    def adopt(self) -> None:
        """Use the loop that runs in this thread, unless the program gave one."""
        running = running_loop()
        if self._given is None and running is not None:
            self._use(running)

    def check_start(self) -> None:
        """Raise `InvalidSettingError` if the caller would block the loop that its start needs."""
        if self._given is not None and running_loop() is self._given:
            raise InvalidSettingError("the runner cannot start on its own event loop; use `async with Runner(…)`")

    def check_wait(self, method: str) -> None:
        """Raise `InvalidSettingError` if the caller would block a loop for as long as the runner runs."""
        if running_loop() is not None:
            raise InvalidSettingError(
                f"{method}() would block the event loop of this thread; use `async with Runner(…)` and wait_async()"
            )

    def check_tasks(self, tasks: Iterable[LoadedTask]) -> None:
        """Raise `InvalidSettingError` if async tasks would run beside the loop that the program works on.

        What belongs to that loop, such as an engine, breaks on another one, and may then lose commits silently.
        """
        if self._given is not None or not self._is_made_on_loop:
            return
        for each in tasks:
            if each.isolation is None and each.function and is_coroutine_function(called_function(each.function)):
                raise InvalidSettingError(
                    f"the program has an event loop, on which the async task {each.identifier!r} should run, too; "
                    "start the runner with `async with Runner(…)`, or give it event_loop=…"
                )

    def _use(self, loop: asyncio.AbstractEventLoop) -> None:
        from gw_core.execution.event_loop import ProgramLoop  # asyncio is loaded for those who use it

        if not hasattr(loop, "call_soon_threadsafe"):
            raise InvalidSettingError(f"event_loop must be an event loop of asyncio, not {type(loop).__name__}")
        if loop.is_closed():
            raise InvalidSettingError("event_loop is closed; give the loop that runs, asyncio.get_running_loop()")
        self._given = loop
        self.tasks = ProgramLoop(loop)


class AsyncLifetime:
    """A runner as an asynchronous context manager: it starts and stops in threads, so that the loop stays free.

    Each is a thread of its own: those of the loop may all be busy with calls of the program.
    """

    _can_abort_start: bool

    def __init__(self, loop: RunnerLoop) -> None:
        self._loop = loop
        self._waiting: Future[RunResult] | None = None

    def start(self) -> None:
        """Start, and return immediately."""
        raise NotImplementedError

    def wait(self) -> RunResult:
        """Wait until the runner has stopped."""
        raise NotImplementedError

    def stop(self, reason: str = "stop requested") -> None:
        """Request a graceful stop."""
        raise NotImplementedError

    def force(self) -> None:
        """End the grace period."""
        raise NotImplementedError

    async def wait_async(self) -> RunResult:
        """Wait until the runner has stopped, without blocking the event loop, and return the result."""
        if self._waiting is None:
            self._waiting = started("gw-wait", self.wait)
        return await _result(self._waiting)

    async def __aenter__(self) -> Self:
        from asyncio import CancelledError

        self._loop.adopt()
        self._can_abort_start = True
        starting = started("gw-start", self.start)
        try:
            await _result(starting)
        except CancelledError:
            self.stop("the program was cancelled while the runner started")
            # In one thread, which goes on if the program does not wait: nothing else stops a runner that has started.
            self._waiting = started("gw-wait", partial(self._wait_for_start, starting))
            with suppress(Exception):
                await self._wait_impatiently()
            raise
        return self

    def _wait_for_start(self, starting: Future[None]) -> RunResult:
        starting.result()
        return self.wait()

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        await self._wait_impatiently()

    async def _wait_impatiently(self) -> None:
        """Wait until the runner has stopped; a program that is cancelled again does not wait for the grace period."""
        from asyncio import CancelledError

        try:
            await self.wait_async()
        except CancelledError:
            self.force()
            await self.wait_async()
            raise


async def _result(done: Future[T]) -> T:
    import asyncio

    return await asyncio.wrap_future(done)
