"""A worker process that a test kills or stops: quick heartbeats, and tasks that wait for a file."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from gw_core import Runner, TaskRegistry, WorkerSettings
from gw_core.events import JobLockLost

TICK = 0.01


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gate", type=Path)
    parser.add_argument("--recover", action="store_true")
    parser.add_argument("--threshold", type=float, default=0.5, help="Seconds.")
    given = parser.parse_args()
    logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="%(levelname)s: %(message)s")
    runner = Runner(
        tasks=tasks(given.gate, lambda: runner.worker_id),
        settings=WorkerSettings(
            concurrency=2,
            poll_interval=timedelta(milliseconds=50),
            recover=given.recover,
            heartbeat_interval=timedelta(milliseconds=100),
            sweep_interval=timedelta(milliseconds=100),
            sweep_threshold=timedelta(seconds=given.threshold),
            recovery_delay=timedelta(0),
        ),
        migrate=False,
    )
    runner.events.on(JobLockLost, lambda event: print(f"lost {event.job.id}", flush=True))
    result = runner.run()
    print(f"ended: {result.reason}", flush=True)


def tasks(gate: Path | None, holder: Callable[[], str | None]) -> TaskRegistry:
    registry = TaskRegistry()

    @registry.task("wait")
    def wait(payload: Any, context: Any) -> None:
        print(f"began {context.job.id} as {holder()}", flush=True)
        while gate is None or not gate.exists():
            time.sleep(TICK)

    @registry.task("hog")
    def hog(payload: Any, context: Any) -> None:
        print(f"began {context.job.id} as {holder()}", flush=True)
        while True:
            sum(range(10_000))

    return registry


if __name__ == "__main__":
    main()
