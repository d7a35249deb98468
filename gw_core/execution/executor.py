"""Run one job with its task and return how it ended; no exception of a task escapes from here."""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gw_core.domain.counted import counted
from gw_core.domain.errors import GraphileWorkerError
from gw_core.domain.job.history import encoded_result
from gw_core.domain.job.outcome import (
    Completed,
    Failed,
    GiveUp,
    Interrupted,
    Outcome,
    RetryAfter,
    Returned,
    Snooze,
    error_message,
)
from gw_core.domain.rules.retry_rules import RetryRules, delay_after
from gw_core.execution.error_details import DETAILS, error_details
from gw_core.execution.payloads import PayloadError

if TYPE_CHECKING:
    from gw_core.domain.job.job import Job
    from gw_core.execution.context import JobContext
    from gw_core.execution.task import LoadedTask

MAX_MESSAGE_LENGTH: Final = 20_000
"""Longer messages of failures are cut in the middle: they go into a row, a log line and a terminal."""

_LISTED_ITEMS: Final = 10


class TaskResultError(GraphileWorkerError):
    """The task returned a value which shows that it did not run, such as a generator."""


class BatchError(GraphileWorkerError):
    """Some items of a batch job failed; `errors` has them by index.

    Example: docs/api/errors.md
    """

    def __init__(self, message: str, errors: dict[int, BaseException]) -> None:
        super().__init__(message)
        self.errors = errors


def execute(
    job: Job,
    task: LoadedTask,
    context: JobContext,
    clock: Callable[[], float] = time.perf_counter,
    started: float = 0.0,
) -> Outcome:
    """Run the task and return how it ended; never raises. `started` is the time by `clock`, now unless given."""
    started = started or clock()
    try:
        result = task.invoke(job, context)
        if result is None and not task.history.result:
            return Completed(job, clock() - started)
        error, payload, result = _judge(job, context, result)
    except BaseException as raised:  # noqa: BLE001 - what a task raises belongs to the job, sys.exit() included
        return outcome_of(job, raised, clock() - started, task.retry)
    seconds = clock() - started
    if error is not None:
        return Failed(job, seconds, error, _message(error), payload=payload)
    if not task.history.result:
        return Completed(job, seconds)
    kept = encoded_result(result)
    return Completed(job, seconds, kept.text, kept.problem)


def outcome_of(job: Job, error: BaseException, seconds: float, rules: RetryRules = ()) -> Outcome:
    """Return how a run ended that raised `error`; `rules` are those of its task."""
    match error:
        case Snooze():
            return Returned(job, _message(error), error.delay, seconds)
        case Interrupted():
            return Returned(job, _message(error), seconds=seconds)
        case BaseExceptionGroup() if error.split(Interrupted)[1] is None:  # of a group of coroutines
            return Returned(job, str(Interrupted()), seconds=seconds)
        case RetryAfter():
            return Failed(job, seconds, error, _message(error), delay=error.delay)
        case GiveUp():
            return Failed(job, seconds, error, _message(error) + _given_up(job), permanent=True)
        case _:
            return _failed(job, error, seconds, _decided(error, rules, job.attempts))


def _decided(error: BaseException, rules: RetryRules, attempt: int) -> timedelta | type[GiveUp] | None:
    """Return what the rules decide; the usual delay where the function of a rule fails, which the details say."""
    try:
        return delay_after(error, rules, attempt)
    except Exception as problem:  # noqa: BLE001 - the error of the task matters more
        setattr(error, DETAILS, f"{error_details(error)}; its retry rule failed: {error_message(problem)}")
        return None


def _failed(job: Job, error: BaseException, seconds: float, decided: timedelta | type[GiveUp] | None) -> Failed:
    """Return how a run ended that failed: with the usual delay unless a rule decided otherwise."""
    if isinstance(decided, timedelta):
        return Failed(job, seconds, error, _message(error), delay=decided)
    if decided is GiveUp or (isinstance(error, PayloadError) and error.permanent):
        return Failed(job, seconds, error, _message(error) + _not_retried(job), permanent=True)
    return Failed(job, seconds, error, _message(error))


def _message(error: BaseException) -> str:
    if isinstance(error, Snooze | Interrupted):
        return _shortened(str(error))
    return _shortened(error_message(error)) + error_details(error)


def _shortened(text: str) -> str:
    if len(text) <= MAX_MESSAGE_LENGTH:
        return text
    half = MAX_MESSAGE_LENGTH // 2
    return f"{text[:half]} [... {len(text) - 2 * half} characters ...] {text[-half:]}"


def _given_up(job: Job) -> str:
    """Return the number of attempts as text; the row gets `attempts = max_attempts`, as in Node, to prevent retries."""
    return "" if job.is_last_attempt else f" (given up by the task on attempt {job.attempts} of {job.max_attempts})"


def _not_retried(job: Job) -> str:
    """Return the number of attempts as text, as `_given_up` does."""
    return "" if job.is_last_attempt else f" (not retried after attempt {job.attempts} of {job.max_attempts})"


# -- what a task may return ----------------------------------------------------------------------------------------

_Verdict = tuple[BaseException | None, str | None, object]
"""The error that a result stands for, the payload that is left to do, and the result itself."""


def _judge(job: Job, context: JobContext, result: object) -> _Verdict:
    """Return what a result stands for; raises when it is none at all."""
    if isinstance(result, Awaitable):
        from gw_core.execution.event_loop import run_on_loop

        result = run_on_loop(result, context)
    if isinstance(result, list):
        return _judge_batch(job, context, result)
    if inspect.isgenerator(result) or inspect.isasyncgen(result):
        if inspect.isgenerator(result):
            result.close()
        raise TaskResultError(
            "the task returned a generator, whose body never ran; call it to its end, for example with list(...)"
        )
    return None, None, result


# -- batch jobs ----------------------------------------------------------------------------------------------------

_decode_items: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_next: Final = json.JSONDecoder().raw_decode
_SKIPPED: Final = {sign: re.compile(rf"[ \t\n\r]*{re.escape(sign)}?[ \t\n\r]*") for sign in "[,"}


def items_of(payload: str) -> list[msgspec.Raw]:
    """Return the JSON text of each item of a payload that is a list."""
    try:
        return _decode_items(payload)
    except msgspec.MsgspecError:
        return _items_to_the_letter(payload)


def _items_to_the_letter(payload: str) -> list[msgspec.Raw]:
    """Read what PostgreSQL's json accepts and the fast decoder does not, such as an escaped lone surrogate."""
    items: list[msgspec.Raw] = []
    start = _skip(payload, "[")
    while payload[start] != "]":
        _, end = _decode_next(payload, start)
        items.append(msgspec.Raw(payload[start:end].encode()))
        start = _skip(payload, ",", end)
    return items


def _skip(text: str, sign: str, start: int = 0) -> int:
    """Return where the next token begins, after white space and at most one `sign`."""
    begins = _SKIPPED[sign].match(text, start)
    return start if begins is None else begins.end()


def _judge_batch(job: Job, context: JobContext, results: list[Any]) -> _Verdict:
    if not job.payload_json.lstrip().startswith("["):
        return None, None, results
    results = _awaited(results, context)
    items = items_of(job.payload_json)
    if len(results) != len(items):
        _warn(
            context,
            f"Task {job.task} returned {counted(len(results), 'result')} for a batch of {counted(len(items), 'item')}; "
            "the job counts as done. Return one result for each item, or None.",
        )
        return None, None, results
    errors = {index: result for index, result in enumerate(results) if isinstance(result, BaseException)}
    if not errors:
        return None, None, results
    if interrupted := next((each for each in errors.values() if isinstance(each, Interrupted)), None):
        raise interrupted  # all items run again, and their steps do not
    left = msgspec.json.encode([items[index] for index in errors]).decode()
    return BatchError(_batch_message(errors, len(items)), errors), left, None


def _awaited(results: list[Any], context: JobContext) -> list[Any]:
    """Return the results with awaitables and futures replaced by what they came to."""
    if any(isinstance(each, Awaitable) for each in results):
        from gw_core.execution.event_loop import gathered, run_on_loop

        results = run_on_loop(gathered(results), context)
    return [_result_of(each) if isinstance(each, Future) else each for each in results]


def _result_of(future: Future[Any]) -> object:
    try:
        return future.result()
    except BaseException as error:  # noqa: BLE001 - it is this item's failure
        return error


def _batch_message(errors: dict[int, BaseException], count: int) -> str:
    listed = [f"{index}: {error_message(error)}" for index, error in list(errors.items())[:_LISTED_ITEMS]]
    if len(errors) > _LISTED_ITEMS:
        listed.append(f"and {len(errors) - _LISTED_ITEMS} more")
    return f"{len(errors)} of {count} batch items failed: {'; '.join(listed)}"


def _warn(context: JobContext, message: str) -> None:
    # A sink that breaks must not make a failure of a run that succeeded.
    with contextlib.suppress(Exception):
        context.logger.warning(message)
