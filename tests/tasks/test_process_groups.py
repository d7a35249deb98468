"""What a task starts ends with the worker, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.process_state import is_alive
from support.task_builders import DEADLINE
from support.waiting import wait_until

from gw_core.execution.process_groups import LeaderProcess, ProcessGroups

CHECKOUT = Path(__file__).parents[2]

DIES = """
import os, signal, subprocess, sys
from contextlib import suppress
from gw_core.execution import process_groups
from gw_core.execution.child_process import LeaderProcess
from gw_core.execution.process_groups import ProcessGroups

groups = ProcessGroups()
if sys.argv[1] == "everybody asked to stop":
    os.mkfifo(sys.argv[2])
    process_groups._GUARD = f"read -r go <'{sys.argv[2]}'" + process_groups._GUARD
pids = []
for kept in (True, True, False):
    command = ["sh", "-c", "sleep 600 & echo $!; wait"]
    started = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
    leader = LeaderProcess(started)
    groups.add(leader)
    pids += [started.pid, int(started.stdout.readline())]
    if not kept:
        groups.remove(leader)
if sys.argv[1] == "guard killed":
    os.kill(groups.guard.pid, signal.SIGKILL)
    groups.guard.wait()
    groups.add(leader)
    groups.remove(leader)
if sys.argv[1] == "everybody asked to stop":  # also a guard that has just been started
    os.kill(groups.guard.pid, signal.SIGTERM)
    while groups.guard.poll() is None:  # until it reads, or has died of the signal
        with suppress(OSError):
            os.close(os.open(sys.argv[2], os.O_WRONLY | os.O_NONBLOCK))
            break
if sys.argv[1] == "forked":
    child = os.fork()
    if child == 0:
        os.close(1)
        signal.pause()
    pids.append(child)
print(*pids, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def started() -> Iterator[list[int]]:
    pids: list[int] = []
    yield pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("failure", ["none", "guard killed", "everybody asked to stop", "forked"])
def test_groups_are_killed_with_all_their_processes_when_this_process_is_killed(
    failure: str, started: list[int], tmp_path: Path
) -> None:
    dead = subprocess.run(
        [sys.executable, "-c", DIES, failure, str(tmp_path / "go")],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    started += map(int, dead.stdout.split())

    assert dead.returncode == -signal.SIGKILL
    wait_until(lambda: not any(map(is_alive, started[:4])), what="the groups to end")
    assert all(map(is_alive, started[4:])), "what was removed, or never added, is left alone"


def test_nothing_is_started_before_there_is_a_group_and_closing_ends_it(started: list[int]) -> None:
    groups = ProcessGroups()
    assert groups.guard is None

    sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
    started.append(sleeper.pid)
    groups.add(LeaderProcess(sleeper))
    guard = groups.guard
    assert guard is not None
    groups.close()

    assert sleeper.wait(DEADLINE) == -signal.SIGKILL
    assert guard.returncode is not None
