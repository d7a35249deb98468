"""A worker that is restricted to some tasks and some named queues runs their jobs and leaves all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from support.queue_fixture import NEVER, QueueFixture

from gw_core import JobSpec, RunResult
from gw_core.events import JobCompleted

LEFT = """
select tasks.identifier || coalesce('@' || queues.queue_name, '') as job
  from _private_jobs as jobs
  join _private_tasks as tasks on tasks.id = jobs.task_id
  left join _private_job_queues as queues on queues.id = jobs.job_queue_id
 order by 1
"""
KINDS = ["mail", "mail@billing", "mail@other", "slow", "slow@billing", "slow@other"]


@pytest.fixture
def site(site: QueueFixture) -> Iterator[QueueFixture]:
    yield site
    for each in site.client.limits.list():
        site.client.limits.remove(each.task)


def add(site: QueueFixture, *kinds: str, **options: Any) -> None:
    """Add jobs written as `task` or `task@queue`."""
    for kind in kinds:
        task, _, queue = kind.partition("@")
        site.client.add(task, {"tenant": "a"}, queue_name=queue or None, **options)


def left(site: QueueFixture) -> list[str]:
    return [row["job"] for row in site.run(LEFT)]


def run(site: QueueFixture, *only: str, **options: Any) -> RunResult:
    return site.run_once({name: lambda payload: None for name in ("mail", "slow")}, only=only, **options)


@pytest.mark.parametrize(
    ("only", "remaining"),
    [
        pytest.param(["queue:billing"], ["mail", "mail@other", "slow", "slow@other"], id="a queue"),
        pytest.param(["task:mail", "queue:billing"], ["slow", "slow@other"], id="a task and a queue"),
        pytest.param(["queue:billing", "queue:other"], ["mail", "slow"], id="two queues"),
        pytest.param(["queue:of_nobody"], KINDS, id="a queue without jobs"),
    ],
)
def test_jobs_of_other_tasks_and_queues_are_left(site: QueueFixture, only: Sequence[str], remaining: list[str]) -> None:
    add(site, *KINDS, *KINDS)

    result = run(site, *only)

    assert left(site) == sorted(2 * remaining)
    assert result.completed == 2 * (len(KINDS) - len(remaining))


def test_a_queue_is_served_in_its_order_whatever_waits_before_it_elsewhere(site: QueueFixture) -> None:
    site.client.add_many([JobSpec(task="mail", queue_name=f"q{n}", priority=-5) for n in range(300)])
    order: list[object] = []
    for number, priority in enumerate([3, 1, 2, 1]):
        site.client.add("mail", {"number": number}, queue_name="billing", priority=priority)

    site.run_once({"mail": lambda payload: order.append(payload["number"])}, only=["queue:billing"])

    assert order == [1, 3, 2, 0]
    assert len(left(site)) == 300


def test_neither_the_task_nor_the_queue_waits_for_the_end_of_the_other(site: QueueFixture) -> None:
    order: list[str] = []
    site.client.add_many([JobSpec(task="mail") for _ in range(30)])
    site.client.add_many([JobSpec(task="slow", queue_name=f"billing{n}") for n in range(30)])
    tasks = {"mail": lambda payload: order.append("mail"), "slow": lambda payload: order.append("slow")}

    site.run_once(tasks, only=["task:mail", *(f"queue:billing{n}" for n in range(30))], concurrency=1)

    assert {"mail", "slow"} == set(order[:40]), "one kind had to wait until the other had ended"


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param({"running": 1}, id="by count"),
        pytest.param({"running": 1, "field": "tenant"}, id="by field"),
    ],
)
def test_a_limited_task_is_claimed_from_the_queue_alone(site: QueueFixture, limit: dict[str, Any]) -> None:
    site.client.limits.set("slow", **limit)
    add(site, *KINDS, *KINDS)

    assert run(site, "queue:billing").completed == 4
    assert left(site) == sorted(2 * ["mail", "mail@other", "slow", "slow@other"])


def test_flags_and_pauses_hold_for_the_jobs_of_a_queue(site: QueueFixture) -> None:
    add(site, "mail@billing", flags=["big"])
    add(site, "slow@billing", "mail@billing")
    site.client.pauses.pause("task:slow")
    try:
        assert run(site, "queue:billing", forbidden_flags=["big"]).completed == 1
    finally:
        site.client.pauses.resume("task:slow")
    assert left(site) == ["mail@billing", "slow@billing"]

    site.client.pauses.pause("queue:billing")
    try:
        assert run(site, "queue:billing").completed == 0
    finally:
        site.client.pauses.resume("queue:billing")
    assert run(site, "queue:billing").completed == 2


def test_a_run_says_why_it_leaves_jobs_of_its_queues(site: QueueFixture) -> None:
    add(site, "mail@billing", "slow@other")
    site.client.pauses.pause("queue:billing")
    try:
        reason = run(site, "queue:billing").reason
    finally:
        site.client.pauses.resume("queue:billing")

    assert reason == "no job can run now; left: 1 of mail (the queue is paused)"
    assert run(site, "queue:of_nobody").reason == "no job is left to run"


def test_a_job_that_is_added_to_the_queue_starts_without_a_poll(site: QueueFixture) -> None:
    with site.running({"mail": lambda payload: None}, only=["queue:billing"], poll_interval=NEVER) as running:
        for number in range(1, 4):
            add(site, "mail@other", "mail@billing", "mail@billing")
            running.recorded.wait_for(JobCompleted, count=2 * number)

    assert left(site) == 3 * ["mail@other"]
