"""Steps when workers are killed and answers get lost: a finished step runs again only if its worker died inside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from support.database_proxy import DatabaseProxy
from support.queue_fixture import QueueFixture
from support.waiting import wait_until

from gw_core import JobContext

WORKER = """
import os
import time
from gw_core import Runner, TaskRegistry, WorkerSettings

tasks = TaskRegistry()
file = os.open(os.environ["STEP_LOG"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)

def log(what, job, step):
    os.write(file, f"{what} {job} {step}\\n".encode())  # one write: a line is whole or missing, also when killed

def run(job, step):
    log("begin", job, step)
    time.sleep(0.003)
    log("end", job, step)

@tasks.task("work")
def work(payload, context):
    for step in range(5):
        context.step(str(step), run, context.job.id, step)
        log("kept", context.job.id, step)

settings = WorkerSettings(concurrency=3)
Runner(os.environ["DATABASE_URL"], tasks=tasks, settings=settings, migrate=False).run()
"""
JOBS = 120


def test_a_kept_step_is_never_repeated_by_workers_that_follow_killed_ones(site: QueueFixture, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    site.fill(JOBS)
    for share in (0.2, 0.5, 0.8):
        kill_amid_jobs(site, log, int(share * JOBS * 5))
        site.run("update _private_jobs set locked_at = null, locked_by = null")
    process = start(site, log)
    try:
        wait_until(lambda: site.jobs() == [], what="every job")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)

    kept: set[str] = set()
    for line in log.read_text().splitlines():
        what, step = line.split(" ", 1)
        assert (what, step in kept) != ("begin", True), f"step {step} ran again after it was kept"
        if what == "kept":
            kept.add(step)
    counts = Counter(line.split(" ", 1)[1] for line in log.read_text().splitlines() if line.startswith("end"))
    assert len(counts) == JOBS * 5


def start(site: QueueFixture, log: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER], env={**os.environ, "DATABASE_URL": site.url, "STEP_LOG": str(log)}
    )


def kill_amid_jobs(site: QueueFixture, log: Path, lines: int) -> None:
    process = start(site, log)
    try:
        wait_until(
            lambda: process.poll() is not None or log.read_text().count("kept") >= lines, what="some steps", every=0.02
        )
        assert process.poll() is None
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    wait_until(lambda: site.connections() == [], what="its last statements to end")


def test_a_lost_answer_repeats_no_step(site: QueueFixture) -> None:
    ran: list[str] = []
    proxy = DatabaseProxy(site.url)

    def work(payload: object, context: JobContext) -> None:
        for step in range(3):
            if step == 1:
                losses.append(proxy.lose_next("gw:task", mark="_private_gw_steps"))
            context.step(str(step), ran.append, str(step))

    losses: list[object] = []
    site.client.add("work", max_attempts=1)
    with site.running({"work": work}, url=proxy.url):
        wait_until(lambda: losses and losses[0].happened.is_set(), what="the loss")  # type: ignore[attr-defined]
        proxy.cut()
        proxy.restore()
        wait_until(lambda: site.jobs() == [], what="the job to complete")
    proxy.close()
    assert ran == ["0", "1", "2"]
