"""A job is added by the function of its task, which keeps the identifier it was registered under."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from gw_core import Client, JobContext, JobSpec, TaskRegistry, task
from gw_core.errors import InvalidJobError


@dataclass
class Charge:
    amount: int


def test_the_function_stands_for_its_identifier(database_url: str) -> None:
    tasks = TaskRegistry()

    @tasks.task("billing/charge")
    def charge(payload: Charge) -> None: ...

    @task
    def marked(payload: dict[str, int]) -> None: ...

    with Client(database_url) as client:
        client.add(charge, Charge(amount=5), queue_name="billing")
        client.add(marked, {"n": 1})
        found = [client.jobs.get(each.job.id) for each in client.jobs.list().jobs]

    assert [(job.task, job.payload_json, job.queue_name) for job in found if job is not None] == [
        ("billing/charge", '{"amount":5}', "billing"),
        ("marked", '{"n":1}', None),
    ]


def test_a_task_adds_jobs_by_function(database_url: str) -> None:
    from gw_core import Runner

    tasks = TaskRegistry()
    amounts: list[int] = []

    @tasks.task
    def charge(payload: Charge) -> None:
        amounts.append(payload.amount)

    @tasks.task
    def order(payload: dict[str, Any], context: JobContext) -> None:
        context.add(charge, Charge(amount=7))

    with Client(database_url) as client:
        client.add(order)
    Runner(database_url, tasks=tasks).run_once()

    assert amounts == [7]


def a_function(payload: Any) -> None: ...


def twice() -> Callable[..., object]:
    tasks = TaskRegistry()

    def function(payload: Any) -> None: ...

    tasks.register("one", function)
    tasks.register("two", function)
    return function


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        pytest.param(a_function, "a_function is not a task; decorate it with @task", id="not a task"),
        pytest.param(twice(), r"a task under 2 identifiers \(one, two\)", id="two identifiers"),
    ],
)
def test_a_function_without_one_identifier_is_rejected(
    database_url: str, function: Callable[..., object], sentence: str
) -> None:
    with Client(database_url) as client, pytest.raises(InvalidJobError, match=sentence):
        client.add(function, None)


def test_options_beside_a_whole_spec_are_rejected(database_url: str) -> None:
    with Client(database_url) as client, pytest.raises(InvalidJobError, match="inside the JobSpec"):
        client.add(JobSpec(task="mail"), priority=3)
