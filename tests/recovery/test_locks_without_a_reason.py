"""Invariant 17: a locked queue has a locked job, a locked job has a living claim; all else is released in minutes."""

from __future__ import annotations

import threading
from datetime import timedelta

import psycopg
import pytest
from support.queue_fixture import QueueFixture, RunRecord, ms
from support.waiting import wait_until

from gw_core import Job, JobSpec
from gw_core.events import JobCompleted, WorkersRecovered
from gw_core.front_ends import CheckStatus, Database
from gw_core.operations import Finding
from gw_core.postgres.road.claims import CLAIM_PLAN
from gw_core.postgres.road.job_store import JobStore
from gw_core.postgres.road.pauses import end_expired_pauses

NODE = "pool-0123456789abcdef01"
WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
COMPLETE_IN_NODE = """
with j as (delete from graphile_worker._private_jobs as jobs where id = any(%s) returning *)
update graphile_worker._private_job_queues as job_queues
   set locked_by = null, locked_at = null
  from j
 where job_queues.id = j.job_queue_id and job_queues.locked_by = %s
"""


def claim(site: QueueFixture, worker_id: str) -> list[Job]:
    """Claim all jobs of the task in the name of a worker."""
    with Database(site.url).connect("test", CLAIM_PLAN) as connection:
        store = JobStore(connection, site.schema)
        return store.claims.claim(worker_id=worker_id, tasks=store.register_tasks(["work"]), limit=10)


def complete_in_node(site: QueueFixture, jobs: list[Job]) -> None:
    with psycopg.connect(site.url, autocommit=True) as node:
        node.execute(COMPLETE_IN_NODE, ([job.id for job in jobs], NODE))


@pytest.fixture
def orphaned(site: QueueFixture) -> str:
    """The name of a queue that a Node.js worker has left locked: its job ended while the queue was resumed."""
    site.add(queue_name="slow")
    jobs = claim(site, NODE)
    site.client.pauses.pause("queue:slow", until=timedelta(hours=1), timeout=timedelta(0))
    site.run("update _private_gw_pauses set until = now()")
    ended = threading.Thread(target=complete_in_node, args=(site, jobs))
    with psycopg.connect(site.url) as other, other.transaction():
        end_expired_pauses(other, site.schema)
        ended.start()
        wait_until(lambda: site.value(WAITING) == 1, what="Node.js to wait for the job's row")
    ended.join()
    assert (site.held(), site.jobs()) == (["slow"], [])
    return "slow"


def problems(site: QueueFixture) -> list[Finding]:
    return [each for each in site.client.doctor.findings() if each.status is CheckStatus.ERROR]


def test_the_doctor_reports_a_queue_that_is_locked_without_a_job(site: QueueFixture, orphaned: str) -> None:
    [finding] = problems(site)

    assert (finding.check, finding.fix) == ("locks", "gw sweep")
    assert finding.message == f"{NODE} has locked {orphaned}, and no job there is locked, so all wait"


def test_a_sweep_releases_a_queue_that_is_locked_without_a_job(site: QueueFixture, orphaned: str) -> None:
    preview = site.client.workers.sweep(dry_run=True)
    assert (preview.workers, preview.jobs, preview.queues) == ((), 0, 1)
    assert site.held() == [orphaned]

    report = site.client.workers.sweep()

    assert (report.workers, report.jobs, report.queues) == ((), 0, 1)
    assert site.held() == []
    assert problems(site) == []


def test_workers_release_a_queue_that_is_locked_without_a_job(site: QueueFixture, orphaned: str) -> None:
    ran = RunRecord()
    with site.running({"work": ran}, sweep_interval=ms(20), sweep_threshold=timedelta(seconds=1)) as running:
        site.add(payload={"n": 1}, queue_name=orphaned)
        running.recorded.wait_for(JobCompleted)
        [event] = running.recorded.of(WorkersRecovered)

    assert (event.workers, event.jobs, event.queues) == ((), 0, 1)
    assert "Released 1 queue that had a lock and no running job" in str(running.log.of("warning"))
    assert site.held() == []


def test_a_sweep_leaves_queues_alone_that_are_locked_for_a_reason(site: QueueFixture) -> None:
    site.client.add_many([JobSpec(task="work", queue_name=name) for name in ("node", "paused")])
    site.client.pauses.pause("queue:idle", timeout=timedelta(0))
    claim(site, NODE)
    site.client.pauses.pause("queue:paused", timeout=timedelta(0))
    before = site.held()

    assert problems(site) == []
    assert site.client.workers.sweep().queues == 0
    assert site.held() == before


def test_the_queue_of_a_living_worker_is_left_to_it(site: QueueFixture) -> None:
    with site.running({"other": print}) as running:
        site.add(queue_name="slow")
        complete_in_node(site, claim(site, running.worker_id))
        [finding] = problems(site)

        assert site.client.workers.sweep().queues == 0
        assert site.held() == ["slow"]
    assert finding.message.startswith(f"{running.worker_id} has locked slow")
    assert "restart that worker" in str(finding.fix)
