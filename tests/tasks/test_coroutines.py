"""Async tasks: on one thread, each its own, and stoppable."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from support.task_builders import DEADLINE, a_context, attempt, in_thread, run, run_python

from gw_core import JobContext, Snooze, TaskRegistry
from gw_core.execution.event_loop import SHARED, STEPS_PER_TURN, THREAD_NAME, EventLoopThread, SharedLoop
from gw_core.front_ends import Completed, Failed, Returned


@pytest.fixture
def loop() -> Iterator[SharedLoop]:
    loop = SharedLoop()
    yield loop
    assert loop.stop(timedelta(seconds=DEADLINE))


def ending(loop: SharedLoop, work: Awaitable[object], context: JobContext) -> object:
    """What the run raised, or its result."""
    try:
        return loop.run(work, context)
    except BaseException as error:
        return error


async def thread_name() -> str:
    return threading.current_thread().name


def test_async_tasks_share_one_thread() -> None:
    names = []

    async def task(payload: Any) -> None:
        names.append(threading.current_thread().name)

    assert isinstance(run(task), Completed)
    assert isinstance(run(task), Completed)
    assert names == [THREAD_NAME, THREAD_NAME]


def test_async_tasks_run_side_by_side(loop: SharedLoop) -> None:
    meeting = asyncio.Barrier(3)

    waiting = [in_thread(lambda: loop.run(meeting.wait(), a_context())) for _ in range(3)]

    assert sorted(each() for each in waiting) == [0, 1, 2]


def test_an_async_task_that_blocks_its_loop_holds_up_no_ordinary_task() -> None:
    blocked, free = threading.Event(), threading.Event()

    async def blocks(payload: Any) -> None:
        blocked.set()
        assert free.wait(DEADLINE)

    waiting = in_thread(lambda: run(blocks))
    assert blocked.wait(DEADLINE)

    assert isinstance(run(lambda payload: None), Completed)
    free.set()
    assert isinstance(waiting(), Completed)


def test_the_coroutine_sees_the_context_variables_of_its_worker_and_keeps_its_own(loop: SharedLoop) -> None:
    colour = contextvars.ContextVar("colour", default="none")
    colour.set("red")

    async def read() -> str:
        seen = colour.get()
        colour.set("blue")
        return seen

    assert loop.run(read(), a_context()) == "red"
    assert colour.get() == "red"


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), KeyboardInterrupt(), TimeoutError("late")])
def test_what_a_coroutine_raises_reaches_the_worker_and_the_loop_goes_on(
    loop: SharedLoop, error: BaseException
) -> None:
    async def fail() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        loop.run(fail(), a_context())

    assert caught.value is error
    assert loop.run(thread_name(), a_context()) == THREAD_NAME


def test_sys_exit_in_something_a_task_left_running_does_not_end_the_loop(loop: SharedLoop) -> None:
    async def leaves_something() -> None:
        asyncio.get_running_loop().call_soon(sys.exit, 3)
        await asyncio.sleep(0)

    loop.run(leaves_something(), a_context())

    assert loop.run(thread_name(), a_context()) == THREAD_NAME


def test_a_coroutine_that_cancels_itself_has_failed() -> None:
    async def task(payload: Any) -> None:
        raise asyncio.CancelledError

    assert isinstance(run(task), Failed)


def test_a_coroutine_whose_job_is_returned_is_cancelled_and_the_run_returned() -> None:
    began, cleaned_up = threading.Event(), threading.Event()

    async def task(payload: Any) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned_up.set()

    registry, context = TaskRegistry(), a_context()
    registry.register("mail", task)
    found = registry.get("mail")
    assert found is not None
    waiting = in_thread(lambda: attempt(found, context=context))
    assert began.wait(DEADLINE)

    context.should_stop.force()

    outcome = waiting()
    assert isinstance(outcome, Returned)
    assert outcome.delay > timedelta(0)
    assert cleaned_up.is_set()


def test_the_coroutines_of_returned_jobs_can_be_cancelled_immediately_and_only_once(loop: SharedLoop) -> None:
    began, cancelled, cleaned_up = threading.Event(), threading.Event(), threading.Event()
    context, free = a_context(), asyncio.Event()

    async def cleans_up() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
            await free.wait()
            cleaned_up.set()

    async def set_free() -> None:
        free.set()

    waiting = in_thread(lambda: ending(loop, cleans_up(), context))
    assert began.wait(DEADLINE)
    context.should_stop.force()
    assert cancelled.wait(DEADLINE)
    context.should_stop.force()

    loop.run(set_free(), a_context())

    assert isinstance(waiting(), Snooze)
    assert cleaned_up.is_set()


def test_a_coroutine_that_is_asked_to_stop_ends_by_itself(loop: SharedLoop) -> None:
    context = a_context()

    async def task() -> str:
        await asyncio.to_thread(context.should_stop.wait, DEADLINE)
        await asyncio.sleep(0)
        return "saved"

    waiting = in_thread(lambda: loop.run(task(), context))
    context.should_stop.set()

    assert waiting() == "saved"


def test_a_coroutine_that_is_interrupted_before_it_begins_is_closed() -> None:
    loop, is_blocked, may_go_on = EventLoopThread(), threading.Event(), threading.Event()

    async def block() -> None:
        is_blocked.set()
        may_go_on.wait(DEADLINE)

    loop.begin(block())
    assert is_blocked.wait(DEADLINE)
    work = thread_name()
    interrupted = loop.begin(work)
    loop.interrupt(interrupted)
    may_go_on.set()

    with pytest.raises(Snooze):
        interrupted.result(DEADLINE)
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
    loop.request_stop()
    assert loop.join(timedelta(seconds=DEADLINE))


def test_few_jobs_start_or_end_in_one_turn_of_the_loop() -> None:
    loop, count, may_go_on, all_wait = EventLoopThread(), 300, threading.Event(), threading.Event()
    turns, running, done = 0, 0, asyncio.Event()
    started, ended = Counter[int](), Counter[int]()

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def block() -> None:
        assert may_go_on.wait(DEADLINE)

    async def work() -> None:
        nonlocal running
        started[turns] += 1
        running += 1
        if running == count:
            all_wait.set()
        await done.wait()

    async def end_all() -> None:
        done.set()

    counting = loop.begin(count_turns())
    loop.begin(block())
    waiting = [loop.begin(work()) for _ in range(count)]  # all wait for the turn after the block
    for each in waiting:
        each.add_done_callback(lambda _: ended.update([turns]))
    may_go_on.set()
    assert all_wait.wait(DEADLINE)
    loop.begin(end_all()).result(DEADLINE)
    for each in waiting:
        each.result(DEADLINE)

    assert (started.total(), ended.total()) == (count, count)
    # Twice, because a turn of the counter reaches from the middle of one turn of the loop to the middle of the next.
    assert max(*started.values(), *ended.values()) <= 2 * STEPS_PER_TURN
    loop.interrupt(counting)
    loop.request_stop()
    assert loop.join(timedelta(seconds=DEADLINE))


def test_work_that_waits_for_its_turn_is_interrupted_when_the_loop_stops() -> None:
    loop, is_blocked, may_go_on = EventLoopThread(), threading.Event(), threading.Event()

    async def block() -> None:
        is_blocked.set()
        assert may_go_on.wait(DEADLINE)

    loop.begin(block())
    assert is_blocked.wait(DEADLINE)
    waiting = [loop.begin(asyncio.sleep(3600)) for _ in range(3 * STEPS_PER_TURN)]
    loop.request_stop()
    may_go_on.set()

    assert loop.join(timedelta(seconds=DEADLINE))
    assert {type(each.exception(DEADLINE)) for each in waiting} == {Snooze}


def test_stopping_the_loop_interrupts_what_runs_and_the_next_run_starts_another() -> None:
    loop, began = SharedLoop(), threading.Event()

    async def task() -> None:
        began.set()
        await asyncio.Event().wait()

    waiting = in_thread(lambda: ending(loop, task(), a_context()))
    assert began.wait(DEADLINE)

    assert loop.stop(timedelta(seconds=DEADLINE))

    assert isinstance(waiting(), Snooze)
    assert loop.run(thread_name(), a_context()) == THREAD_NAME
    assert loop.stop(timedelta(seconds=DEADLINE))


def test_calls_in_threads_run_side_by_side_and_hand_back_what_they_raise(loop: SharedLoop) -> None:
    meeting = threading.Barrier(20)

    def call(number: int) -> int:
        meeting.wait(DEADLINE)
        if number == 7:
            raise ValueError("seven")
        return number

    async def task() -> list[object]:
        return await asyncio.gather(*(asyncio.to_thread(call, each) for each in range(40)), return_exceptions=True)

    results = loop.run(task(), a_context())

    assert isinstance(results.pop(7), ValueError)
    assert results == [each for each in range(40) if each != 7]


def test_a_process_ends_though_a_coroutine_waits_for_a_blocked_thread() -> None:
    script = """
import asyncio, atexit, threading, time
from datetime import timedelta

register = atexit.register

def register_patiently(function, *arguments):  # half a second is too short for a machine that stands still
    return register(function, *(timedelta(minutes=1) if isinstance(each, timedelta) else each for each in arguments))

atexit.register = register_patiently
from gw_core.execution.event_loop import SHARED
from support.task_builders import a_context

began = threading.Event()

def block():
    began.set()
    time.sleep(600)

async def task():
    try:
        await asyncio.to_thread(block)
    finally:
        print("cleaned up", flush=True)

threading.Thread(target=lambda: SHARED.run(task(), a_context()), daemon=True).start()
assert began.wait(60)
"""
    ended = run_python(script)

    assert (ended.returncode, ended.stdout) == (0, "cleaned up\n"), ended.stderr


def test_stopping_a_loop_that_never_ran_is_nothing() -> None:
    assert SharedLoop().stop()


def test_stopping_says_when_a_coroutine_will_not_end() -> None:
    loop, began, free = SharedLoop(), threading.Event(), threading.Event()

    async def blocks() -> None:
        began.set()
        assert free.wait(DEADLINE)

    waiting = in_thread(lambda: loop.run(blocks(), a_context()))
    assert began.wait(DEADLINE)

    assert not loop.stop(timedelta(0))
    free.set()
    waiting()


def test_the_shared_loop_can_be_stopped_and_used_again() -> None:
    assert SHARED.stop(timedelta(seconds=DEADLINE))

    async def task(payload: Any) -> None: ...

    assert isinstance(run(task), Completed)
    assert SHARED.stop(timedelta(seconds=DEADLINE))
