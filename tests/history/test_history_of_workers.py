"""Workers that keep history: what is recorded of jobs that end in every way, also when answers are lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import QueueFixture, ms
from support.waiting import wait_until

from gw_core import GiveUp, RetryAfter, TaskRegistry
from gw_core.errors import InvalidSettingError
from gw_core.events import JobCompleted, JobFailed
from gw_core.front_ends import MaintenanceFailed, TaskLoadError

WEEK = timedelta(days=7)


def history(site: QueueFixture) -> list[dict[str, Any]]:
    return site.run("select * from _private_gw_history order by job_id, attempt, finished_at")


def returning(result: Any, **options: Any) -> TaskRegistry:
    tasks = TaskRegistry()
    tasks.task("work", keep=WEEK, result=True, **options)(lambda payload: result)
    return tasks


def completed(site: QueueFixture, tasks: TaskRegistry) -> dict[str, Any]:
    """Run one job of the task `work` to its end, and return its row of history."""
    job_id = site.add()
    with site.running(tasks) as running:
        running.recorded.wait_for(JobCompleted)
    (row,) = history(site)
    assert (row["job_id"], row["state"], row["final"], site.jobs()) == (job_id, "completed", True, [])
    return row


# -- results


@pytest.mark.parametrize(
    "result", [None, 7, "text", [1, None], {"a": {"b": 1.5}}, {"who": "é", "when": "2026-01-01"}], ids=repr
)
def test_what_a_task_returns_is_kept_as_json(site: QueueFixture, result: Any) -> None:
    assert completed(site, returning(result))["result"] == result


def test_what_a_coroutine_returns_is_kept(site: QueueFixture) -> None:
    tasks = TaskRegistry()

    @tasks.task("work", keep=WEEK, result=True)
    async def work(payload: object) -> dict[str, int]:
        return {"sent": 3}

    assert completed(site, tasks)["result"] == {"sent": 3}


def double(payload: dict[str, int]) -> int:
    return payload["n"] * 2


def test_what_an_isolated_task_returns_is_kept(site: QueueFixture) -> None:
    tasks = TaskRegistry()
    tasks.task("work", result=True, isolation="process")(double)
    site.add(payload={"n": 21})
    with site.running(tasks) as running:
        running.recorded.wait_for(JobCompleted)

    assert [row["result"] for row in history(site)] == [42]


class Broken:
    def model_dump_json(self) -> str:
        raise RuntimeError("no such field")


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        pytest.param("x" * 1_000_001, "it is 1,000,003 bytes long and at most 1,000,000 are allowed", id="too-large"),
        pytest.param({"ratio": float("nan")}, "contains nan, which JSON cannot hold", id="nan"),
        pytest.param(object(), "cannot be written as JSON", id="no-json"),
        pytest.param("a\x00b", "contains \\u0000, which PostgreSQL cannot hold", id="nul"),
        pytest.param({"raw": msgspec.Raw(b"{oops")}, "the result is not kept", id="not-json-text"),
        pytest.param(Broken(), "RuntimeError while it was written as JSON", id="broken-model"),
    ],
)
def test_a_result_that_cannot_be_kept_says_why_and_its_job_completes(
    site: QueueFixture, result: Any, reason: str
) -> None:
    row = completed(site, returning(result))

    assert row["result"] is None
    assert reason in row["error"]


def test_results_are_not_kept_unless_the_task_asks(site: QueueFixture) -> None:
    tasks = TaskRegistry()
    tasks.task("work", keep=WEEK)(lambda payload: "secret")

    row = completed(site, tasks)

    assert (row["result"], row["payload"], row["error"]) == (None, None, None)


def test_payloads_are_kept_when_the_task_asks(site: QueueFixture) -> None:
    tasks = TaskRegistry()
    tasks.task("work", keep=WEEK, keep_payload=True)(lambda payload: None)
    site.add(payload={"to": "you"})
    with site.running(tasks) as running:
        running.recorded.wait_for(JobCompleted)

    assert [row["payload"] for row in history(site)] == [{"to": "you"}]


# -- attempts


def test_every_attempt_is_recorded_with_its_error_and_worker(site: QueueFixture) -> None:
    tasks = TaskRegistry()

    @tasks.task("work", keep=WEEK)
    def work(payload: object, context: Any) -> None:
        if context.job.attempts < 3:
            raise RetryAfter(0, f"attempt {context.job.attempts} fails")

    site.add()
    with site.running(tasks, poll_interval=ms(20)) as running:
        running.recorded.wait_for(JobCompleted, lambda event: event.error is None)
        worker_id = running.worker_id

    assert [(row["attempt"], row["state"], row["final"], row["error"]) for row in history(site)] == [
        (1, "retried", False, "attempt 1 fails"),
        (2, "retried", False, "attempt 2 fails"),
        (3, "completed", True, None),
    ]
    assert {row["worker_id"] for row in history(site)} == {worker_id}


def fails(payload: object) -> None:
    raise LookupError("no amount")


def gives_up(payload: object) -> None:
    raise GiveUp("declined")


@pytest.mark.parametrize("isolation", [None, "process"])
@pytest.mark.parametrize(("function", "error_type"), [(fails, "builtins.LookupError"), (gives_up, "gw_core.GiveUp")])
def test_the_class_of_an_error_is_recorded_wherever_the_task_ran(
    site: QueueFixture, function: Callable[[object], None], error_type: str, isolation: Any
) -> None:
    tasks = TaskRegistry()
    tasks.task("work", keep=WEEK, isolation=isolation)(function)
    site.add()
    with site.running(tasks) as running:
        running.recorded.wait_for(JobCompleted)

    assert [row["error_type"] for row in history(site)] == [error_type]


def test_a_job_that_failed_permanently_is_in_the_queue_and_has_no_final_row(site: QueueFixture) -> None:
    tasks = TaskRegistry()

    @tasks.task("work", keep=WEEK)
    def work(payload: object) -> None:
        raise GiveUp("the card was declined")

    job_id = site.add()
    with site.running(tasks) as running:
        running.recorded.wait_for(JobFailed)
        wait_until(lambda: history(site) != [])

    (row,) = history(site)
    assert (row["job_id"], row["state"], row["final"]) == (job_id, "failed", False)
    assert row["error"] == "the card was declined (given up by the task on attempt 1 of 25)"
    assert [job["id"] for job in site.jobs()] == [job_id]


# -- what is kept


def test_the_setting_of_the_worker_counts_for_tasks_that_say_nothing(site: QueueFixture) -> None:
    tasks = TaskRegistry()
    tasks.task("plain")(lambda payload: None)
    tasks.task("month", keep=timedelta(days=30))(lambda payload: None)
    tasks.task("never", keep=timedelta(0))(lambda payload: None)
    for task in ("plain", "month", "never"):
        site.add(task)
    with site.running(tasks, history=WEEK) as running:
        running.recorded.wait_for(JobCompleted, count=3)

    kept = {row["task"]: row["expires_at"] - row["finished_at"] for row in history(site)}
    assert kept == {"plain": WEEK, "month": timedelta(days=30)}


def test_without_a_setting_nothing_is_recorded(site: QueueFixture) -> None:
    site.add()
    with site.running({"work": lambda payload: 1}) as running:
        running.recorded.wait_for(JobCompleted)

    assert history(site) == []


@pytest.mark.parametrize("keep", [timedelta(days=-1), timedelta(days=40_000), -7, "7d"], ids=str)
def test_a_period_that_is_none_is_an_error(keep: Any) -> None:
    with pytest.raises(TaskLoadError, match="keep must be"):
        TaskRegistry().task("work", keep=keep)(lambda payload: None)


def test_a_setting_of_a_thousand_years_is_an_error(site: QueueFixture) -> None:
    with pytest.raises(InvalidSettingError, match="history must be at most 36500 days"):
        site.runner({"work": print}, history=timedelta(days=365_000))


# -- lost answers


@pytest.mark.parametrize("committed", [True, False], ids=["committed", "not-committed"])
def test_a_lost_answer_records_nothing_twice_and_loses_nothing(
    site: QueueFixture, proxy: DatabaseProxy, committed: bool
) -> None:
    tasks = TaskRegistry()

    @tasks.task("work", keep=WEEK, result=True)
    def work(payload: Any, context: Any) -> int:
        if payload["n"] % 3 == 0 and context.job.attempts == 1:
            raise RetryAfter(0, "again")
        return int(payload["n"])

    with site.running(tasks, url=proxy.url, poll_interval=ms(50)) as running:
        for _ in range(3):
            proxy.lose_next("gw:settle", mark="history", committed=committed)
        site.fill(60)
        wait_until(lambda: site.jobs() == [], what="all jobs have ended")
        running.recorded.wait_for(JobCompleted, lambda event: event.error is None, count=60)
    assert proxy.lost == 3

    rows = history(site)
    finals = Counter(row["job_id"] for row in rows if row["final"])
    assert (len(finals), set(finals.values())) == (60, {1})
    assert sorted(row["result"] for row in rows if row["final"]) == list(range(1, 61))
    retried = Counter((row["job_id"], row["attempt"]) for row in rows if row["state"] == "retried")
    assert (len(retried), set(retried.values())) == (20, {1})


# -- partitions


def test_a_worker_makes_the_partitions_of_the_next_days_and_drops_those_that_are_over(site: QueueFixture) -> None:
    site.run(
        "create table _private_gw_history_20200101 partition of _private_gw_history "
        "for values from ('2020-01-01+00') to ('2020-01-02+00')"
    )

    def partitions() -> list[str]:
        rows = site.run(
            "select inhrelid::regclass::text as name from pg_inherits "
            "where inhparent = '_private_gw_history'::regclass order by 1"
        )
        return [row["name"] for row in rows]

    def partition_in_a_week() -> str:
        day = "to_char((now() + interval '7 days') at time zone 'UTC', 'YYYYMMDD')"
        return f"_private_gw_history_{site.value(f'select {day}')}"

    expected = {partition_in_a_week()}
    with site.running(returning(1)):
        wait_until(lambda: "_private_gw_history_20200101" not in partitions() and len(partitions()) >= 4)
    expected.add(partition_in_a_week())  # midnight may have passed
    assert expected & set(partitions())
    completed(site, returning(1))
    assert site.run("select 1 from _private_gw_history_default") == []


def test_a_partition_that_an_operator_has_detached_stays_and_hinders_nothing(own_site: QueueFixture) -> None:
    completed(own_site, returning(1))
    (partition,) = own_site.run("select tableoid::regclass::text as name from _private_gw_history")
    own_site.run(f"alter table _private_gw_history detach partition {partition['name']}")

    own_site.add()
    with own_site.running(returning(1)) as running:
        running.recorded.wait_for(JobCompleted)
    assert running.recorded.of(MaintenanceFailed) == []
    assert own_site.value(f"select count(*) from {partition['name']}") == 1
    assert len(history(own_site)) == 1


def test_history_expires_although_no_partition_can_be_made(own_site: QueueFixture) -> None:
    own_site.client.history.record_others(timedelta(seconds=1))
    own_site.run("select complete_jobs(array[%s])", own_site.add("other"))
    days = own_site.run(
        "select to_char(now() + ahead * interval '1 day', 'YYYYMMDD') as day from generate_series(0, 8) ahead"
    )
    for each in days:  # the name of a table is also that of a type
        own_site.run(f"create type _private_gw_history_{each['day']} as enum ()")
    wait_until(lambda: own_site.value("select expires_at < now() from _private_gw_history"), what="the row to expire")

    with own_site.running(returning(1)) as running:
        wait_until(lambda: history(own_site) == [], what="the row to be deleted")
        running.recorded.wait_for(MaintenanceFailed)


def test_the_partitions_are_there_before_the_first_job_runs(site: QueueFixture) -> None:
    tasks, found = TaskRegistry(), []

    @tasks.task("work", keep=WEEK)
    def work(payload: object) -> None:
        found.append(site.value("select count(*) from pg_inherits where inhparent = '_private_gw_history'::regclass"))

    site.add()
    site.run_once(tasks)

    assert found in ([4], [5])  # one more if midnight has passed


def test_a_table_in_use_does_not_hold_up_the_worker(site: QueueFixture) -> None:
    site.run(
        "create table _private_gw_history_20200101 partition of _private_gw_history "
        "for values from ('2020-01-01+00') to ('2020-01-02+00')"
    )
    with site.running(returning(1)) as running, site.hands.transaction():
        site.run("select count(*) from _private_gw_history")
        time.sleep(0.2)
        site.client.add("work")
        running.recorded.wait_for(JobCompleted)
    site.run("select _private_gw_expire_history()")
