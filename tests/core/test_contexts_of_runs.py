"""Each run has its own context variables, and knows its job wherever its code is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest
from support.queue_fixture import QueueFixture

from gw_core import Events, JobLogFilter, Plugin, current_job
from gw_core.events import JobStarted, JobSucceeded
from gw_core.testing import perform
from gw_core.types import RunTask

TENANT: ContextVar[str] = ContextVar("tenant", default="nobody")


def kinds(seen: list[str]) -> dict[str, Callable[..., object]]:
    """Tasks of each kind that read the tenant, and then set their own."""

    def in_thread(payload: Any) -> None:
        seen.append(TENANT.get())
        TENANT.set("thread")

    async def on_loop(payload: Any) -> None:
        seen.append(TENANT.get())
        TENANT.set("loop")
        await asyncio.sleep(0)
        assert TENANT.get() == "loop"

    return {"thread": in_thread, "loop": on_loop}


@pytest.mark.parametrize("queue", [None, "till"], ids=["no queue", "one queue"])
def test_what_a_task_sets_is_unknown_to_the_next_job(site: QueueFixture, queue: str | None) -> None:
    seen: list[str] = []
    for name in ("thread", "loop", "thread", "loop"):
        site.client.add(name, queue_name=queue)

    result = site.run_once(kinds(seen), concurrency=1)

    assert (result.completed, seen) == (4, ["nobody"] * 4)


def test_a_plugin_and_a_listener_set_variables_for_their_run(site: QueueFixture) -> None:
    class Tenants(Plugin):
        def around_run(self, job: Any, context: Any, run: RunTask) -> object:
            TENANT.set(f"tenant of {job.id}")
            return run()

    seen: list[str] = []
    ids = [site.client.add(name).id for name in ("thread", "loop")]
    site.run_once(kinds(seen), concurrency=1, plugins=[Tenants()])

    assert seen == [f"tenant of {job_id}" for job_id in ids]


def test_the_current_job_is_known_in_threads_coroutines_and_listeners(site: QueueFixture) -> None:
    seen: list[int | None] = []

    def note(*_: object) -> None:
        job = current_job()
        seen.append(None if job is None else job.id)

    async def on_loop(payload: Any) -> None:
        note()
        await asyncio.to_thread(note)

    class Listening(Plugin):
        def attach(self, events: Events) -> None:
            events.on(JobStarted, note)
            events.on(JobSucceeded, note)

    ids = [site.client.add(name).id for name in ("thread", "loop")]
    site.run_once({"thread": note, "loop": on_loop}, concurrency=1, plugins=[Listening()])

    first, second = ids
    assert seen == [first] * 3 + [second] * 4
    assert current_job() is None


def test_a_task_that_is_performed_sees_the_variables_of_the_test_and_leaves_none() -> None:
    seen: list[str] = []
    task = kinds(seen)["thread"]
    token = TENANT.set("test")
    try:
        perform(task)
    finally:
        left = TENANT.get()
        TENANT.reset(token)

    assert (seen, left, current_job()) == (["test"], "test", None)


def test_the_filter_adds_the_fields_of_the_job_to_the_records_of_every_logger() -> None:
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler = Lines()
    handler.addFilter(JobLogFilter())
    handler.setFormatter(logging.Formatter("%(task)s %(attempt)s %(queue_name)s: %(message)s"))
    logger = logging.getLogger("shop.filtered")
    logger.addHandler(handler)
    try:
        perform(lambda: logger.warning("inside"), attempt=3, queue_name="till")
        logger.warning("outside")
    finally:
        logger.removeHandler(handler)

    assert lines == ["lambda 3 till: inside", "None None None: outside"]
