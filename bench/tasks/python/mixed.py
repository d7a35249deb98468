"""Take as long as the payload demands, and record in a file when each job started and ended."""

from __future__ import annotations

import os
import time
from pathlib import Path
from struct import pack

RAN = os.open(Path(os.environ["BENCH_RAN"], f"mixed-{os.getpid()}"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def run(payload: dict[str, int]) -> None:
    """Write number, start and end in one piece, by a clock that all processes of one machine share."""
    began = time.monotonic_ns()
    if payload.get("ms"):
        time.sleep(payload["ms"] / 1000)
    os.write(RAN, pack("qqq", payload["n"], began, time.monotonic_ns()))
