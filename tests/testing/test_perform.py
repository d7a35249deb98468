"""`perform` runs one task and `inline` runs jobs where they are added; neither needs a database."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from gw_core import AsyncClient, Client, Interrupted, JobContext, JobSpec, Plugin, Snooze, TaskRegistry, task
from gw_core.errors import InvalidInputError, InvalidJobError, PayloadError
from gw_core.front_ends import FrontEnd
from gw_core.testing import inline, perform

NOWHERE = "host=127.0.0.1 port=1 connect_timeout=1"


@dataclass
class Mail:
    to: str


def send(mail: Mail, context: JobContext) -> str:
    return f"{mail.to} {context.job.attempts}/{context.job.max_attempts} {context.job.queue_name}"


def test_perform_decodes_the_payload_and_returns_the_value() -> None:
    assert perform(send, {"to": "ann"}, attempt=3, max_attempts=5, queue_name="mail") == "ann 3/5 mail"
    assert perform(send, Mail("bob")) == "bob 1/25 None"


def test_perform_finds_a_task_by_its_identifier() -> None:
    tasks = TaskRegistry()
    tasks.register("send", send)
    assert perform("send", {"to": "ann"}, tasks=tasks).startswith("ann")
    with pytest.raises(InvalidInputError, match="no task 'sned' is known here: the registry has send"):
        perform("sned", {"to": "ann"}, tasks=tasks)


def test_a_task_that_takes_none_is_performed_with_what_its_job_stores() -> None:
    @task("optional")
    def optional(mail: Mail | None) -> Mail | None:
        return mail

    @task("needed")
    def needed(mail: Mail) -> Mail:
        return mail

    assert perform(optional, None) is None
    assert perform(optional, Mail("ann")) == Mail("ann")
    with pytest.raises(PayloadError):
        perform(needed, None)  # type: ignore[arg-type] # as a program without types may


def test_perform_raises_what_the_task_raises() -> None:
    def fail(payload: Any) -> None:
        raise Snooze(payload["seconds"])

    with pytest.raises(Snooze):
        perform(fail, {"seconds": 3})
    with pytest.raises(PayloadError):
        perform(send, {"at": "ann"})
    with pytest.raises(InvalidJobError):
        perform(send, {"to": float("nan")})


def test_perform_returns_the_items_a_batch_has_left() -> None:
    def each(payload: list[int]) -> list[Exception | None]:
        return [ValueError("odd") if n % 2 else None for n in payload]

    assert perform(each, [1, 2, 3]) == [1, 3]
    assert perform(each, [2]) == []


def test_perform_awaits_a_coroutine() -> None:
    async def double(payload: int) -> int:
        return 2 * payload

    assert perform(double, 4) == 8


def test_perform_sets_the_time_of_the_job() -> None:
    def run_at(payload: Any, context: JobContext) -> datetime:
        return context.job.run_at

    when = datetime(2020, 2, 29, tzinfo=UTC)
    assert perform(run_at, now=when) == when


def test_perform_runs_an_isolated_task_in_this_process() -> None:
    here: list[Any] = []

    @task("isolated", isolation="process")
    def isolated(payload: Any) -> None:
        here.append(payload)

    perform(isolated, 1)
    assert here == [1]


def test_a_task_that_needs_a_database_says_so() -> None:
    def ask(payload: Any, context: JobContext) -> None:
        context.add("other")

    with pytest.raises(InvalidInputError, match="pass your connection, as conn="):
        perform(ask)


def test_inline_runs_a_job_where_it_is_added() -> None:
    tasks, ran = TaskRegistry(), []
    tasks.register("work", lambda payload: ran.append(payload))
    with Client(NOWHERE) as client, inline(tasks) as attempts:
        job = client.add("work", {"n": 1}, queue_name="q")
        FrontEnd(client).add_json(JobSpec(task="work"), "[2]")
        ids = client.add_many([JobSpec(task="work", payload=3)])
    assert ran == [{"n": 1}, [2], 3]
    assert job is not None
    assert job.queue_name == "q"
    assert [attempt.job.id for attempt in attempts][2:] == ids


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_inline_raises_what_the_task_raises_in_the_code_that_adds(error: type[BaseException]) -> None:
    def fail(payload: object) -> None:
        raise error

    tasks = TaskRegistry()
    tasks.register("fail", fail)
    with Client(NOWHERE) as client, inline(tasks), pytest.raises(error):
        client.add("fail")
    with Client(NOWHERE) as client, inline(tasks, raises=False) as attempts:
        client.add("fail")
    assert [type(attempt.error) for attempt in attempts] == [error]


def test_a_job_that_a_task_adds_inline_runs_too() -> None:
    tasks, ran = TaskRegistry(), []
    tasks.register("child", lambda payload: ran.append("child"))
    tasks.register("parent", lambda payload, context: (context.add("child"), ran.append("parent")))
    with Client(NOWHERE) as client, inline(tasks):
        client.add("parent")
    assert ran == ["child", "parent"]


def test_inline_rejects_a_task_that_the_registry_does_not_have() -> None:
    with Client(NOWHERE) as client, inline(TaskRegistry()), pytest.raises(InvalidInputError, match="no task 'typo'"):
        client.add("typo")


def test_inline_ends_with_its_block() -> None:
    tasks = TaskRegistry()
    tasks.register("work", lambda payload: None)
    with inline(tasks):
        pass
    with Client(NOWHERE) as client, pytest.raises(Exception, match="connection"):
        client.add("work")


def test_inline_runs_jobs_of_an_async_client() -> None:
    tasks, ran = TaskRegistry(), []
    tasks.register("work", lambda payload: ran.append(payload))

    async def add() -> None:
        async with AsyncClient(NOWHERE) as client:
            await client.add("work", 1)
            await client.add_many([JobSpec(task="work", payload=2)])

    with inline(tasks):
        asyncio.run(add())
    assert ran == [1, 2]


def test_plugins_wrap_what_is_performed() -> None:
    class Double(Plugin):
        def around_run(self, job: Any, context: Any, run: Any) -> object:
            return [run(), run()]

    assert perform(lambda payload: payload, 3, plugins=[Double()]) == [3, 3]


# -- steps -------------------------------------------------------------------------------------------------------


def ship(payload: Any, context: JobContext) -> list[int]:
    paid = context.step("charge", str, "paid")
    with context.step("rows") as step:
        for row in range(step.cursor or 0, 3):
            step.save(row + 1)
    return [len(paid), step.cursor]


def test_perform_keeps_steps_and_takes_those_of_earlier_attempts() -> None:
    kept: dict[str, Any] = {}
    assert perform(ship, steps=kept) == [4, 3]
    assert kept == {"charge": "paid", "rows": 3}
    assert perform(ship, attempt=2, steps={"charge": "x", "rows": 7}) == [1, 7]


def test_perform_interrupts_a_task_at_a_step() -> None:
    kept: dict[str, Any] = {}
    with pytest.raises(Interrupted):
        perform(ship, steps=kept, interrupts_at="rows")
    assert kept == {"charge": "paid"}


def test_a_job_that_runs_inline_has_steps() -> None:
    tasks = TaskRegistry()
    tasks.register("ship", ship)
    with inline(tasks) as attempts, Client(NOWHERE) as client:
        client.add("ship")
        client.add("ship")
    assert [each.value for each in attempts] == [[4, 3]] * 2
