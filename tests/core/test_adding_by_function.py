"""A job is added by the function of its task, which keeps the identifier it was registered under."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.queue_fixture import QueueFixture
from support.waiting import wait_until

from gw_core import Client, JobContext, JobSpec, TaskRegistry, cron, cron_item, task
from gw_core.errors import InvalidInputError, InvalidJobError


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


def test_a_function_that_several_registries_have_under_one_identifier_is_one_task(database_url: str) -> None:
    def function(payload: Any) -> None: ...

    for _ in range(2):
        TaskRegistry().register("one", function)

    with Client(database_url) as client:
        assert client.add(function).task == "one"


def test_options_beside_a_whole_spec_are_rejected(database_url: str) -> None:
    with Client(database_url) as client, pytest.raises(InvalidJobError, match="inside the JobSpec"):
        client.add(JobSpec(task="mail"), priority=3)


@task("pack", max_attempts=3, priority=2)
def pack(payload: list[Charge]) -> None: ...


@task("optional")
def optional(payload: Charge | None) -> None: ...


@task("report", queue_name="reports", max_attempts=2)
def report(payload: dict[str, int]) -> None: ...


def test_jobs_of_tasks_are_added_singly_in_bulk_in_batches_and_in_groups(database_url: str) -> None:
    with Client(database_url) as client:
        client.add(optional.job(None))
        client.add_many([optional.job(Charge(amount=1)), pack.job([Charge(amount=2)])])
        client.add_batch(pack.job([Charge(amount=3)], job_key="batch"))
        client.add_batch(pack, [Charge(amount=4)])
        client.groups.add([pack.job([Charge(amount=5)])], then=optional.job(None))
        found = [client.jobs.get(each.job.id) for each in client.jobs.list("task:pack,optional").jobs]

    assert {(job.task, job.payload_json, job.max_attempts, job.priority) for job in found if job is not None} == {
        ("optional", "null", 25, 0),
        ("optional", '{"amount":1}', 25, 0),
        *(("pack", f'[{{"amount":{amount}}}]', 3, 2) for amount in (2, 3, 4, 5)),
    }


@pytest.mark.parametrize(
    "add",
    [
        lambda client: client.add(pack, [{"amount": "five"}]),
        lambda client: client.add_batch(pack, [{"amount": "five"}]),
        lambda client: client.add_many([pack.job([{"amount": "five"}])]),  # type: ignore[list-item]
        lambda client: cron_item("0 8 * * *", report.job({"n": "x"})),  # type: ignore[dict-item]
        lambda client: cron_item("0 8 * * *", report, payload={"n": "x"}),
    ],
    ids=["add", "batch", "many", "cron item of a job", "cron item"],
)
def test_a_payload_that_the_task_cannot_read_is_rejected_wherever_it_is_given(
    database_url: str, add: Callable[[Client], object]
) -> None:
    with Client(database_url) as client, pytest.raises(InvalidJobError, match="Expected `int`, got `str` - at"):
        add(client)


def test_a_batch_job_of_a_spec_needs_items(database_url: str) -> None:
    with Client(database_url) as client, pytest.raises(InvalidJobError, match="at least one item"):
        client.add_batch(pack.job([]))


def test_a_cron_item_has_the_defaults_of_its_task() -> None:
    item = cron_item("0 8 * * *", report.job({"n": 1}, priority=4))
    tasks = TaskRegistry()
    tasks.register("report", cron("0 8 * * *", priority=4, payload={"n": 1})(report))

    assert (item.task, item.queue_name, item.max_attempts, item.priority) == ("report", "reports", 2, 4)
    assert item.payload == {"n": 1}
    assert tasks.cron_items == (item,)
    with pytest.raises(InvalidInputError, match="neither a run_at, an expires_at nor flags"):
        cron_item("0 8 * * *", report.job({}, flags=["eu"]))
    with pytest.raises(InvalidInputError, match="neither a run_at, an expires_at nor flags"):
        cron_item("0 8 * * *", report.job({}, expires_at=timedelta(hours=1)))


def test_jobs_of_an_identifier_that_no_worker_serves_are_reported(site: QueueFixture) -> None:
    due = datetime.now(UTC) - timedelta(minutes=5)
    site.client.add("reports/wekly", run_at=due)
    site.client.add("later", run_at=due + timedelta(hours=1))

    def backlog() -> list[str]:
        return [found.message for found in site.client.doctor.findings() if found.check == "backlog"]

    assert backlog() == ["no job is overdue"]
    site.run("update _private_jobs set created_at = created_at - interval '2 minutes'")
    with site.running({"reports/weekly": lambda: None}):
        [message] = wait_until(lambda: [each for each in backlog() if "no live worker" in each], what="the finding")

    assert message.startswith("jobs of the task reports/wekly have been due for ")
