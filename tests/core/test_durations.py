"""Durations are accepted as a `timedelta` or in seconds, wherever a public name takes one."""

from __future__ import annotations

import asyncio
import importlib
import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import cache, cached_property
from typing import Any, get_args

import psycopg
import pytest
from support.queue_fixture import QueueFixture
from test_public_names import MODULES

from gw_core import (
    AsyncClient,
    Client,
    JobSpec,
    ProbeSettings,
    RecoverySettings,
    RetryAfter,
    SessionLimits,
    Snooze,
    WorkerSettings,
    cron_item,
    task,
)
from gw_core.errors import GraphileWorkerError, InvalidInputError, InvalidSettingError, ResultUnavailableError
from gw_core.testing import AsyncQueue, Clock, assert_enqueued, refute_enqueued
from gw_core.types import Duration, TaskOptions

NOWHERE = "postgres://localhost:1/nowhere"
A_MINUTE = timedelta(minutes=1)
NO_JOB = 999_999_999

NOT_GIVEN_BY_USERS = {
    "Database.connect(response_timeout)",
    "SessionLimits.cap_lock_timeout(timeout)",
    "SessionLimits.cap_statement_timeout(timeout)",
    "ThroughputMeter.__init__(window)",
    "WorkerSettings.limit_reached(lived)",
}

Call = Callable[[Any, Any], Any]


def all_of(batches: Any) -> Any:
    """Return all that a synchronous or an asynchronous iterator yields."""

    async def read() -> list[Any]:
        return [each async for each in batches]

    return read() if hasattr(batches, "__aiter__") else list(batches)


# Each is called with a client, synchronous or asynchronous, and a duration.
OF_CLIENTS: dict[str, Call] = {
    "Client.result(timeout)": lambda client, given: client.result(NO_JOB, timeout=given),
    "AsyncClient.result(timeout)": lambda client, given: client.result(NO_JOB, timeout=given),
    "Cleanup.count(older_than)": lambda client, given: client.cleanup.count("failed-jobs", older_than=given),
    "Cleanup.delete(older_than)": lambda client, given: client.cleanup.delete("failed-jobs", older_than=given),
    "Cleanup.delete_in_batches(older_than)": lambda client, given: all_of(
        client.cleanup.delete_in_batches("failed-jobs", older_than=given)
    ),
    "History.count(timeout)": lambda client, given: client.history.count(timeout=given),
    "History.list(timeout)": lambda client, given: client.history.list(timeout=given),
    "History.record_others(period)": lambda client, given: client.history.record_others(given),
    "Jobs.cancel(timeout)": lambda client, given: client.jobs.cancel([NO_JOB], timeout=given),
    "Jobs.list(timeout)": lambda client, given: client.jobs.list(timeout=given),
    "Limits.remove(timeout)": lambda client, given: client.limits.remove("work", timeout=given),
    "Limits.set(period)": lambda client, given: client.limits.set("work", per_period=1, period=given),
    "Limits.set(timeout)": lambda client, given: client.limits.set("work", running=1, timeout=given),
    "Pauses.pause(timeout)": lambda client, given: client.pauses.pause("task:work", timeout=given),
    "Pauses.resume(timeout)": lambda client, given: client.pauses.resume("task:work", timeout=given),
    "Tasks.statistics(back)": lambda client, given: client.tasks.statistics(given),
    "Tasks.statistics_over_time(back)": lambda client, given: client.tasks.statistics_over_time(given),
    "Tasks.statistics_over_time(step)": lambda client, given: client.tasks.statistics_over_time(step=given),
}

OTHERS: dict[str, Callable[[Any], Any]] = {
    "JobSpec.__init__(unique_for)": lambda given: JobSpec(task="work", unique_for=given),
    "Clock.advance(by)": lambda given: Clock().advance(given),
    "RetryAfter.__init__(delay)": RetryAfter,
    "Snooze.__init__(delay)": Snooze,
    "cron_item(fill)": lambda given: cron_item("0 8 * * *", "report", fill=given),
    "task(keep)": lambda given: task("a", keep=given)(lambda payload: None),
    "task(timeout)": lambda given: task("a", timeout=given)(lambda payload: None),
}

WITH_A_JOB: dict[str, Callable[[QueueFixture, Any], Any]] = {
    "assert_enqueued(within)": lambda site, given: checked(site, assert_enqueued, "work", given),
    "refute_enqueued(within)": lambda site, given: checked(site, refute_enqueued, "other", given),
    "AsyncQueue.assert_enqueued(within)": lambda site, given: checked_on_loop(site, "assert_enqueued", "work", given),
    "AsyncQueue.refute_enqueued(within)": lambda site, given: checked_on_loop(site, "refute_enqueued", "other", given),
}


def checked(site: QueueFixture, check: Callable[..., Any], task: str, given: Any) -> Any:
    site.client.add("work")
    with psycopg.connect(site.url) as connection:
        return check(connection, task, within=given)


def checked_on_loop(site: QueueFixture, check: str, task: str, given: Any) -> Any:
    async def checked() -> Any:
        async with await psycopg.AsyncConnection.connect(site.url) as connection:
            return await getattr(AsyncQueue(connection), check)(task, within=given)

    site.client.add("work")
    return asyncio.run(checked())


# -- where durations are -----------------------------------------------------------------------------------------------


@cache
def parameters() -> dict[str, str]:
    """Return the parameters of all public functions, classes and parts of clients that name a duration."""
    found: dict[str, str] = {}
    for module in (*MODULES, "gw_core.testing"):
        public = importlib.import_module(module)
        for name in public.__all__:
            found.update(_of(name, getattr(public, name)))
    for client in (Client(NOWHERE), AsyncClient(NOWHERE)):
        for name, member in inspect.getmembers_static(type(client)):
            if isinstance(member, cached_property) and not name.startswith("_"):
                part = type(getattr(client, name))
                found.update(_of(part.__name__, part))
    return found


def _of(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if inspect.isfunction(value):
        yield from _of_function(name, value)
    elif inspect.isclass(value):
        for each in vars(value):
            function = inspect.unwrap(getattr(value, each)) if each == "__init__" or not each.startswith("_") else None
            if inspect.isroutine(function):
                yield from _of_function(f"{name}.{each}", function)


def _of_function(name: str, function: Callable[..., Any]) -> Iterator[tuple[str, str]]:
    code = getattr(function, "__code__", None)
    if code is None:  # of a class of Python's own
        return
    is_generated = code.co_filename == "<string>"
    # The fields of other values, such as `WorkerInfo.heartbeat_age`, are given by gw alone.
    if is_generated and not name.endswith("Settings.__init__"):
        return
    for parameter in inspect.signature(function).parameters.values():
        if "Duration" in str(parameter.annotation) or "timedelta" in str(parameter.annotation):
            yield f"{name}({parameter.name})", str(parameter.annotation)


def test_every_public_duration_can_be_given_in_seconds() -> None:
    # A time can be given as a `timedelta` from now; a number there could as well be seconds since 1970.
    times = {name for name, annotation in parameters().items() if annotation.startswith("datetime | timedelta")}
    fixed = {name for name, annotation in parameters().items() if "Duration" not in annotation}

    assert fixed - times - NOT_GIVEN_BY_USERS == set()


def test_every_public_duration_is_tried_here() -> None:
    given = {name for name, annotation in parameters().items() if "Duration" in annotation}
    of_settings = {name for name in given if parameters()[name].startswith(("DurationField", "DurationRangeField"))}
    options = {f"task({name})" for name, kind in TaskOptions.__annotations__.items() if "Duration" in str(kind)}

    assert (given - of_settings) | options == {*OF_CLIENTS, *OTHERS, *WITH_A_JOB}


# -- given in both ways ------------------------------------------------------------------------------------------------


def test_a_duration_is_a_timedelta_or_seconds() -> None:
    for call in OTHERS.values():
        for given in (A_MINUTE, 60, 60.0):
            call(given)
        for wrong in ("1m", True, float("nan"), float("inf"), 1e300):
            with pytest.raises(GraphileWorkerError):
                call(wrong)


def test_a_client_takes_a_timedelta_or_seconds(own_site: QueueFixture) -> None:
    for call in OF_CLIENTS.values():
        for given in (A_MINUTE, 60, 60.0):
            with suppress(ResultUnavailableError):
                call(own_site.client, given)
        for wrong in ("1m", True, float("nan")):
            with pytest.raises(InvalidInputError, match="must be a timedelta or a number of seconds"):
                call(own_site.client, wrong)


def test_an_async_client_takes_a_timedelta_or_seconds(own_site: QueueFixture) -> None:
    async def ask() -> None:
        async with AsyncClient(own_site.url) as client:
            for call in OF_CLIENTS.values():
                for given in (A_MINUTE, 60, 60.0):
                    with suppress(ResultUnavailableError):
                        await call(client, given)

    asyncio.run(ask())


def test_waiting_jobs_are_found_within_a_timedelta_or_seconds(site: QueueFixture) -> None:
    for name, call in WITH_A_JOB.items():
        found = [call(site, given) for given in (A_MINUTE, 60, 60.0)]

        assert all(each is None or each for each in found), name


def fields_of(kind: Any) -> dict[str, str]:
    inherited = [vars(each).get("__annotations__", {}) for each in kind.__mro__]
    return {name: str(annotation) for each in inherited for name, annotation in each.items()}


def test_no_setting_takes_a_timedelta_alone() -> None:
    found = {
        f"{kind.__name__}.{name}": annotation
        for kind in (WorkerSettings, RecoverySettings, SessionLimits, ProbeSettings)
        for name, annotation in fields_of(kind).items()
    }

    assert [name for name, annotation in found.items() if annotation.startswith(("timedelta", "tuple[timedelta"))] == []


def test_a_setting_is_a_timedelta_or_seconds() -> None:
    settings: list[tuple[Any, str]] = [
        (kind, name)
        for kind in (WorkerSettings, RecoverySettings, SessionLimits, ProbeSettings)
        for name, annotation in fields_of(kind).items()
        if annotation.startswith(("DurationField", "Duration |")) or annotation == "Duration"
    ]
    assert len(settings) > 20
    for kind, name in settings:
        more = {"port": 0} if kind is ProbeSettings else {}
        values = [getattr(kind(**{name: given}, **more), name) for given in (A_MINUTE, 60, 60.0)]

        assert values == [A_MINUTE] * 3, name
        with pytest.raises(InvalidSettingError, match=f"{name} must be a timedelta or a number of seconds"):
            kind(**{name: "1m"}, **more)


def test_a_setting_without_a_default_of_none_is_never_none() -> None:
    with pytest.raises(InvalidSettingError, match="poll_interval must be a timedelta"):
        WorkerSettings(poll_interval=None)  # type: ignore[arg-type]


def test_a_range_of_durations_is_given_in_both_ways() -> None:
    found = WorkerSettings(expired_lock_interval=(30, A_MINUTE)).expired_lock_interval

    assert found == (timedelta(seconds=30), A_MINUTE)


def test_the_public_name_of_a_duration_means_both() -> None:
    assert set(get_args(Duration)) == {timedelta, float}
