"""Jobs that expire: one that has not started by its `expires_at` fails instead of starting."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from support.queue_fixture import NEVER, QueueFixture, RunRecord
from support.waiting import wait_until

from gw_core import AsyncClient, Job, JobSpec, RetryAfter, Snooze, TaskRegistry
from gw_core.errors import InvalidJobError
from gw_core.events import JobFailed, JobStarted

HOUR = timedelta(hours=1)
PAST = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ERROR = "expired: did not start by 2026-01-02T03:04:05Z"
LATER = datetime(2096, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def add(site: QueueFixture, n: int = 0, **options: Any) -> Job:
    return site.client.add("work", {"n": n}, **options)


def ends(site: QueueFixture) -> list[tuple[int, int, str | None]]:
    return [(row["attempts"], row["max_attempts"], row["last_error"]) for row in site.jobs()]


def expired(site: QueueFixture, *jobs: Job) -> bool:
    found = [site.client.jobs.get(job.id) for job in jobs]
    return all(job is not None and job.is_last_attempt and job.last_error == ERROR for job in found)


def ids(site: QueueFixture) -> list[int]:
    return sorted(each.job.id for each in site.client.jobs.list().jobs)


def listed(site: QueueFixture) -> list[int]:
    return [row["job_id"] for row in site.run("select job_id from _private_gw_expiring order by job_id")]


# -- at the claim ------------------------------------------------------------------------------------------------------


def test_a_job_that_did_not_start_in_time_fails_instead_of_starting(site: QueueFixture) -> None:
    ran = RunRecord()
    add(site, 1, expires_at=PAST, max_attempts=7)
    add(site, 2, expires_at=HOUR)
    add(site, 3, expires_at=LATER)
    add(site, 4)

    result = site.run_once({"work": ran})

    assert sorted(ran.entries) == [2, 3, 4]
    assert ends(site) == [(7, 7, ERROR)]
    assert (result.completed, result.failed) == (3, 1)


def test_it_is_reported_as_a_failed_job_that_never_started(site: QueueFixture) -> None:
    job = add(site, expires_at=PAST)
    with site.running({"work": RunRecord()}, poll_interval=NEVER) as worker:
        [failed] = worker.recorded.wait_for(JobFailed)
        wait_until(lambda: expired(site, job), what="the job to expire")

    assert (failed.job.id, str(failed.error)) == (job.id, ERROR)
    assert worker.recorded.of(JobStarted) == []
    assert [ERROR in message for message in worker.log.of("error")] == [True]


def test_two_workers_start_none_that_has_expired(site: QueueFixture) -> None:
    ran = RunRecord()
    site.client.add_many(
        JobSpec(task="work", payload={"n": n}, expires_at=PAST if n % 3 == 0 else HOUR) for n in range(300)
    )
    with site.running({"work": ran}), site.running({"work": ran}):
        wait_until(lambda: len(ran.entries) == 200, what="the others to run")
        wait_until(lambda: len([row for row in site.jobs() if row["last_error"] == ERROR]) == 100, what="the rest")
    assert sorted(ran.entries) == [n for n in range(300) if n % 3]


@pytest.mark.parametrize("field", [None, "tenant"])
def test_jobs_that_have_expired_do_not_use_up_a_rate(site: QueueFixture, field: str | None) -> None:
    ran = RunRecord()
    site.client.limits.set("work", per_period=1, period=HOUR, field=field)
    for n in range(3):
        site.client.add("work", {"n": n, "tenant": "a"}, expires_at=PAST)
    site.client.add("work", {"n": 3, "tenant": "a"})
    with psycopg.connect(site.url) as other:
        # Only claims meet them: the maintenance steps over what is locked.
        other.execute("select from graphile_worker._private_gw_expiring for update")
        with site.running({"work": ran}, poll_interval=NEVER):
            wait_until(lambda: ran.entries == [3], what="the job that has not expired")
    site.client.limits.remove("work")


def test_a_job_that_failed_after_it_started_in_time_is_tried_again(site: QueueFixture) -> None:
    runs: list[int] = []

    def work(payload: Any) -> None:
        runs.append(payload["n"])
        if len(runs) == 1:
            raise RetryAfter(HOUR)

    add(site, 1, expires_at=timedelta(seconds=2))
    with site.running({"work": work}, poll_interval=NEVER):
        wait_until(lambda: [row["last_error"] for row in site.jobs()] != [None], what="the first attempt to fail")
        wait_until(lambda: site.value("select now() > created_at + interval '2 s' from _private_jobs"), what="its time")
        site.client.jobs.retry("state:backoff")
        wait_until(lambda: site.jobs() == [], what="the second attempt")
    assert runs == [1, 1]


def test_a_job_that_was_snoozed_has_no_expiry_any_more(site: QueueFixture) -> None:
    def work(payload: Any) -> None:
        raise Snooze(3600)

    job = add(site, expires_at=LATER, flags=["other"])
    assert (job.expires_at, job.flags) == (LATER, ("other",))
    site.run_once({"work": work})
    assert (again := site.client.jobs.get(job.id)) is not None
    assert (again.attempts, again.expires_at, again.flags) == (0, None, ("other",))


def test_a_retry_by_an_operator_runs_it(site: QueueFixture) -> None:
    ran = RunRecord()
    job = add(site, 1, expires_at=PAST)
    site.run_once({"work": ran})
    site.client.jobs.retry([job.id])
    site.run_once({"work": ran})
    assert (ran.entries, site.jobs()) == ([1], [])


# -- what no worker claims ---------------------------------------------------------------------------------------------


def test_what_no_worker_claims_expires_too(site: QueueFixture) -> None:
    ran = RunRecord()
    site.client.pauses.pause("queue:paused", timeout=0)
    site.client.pauses.pause("task:work", timeout=0)
    jobs = [
        add(site, 1, expires_at=PAST, queue_name="paused"),
        add(site, 2, expires_at=PAST),
        site.client.add("unknown", expires_at=PAST),
        add(site, 3, expires_at=PAST, run_at=timedelta(days=1)),
    ]
    kept = [add(site, 4, expires_at=HOUR), add(site, 5)]
    with site.running({"work": ran}, poll_interval=NEVER) as worker:
        wait_until(lambda: expired(site, *jobs), what="all of them to expire")
        assert sorted(event.job.id for event in worker.recorded.wait_for(JobFailed, count=4)) == [j.id for j in jobs]
    assert (ran.entries, listed(site)) == ([], [kept[0].id])
    assert [site.client.jobs.get(job.id) for job in kept] == kept


def test_a_restored_job_expires_too(site: QueueFixture) -> None:
    site.client.pauses.pause("task:work", timeout=0)
    jobs = [add(site, 1, expires_at=PAST), add(site, 2)]
    deleted = site.client.jobs.complete(expected=[site.client.jobs.get(job.id) for job in jobs]).changed

    restored = [site.client.jobs.restore(each.job) for each in deleted]

    with site.running({"work": RunRecord()}, poll_interval=NEVER):
        wait_until(lambda: [row["last_error"] for row in site.jobs()] == [ERROR, None], what="the first one to expire")
    assert (ids(site), listed(site)) == (restored, [])


def test_a_job_behind_another_one_of_its_queue_expires(site: QueueFixture) -> None:
    gate = site.gate()
    add(site, 1, queue_name="q")
    with site.running({"work": gate}, poll_interval=NEVER):
        gate.wait_for(1)
        behind = add(site, 2, queue_name="q", expires_at=PAST)
        with site.running({"other": gate}, poll_interval=NEVER):
            wait_until(lambda: expired(site, behind), what="the second to expire")
    assert gate.arrived == 1


def test_a_job_that_runs_does_not_expire(site: QueueFixture) -> None:
    gate = site.gate()
    job = add(site, 1, expires_at=timedelta(seconds=3))
    other = site.client.add("unknown", expires_at=PAST)
    with site.running({"work": gate}, poll_interval=NEVER):
        gate.wait_for(1)
        wait_until(lambda: site.value("select max(created_at) < now() - interval '3 s' from _private_jobs"), what="it")
        with site.running({"other": gate}, poll_interval=NEVER):
            wait_until(lambda: expired(site, other), what="the other to expire")
            assert listed(site) == [job.id]
        gate.open()
        wait_until(lambda: ids(site) == [other.id], what="it to complete")


def test_entries_of_jobs_that_have_ended_go(site: QueueFixture) -> None:
    add(site, 1, expires_at=timedelta(milliseconds=1), job_key="k")
    add(site, 2, job_key="k")  # replaces it, without an expiry
    ran = RunRecord()
    with site.running({"work": ran}, poll_interval=NEVER):
        wait_until(lambda: listed(site) == [], what="the entry to go")
        wait_until(lambda: ran.entries == [2], what="the job to run")


# -- jobs that wait for it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claims", [True, False])
def test_others_take_it_as_failed(site: QueueFixture, claims: bool) -> None:
    ran = RunRecord()
    job = add(site, 1, expires_at=PAST)
    run, cancel, hold = (
        site.client.add("after", {"n": policy}, after=[job], on_failure=policy) for policy in ("run", "cancel", "hold")
    )
    with site.running({"work" if claims else "other": ran, "after": ran}):
        wait_until(lambda: ran.entries == ["run"], what="the one that runs on failure")
        wait_until(lambda: ids(site) == [job.id, hold.id], what="the other one to be dropped")
    assert expired(site, job)
    assert site.client.jobs.get(run.id) is site.client.jobs.get(cancel.id) is None


def test_a_group_ends_with_a_member_that_expired(site: QueueFixture) -> None:
    ran = RunRecord()
    members = [JobSpec(task="work", payload={"n": 1}, expires_at=PAST), JobSpec(task="work", payload={"n": 2})]
    site.client.groups.add(members, then=JobSpec(task="work", payload={"n": 3}, expires_at=HOUR), on_failure="run")
    with site.running({"work": ran}):
        wait_until(lambda: sorted(ran.entries) == [2, 3], what="the group")


def test_a_job_expires_while_it_waits_for_others(site: QueueFixture) -> None:
    gate, ran = site.gate(), RunRecord()
    first = site.client.add("first")
    job = add(site, 1, after=[first], expires_at=PAST)
    last = site.client.add("work", {"n": 2}, after=[job], on_failure="run")
    assert (job.expires_at, last.expires_at) == (PAST, None)
    with site.running({"first": gate, "work": ran}):
        wait_until(lambda: expired(site, job), what="the waiting job to expire")
        wait_until(lambda: ran.entries == [2], what="the last to run")
        gate.open()
        wait_until(lambda: ids(site) == [job.id], what="the first to end")
    assert ran.entries == [2]


# -- adding ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"job_key": "k"},
        {"job_key": "k", "job_key_mode": "preserve_run_at"},
        {"job_key": "k", "job_key_mode": "unsafe_dedupe"},
        {"after": []},
        {"unique_for": HOUR},
        {"unique_for": HOUR, "flags": ["a", "b"]},
        {"run_at": LATER - HOUR, "queue_name": "q", "flags": ["a", "b"]},
    ],
    ids=lambda options: " ".join(options) or "plain",
)
def test_every_add_keeps_the_time(site: QueueFixture, options: dict[str, Any]) -> None:
    payload = {"b": 1.10, "a": "ü\\"}
    job = site.client.add("work", payload, expires_at=LATER, **options)
    assert (job.task, job.expires_at, job.flags) == ("work", LATER, tuple(options.get("flags", ())))
    assert (job.payload, job.queue_name) == (payload, options.get("queue_name"))
    assert site.client.jobs.get(job.id) == job
    site.run("truncate _private_gw_unique")
    site.client.add_many([JobSpec(task="other"), JobSpec(task="work", payload=payload, expires_at=LATER, **options)])
    times = [each.job.expires_at for each in site.client.jobs.list("task:work").jobs]
    assert set(times) == {LATER}
    assert len(listed(site)) == len(times)


def test_a_bulk_lists_each_expiring_job_once(site: QueueFixture) -> None:
    same = JobSpec(task="work", payload=1, unique_for=HOUR, expires_at=LATER)
    keyed = [JobSpec(task=task, job_key="k", unique_for=HOUR, expires_at=LATER) for task in ("work", "other")]
    added = site.client.add_many([same, *keyed, same, JobSpec(task="work", payload=2, unique_for=HOUR)])
    assert [added[0], added[1]] == [added[3], added[2]]
    assert listed(site) == sorted(set(added[:2]))
    assert site.client.add_many([same]) == added[:1]
    assert listed(site) == sorted(set(added[:2]))


def test_a_duration_counts_by_the_clock_of_the_database(site: QueueFixture) -> None:
    first, second = site.client.add("first"), site.client.add("work", expires_at=HOUR)
    third = site.client.add("work", expires_at=HOUR, after=[first])
    batch = site.client.add_batch("work", [1, 2], expires_at=HOUR)
    [many] = site.client.add_many([JobSpec(task="work", expires_at=HOUR)])
    for job in (second, third, batch, site.client.jobs.get(many)):
        assert job is not None
        assert job.expires_at is not None
        assert abs(job.expires_at - job.created_at - HOUR) < timedelta(milliseconds=1)


def test_replacing_a_job_replaces_its_expiry(site: QueueFixture) -> None:
    first = add(site, job_key="k", expires_at=PAST)
    assert add(site, job_key="k", expires_at=LATER).expires_at == LATER
    times = site.run("select expires_at from _private_gw_expiring where job_id = %s", first.id)
    assert [row["expires_at"] for row in times] == [LATER]
    assert add(site, job_key="k").expires_at is None


def test_asynchronous_clients_add_it(site: QueueFixture) -> None:
    async def added() -> list[Job | None]:
        async with AsyncClient(site.url) as client:
            ids = await client.add_many([JobSpec(task="work", expires_at=LATER)])
            return [await client.add("work", expires_at=LATER), await client.jobs.get(ids[0])]

    assert [job.expires_at for job in asyncio.run(added()) if job is not None] == [LATER, LATER]


@pytest.mark.parametrize("commits", [True, False])
def test_it_belongs_to_the_callers_transaction(site: QueueFixture, commits: bool) -> None:
    with psycopg.connect(site.url) as connection:
        job = add(site, conn=connection, expires_at=PAST)
        assert listed(site) == []
        connection.commit() if commits else connection.rollback()
    assert listed(site) == ([job.id] if commits else [])


AWARE = "give one such as datetime.now(timezone.utc)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expires_at": timedelta(0)}, "expires_at must lie after now"),
        ({"expires_at": 60}, f"expires_at must be an aware datetime or a timedelta, not int; {AWARE}"),
        (
            {"expires_at": datetime(2026, 1, 1)},
            f"expires_at has no time zone; {AWARE.replace('give one', 'give an aware datetime')}",
        ),
        ({"expires_at": timedelta(days=2e6)}, "expires_at lies 2,000,000 days from now; at most 1,000,000 are allowed"),
        ({"expires_at": HOUR, "run_at": HOUR}, "expires_at must lie after run_at, or the job could never start"),
        ({"flags": ["gw:expires:1"]}, "flags that begin with gw:expires: are gw's own; give expires_at instead"),
    ],
)
def test_wrong_input_gets_one_sentence(site: QueueFixture, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidJobError) as raised:
        add(site, **options)

    assert str(raised.value) == message


@pytest.mark.parametrize("flags", ['["gw:expires:1"]', '{"gw:expires:x": true, "gw:expires:": 1}', "17", "null"])
def test_flags_that_sql_has_written_are_data(site: QueueFixture, flags: str) -> None:
    ran = RunRecord()
    job = add(site, 1, expires_at=PAST)
    site.run("update _private_jobs set flags = %s", flags)
    with site.running({"work": ran}, poll_interval=NEVER):
        wait_until(lambda: listed(site) == [], what="the entry to go")
        wait_until(lambda: site.client.jobs.get(job.id) is None, what="the job to run")


# -- what is recorded --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("claims", [True, False])
def test_history_has_it(site: QueueFixture, claims: bool) -> None:
    registry = TaskRegistry()
    registry.task("work", keep=HOUR, result=True)(RunRecord())
    if not claims:
        site.client.pauses.pause("task:work", timeout=0)
    job = add(site, 1, expires_at=PAST, max_attempts=3)
    with site.running(registry):
        wait_until(lambda: expired(site, job), what="the job to expire")
    [ended] = site.client.history.attempts(job.id)
    assert (ended.state, ended.final, ended.error, ended.attempt, ended.started_at) == ("failed", False, ERROR, 0, None)
    assert (ended.error_type or "").endswith(".JobExpired")
