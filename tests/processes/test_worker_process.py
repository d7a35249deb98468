"""A worker process as its supervisor handles it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest
from support.queue_fixture import DEADLINE

from gw_core.processes.process import WorkerProcess

LONG_ENOUGH_TO_REAP = 0.3


def test_a_process_is_not_reaped_while_it_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its number could belong to another process by then."""
    ended = threading.Event()
    process = WorkerProcess(
        1,
        [sys.executable, "-c", "import time; time.sleep(600)"],
        pass_on=lambda channel, lines: None,
        on_ready=lambda process: None,
        on_end=lambda process: ended.set(),
    )
    exists_after_its_end: list[bool] = []

    def killpg(group: int, number: int) -> None:
        os.kill(group, number)
        os.waitid(os.P_PID, group, os.WEXITED | os.WNOWAIT)
        time.sleep(LONG_ENOUGH_TO_REAP)
        exists_after_its_end.append(exists(group))

    monkeypatch.setattr("gw_core.processes.process.os.killpg", killpg)
    process.kill()

    assert ended.wait(DEADLINE)
    assert (exists_after_its_end, process.code) == ([True], -signal.SIGKILL)


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
