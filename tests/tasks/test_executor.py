"""How a run ends: every way to return and every way to raise."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Any

import pytest
from support.task_builders import LoadedTask, LogRecorder, a_job, attempt, run

from gw_core import GiveUp, RetryAfter, Snooze, TaskRegistry
from gw_core.errors import BatchError
from gw_core.execution.executor import MAX_MESSAGE_LENGTH, outcome_of
from gw_core.front_ends import Completed, Failed, Returned, TaskLoadError, TaskResultError


def raising(error: BaseException) -> Callable[[Any], object]:
    def task(payload: Any) -> object:
        raise error

    return task


def failure(function: Callable[..., object], payload: object = None) -> Failed:
    outcome = run(function, payload)
    assert isinstance(outcome, Failed)
    return outcome


# -- returning -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [None, True, False, 0, "done", {"a": 1}, [], [1, 2], object()])
def test_a_task_that_returns_has_completed_whatever_it_returns(result: object) -> None:
    assert isinstance(run(lambda payload: result, {"a": 1}), Completed)


def test_the_time_of_the_run_is_measured() -> None:
    ticks = count(10, 3)
    job = a_job()

    outcome = attempt(LoadedTask("mail", lambda job, context: None, "here"), job, clock=lambda: float(next(ticks)))

    assert outcome == Completed(job, 3.0)


def test_the_time_of_a_failed_run_is_measured() -> None:
    ticks = count(10, 3)
    job = a_job()

    outcome = attempt(LoadedTask("mail", lambda job, context: 1 / 0, "here"), job, clock=lambda: float(next(ticks)))

    assert isinstance(outcome, Failed)
    assert outcome.seconds == 3.0


def test_a_coroutine_returned_by_an_ordinary_function_is_run_to_its_end() -> None:
    seen = []

    async def send(payload: Any) -> None:
        await asyncio.sleep(0)
        seen.append(payload)

    assert isinstance(run(lambda payload: send(payload), {"a": 1}), Completed)
    assert seen == [{"a": 1}]


def test_what_a_returned_coroutine_raises_is_the_failure() -> None:
    async def send() -> None:
        raise ValueError("no such address")

    assert failure(lambda payload: send()).message.startswith("ValueError: no such address (")


def test_a_partial_of_a_coroutine_function_is_run() -> None:
    seen = []

    async def send(where: str, payload: Any) -> None:
        seen.append((where, payload))

    assert isinstance(run(partial(send, "home"), [1]), Completed)
    assert seen == [("home", [1])]


def test_a_returned_generator_is_a_failure_for_its_body_never_ran() -> None:
    def steps() -> Iterator[int]:
        yield 1

    outcome = failure(lambda payload: steps())

    assert isinstance(outcome.error, TaskResultError)
    assert "generator" in outcome.message


def test_a_returned_async_generator_is_a_failure_too() -> None:
    async def steps() -> AsyncIterator[int]:
        yield 1

    assert isinstance(failure(lambda payload: steps()).error, TaskResultError)


# -- raising -------------------------------------------------------------------------------------------------------


def test_an_exception_fails_the_attempt_and_keeps_the_payload() -> None:
    error = ValueError("no such address")
    outcome = failure(raising(error))

    assert outcome.error is error
    assert outcome.message.startswith("ValueError: no such address (")
    assert (outcome.delay, outcome.permanent, outcome.payload) == (None, False, None)


def test_give_up_ends_the_attempts() -> None:
    outcome = failure(raising(GiveUp("card refused")))

    assert outcome.permanent
    assert outcome.is_final
    assert outcome.message == "card refused (given up by the task on attempt 1 of 25)"


def test_give_up_on_the_last_attempt_says_nothing_of_attempts() -> None:
    outcome = outcome_of(a_job(attempts=25), GiveUp("card refused"), 0.0)

    assert isinstance(outcome, Failed)
    assert outcome.message == "card refused"


def test_retry_after_brings_its_own_delay() -> None:
    outcome = failure(raising(RetryAfter(90, "rate limited")))

    assert outcome.delay == timedelta(seconds=90)
    assert not outcome.permanent
    assert outcome.message == "rate limited"


def broken_rule(attempt: int) -> float:
    raise KeyError("no such plan")


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (broken_rule, "KeyError: 'no such plan'"),
        (lambda attempt: None, "InvalidInputError: the delay must be a timedelta or a number of seconds, got None"),
    ],
)
def test_a_retry_rule_that_fails_hides_no_error(rule: Any, problem: str) -> None:
    registry, error = TaskRegistry(), ValueError("no such address")
    registry.task("send", retry={ValueError: rule})(raising(error))
    outcome = attempt(registry.get("send"), a_job())

    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.delay, outcome.permanent) == (error, None, False)
    assert re.fullmatch(
        rf"ValueError: no such address \(.*\); its retry rule failed: {re.escape(problem)}", outcome.message
    )


@pytest.mark.parametrize("rule", [Snooze, RetryAfter, GiveUp("closed"), "soon", None, timedelta])
def test_what_is_no_retry_rule_is_an_error_where_the_task_is_made(rule: Any) -> None:
    with pytest.raises(TaskLoadError, match="retry for ValueError must be a timedelta or a number of seconds"):
        TaskRegistry().task("send", retry={ValueError: rule})(raising(ValueError()))


def test_snooze_gives_the_job_back() -> None:
    outcome = run(raising(Snooze(timedelta(minutes=5), "too early")))

    assert isinstance(outcome, Returned)
    assert (outcome.delay, outcome.reason, outcome.started) == (timedelta(minutes=5), "too early", True)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), GeneratorExit(), MemoryError(), RecursionError(), BaseException()]
)
def test_whatever_is_raised_becomes_a_failure(error: BaseException) -> None:
    assert failure(raising(error)).error is error


def test_sys_exit_in_a_task_is_a_failure_that_says_so() -> None:
    assert failure(lambda payload: sys.exit(3)).message.startswith("the task called sys.exit(3) (")


def test_an_exception_whose_text_cannot_be_made_is_still_a_failure() -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("not today")

    assert failure(raising(BrokenError())).message.startswith("BrokenError: ")


def test_a_very_long_message_is_cut_in_the_middle() -> None:
    message = failure(raising(ValueError("begin" + "x" * 1_000_000 + "end"))).message

    assert len(message) < MAX_MESSAGE_LENGTH + 100
    assert message.startswith("ValueError: begin")
    assert "xend (" in message
    assert "characters ..." in message


# -- batch jobs ----------------------------------------------------------------------------------------------------


def test_only_the_failed_items_of_a_batch_are_left() -> None:
    def send(items: list[Any]) -> list[object]:
        return [ValueError(f"no {each['to']}") if each["to"] in "bd" else None for each in items]

    outcome = failure(send, [{"to": "a"}, {"to": "b"}, {"to": "c"}, {"to": "d"}])

    assert isinstance(outcome.error, BatchError)
    assert sorted(outcome.error.errors) == [1, 3]
    assert outcome.payload is not None
    assert json.loads(outcome.payload) == [{"to": "b"}, {"to": "d"}]
    assert outcome.message == "BatchError: 2 of 4 batch items failed: 1: ValueError: no b; 3: ValueError: no d"


def test_a_failed_item_stays_written_as_it_was() -> None:
    outcome = run(lambda items: [None, ValueError("no")], text='[1,  {"amount": 1.10, "id": 12345678901234567890123}]')

    assert isinstance(outcome, Failed)
    assert outcome.payload == '[{"amount": 1.10, "id": 12345678901234567890123}]'


@pytest.mark.parametrize("done", [None, True, False, 0, "sent", {"id": 7}])
def test_an_item_is_done_whatever_stands_for_it_unless_it_is_an_exception(done: object) -> None:
    assert isinstance(run(lambda items: [done, done], [1, 2]), Completed)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('["ok","\\ud800"]', '["\\ud800"]'),
        (' [ "ok" , [1, {"\\udc00": 1.10}]\n] ', '[[1, {"\\udc00": 1.10}]]'),
        ('[{"a": "\\ud800"},1e400]', "[1e400]"),
    ],
)
def test_an_item_with_a_lone_surrogate_does_not_lose_what_the_batch_did(text: str, left: str) -> None:
    outcome = run(lambda items: [None, ValueError("no")], text=text)

    assert isinstance(outcome, Failed)
    assert (outcome.payload, outcome.message) == (left, "BatchError: 1 of 2 batch items failed: 1: ValueError: no")


def test_a_batch_of_another_length_counts_as_done_with_a_warning() -> None:
    log, job = LogRecorder(), a_job([1, 2, 3])
    task = LoadedTask("mail", lambda job, context: [ValueError("which?")], "here")

    assert isinstance(attempt(task, job, log=log), Completed)
    (warning,) = log.of("warning")
    assert "1 result for a batch of 3 items" in warning


def test_a_logger_that_breaks_makes_no_failure_of_a_success() -> None:
    class Broken(LogRecorder):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("disk full")

    job = a_job([1, 2])

    assert isinstance(attempt(LoadedTask("mail", lambda job, context: [1], "here"), job, log=Broken()), Completed)


def test_a_list_returned_for_an_object_is_no_batch() -> None:
    assert isinstance(run(lambda payload: [ValueError("ignored")], {"a": 1}), Completed)


def test_an_empty_batch_is_done() -> None:
    assert isinstance(run(lambda items: [], []), Completed)


def test_a_batch_that_raises_is_tried_again_whole() -> None:
    assert failure(raising(ValueError("no network")), [1, 2]).payload is None


def test_an_async_batch_may_return_awaitables() -> None:
    async def send(item: int) -> int:
        await asyncio.sleep(0)
        if item == 2:
            raise ValueError("two")
        return item

    async def batch(items: list[int]) -> list[object]:
        return [send(each) for each in items]

    outcome = failure(batch, [1, 2, 3])

    assert outcome.payload == "[2]"
    assert "1 of 3 batch items failed: 1: ValueError: two" in outcome.message


def test_sys_exit_in_one_item_fails_that_item_alone() -> None:
    async def send(item: int) -> None:
        if item == 2:
            sys.exit(9)

    assert failure(lambda items: [send(each) for each in items], [1, 2]).payload == "[2]"


def test_a_batch_may_return_futures() -> None:
    def batch(items: list[str]) -> list[Future[int]]:
        futures: list[Future[int]] = [Future() for _ in items]
        futures[0].set_result(1)
        futures[1].set_exception(OSError("gone"))
        return futures

    assert failure(batch, ["a", "b"]).payload == '["b"]'


def test_the_message_of_a_large_batch_lists_the_first_ten() -> None:
    message = failure(lambda items: [ValueError("no") for _ in items], list(range(100))).message

    assert message.count("ValueError") == 10
    assert message.endswith("and 90 more")
