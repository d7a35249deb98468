"""Acceptance: processes that are killed lose nothing, and keyed adds from many threads are never lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from support.queue_fixture import DEADLINE, QueueFixture
from support.waiting import wait_until

pytestmark = pytest.mark.acceptance

CHECKOUT = Path(__file__).resolve().parents[2]
JOBS = 20_000
KILLS = 4

TASK = """
import os, time
def ran(payload, context):
    time.sleep(0.003)
    with open(os.environ["RAN"], "ab", buffering=0) as ran:
        ran.write(b"%d\\n" % payload["n"])
"""


class ProcessStates:
    """Worker processes as an operator starts them."""

    def __init__(self, site: QueueFixture, folder: Path) -> None:
        self._site = site
        self._folder = folder
        (folder / "tasks").mkdir()
        (folder / "tasks" / "ran.py").write_text(TASK)
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "gw_cli", "run", "-c", self._site.url, "--log-level", "warning", *options]
        process = subprocess.Popen(
            command,
            cwd=self._folder,
            env={**os.environ, "PYTHONPATH": str(CHECKOUT), "RAN": str(self._folder / "ran")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    def ran(self) -> list[int]:
        path = self._folder / "ran"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def end(self) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait(DEADLINE)


@pytest.fixture
def fleet(site: QueueFixture, tmp_path: Path) -> Iterator[ProcessStates]:
    fleet = ProcessStates(site, tmp_path)
    yield fleet
    fleet.end()


def pools_of(site: QueueFixture, pid: int) -> list[str]:
    """The pools of a process that hold jobs or queues."""
    rows = site.run(
        "select locked_by from _private_jobs where locked_by is not null "
        "union select locked_by from _private_job_queues where locked_by is not null"
    )
    return [row["locked_by"] for row in rows if f"-{pid}-" in row["locked_by"]]


@pytest.mark.slow
def test_nothing_is_lost_when_workers_are_killed_one_a_second(site: QueueFixture, fleet: ProcessStates) -> None:
    site.fill(JOBS, task="ran", queue="case when mod(n, 10) = 0 then 'q' || mod(n, 70) end")
    for _ in range(3):
        fleet.start()
    for kill in range(KILLS):
        victim = fleet.processes[kill]
        wait_until(partial(pools_of, site, victim.pid), what="the victim to hold jobs")
        victim.send_signal(signal.SIGKILL)
        victim.wait(DEADLINE)
        site.client.workers.unlock(pools_of(site, victim.pid))
        fleet.start()

    def is_drained() -> bool:
        for victim in fleet.processes[
            :KILLS
        ]:  # again, for the server may have ended its last claim after the first time
            site.client.workers.unlock(pools_of(site, victim.pid))
        return not site.run("select 1 as one from _private_jobs limit 1")

    wait_until(is_drained, deadline_seconds=150, every=0.1)
    for process in fleet.processes[KILLS:]:
        process.send_signal(signal.SIGTERM)
    assert all(process.wait(DEADLINE) != 1 for process in fleet.processes[KILLS:])
    assert set(fleet.ran()) == set(range(1, JOBS + 1))
    assert site.held() == []


def test_a_worker_asked_to_stop_leaves_no_lock(site: QueueFixture, fleet: ProcessStates) -> None:
    jobs = JOBS // 4
    site.fill(jobs, task="ran", queue="case when mod(n, 3) = 0 then 'q' || mod(n, 7) end")
    process = fleet.start()
    wait_until(lambda: len(fleet.ran()) > 100)
    process.send_signal(signal.SIGTERM)
    process.wait(DEADLINE)

    assert site.held() == []
    ran, left = set(fleet.ran()), {job["payload"]["n"] for job in site.jobs()}
    assert ran | left == set(range(1, jobs + 1))
    assert ran & left == set()


def test_keyed_adds_of_one_key_from_all_threads_end_with_the_last_one_run(site: QueueFixture) -> None:
    ran: list[int] = []
    with site.running({"work": lambda payload: ran.append(payload["n"])}, concurrency=4):
        with ThreadPoolExecutor(8) as pool:
            jobs = list(pool.map(lambda n: site.client.add("work", {"n": n}, job_key="k"), range(300)))
        last = site.client.add("work", {"n": 999}, job_key="k")
        wait_until(lambda: not [job for job in site.jobs() if job["is_available"] or job["locked_by"]])

    assert all(job is not None and job.id is not None for job in (*jobs, last))
    assert ran.count(999) == 1
    assert set(ran) <= {*range(300), 999}
