"""Runs our scheduler as a process of its own with a clock that runs faster; arguments as for `node_scheduler.mjs`."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path


def main(url: str, crontab: str, origin: str, speed: str) -> None:
    sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]
    from support.cron_fixture import CronFixture

    simulated, real = (datetime.fromtimestamp(int(part) / 1000, UTC) for part in origin.split("@"))

    def clock() -> datetime:
        return simulated + (datetime.now(UTC) - real) * int(speed)

    scheduler = CronFixture(url, clock).scheduler(crontab)
    rest = scheduler.step()
    print("started", flush=True)
    while True:
        time.sleep(max(rest, timedelta()).total_seconds() / int(speed))
        rest = scheduler.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
