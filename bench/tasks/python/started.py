"""Report when a job starts, by a clock that all processes of one machine share."""

from __future__ import annotations

import os
import time

REPORTED = os.open(os.environ["BENCH_STARTED"], os.O_WRONLY) if "BENCH_STARTED" in os.environ else None


def run(payload: dict[str, int]) -> None:
    """Write the time, and the job's number if it has one, to the pipe that the benchmark reads."""
    now = time.monotonic_ns()
    if REPORTED is not None:
        os.write(REPORTED, b"%d %d\n" % (now, payload["n"]) if payload else b"%d\n" % now)
    if payload.get("ms"):
        time.sleep(payload["ms"] / 1000)
