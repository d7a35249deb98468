"""What operators do is recorded: who did what to which jobs, when, and from where."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.queue_fixture import QueueFixture
from support.shell import Shell

from gw_core import AsyncClient, Client, GiveUp, TaskRegistry
from gw_core.errors import InvalidInputError
from gw_core.front_ends import CancelResult, operator_name

SOON = datetime(2030, 1, 1, tzinfo=UTC)

tasks = TaskRegistry()


@tasks.task("work")
def work(payload: object) -> None:
    raise GiveUp("no account")


def failed(site: QueueFixture) -> int:
    """Run a job to its permanent failure."""
    job_id = site.add("work", {"secret": "s3cret"}, job_key="k")
    site.run_once(tasks)
    return job_id


def waiting(client: Client) -> int:
    """Add a job that waits for another."""
    return client.add("work", after=[client.add("work")]).id


ACTIONS: dict[str, Callable[[QueueFixture, int], object]] = {
    "retry": lambda site, job: site.client.jobs.retry([job], by="anna"),
    "complete": lambda site, job: site.client.jobs.complete("state:failed", by="anna"),
    "fail": lambda site, job: site.client.jobs.fail([job], "why", by="anna"),
    "reschedule": lambda site, job: site.client.jobs.reschedule([job], run_at=SOON, priority=7, by="anna"),
    "remove": lambda site, job: site.client.remove("k", by="anna"),
}
DETAILS = {"fail": {"reason": "why"}, "reschedule": {"run_at": str(SOON), "priority": 7}}


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_on_jobs_is_recorded(site: QueueFixture, action: str) -> None:
    before, job = site.run("select now() as at")[0]["at"], failed(site)
    ACTIONS[action](site, job)

    [found] = site.client.history.actions(job)
    assert (found.action, found.by, found.job_ids, found.targets) == (action, "anna", (job,), ("task:work",))
    assert found.details == DETAILS.get(action, {})
    assert before <= found.at <= site.run("select now() as at")[0]["at"]
    [session] = site.run("select session_user::text as role, host(inet_client_addr()) as address")
    assert (found.role, found.address) == (session["role"], session["address"])
    assert "s3cret" not in str(site.run("select * from _private_gw_actions"))
    assert site.client.history.actions() == [found]
    assert site.client.history.actions(job + 1) == []


def test_a_cancelled_waiting_job_is_recorded(site: QueueFixture) -> None:
    first, second = waiting(site.client), waiting(site.client)
    [cancelled] = site.client.jobs.cancel([first], by="anna", reason="too late")
    site.client.groups.cancel(second, by="ben")

    assert cancelled.result is CancelResult.CANCELLED
    later, earlier = site.client.history.actions()
    assert (earlier.action, earlier.by, earlier.job_ids) == ("cancel", "anna", (first,))
    assert earlier.details == {"reason": "too late"}
    assert (later.action, later.by, later.job_ids) == ("cancel", "ben", (second,))


def test_pauses_and_released_locks_are_recorded(site: QueueFixture) -> None:
    job = site.add("work")
    site.run("update _private_jobs set locked_at = now(), locked_by = 'dead' where id = %s", job)
    site.client.pauses.pause("task:work", "queue:q", reason="disk full", by="anna", timeout=0)
    site.client.pauses.resume("task:work", "task:other", by="anna", timeout=0)
    site.client.workers.unlock(["dead", "unknown"], by="anna")

    assert [(each.action, each.targets, each.details) for each in site.client.history.actions()] == [
        ("unlock", ("dead",), {}),
        ("resume", ("task:work",), {}),
        ("pause", ("queue:q", "task:work"), {"reason": "disk full"}),
    ]


def test_nothing_is_recorded_of_programs_that_name_no_operator_or_of_actions_that_change_nothing(
    site: QueueFixture,
) -> None:
    job = failed(site)
    site.client.jobs.retry([job])
    site.client.jobs.complete([10**9], by="anna")
    site.client.remove("intruder", by="anna")
    site.client.pauses.resume("task:work", by="anna", timeout=0)
    site.client.remove("k")

    assert site.client.history.actions() == []


def test_an_action_and_its_record_are_of_one_transaction(site: QueueFixture, intruder: str) -> None:
    job = failed(site)
    with psycopg.connect(site.url) as conn:
        site.client.jobs.retry([job], by="anna", conn=conn)
        assert [each.action for each in site.client.history.actions(job, conn=conn)] == ["retry"]
        conn.rollback()
    assert site.client.history.actions() == []

    for act in (site.client.jobs.retry, site.client.jobs.complete):
        with pytest.raises(Exception, match="intruder"):
            act([job], by=intruder)
    with pytest.raises(Exception, match="intruder"):
        site.client.remove("k", by=intruder)
    assert [(each["id"], each["attempts"] == each["max_attempts"]) for each in site.jobs()] == [(job, True)]


def test_each_batch_is_one_record(site: QueueFixture) -> None:
    ids = sorted(site.client.add("work").id for _ in range(5))
    for _ in site.client.jobs.in_batches(2).fail("task:work", by="anna"):
        pass

    assert [each.job_ids for each in site.client.history.actions()] == [(ids[4],), (ids[2], ids[3]), (ids[0], ids[1])]
    first, second = site.client.history.actions(limit=2)
    assert [each.job_ids for each in site.client.history.actions(after=second.id)] == [(ids[0], ids[1])]
    assert first.id > second.id


def test_expired_records_are_not_shown_and_are_deleted(site: QueueFixture) -> None:
    site.client.jobs.fail([site.add("work")], by="anna")
    site.client.history.expire()
    assert len(site.client.history.actions()) == 1
    site.run("update _private_gw_actions set expires_at = now()")

    assert site.client.history.actions() == []
    site.client.history.expire()
    assert site.run("select * from _private_gw_actions") == []


def test_an_event_loop_records_and_lists_actions(site: QueueFixture) -> None:
    async def act() -> list[str]:
        async with AsyncClient(site.url) as client:
            await client.jobs.fail([site.add("work")], by="anna")
            return [each.action for each in await client.history.actions()]

    assert asyncio.run(act()) == ["fail"]


@pytest.mark.parametrize("by", ["x" * 2_000, "a\x00b"])
def test_a_name_that_cannot_be_recorded_is_rejected_before_anything_is_done(site: QueueFixture, by: str) -> None:
    job = site.add("work", job_key="k")
    calls: list[Callable[[], Any]] = [
        lambda: site.client.jobs.complete([job], by=by),
        lambda: site.client.remove("k", by=by),
        lambda: site.client.jobs.cancel([job], by=by),
        lambda: site.client.workers.unlock(["w"], by=by),
        lambda: site.client.pauses.resume("task:work", by=by),
        lambda: site.client.groups.cancel(job, by=by),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match="by has more than"):
            call()
    assert [each["id"] for each in site.jobs()] == [job]


def test_commands_record_who_ran_them_and_show_it(site: QueueFixture, tmp_path: Path) -> None:
    job, shell = failed(site), Shell(tmp_path, database=site.url)
    assert shell.gw("retry", str(job)).code == 0
    assert shell.gw("fail", str(job), "--reason", "a\x1b[31mb").code == 0

    listed = json.loads(shell.gw("actions", str(job), "--json").out)
    assert [(each["action"], each["by"], each["job_ids"], each["jobs"]) for each in listed] == [
        ("fail", operator_name(), [job], 1),
        ("retry", operator_name(), [job], 1),
    ]
    shown = json.loads(shell.gw("show", str(job), "--json").out)["actions"]
    assert [each["action"] for each in shown] == ["fail", "retry"]
    assert "\x1b" not in shell.gw("show", str(job)).out
    assert shell.gw("complete", str(job)).code == 0
    gone = shell.gw("show", str(job))
    assert (gone.code, f"complete by {operator_name()}" in gone.err) == (6, True)
    assert shell.gw("actions", "x").code == 2
    assert shell.gw("actions", "--after", "1", "--json").out.strip() == "[]"


def test_the_program_is_recorded_as_it_names_itself(site: QueueFixture) -> None:
    with Client(site.url, application_name="till") as client:
        client.jobs.fail([site.add("work")], by="anna")
    [found] = site.client.history.actions()
    assert found.program is not None
    assert found.program.startswith("till")
    assert found.sentence.startswith(f"fail by anna (role {found.role}, till")
