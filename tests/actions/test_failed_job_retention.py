"""Failed jobs are deleted once they failed long enough ago, by `gw cleanup` and by workers, and no others are."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue
from support.queue_fixture import NEVER, QueueFixture, RunRecord, ms
from support.waiting import wait_until

from gw_core import WorkerSettings
from gw_core.errors import InvalidInputError, InvalidSettingError
from gw_core.front_ends import FailedJobsDeleted

MONTH = timedelta(days=30)


def failed(queue: Queue, *, run_at: str, updated_at: str) -> int:
    job = queue.failed()
    queue.set(job, f"run_at = {run_at}, updated_at = {updated_at}")
    return job


@pytest.mark.parametrize("schema", ["our schema", "npm's schema"])
def test_only_jobs_that_failed_longer_ago_go(queue: Queue, schema: str) -> None:
    if schema == "npm's schema":
        queue.without_our_line()
    old, recent = "now() - interval '31 days'", "now() - interval '29 days'"
    for _ in range(5):
        failed(queue, run_at=old, updated_at=old)
    failed(queue, run_at="'-infinity'", updated_at=old)
    failed(queue, run_at="'infinity'", updated_at=old)  # it waited for others
    stay = [
        failed(queue, run_at=recent, updated_at=old),  # a worker's failure moves run_at
        failed(queue, run_at=old, updated_at=recent),  # `gw fail` moves updated_at
        failed(queue, run_at="'infinity'", updated_at=recent),
        queue.ready(),
    ]
    queue.set(stay[-1], f"run_at = {old}, updated_at = {old}")

    cleanup = queue.client.cleanup
    assert cleanup.count("failed-jobs", older_than=MONTH) == 7
    assert list(cleanup.delete_in_batches("failed-jobs", older_than=MONTH, size=4)) == [4, 2, 1]
    assert [id_ for (id_,) in queue.rows("select id from _private_jobs order by id")] == stay
    assert cleanup.count("failed-jobs", older_than=MONTH) == cleanup.delete("failed-jobs", older_than=MONTH) == 0
    assert cleanup.delete("failed-jobs") == 3


def test_an_age_is_for_failed_jobs_and_positive(queue: Queue) -> None:
    for target, age in (("unused-tasks", MONTH), ("failed-jobs", -MONTH), ("failed-jobs", timedelta(days=10**8))):
        for method in (queue.client.cleanup.delete, queue.client.cleanup.count):
            with pytest.raises(InvalidInputError, match="older_than"):
                method(target, older_than=age)


def test_the_command_deletes_and_counts_what_is_older(gw: CliProgram, queue: Queue) -> None:
    old = "now() - interval '31 days'"
    failed(queue, run_at=old, updated_at=old)
    recent = queue.failed()

    asked = gw("cleanup", "failed-jobs", "--older-than", "30d", stdin=b"")
    counted = gw("cleanup", "failed-jobs", "--older-than", "30d", "--dry-run", "--json")
    deleted = gw("cleanup", "failed-jobs", "--older-than", "30d", "--yes", "--json")

    assert (asked.code, "1 job would be deleted" in asked.err) == (2, True)
    assert [each["count"] for each in (*counted.json, *deleted.json)] == [1, 1]
    assert queue.ids() == [recent]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("failed-jobs", "--older-than", "30"), "--older-than"),
        (("failed-jobs", "unused-tasks", "--older-than", "30d"), "--older-than is for failed-jobs"),
    ],
)
def test_a_wrong_age_changes_nothing(gw: CliProgram, queue: Queue, words: tuple[str, ...], message: str) -> None:
    job = queue.failed()

    ended = gw("cleanup", *words, "--yes")

    assert (ended.code, message in ended.err, queue.ids()) == (2, True, [job])


def test_workers_delete_what_failed_and_holds_no_other_job(site: QueueFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(payload: object) -> None:
        raise ValueError("broken")

    monkeypatch.setattr("gw_core.maintenance.follow_up_check.INTERVAL", ms(100))
    ran = RunRecord()
    charge, letter = (site.client.add("fail", max_attempts=1) for _ in range(2))
    ship = site.client.add("after", {"n": 1}, after=[charge], on_failure="hold")
    site.client.add("after", {"n": 2}, after=[letter], on_failure="run")
    scheduled = site.client.add("fail", run_at=timedelta(hours=1))
    site.client.jobs.fail([scheduled.id], reason="not needed")
    with site.running({"fail": fail, "after": ran}, keep_failed=timedelta(0)) as running:
        running.recorded.wait_for(FailedJobsDeleted)
        wait_until(lambda: ran.entries == [2], what="the job that did not wait for a success to run")
        deleted = running.recorded.of(FailedJobsDeleted)

    assert [each.jobs for each in deleted] == [1]
    stay = [charge.id, ship.id, scheduled.id]  # the last one until its run_at
    assert [row["id"] for row in site.run("select id from _private_jobs order by id")] == stay
    cleanup = site.client.cleanup
    assert cleanup.count("failed-jobs", older_than=timedelta(0)) == 0
    assert cleanup.delete("failed-jobs", older_than=timedelta(0)) == 0
    assert cleanup.delete("failed-jobs") == 2
    # Each waiting job is checked about once a minute.
    site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
    with site.running({"after": ran}):
        wait_until(lambda: ran.entries == [2, 1], what="the job that waited for what was removed to run")


def test_workers_keep_failed_jobs_without_the_setting(site: QueueFixture) -> None:
    def threads() -> set[str]:
        return {each.name for each in threading.enumerate()}

    with site.running({"work": lambda payload: None}, poll_interval=NEVER):
        wait_until(lambda: "gw-follow-ups" in threads(), what="the services to start")
        assert "gw-failed-jobs" not in threads()


def test_a_time_beyond_a_century_is_rejected() -> None:
    with pytest.raises(InvalidSettingError, match="keep_failed must be at most"):
        WorkerSettings(keep_failed=timedelta(days=40_000))
