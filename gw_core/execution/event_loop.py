"""Run coroutines of tasks on one event loop thread that the whole process shares."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from collections.abc import Awaitable, Coroutine, Sequence
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gw_core.domain.job.outcome import Snooze
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.execution.daemon_executor import DaemonExecutor
from gw_core.runtime import forks

if TYPE_CHECKING:
    from gw_core.execution.context import JobContext

THREAD_NAME: Final = "gw-async"

_FATAL_TO_LOOPS = (SystemExit, KeyboardInterrupt)


class _Raised(NamedTuple):
    """An exception that asyncio would end the loop with, carried to the thread that waits."""

    error: BaseException


class EventLoopThread:
    """One event loop in a thread of its own, from construction to `stop`.

    `_running` and `_interrupted` belong to the loop's thread alone.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._running: dict[Future[Any], asyncio.Task[Any]] = {}
        self._interrupted: set[Future[Any]] = set()
        # A daemon, for a coroutine that blocks must not keep the interpreter from ending.
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name=THREAD_NAME, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """False once stopped, and in a child process after a fork."""
        return self._thread.is_alive()

    def begin(self, work: Awaitable[Any]) -> Future[Any]:
        """Start the work with a copy of the caller's context variables. Does not block."""
        done: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._begin, work, done)
        return done

    def interrupt(self, done: Future[Any]) -> None:
        """Cancel this work, which then ends with `Snooze`. Does not block."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, and so the work has ended
            self._loop.call_soon_threadsafe(self._cancel, done)

    def request_stop(self) -> None:
        """Cancel everything in progress, then end the thread. Does not block."""
        self._loop.call_soon_threadsafe(self._cancel_all)
        self._loop.call_soon_threadsafe(self._end_when_idle)

    def join(self, timeout: timedelta) -> bool:
        """Wait for the thread to end; returns whether it has."""
        self._thread.join(timeout.total_seconds())
        return not self._thread.is_alive()

    # -- in the loop's thread --------------------------------------------------------------------------------------

    def _begin(self, work: Awaitable[Any], done: Future[Any]) -> None:
        running = self._loop.create_task(_guarded(work))
        self._running[done] = running
        running.add_done_callback(lambda ended: self._end(ended, work, done))

    def _end(self, ended: asyncio.Task[Any], work: Awaitable[Any], done: Future[Any]) -> None:
        del self._running[done]
        interrupted = done in self._interrupted
        self._interrupted.discard(done)
        if ended.cancelled():
            if isinstance(work, Coroutine):
                work.close()  # if it was cancelled before it began, which asyncio would warn of
            done.set_exception(interruption() if interrupted else asyncio.CancelledError("the task was cancelled"))
        elif (error := ended.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(ended.result())

    def _cancel(self, done: Future[Any]) -> None:
        # Once only: a second time would cancel the cleaning up that the first one set off.
        if done in self._running and done not in self._interrupted:
            self._interrupted.add(done)
            self._running[done].cancel()

    def _cancel_all(self) -> None:
        for done in self._running:
            self._cancel(done)

    def _end_when_idle(self) -> None:
        if self._running:
            self._loop.call_later(0.01, self._end_when_idle)
        else:
            self._loop.stop()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    threads = DaemonExecutor(f"{THREAD_NAME}-helper")
    loop.set_default_executor(threads)
    asyncio.set_event_loop(loop)
    try:
        _run_until_stopped(loop)
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        threads.shutdown()
        loop.close()


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        try:
            loop.run_forever()
            return
        except _FATAL_TO_LOOPS:
            # Raised by something a task left running on the loop; the loop goes on for the others.
            continue


class SharedLoop:
    """The event loop of every async task: one that blocks it holds up the others, but no ordinary task.

    `_lock` guards `_thread`, and that no loop is asked to stop between being found and being given work.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: EventLoopThread | None = None

    def run(self, work: Awaitable[Any], context: JobContext) -> Any:
        """Run to the end and return the result; for worker threads, which wait here. Starts the loop at first use.

        The work sees a copy of the caller's context variables. It is cancelled when the job is being returned; a stop
        request alone does not interrupt it, as with other tasks. Raises what it raises, or `Snooze` when cancelled.
        """
        with self._lock:
            if self._thread is None or not self._thread.is_alive:
                self._thread = EventLoopThread()
            thread = self._thread
            done = thread.begin(work)
        stop = context.should_stop
        stop.on_force = partial(thread.interrupt, done)
        if stop.forced:
            thread.interrupt(done)
        try:
            result = done.result()
        finally:
            stop.on_force = None
        if isinstance(result, _Raised):
            raise result.error
        return result

    def stop(self, timeout: timedelta = timedelta(seconds=5)) -> bool:
        """Interrupt what runs and end the thread; returns whether it ended. A later `run` starts another."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is None or not thread.is_alive:
                return True
            thread.request_stop()
        return thread.join(timeout)


async def _guarded(work: Awaitable[Any]) -> Any:
    began = forks.count
    try:
        return await work
    except _FATAL_TO_LOOPS as error:
        forks.end_if_child(began)
        return _Raised(error)
    finally:
        forks.end_if_child(began)


def interruption() -> Snooze:
    """Return what ends a run that the stopping worker cut short: later again, and the attempt does not count."""
    return Snooze(WorkerSettings().interrupted_delay, "interrupted because the worker is stopping")


# -- the shared one ------------------------------------------------------------------------------------------------

SHARED: Final = SharedLoop()
"""The one of this process."""

# What a forced stop left running still gets to clean up, though not for long.
atexit.register(SHARED.stop, timedelta(milliseconds=500))


async def gathered(results: Sequence[Any]) -> list[Any]:
    """Return the values with every awaitable replaced by its result, or by the exception it raised."""
    awaitables = {index: _guarded(each) for index, each in enumerate(results) if isinstance(each, Awaitable)}
    ended = await asyncio.gather(*awaitables.values(), return_exceptions=True)
    found = dict(zip(awaitables, ended, strict=True))
    return [_unwrapped(found.get(index, each)) for index, each in enumerate(results)]


def _unwrapped(value: Any) -> Any:
    return value.error if isinstance(value, _Raised) else value
