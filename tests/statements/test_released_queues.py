"""Every statement that releases queues does so with a snapshot that is newer than its wait for their jobs."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from support.project_files import project_files
from support.waiting import wait_until

from gw_core import Job, RecoverySettings
from gw_core.postgres.connection.statements import sql_folder, sql_text
from gw_core.postgres.road.pauses import end_expired_pauses
from statements.statement_fixture import OURS, Queue, a_failure

RELEASE = re.compile(r"update :GRAPHILE_WORKER_SCHEMA\._private_job_queues as queues\s+set locked_(?:at|by) = null")
RELEASING = {
    path.stem
    for path in Path(str(sql_folder()), "queries").glob("*.sql")
    if RELEASE.search(sql_text(f"queries/{path.stem}"))
}
ORPHANS = """
select queue_name from _private_job_queues as queues
 where locked_by is not null
   and not exists (select from _private_jobs as jobs where jobs.job_queue_id = queues.id and jobs.locked_by is not null)
"""
WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"

ORDERING = re.compile(r"(.*)\s>= 0$", re.MULTILINE)
SUBQUERY = re.compile(r"(?:\s*(?:and|where) )?\(select count\(\*\) from [:\w]+\)")

Release = Callable[[Queue, Job], object]


def sweep(queue: Queue, job: Job) -> None:
    queue.client.workers.sweep(RecoverySettings(orphans_after=timedelta(0)))


SETTLING: dict[str, Release] = {
    "complete_jobs": lambda queue, job: queue.complete(job, release=[job]),
    "fail_jobs": lambda queue, job: queue.fail(a_failure(job), release=[job]),
    "return_jobs": lambda queue, job: queue.return_jobs(job, release=[job]),
    "force_unlock_workers": lambda queue, job: queue.client.workers.unlock([OURS]),
}
REPEATED: dict[str, Release] = {
    "return_unknown_jobs": lambda queue, job: queue.return_unknown(),
    "release_expired_locks": lambda queue, job: queue.store.reset_stale_locks(),
    "sweep_release_queues": sweep,
    "release_orphaned_queues": sweep,
}
"""What is done again and again, and leaves to the next time what another session has locked."""


def test_every_statement_that_releases_queues_is_among_these() -> None:
    assert {*SETTLING, *REPEATED} == RELEASING


def test_a_count_that_only_makes_a_part_run_first_is_a_subquery() -> None:
    """The planner evaluates a subquery of a condition before it reads a row, and joins in whatever order it likes."""
    texts = {path.name: path.read_text() for path in project_files(Path(str(sql_folder()), "queries"), "*.sql")}
    counts = [(name, line) for name, text in texts.items() for line in ORDERING.findall(text)]

    assert len(counts) > 5
    assert [(name, line) for name, line in counts if not SUBQUERY.fullmatch(line)] == []


@pytest.mark.parametrize("analyzed", [False, True])
@pytest.mark.parametrize("name", [*SETTLING, *REPEATED])
def test_no_queue_stays_locked_whose_pause_ends_at_the_same_time(queue: Queue, name: str, analyzed: bool) -> None:
    job = queue.claimed(queue_name="a")
    queue.client.pauses.pause("queue:a", until=timedelta(hours=1), timeout=timedelta(0))
    # Its time has come, and the claim has lasted for long.
    queue.run("update _private_gw_pauses set until = now()")
    queue.change(job.id, locked_at="=locked_at - interval '5 hours'")
    release = {**SETTLING, **REPEATED}[name]
    if analyzed:
        queue.run("analyze _private_jobs, _private_job_queues")
    with psycopg.connect(queue.url) as other, other.transaction():
        end_expired_pauses(other, queue.schema)
        released = threading.Thread(target=release, args=(queue, job))
        released.start()
        wait_until(lambda: not released.is_alive() or queue.value(WAITING) > 0, what="the statement to wait")
    released.join(60)
    if name in REPEATED:
        release(queue, job)

    assert queue.rows(ORPHANS) == []
