"""With a threshold of five seconds a crash is made good within ten, by the installed program and nothing but that."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.recovery_fixture import RecoveryFixture
from support.shell import Shell
from support.stall_clock import StallClock
from support.waiting import wait_until

RUN = ("run", "--sweep-threshold", "5s")
RUNS_BEFORE = "import time\n\ndef slow(payload):\n    time.sleep(600)\n"
RUNS_AFTER = "def slow(payload):\n    pass\n"


@pytest.mark.slow
def test_the_job_of_a_killed_worker_runs_elsewhere_within_ten_seconds(tmp_path: Path, ward: RecoveryFixture) -> None:
    dying, living = (Shell(tmp_path / name, database=ward.url) for name in ("dying", "living"))
    dying.write("tasks/slow.py", RUNS_BEFORE)
    living.write("tasks/slow.py", RUNS_AFTER)
    with dying.started(*RUN) as dies:
        job_id = ward.add("slow", queue_name="q")
        wait_until(lambda: ward.job(job_id)["locked_by"], deadline_seconds=60, what="the job to be claimed")
        with living.started(*RUN) as lives:
            lives.says("Recovery is on: jobs of workers without a heartbeat for 5s")
            dies.send(signal.SIGKILL)
            with StallClock(os.getpid(), lives.pid) as watch:
                lives.says(f"Completed task {job_id} (slow")
            lives.send(signal.SIGTERM)
            lives.end()

    assert watch.seconds < 10
    assert (ward.jobs(), ward.held()) == ([], [])
