"""Add jobs in bulk through the client and print how many seconds that took: bulk_add.py URL COUNT QUEUES [OPTION].

An option of `JobSpec`, `unique_for` or `expires_at`, is a day for every job.
"""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from typing import Any

from gw_core import Client, JobSpec

DAY = timedelta(days=1)


def main(url: str, count: int, queues: int, options: dict[str, Any]) -> None:
    """Connect first; what is timed is from plain values to committed jobs."""
    with Client(url, max_pool_size=1) as client:
        client.jobs.get(0)
        began = time.perf_counter()
        names: list[str | None] = [f"queue-{number}" for number in range(queues)] or [None]
        client.add_many(
            [
                JobSpec(task="noop", payload={"n": number}, queue_name=names[number % len(names)], **options)
                for number in range(count)
            ]
        )
        print(time.perf_counter() - began)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), dict.fromkeys(sys.argv[4:], DAY))
