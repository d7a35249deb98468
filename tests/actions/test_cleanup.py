"""`gw cleanup`: failed jobs, unused queues and unused task identifiers go, what is needed stays."""

from __future__ import annotations

import threading
from pathlib import Path

import psycopg
import pytest
from support.cli_program import CliProgram
from support.jobs_in_states import Queue
from support.waiting import wait_until

from gw_core import Client
from gw_core.errors import TransientDatabaseError
from gw_core.front_ends import CleanupTarget
from gw_core.postgres.schema import cleanup


def tasks(queue: Queue) -> set[str]:
    return {row[0] for row in queue.rows("select identifier from graphile_worker._private_tasks")}


def queues(queue: Queue) -> set[str]:
    return {row[0] for row in queue.rows("select queue_name from graphile_worker._private_job_queues")}


def unused(queue: Queue, task: str = "old", queue_name: str = "old") -> None:
    job = queue.ready(task, queue_name=queue_name)
    queue.rows("delete from graphile_worker._private_jobs where id = %s", job)


def test_jobs_that_failed_permanently_go_and_all_others_stay(gw: CliProgram, queue: Queue) -> None:
    stay = [queue.ready(), queue.scheduled(), queue.backoff(), queue.running()]
    queue.failed(), queue.failed()

    ended = gw("cleanup", "failed-jobs", "--yes", "--json")

    assert ended.json == [{"target": "failed-jobs", "count": 2, "dry_run": False}]
    assert queue.ids() == stay


def test_a_running_job_in_its_last_attempt_stays(gw: CliProgram, queue: Queue) -> None:
    job = queue.running(max_attempts=1)

    gw("cleanup", "failed-jobs", "--yes")

    assert queue.ids() == [job]


@pytest.mark.parametrize("schema", ["our schema", "npm's schema"])
def test_failed_jobs_go_in_batches(queue: Queue, schema: str) -> None:
    if schema == "npm's schema":
        queue.without_our_line()
    queue.rows("select graphile_worker.add_job('mail', max_attempts => 1) from generate_series(1, 2500)")
    queue.rows("update graphile_worker._private_jobs set attempts = 1")
    with Client(queue.url) as client:
        assert list(client.cleanup.delete_in_batches(CleanupTarget.FAILED_JOBS)) == [1000, 1000, 500]


def test_failed_jobs_go_whenever_they_failed_and_one_that_is_locked_is_skipped(queue: Queue) -> None:
    jobs = [queue.failed() for _ in range(7)]
    for job, timestamp in zip(jobs, ("-infinity", "yesterday", "now", "now", "tomorrow", "infinity"), strict=False):
        queue.set(job, f"run_at = '{timestamp}'")
    held = jobs[3]
    with psycopg.connect(queue.url) as theirs, Client(queue.url) as client:
        theirs.execute("select from graphile_worker._private_jobs where id = %s for update", (held,))
        assert sum(client.cleanup.delete_in_batches(CleanupTarget.FAILED_JOBS, size=2)) == 6

    assert queue.ids() == [held]


def test_a_dry_run_counts_what_the_run_deletes(gw: CliProgram, queue: Queue) -> None:
    queue.failed("gone", queue_name="gone")
    queue.failed("used", queue_name="used"), queue.ready("used", queue_name="used")
    held = queue.running("held", queue_name="held", max_attempts=1)
    unused(queue)
    words = ("cleanup", "unused-queues", "failed-jobs", "unused-tasks", "--json")

    counted = [(each["target"], each["count"]) for each in gw(*words, "--dry-run").json]
    deleted = [(each["target"], each["count"]) for each in gw(*words, "--yes").json]

    assert counted == deleted == [("failed-jobs", 2), ("unused-tasks", 2), ("unused-queues", 2)]
    assert held in queue.ids()


def test_a_dry_run_of_one_kind_does_not_count_what_another_would_free(gw: CliProgram, queue: Queue) -> None:
    queue.failed("gone", queue_name="gone")

    ended = gw("cleanup", "unused-queues", "unused-tasks", "--dry-run", "--json")

    assert [each["count"] for each in ended.json] == [0, 0]


def test_failed_jobs_are_asked_about(gw: CliProgram, queue: Queue) -> None:
    job = queue.failed()

    ended = gw("cleanup", "failed-jobs", stdin=b"")

    assert (ended.code, queue.ids(), "1 job would be deleted" in ended.err) == (2, [job], True)


def test_a_queue_without_jobs_goes_and_a_held_or_used_one_stays(gw: CliProgram, queue: Queue) -> None:
    unused(queue, queue_name="empty")
    unused(queue, queue_name="held")
    queue.rows(
        "update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'x' where queue_name = 'held'"
    )
    queue.failed(queue_name="used")

    assert gw("cleanup", "unused-queues").code == 0
    assert queues(queue) == {"held", "used"}


def test_a_task_goes_unless_a_job_has_it_or_a_worker_knows_it(gw: CliProgram, queue: Queue, tmp_path: Path) -> None:
    for task in ("gone", "loaded", "kept", "live", "stale"):
        unused(queue, task)
    queue.failed("used")
    queue.heartbeat("alive", ago="60 seconds", tasks=("live",))
    queue.heartbeat("dead", ago="86400 seconds", tasks=("stale",))
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "loaded.py").write_text("def loaded(payload):\n    pass\n")

    assert gw("cleanup", "unused-tasks", "--keep", "kept").code == 0
    assert tasks(queue) == {"used", "loaded", "kept", "live"}


def test_a_task_with_a_limit_by_field_stays(gw: CliProgram, queue: Queue) -> None:
    unused(queue, "gone")
    assert gw("limit", "mail", "--running", "2", "--field", "tenant_id").code == 0

    assert gw("cleanup", "unused-tasks").code == 0
    assert tasks(queue) == {"mail"}
    assert gw("limit", "mail", "--off").code == 0
    assert gw("cleanup", "unused-tasks").code == 0
    assert tasks(queue) == set()


def test_a_deleted_failed_job_frees_its_queue_and_task_in_one_go(gw: CliProgram, queue: Queue) -> None:
    queue.failed("t", queue_name="q")

    ended = gw("cleanup", "unused-queues,unused-tasks", "failed-jobs", "--yes", "--json")

    assert [(each["target"], each["count"]) for each in ended.json] == [
        ("failed-jobs", 1),
        ("unused-tasks", 1),
        ("unused-queues", 1),
    ]


def test_the_names_of_graphile_worker_are_understood(gw: CliProgram, queue: Queue) -> None:
    queue.failed("t", queue_name="q")

    gw("cleanup", "GC_TASK_IDENTIFIERS, GC_JOB_QUEUES,DELETE_PERMAFAILED_JOBS", "-y")

    assert (queue.ids(), tasks(queue), queues(queue)) == ([], set(), set())


def test_what_cannot_be_cleared_away_is_named(gw: CliProgram, queue: Queue) -> None:
    ended = gw("cleanup", "everything")

    assert (ended.code, "'everything' is not a cleanup target" in ended.err) == (2, True)


def test_a_cleanup_that_ends_early_reports_what_it_deleted_before(gw: CliProgram, queue: Queue) -> None:
    queue.failed()
    unused(queue)
    queue.rows(
        "create function public.keep() returns trigger language plpgsql as 'begin raise exception ''kept''; end'"
    )
    queue.rows("create trigger keep before delete on graphile_worker._private_tasks execute function public.keep()")
    try:
        ended = gw("cleanup", "failed-jobs", "unused-tasks", "--yes")
    finally:
        queue.rows("drop trigger keep on graphile_worker._private_tasks")
        queue.rows("drop function public.keep()")

    first, second = ended.err.splitlines()
    assert (ended.code, ended.out) == (1, "")
    assert first == "Deleted 1 of failed-jobs before this ended; the others are as they were."
    assert second.startswith("gw: ")
    assert queue.ids() == []


def test_a_cleanup_that_ends_at_history_reports_what_it_deleted_before(gw: CliProgram, queue: Queue) -> None:
    queue.failed()
    queue.rows("alter function graphile_worker._private_gw_expire_history() rename to away")
    try:
        ended = gw("cleanup", "failed-jobs", "expired-history", "--yes")
    finally:
        queue.rows("alter function graphile_worker.away() rename to _private_gw_expire_history")

    assert ended.code != 0
    assert ended.err.startswith("Deleted 1 of failed-jobs before this ended; the others are as they were.\n")


# -- races ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["queues", "tasks"])
def test_what_another_session_is_adding_to_in_an_open_transaction_stays(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(cleanup, "TRIES", 1)
    monkeypatch.setattr(cleanup, "PAUSE_SECONDS", 0)
    unused(queue, "t", "q")
    with psycopg.connect(queue.url) as adder, Client(queue.url) as client:
        adder.execute("select graphile_worker.add_job('t', queue_name => 'q')")
        with pytest.raises(TransientDatabaseError, match=f"kept the unused {what} locked"):
            client.cleanup.delete(CleanupTarget(f"unused-{what}"))
        adder.commit()
        client.cleanup.delete(CleanupTarget(f"unused-{what}"))

    assert (tasks(queue), queues(queue)) == ({"t"}, {"q"})


@pytest.mark.parametrize(("target", "table"), [("unused-queues", "job_queues"), ("unused-tasks", "tasks")])
def test_what_a_job_took_between_finding_and_deleting_stays(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, target: str, table: str
) -> None:
    monkeypatch.setattr(cleanup, "LOCK_TIMEOUT", "2min")
    unused(queue, "old", "q")
    keyed = queue.ready("other", queue_name="other", job_key="k")
    with psycopg.connect(queue.url) as blocker, Client(queue.url) as client:
        blocker.execute(f"lock table graphile_worker._private_{table} in share mode")
        thread = threading.Thread(target=client.cleanup.delete, args=(CleanupTarget(target),))
        thread.start()
        waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        wait_until(lambda: queue.rows(waiting), what="the cleaner to wait for the table")
        # What add_job does once it knows the ids; in share mode our own insert would wait for the blocker as well.
        queue.rows(
            "update graphile_worker._private_jobs set updated_at = clock_timestamp(), "
            "task_id = (select id from graphile_worker._private_tasks where identifier = 'old'), "
            "job_queue_id = (select id from graphile_worker._private_job_queues where queue_name = 'q') where id = %s",
            keyed,
        )
        blocker.rollback()
        thread.join(60)

    assert "old" in tasks(queue)
    assert "q" in queues(queue)
