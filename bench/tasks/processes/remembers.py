"""Do nothing but remember which jobs ran: in a thread, and in a process; the lists are written at the end."""

from __future__ import annotations

import atexit
import os
from array import array
from pathlib import Path

from gw_core import task

RAN = array("I")


@task("in-thread")
def in_thread(payload: dict[str, int]) -> None:
    """Remember the job's number."""
    RAN.append(payload["n"])


@task("in-process", isolation="process")
def in_process(payload: dict[str, int]) -> None:
    """Remember the job's number."""
    RAN.append(payload["n"])


@atexit.register
def write() -> None:
    """Leave the numbers in the folder that the benchmark named."""
    Path(os.environ["BENCH_RAN"], f"ran-{os.getpid()}").write_bytes(RAN.tobytes())
