"""Groups: a job that is added when the members of its group have ended, exactly once, however they ended."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.queue_fixture import QueueFixture, RunRecord
from support.shell import Shell
from support.waiting import wait_until

from gw_core import AsyncClient, GiveUp, JobSpec
from gw_core.errors import InvalidInputError, InvalidJobError
from gw_core.front_ends import CheckStatus
from gw_core.operations import WaitingGroup

LAST = JobSpec(task="last", payload={"n": 0})


def members(count: int, **options: Any) -> list[JobSpec]:
    return [JobSpec(task="work", payload={"n": n}, **options) for n in range(1, count + 1)]


def waiting(site: QueueFixture) -> list[WaitingGroup]:
    return site.client.groups.list()


def tasks(site: QueueFixture) -> list[str]:
    """Return the tasks of the jobs that can run, now or later."""
    rows = site.run("select task_identifier from jobs where run_at < 'infinity' order by id")
    return [job["task_identifier"] for job in rows]


def check_all(site: QueueFixture) -> None:
    """Check every group, as a worker does once a minute."""
    site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
    site.run("select _private_gw_end_members(null)")


def test_the_last_job_runs_when_all_members_have_ended(site: QueueFixture) -> None:
    ran = RunRecord()
    group = site.client.groups.add(members(5), then=LAST)

    assert len(group.job_ids) == 5
    assert tasks(site) == ["work"] * 5
    assert [(each.id, each.task, each.members, each.open) for each in waiting(site)] == [(group.id, "last", 5, 5)]

    result = site.run_once({"work": ran, "last": ran})

    assert result.completed == 6
    assert sorted(ran.entries[:-1]) == [1, 2, 3, 4, 5]
    assert ran.entries[-1] == 0
    assert waiting(site) == []
    assert site.run("select * from _private_gw_edges") == []


def test_a_fan_out_of_a_thousand_ends_once(site: QueueFixture) -> None:
    ran = RunRecord()
    with site.running({"work": ran, "last": ran}), site.running({"work": ran, "last": ran}):
        for number in range(3):
            site.client.groups.add(members(1_000), then=JobSpec(task="last", payload={"n": -number}))
        wait_until(lambda: len(ran.entries) == 3_003, what="every job")
    check_all(site)

    assert [sum(entry == -number for entry in ran.entries) for number in range(3)] == [1, 1, 1]
    assert tasks(site) == []


def test_a_member_that_fails_and_succeeds_later_ends_once(site: QueueFixture) -> None:
    tries: list[int] = []

    def work(payload: object) -> None:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("not yet")

    site.client.groups.add(members(1), then=LAST)
    site.let_retries_wait()
    site.run_once({"work": work, "last": lambda payload: None})
    assert tasks(site) == ["work"]
    site.run("update _private_jobs set run_at = now()")
    result = site.run_once({"work": work, "last": lambda payload: None})

    assert (result.completed, waiting(site)) == (2, [])


def fail(payload: Any) -> None:
    if payload["n"] == 1:
        raise GiveUp("hopeless")


@pytest.mark.parametrize(
    ("policy", "left", "is_waiting"),
    [("hold", ["work"], True), ("cancel", ["work"], False), ("run", ["work", "last"], False)],
)
def test_a_member_that_failed_permanently_counts_as_its_group_says(
    site: QueueFixture, policy: str, left: list[str], is_waiting: bool
) -> None:
    site.client.groups.add(members(3), then=LAST, on_failure=policy)
    site.run_once({"work": fail})

    assert tasks(site) == left
    assert [(each.open, each.failed) for each in waiting(site)] == ([(1, 1)] if is_waiting else [])


def test_a_group_that_holds_goes_on_when_the_failed_member_is_retried(site: QueueFixture) -> None:
    group = site.client.groups.add(members(3), then=LAST)
    site.run_once({"work": fail})
    site.client.jobs.retry(group.job_ids)
    site.run_once({"work": lambda payload: None})

    assert (tasks(site), waiting(site)) == (["last"], [])


def remove_by_sql(site: QueueFixture, job_ids: tuple[int, ...]) -> None:
    site.run("select complete_jobs(%s)", list(job_ids))
    check_all(site)


ENDS: dict[str, Callable[[QueueFixture, tuple[int, ...]], object]] = {
    "completed": lambda site, ids: site.client.jobs.complete(ids),
    "removed by its key": lambda site, ids: site.client.remove("k"),
    "completed by SQL, as by a worker in another language": remove_by_sql,
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_member_that_an_operator_ends_has_ended(
    site: QueueFixture, end: Callable[[QueueFixture, tuple[int, ...]], object]
) -> None:
    group = site.client.groups.add(members(1, job_key="k"), then=LAST)
    end(site, group.job_ids)

    assert (tasks(site), waiting(site)) == (["last"], [])


@pytest.mark.parametrize(("policy", "expected"), [("hold", ["work"]), ("cancel", ["work"]), ("run", ["work", "last"])])
def test_a_member_that_an_operator_fails_has_failed(site: QueueFixture, policy: str, expected: list[str]) -> None:
    group = site.client.groups.add(members(1), then=LAST, on_failure=policy)
    site.client.jobs.fail(group.job_ids, "by hand")

    assert tasks(site) == expected
    assert len(waiting(site)) == (1 if policy == "hold" else 0)


def test_a_job_can_be_in_several_groups(site: QueueFixture) -> None:
    for name in ("last", "other"):
        site.client.groups.add([JobSpec(task="work", job_key="shared")], then=JobSpec(task=name))
    site.run_once({"work": lambda payload: None})

    assert sorted(tasks(site)) == ["last", "other"]


def test_the_last_job_keeps_its_options(site: QueueFixture) -> None:
    last = JobSpec(
        task="last",
        payload={"text": "ü 100 %"},
        queue_name="q",
        run_at=timedelta(hours=1),
        max_attempts=3,
        job_key="k",
        priority=-7,
        flags=("a",),
    )
    site.client.groups.add(members(1), then=last)
    site.run_once({"work": lambda payload: None})

    [job] = site.run("select *, run_at > now() + interval '10 minutes' as is_delayed from jobs")
    assert (job["task_identifier"], job["queue_name"], job["max_attempts"], job["key"], job["priority"]) == (
        "last",
        "q",
        3,
        "k",
        -7,
    )
    assert (job["flags"], job["is_delayed"]) == ({"a": True}, True)
    assert site.run("select payload from _private_jobs") == [{"payload": {"text": "ü 100 %"}}]


def test_a_group_belongs_to_the_transaction(site: QueueFixture) -> None:
    with psycopg.connect(site.url) as conn:
        site.client.groups.add(members(2), then=LAST, conn=conn)
        conn.rollback()

    assert (tasks(site), waiting(site)) == ([], [])


def test_a_group_without_members_has_ended(site: QueueFixture) -> None:
    group = site.client.groups.add([], then=LAST)

    [last] = site.jobs()
    assert (group.id, tasks(site)) == (last["id"], ["last"])


def test_a_wrong_group_adds_nothing(site: QueueFixture) -> None:
    with pytest.raises(InvalidInputError, match="'stop' is not a value of on_failure; give one of hold, cancel, run"):
        site.client.groups.add(members(1), then=LAST, on_failure="stop")
    with pytest.raises(InvalidJobError):
        site.client.groups.add(members(1), then=JobSpec(task="last", payload=float("nan")))

    assert tasks(site) == []


@pytest.mark.parametrize(
    "options",
    [{"unique_for": timedelta(hours=1)}, {"job_key": "k", "job_key_mode": "preserve_run_at"}],
    ids=["unique", "preserving"],
)
def test_the_last_job_takes_the_options_of_a_job_that_waits(site: QueueFixture, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidJobError) as rejected:
        JobSpec(task="last", after=[1], **options)
    with pytest.raises(InvalidJobError, match=re.escape(str(rejected.value))):
        site.client.groups.add(members(1), then=JobSpec(task="last", **options))

    assert tasks(site) == []


def test_an_asynchronous_client_adds_groups_too(site: QueueFixture) -> None:
    async def add() -> None:
        async with AsyncClient(site.url) as client:
            group = await client.groups.add([*members(1), JobSpec(task="work", job_key="k")], then=LAST)
            assert len(group.job_ids) == 2
            await client.remove("k")

    asyncio.run(add())
    site.run_once({"work": lambda payload: None})

    assert (tasks(site), waiting(site)) == (["last"], [])


def test_an_asynchronous_client_that_ends_the_last_member_adds_the_last_job(site: QueueFixture) -> None:
    group = site.client.groups.add(members(1), then=LAST)

    async def complete() -> None:
        async with AsyncClient(site.url) as client:
            assert (await client.jobs.complete(group.job_ids)).ids == group.job_ids

    asyncio.run(complete())

    assert (tasks(site), waiting(site)) == (["last"], [])


def test_a_worker_that_ended_between_the_two_transactions_leaves_it_to_the_check(site: QueueFixture) -> None:
    group = site.client.groups.add(members(2), then=LAST)
    # What the settling statement has done when the worker dies before it notes the end of the members.
    site.run("delete from _private_jobs where id = any(%s)", list(group.job_ids))
    assert tasks(site) == []

    check_all(site)
    check_all(site)

    assert tasks(site) == ["last"]


def test_a_group_is_checked_once_by_all_workers(site: QueueFixture) -> None:
    site.client.groups.add(members(2), then=LAST)
    site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
    site.run("select _private_gw_end_members(null)")

    [row] = site.run("select now() - checked_at < interval '50 minutes' as is_new from _private_gw_waiting")
    assert row["is_new"]


def test_show_reports_the_groups_of_a_member_and_of_a_key(site: QueueFixture, tmp_path: Path) -> None:
    shell = Shell(tmp_path, database=site.url)
    group = site.client.groups.add(members(2), then=JobSpec(task="last", job_key="album"))
    site.client.jobs.complete(group.job_ids[:1])

    shown = json.loads(shell.gw("show", str(group.job_ids[1]), "--json").out)
    assert shown["groups"] == [
        {"id": group.id, "task": "last", "job_key": "album", "on_failure": "hold", "members": 2, "open": 1, "failed": 0}
    ]
    last = json.loads(shell.gw("show", "--job-key", "album", "--json").out)
    assert (last["id"], last["state"], last["waits_for"]) == (group.id, "waiting", [group.job_ids[1]])
    assert last["reasons"][0]["message"] == (f"job {group.id} of last waits for 2 jobs; 1 has ended (on failure: hold)")


def test_doctor_reports_groups_that_a_failed_member_holds(site: QueueFixture) -> None:
    def found() -> list[tuple[CheckStatus, str]]:
        return [(each.status, each.message) for each in site.client.doctor.findings() if each.check == "groups"]

    assert found() == []
    group = site.client.groups.add(members(2), then=LAST)
    site.client.groups.add(members(1), then=LAST, on_failure="run")
    assert found() == [(CheckStatus.OK, "jobs that wait for others: 2")]

    site.client.jobs.fail(group.job_ids[:1], "hopeless")
    assert found() == [
        (
            CheckStatus.WARNING,
            "1 job that waits for others is held by jobs that failed permanently, "
            f"the first, {group.id}, by job {group.job_ids[0]}",
        )
    ]


def test_statistics_count_the_groups_that_wait(site: QueueFixture) -> None:
    site.client.groups.add(members(2), then=LAST)

    assert site.client.counts().waiting_groups == 1


# -- cancelling


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_group_is_cancelled_and_its_members_run(site: QueueFixture, kind: str) -> None:
    ran = RunRecord()
    first = site.client.groups.add(members(2), then=LAST)
    second = site.client.groups.add(members(1), then=LAST)
    assert first.id is not None

    async def cancel(number: int) -> tuple[tuple[int, ...], list[int]]:
        async with AsyncClient(site.url) as client:
            return await client.groups.cancel(number, 10**9), [each.id for each in await client.groups.list()]

    if kind == "sync":
        found = site.client.groups.cancel(first.id, 10**9), [each.id for each in waiting(site)]
    else:
        found = asyncio.run(cancel(first.id))

    assert found == ((first.id,), [second.id])
    assert site.client.groups.cancel(first.id) == ()
    assert site.run_once({"work": ran, "last": ran}).completed == 4
    assert sorted(ran.entries) == [0, 1, 1, 2]
    assert site.run("select * from _private_gw_edges") == []


def test_a_group_whose_last_member_ends_at_the_same_time_is_cancelled_or_ended(site: QueueFixture) -> None:
    for _ in range(30):
        group = site.client.groups.add(members(1), then=LAST)
        thread = threading.Thread(target=lambda job_id=group.job_ids[0]: site.client.jobs.complete([job_id]))
        thread.start()
        cancelled = site.client.groups.cancel(group.id)
        thread.join()
        assert tasks(site) == ([] if cancelled else ["last"])
        site.run("delete from _private_jobs")
