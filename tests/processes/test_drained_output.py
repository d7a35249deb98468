"""A worker process is replaced when its output is complete, not when the time for the rest of its output is up."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from supervised import DEADLINE, Supervised, quick_pauses, wait_until
from support.queue_fixture import QueueFixture
from support.task_builders import write, write_program

from gw_core.front_ends import ProcessEnded, ProcessReady

pytestmark = [pytest.mark.acceptance, pytest.mark.once]

TASKS = """
import os, subprocess
from pathlib import Path
from gw_core import task

@task(isolation="process")
def isolated(payload):
    started = [subprocess.Popen(["sleep", "600"])] if payload["stays"] else []
    Path(os.environ["BEGAN"], "isolated").touch()
    for each in started:
        each.wait()

@task
def thread(payload):
    Path(os.environ["BEGAN"], "thread").touch()
"""

EXECUTABLE = """#!/bin/sh
touch "$BEGAN/executable"
if grep -q true; then sleep 600; fi
"""


class RealWorkers(Supervised):
    """Workers of a queue instead of stubs."""

    def __init__(self, site: QueueFixture, folder: Path, *options: str) -> None:
        super().__init__()
        self._words = ["run", "-c", site.url, "--tasks", str(folder), "--executable-env", "all", *options]

    def _command(self, number: int, *, announces: bool) -> Sequence[str]:
        return [sys.executable, "-m", "gw_cli", *self._words, "--process-number", str(number)]


Start = Callable[..., RealWorkers]


@pytest.fixture
def start(site: QueueFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Without a limit for the rest of the output: a child that holds it would keep its worker from being replaced."""
    quick_pauses(monkeypatch)
    monkeypatch.setattr("gw_core.processes.process._DRAIN", 10 * DEADLINE)
    monkeypatch.setenv("BEGAN", str(tmp_path))
    write(tmp_path / "tasks" / "work.py", TASKS)
    write_program(tmp_path / "tasks" / "executable", EXECUTABLE)
    return lambda *options: RealWorkers(site, tmp_path / "tasks", *options)


ALL = ("thread", "isolated", "executable")


def add_all(site: QueueFixture, folder: Path, *, stays: bool) -> None:
    for name in ALL:
        site.add(name, {"stays": stays})
    wait_until(lambda: all((folder / name).exists() for name in ALL), deadline_seconds=DEADLINE, what="all to begin")


def test_a_worker_that_has_run_its_jobs_is_replaced(site: QueueFixture, start: Start, tmp_path: Path) -> None:
    with start("--max-jobs", str(len(ALL))) as running:
        running.recorded.wait_for(ProcessReady)
        add_all(site, tmp_path, stays=False)
        running.recorded.wait_for(ProcessReady, count=2)

        assert [event.graceful for event in running.recorded.of(ProcessEnded)] == [True]


def test_a_worker_that_is_killed_is_replaced(site: QueueFixture, start: Start, tmp_path: Path) -> None:
    """Its isolated tasks and programs, and what these started, end with it and hold no pipe."""
    with start() as running:
        running.recorded.wait_for(ProcessReady)
        add_all(site, tmp_path, stays=True)
        os.kill(running.pids()[0], signal.SIGKILL)
        running.recorded.wait_for(ProcessReady, count=2)

        assert [event.graceful for event in running.recorded.of(ProcessEnded)] == [False]
