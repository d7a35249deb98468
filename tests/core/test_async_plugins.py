"""Plugins and listeners that are async: they work, or are rejected."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest
from support.queue_fixture import QueueFixture, ms

from gw_core import Addition, AsyncClient, Client, Events, GiveUp, Job, JobSpec, Plugin, Runner, Skip
from gw_core.errors import InvalidSettingError
from gw_core.events import JobCompleted
from gw_core.testing import perform
from gw_core.types import RunTask

THREAD_NAME = "gw-async"
TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


class Timing(Plugin):
    """Wraps a run on the loop, and does there what `act` does."""

    def __init__(self, name: str, notes: list[str], act: Callable[[RunTask], Any] | None = None) -> None:
        self._name = name
        self._notes = notes
        self._act = act

    async def around_run(self, job: Job, context: Any, run: RunTask) -> object:
        TENANT.set(self._name)
        self._notes.append(f"{self._name} in {threading.current_thread().name}")
        try:
            await asyncio.sleep(0)
            return await run() if self._act is None else self._act(run)
        finally:
            self._notes.append(f"{self._name} out")


class Plain(Plugin):
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes

    def around_run(self, job: Job, context: Any, run: RunTask) -> object:
        self._notes.append(f"plain in {threading.current_thread().name}")
        return run()


def in_thread(notes: list[str]) -> Callable[[Any], object]:
    return lambda payload: notes.append(f"task for {TENANT.get()} in {threading.current_thread().name}")


def on_loop(notes: list[str]) -> Callable[[Any], object]:
    async def task(payload: Any) -> None:
        await asyncio.sleep(0)
        in_thread(notes)(payload)

    return task


@pytest.mark.parametrize(("kind", "place"), [(in_thread, "gw-worker-1"), (on_loop, THREAD_NAME)])
def test_an_async_wrapper_runs_on_the_loop_and_its_task_where_it_belongs(
    site: QueueFixture, kind: Callable[[list[str]], Callable[[Any], object]], place: str
) -> None:
    notes: list[str] = []
    site.add()

    plugins = [Timing("a", notes), Plain(notes), Timing("b", notes)]
    result = site.run_once({"work": kind(notes)}, plugins=plugins, concurrency=1)

    assert result.completed == 1
    assert notes == [
        f"a in {THREAD_NAME}",
        "plain in gw-worker-1",
        f"b in {THREAD_NAME}",
        f"task for b in {place}",
        "b out",
        "a out",
    ]


def test_an_async_wrapper_returns_skips_and_fails_as_others_do(site: QueueFixture) -> None:
    notes: list[str] = []

    def raises(run: RunTask) -> object:
        raise GiveUp("not today")

    def fails(payload: Any) -> None:
        raise ValueError("the task objects")

    acts: list[Callable[[RunTask], Any]] = [lambda run: run(), lambda run: Skip(), raises]
    results = [site.run_once({"work": in_thread(notes)}, plugins=[Timing("a", [], act)]) for act in acts if site.add()]
    site.add(max_attempts=1)
    failed = site.run_once({"work": fails}, plugins=[Timing("a", [])])

    assert [(each.completed, each.failed) for each in results] == [(1, 0), (1, 0), (0, 1)]
    assert len(notes) == 1
    assert failed.failed == 1
    errors = [job["last_error"] for job in site.jobs()]
    assert errors[0].startswith("not today")
    assert errors[1].startswith("ValueError: the task objects")


def test_an_async_wrapper_and_its_task_are_cancelled_when_the_job_returns(site: QueueFixture) -> None:
    notes: list[str] = []
    began = threading.Event()

    async def task(payload: Any) -> None:
        began.set()
        await asyncio.Event().wait()

    site.add()
    with site.running({"work": task}, plugins=[Timing("a", notes)], grace_period=ms(100)) as running:
        assert began.wait(60)
        running.stop()

    assert notes[-1] == "a out"
    assert site.jobs()[0]["attempts"] == 0


def test_an_async_wrapper_works_in_tests_too() -> None:
    notes: list[str] = []

    assert perform(lambda: 7, plugins=[Timing("a", notes)]) == 7
    assert len(notes) == 2


class BeforeAdd(Plugin):
    async def before_add(self, spec: JobSpec) -> JobSpec:  # type: ignore[override]
        return spec


class AroundAdd(Plugin):
    @asynccontextmanager
    async def around_add(self, addition: Addition) -> AsyncIterator[None]:  # type: ignore[override]
        yield


class OnRecovery(Plugin):
    async def on_recovery(self, *_: object) -> None:  # type: ignore[override]
        pass


class Attach(Plugin):
    async def attach(self, events: Events) -> None:  # type: ignore[override]
        pass


@pytest.mark.parametrize(
    ("plugin", "method"),
    [
        (BeforeAdd(), "before_add"),
        (AroundAdd(), "around_add"),
        (OnRecovery(), "on_recovery"),
        (Attach(), "attach"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_async_methods_are_rejected(plugin: Plugin, method: str) -> None:
    expected = f"{method} of the plugin {type(plugin).__name__} must not be async: it is called in threads, too"
    for make in (Client, AsyncClient, partial(Runner, tasks="tasks")):
        with pytest.raises(InvalidSettingError, match=expected):
            make("postgres:///nowhere", plugins=[plugin])  # type: ignore[operator]


def test_an_async_listener_is_rejected() -> None:
    async def notify(event: JobCompleted) -> None: ...

    with pytest.raises(InvalidSettingError, match="the listener notify must not be async: listeners run in the thread"):
        Events().on(JobCompleted, notify)
