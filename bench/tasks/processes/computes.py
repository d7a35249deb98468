"""Compute for ten milliseconds in pure Python, and remember which jobs ran; the list is written at the end."""

from __future__ import annotations

import atexit
import os
import time
from array import array
from pathlib import Path

RAN = array("I")
SECONDS = 0.010


def run(payload: dict[str, int]) -> None:
    """Count until this thread has used its time of a processor, however long it has to wait for that."""
    ends_at = time.thread_time() + SECONDS
    while time.thread_time() < ends_at:
        pass
    RAN.append(payload["n"])


@atexit.register
def write() -> None:
    """Leave the numbers in the folder that the benchmark named."""
    Path(os.environ["BENCH_RAN"], f"ran-computes-{os.getpid()}").write_bytes(RAN.tobytes())
