"""Runs our scheduler as a process of its own with a clock that runs faster; arguments as for `node_scheduler.mjs`."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path


def main(url: str, crontab: str, origin: str, speed: str) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from gw_core.crontab import parse_crontab
    from gw_core.maintenance.cron_scheduler import Scheduler
    from gw_core.operations import Database
    from gw_core.postgres.connections import SharedConnection

    simulated, real = (datetime.fromtimestamp(int(part) / 1000, UTC) for part in origin.split("@"))

    def clock() -> datetime:
        return simulated + (datetime.now(UTC) - real) * int(speed)

    scheduler = Scheduler(SharedConnection(Database(url)), parse_crontab(crontab), clock=clock)
    rest = scheduler.step()
    print("started", flush=True)
    while True:
        time.sleep(max(rest, timedelta()).total_seconds() / int(speed))
        rest = scheduler.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
