"""Run coroutines of tasks on an event loop: the program's own, or one in a thread that the whole process shares."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.outcome import Snooze
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.execution.daemon_executor import DaemonExecutor
from gw_core.runtime import forks
from gw_core.runtime.current_job import RUN
from gw_core.runtime.running_loop import running_loop

if TYPE_CHECKING:
    from gw_core.execution.context import Calls, JobContext, TaskLoop

THREAD_NAME: Final = "gw-async"

BLOCKED_SECONDS: Final = 0.5
"""A step of a coroutine that takes longer is logged: nothing else on its loop could run."""

STEPS_PER_TURN: Final = 32
"""How many jobs start or end in one iteration of the loop, at up to 0.1 ms each; requests run before the others."""

_FATAL_TO_LOOPS = (SystemExit, KeyboardInterrupt)

_OTHER_LOOP: Final = ("attached to a different loop", "bound to a different event loop")
"""Parts of the messages of asyncio about an object that belongs to another loop."""


class _Raised(NamedTuple):
    """An exception that asyncio would end the loop with, carried to the thread that waits."""

    error: BaseException


class LoopRuns:
    """The work in progress on one loop. All but `_loop` belongs to the loop's thread alone."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._running: dict[Future[Any], asyncio.Task[Any]] = {}
        self._interrupted: set[Future[Any]] = set()
        self._due: deque[Callable[[], object]] = deque()
        self._has_next_turn = False
        self._interrupts_all = False

    def begin(self, work: Awaitable[Any]) -> Future[Any]:
        """Start the work with a copy of the caller's context variables. Does not block."""
        done: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._take, partial(copy_context().run, self._begin, work, done))
        return done

    def interrupt(self, done: Future[Any]) -> None:
        """Cancel this work, which then ends with `Snooze`. Does not block."""
        with contextlib.suppress(RuntimeError):  # the loop is closed, and so the work has ended
            self._loop.call_soon_threadsafe(self._take, partial(self._cancel, done))

    def interrupt_all(self) -> None:
        """Cancel everything in progress, and what begins later. Does not block."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._take, self._cancel_all)

    def result_of(self, done: Future[Any], context: JobContext | None, calls: Calls | None) -> Any:
        """Wait for the work, and return its result. It is cancelled when the job is being returned."""
        if context is None:
            return _waited(done, calls)
        stop = context.should_stop
        before, stop.on_force = stop.on_force, partial(self.interrupt, done)
        if stop.forced:
            self.interrupt(done)
        try:
            return _waited(done, calls)
        finally:
            stop.on_force = before

    # -- in the loop's thread --------------------------------------------------------------------------------------

    def _take(self, step: Callable[[], object]) -> None:
        """Take the step in one of the next iterations of the loop; steps keep their order."""
        self._due.append(step)
        if not self._has_next_turn:
            self._has_next_turn = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        count = min(STEPS_PER_TURN, len(self._due))
        self._has_next_turn = count < len(self._due)
        if self._has_next_turn:
            self._loop.call_soon(self._turn)
        for _ in range(count):
            self._due.popleft()()

    def _begin(self, work: Awaitable[Any], done: Future[Any]) -> None:
        running = self._loop.create_task(_guarded(work))
        self._running[done] = running
        running.add_done_callback(lambda ended: self._take(partial(self._end, ended, work, done)))
        if self._interrupts_all:
            self._cancel(done)

    def _end(self, ended: asyncio.Task[Any], work: Awaitable[Any], done: Future[Any]) -> None:
        del self._running[done]
        # A program that ends its loop cancels all that runs there, perhaps before the runner does.
        interrupted = done in self._interrupted or ended.cancelling() > 0
        self._interrupted.discard(done)
        if ended.cancelled():
            if isinstance(work, Coroutine):
                work.close()  # if it was cancelled before it began, which asyncio would warn of
            done.set_exception(interruption() if interrupted else asyncio.CancelledError("the task was cancelled"))
        elif (error := ended.exception()) is not None:
            done.set_exception(error)
        else:
            done.set_result(ended.result())

    def _cancel_all(self) -> None:
        self._interrupts_all = True
        for done in self._running:
            self._cancel(done)

    def _cancel(self, done: Future[Any]) -> None:
        # Once only: a second time would cancel the cleaning up that the first one set off.
        if done in self._running and done not in self._interrupted:
            self._interrupted.add(done)
            self._running[done].cancel()


def _waited(done: Future[Any], calls: Calls | None) -> Any:
    if calls is not None:
        done.add_done_callback(lambda _: calls.end())
        calls.serve()
    result = done.result()
    if isinstance(result, _Raised):
        raise result.error
    return result


class ProgramLoop:
    """A loop of the program's, on which its engines, pools and clients work."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._runs = LoopRuns(loop)

    def run(self, work: Awaitable[Any], context: JobContext | None = None, calls: Calls | None = None) -> Any:
        """Run to the end and return the result; see `SharedLoop.run`. The job returns if the loop has been closed."""
        _reject_on_loops(work)
        try:
            done = self._runs.begin(work)
        except RuntimeError:
            _close(work)
            raise interruption("the event loop that the program gave to the runner is closed") from None
        return self._runs.result_of(done, context, calls)

    def interrupt_all(self) -> None:
        """Cancel everything in progress, and what begins later, which ends with `Snooze`. Does not block."""
        self._runs.interrupt_all()


class EventLoopThread(LoopRuns):
    """One event loop in a thread of its own, from construction to `stop`."""

    def __init__(self) -> None:
        super().__init__(asyncio.new_event_loop())
        # A daemon, for a coroutine that blocks must not keep the interpreter from ending.
        self._thread = threading.Thread(target=_serve, args=(self._loop,), name=THREAD_NAME, daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """False once stopped, and in a child process after a fork."""
        return self._thread.is_alive()

    def request_stop(self) -> None:
        """Cancel everything in progress, then end the thread. Does not block."""
        self.interrupt_all()
        self._loop.call_soon_threadsafe(self._end_when_idle)

    def join(self, timeout: timedelta) -> bool:
        """Wait for the thread to end; returns whether it has."""
        self._thread.join(timeout.total_seconds())
        return not self._thread.is_alive()

    # -- in the loop's thread --------------------------------------------------------------------------------------

    def _end_when_idle(self) -> None:
        if self._running or self._due:
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

    def run(self, work: Awaitable[Any], context: JobContext | None = None, calls: Calls | None = None) -> Any:
        """Run to the end and return the result; for worker threads, which wait here. Starts the loop at first use.

        The work sees a copy of the caller's context variables. It is cancelled when the job is being returned; a stop
        request alone does not interrupt it, as with other tasks. Raises what it raises, or `Snooze` when cancelled.
        """
        _reject_on_loops(work)
        with self._lock:
            if self._thread is None or not self._thread.is_alive:
                self._thread = EventLoopThread()
            thread = self._thread
            done = thread.begin(work)
        return thread.result_of(done, context, calls)

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
        return await (_Steps(work) if isinstance(work, Coroutine) else work)
    except _FATAL_TO_LOOPS as error:
        forks.end_if_child(began)
        return _Raised(error)
    finally:
        forks.end_if_child(began)


class _Steps:
    """Awaits a coroutine as `await` does, and logs a step that blocked the loop."""

    def __init__(self, work: Coroutine[Any, Any, Any]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, None, Any]:
        work, error = self._work, None
        while True:
            began = time.perf_counter()
            try:
                waits_for = work.send(None) if error is None else work.throw(error)
            except StopIteration as end:
                return end.value
            finally:
                error = None
                if (seconds := time.perf_counter() - began) > BLOCKED_SECONDS:
                    _report_block(seconds)
            try:
                yield waits_for
            except GeneratorExit:
                work.close()
                raise
            except BaseException as raised:  # noqa: BLE001 - a cancellation, which belongs to the coroutine
                error = raised


def _report_block(seconds: float) -> None:
    if (run := RUN.get()) is not None:
        run.logger.warning("blocked the event loop for %.1f s; call what blocks with asyncio.to_thread", seconds)


def interruption(reason: str = "interrupted because the worker is stopping") -> Snooze:
    """Return what ends a run that is cut short: later again, and the attempt does not count."""
    return Snooze(WorkerSettings().interrupted_delay, reason)


def _close(work: Awaitable[Any]) -> None:
    if isinstance(work, Coroutine):
        work.close()


def _reject_on_loops(work: Awaitable[Any]) -> None:
    """Raise `InvalidInputError` in a thread that an event loop runs in: waiting here would block the loop."""
    if running_loop() is not None:
        _close(work)
        raise InvalidInputError(
            "an async task was called where an event loop runs, which would be blocked until the task ends; "
            "in a test, use the methods of gw_core.testing.AsyncQueue"
        )


# -- the shared one ------------------------------------------------------------------------------------------------

SHARED: Final = SharedLoop()
"""The one of this process."""

# What a forced stop left running still gets to clean up, though not for long.
atexit.register(SHARED.stop, timedelta(milliseconds=500))


def task_loop_of(context: JobContext) -> TaskLoop | None:
    """Return the loop that the program gave to the runner of this job."""
    return context._resources.loop


def run_on_loop(work: Awaitable[Any], context: JobContext, calls: Calls | None = None) -> Any:
    """Run the work to its end on the loop of the runner that runs the job, and return its result."""
    given = task_loop_of(context)
    try:
        return (given or SHARED).run(work, context, calls)
    except RuntimeError as error:
        if any(known in str(error) for known in _OTHER_LOOP):
            raise RuntimeError(_OWN_LOOP if given is None else _GIVEN_LOOP) from error
        raise


_OWN_LOOP: Final = (
    "the task uses an object of another event loop, such as an engine, a pool or a client of the program, and may have "
    "broken it: this runner has a loop of its own; start it with `async with`, or give it the loop of the program, "
    "event_loop=…"
)
_GIVEN_LOOP: Final = (
    "the task uses an object of another event loop, such as an engine, a pool or a client, and may have broken it: "
    "make it on the loop that the runner was given"
)


async def gathered(results: Sequence[Any]) -> list[Any]:
    """Return the values with every awaitable replaced by its result, or by the exception it raised."""
    awaitables = {index: _guarded(each) for index, each in enumerate(results) if isinstance(each, Awaitable)}
    ended = await asyncio.gather(*awaitables.values(), return_exceptions=True)
    found = dict(zip(awaitables, ended, strict=True))
    return [_unwrapped(found.get(index, each)) for index, each in enumerate(results)]


def _unwrapped(value: Any) -> Any:
    return value.error if isinstance(value, _Raised) else value
