"""Call an async `around_run` of a plugin: it runs on the loop, and what it wraps in the worker thread that waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from gw_core.domain.job.job import Job
    from gw_core.domain.rules.plugins import AroundRun, RunTask
    from gw_core.execution.context import JobContext


def on_loop(wrap: AroundRun) -> AroundRun:
    """Return the function that runs an async wrapper on the loop of the async tasks."""

    def around_run(job: Job, context: JobContext, run: RunTask) -> object:
        from gw_core.execution.event_loop import run_on_loop  # asyncio is loaded for those who use it

        calls = _Calls(run)
        return run_on_loop(_awaited(wrap, job, context, calls), context, calls)

    return around_run


async def _awaited(wrap: AroundRun, job: Job, context: JobContext, calls: _Calls) -> Any:
    result = await wrap(job, context, calls.request)  # type: ignore[misc] # a coroutine function
    return await result if isinstance(result, Awaitable) else result  # of a wrapper that returns run() as it is


class _Calls:
    """The calls that a coroutine requests of the thread that waits for it."""

    def __init__(self, run: RunTask) -> None:
        self._run = run
        self._requests: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

    def request(self) -> asyncio.Future[Any]:
        """Let the thread run the task with the caller's context variables; called on the loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._requests.put(partial(copy_context().run, self._answer, loop, answer))
        return answer

    def end(self) -> None:
        """Let the thread go."""
        self._requests.put(None)

    def serve(self) -> None:
        """Do what is requested, until the coroutine has ended; called in the thread."""
        while (request := self._requests.get()) is not None:
            request()

    def _answer(self, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any]) -> None:
        try:
            result = self._run()
        except BaseException as error:  # noqa: BLE001 - it belongs to the wrapper, which awaits it
            # A StopIteration cannot be the exception of a future.
            given = RuntimeError(repr(error)) if isinstance(error, StopIteration) else error
            loop.call_soon_threadsafe(_give, answer.set_exception, answer, given)
        else:
            loop.call_soon_threadsafe(_give, answer.set_result, answer, result)


def _give(give: Callable[[Any], None], answer: asyncio.Future[Any], value: Any) -> None:
    if not answer.done():  # the wrapper was cancelled while the task ran
        give(value)
