"""A watch that leaves out what the machine held up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from support.stall_clock import StallClock

MEASURED = """
from support.stall_clock import StallClock
with StallClock() as watch:
    print("begun", flush=True)
    input()
print(watch.seconds, watch.stolen)
"""


def test_time_that_passes_is_counted() -> None:
    began = time.monotonic()
    with StallClock() as watch:
        time.sleep(0.3)
        first = watch.seconds
        time.sleep(0.1)
    passed = time.monotonic() - began

    assert 0 < first <= watch.seconds
    assert watch.seconds + watch.stolen <= passed
    assert watch.seconds + watch.stolen >= 0.4


def test_time_for_which_everything_stood_still_is_not() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", MEASURED],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        began = time.monotonic()
        time.sleep(1)
        stood_still = time.monotonic() - began
        process.send_signal(signal.SIGCONT)
        counted, stolen = map(float, process.communicate("\n")[0].split())

    assert stolen >= stood_still - 0.1
    assert counted >= 0
