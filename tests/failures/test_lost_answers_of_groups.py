"""Groups when answers get lost and workers are killed: the last job is added exactly once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from support.database_proxy import DatabaseProxy
from support.queue_fixture import QueueFixture, RunRecord, ms
from support.waiting import wait_until

from gw_core import JobSpec
from gw_core.front_ends import PoolListening


@pytest.mark.parametrize("mark", ["_private_gw_end_members", "delete from"], ids=["end of members", "settling"])
def test_a_lost_answer_adds_the_last_job_once(site: QueueFixture, proxy: DatabaseProxy, mark: str) -> None:
    ran = RunRecord()
    with site.running({"work": ran, "last": ran}, url=proxy.url, poll_interval=ms(50)) as running:
        running.recorded.wait_for(PoolListening)
        for number in range(1, 4):
            loss = proxy.lose_next("gw:settle", mark=mark)
            specs = [JobSpec(task="work", payload={"n": 0}) for _ in range(100)]
            site.client.groups.add(specs, then=JobSpec(task="last", payload={"n": number}))
            assert loss.happened.wait(60)
            proxy.cut()
            proxy.restore()
            # A worker does this once a minute.
            site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
            wait_until(lambda: _has_ended(site), what=f"group {number}")

    assert [ran.entries.count(number) for number in range(1, 4)] == [1, 1, 1]
    assert (ran.entries.count(0), site.jobs()) == (300, [])


WORKER = """
import itertools
import os
import time
from gw_core import Runner, TaskRegistry, WorkerSettings

tasks = TaskRegistry()
numbers = itertools.count()

@tasks.task("work")
def work(payload):
    time.sleep(0.005 if next(numbers) < 150 else 600)

settings = WorkerSettings(concurrency=2)
Runner(os.environ["DATABASE_URL"], tasks=tasks, settings=settings, migrate=False).run()
"""


def test_a_fan_out_whose_workers_are_killed_ends_once(site: QueueFixture) -> None:
    """No worker has the task of the last job, so that it stays and can be counted."""
    site.client.groups.add([JobSpec(task="work")] * 1_000, then=JobSpec(task="last"))
    for _ in range(3):
        _kill_worker_amid_jobs(site)
        site.run("update _private_jobs set locked_at = null, locked_by = null, attempts = 0")
    assert [0 < each.open < 1_000 for each in site.client.groups.list()] == [True]

    site.run_once({"work": lambda payload: None})
    for _ in range(2):
        site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
        site.run("select _private_gw_end_members(null)")

    assert [job["task"] for job in site.run("select task_identifier as task from jobs")] == ["last"]
    assert site.client.groups.list() == []


def _kill_worker_amid_jobs(site: QueueFixture) -> None:
    """Start a worker process, and kill it after some dozen jobs; it runs no more than 150."""

    def left() -> int:
        return int(site.value("select count(*) from _private_jobs"))

    enough = left() - 50
    process = subprocess.Popen([sys.executable, "-c", WORKER], env={**os.environ, "DATABASE_URL": site.url})
    try:
        wait_until(lambda: left() <= enough or process.poll() is not None, what="fifty jobs to be done", every=0.05)
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    wait_until(lambda: site.connections() == [], what="its last statements to end")


def _has_ended(site: QueueFixture) -> bool:
    site.run("select _private_gw_end_members(null)")
    site.run("update _private_gw_waiting set checked_at = now() - interval '1 hour'")
    return site.client.groups.list() == [] and site.jobs() == []
