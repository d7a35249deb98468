"""Add jobs in bulk through the client and print how many seconds that took: bulk_add.py URL COUNT QUEUES."""

from __future__ import annotations

import sys
import time

from gw_core import Client, JobSpec


def main(url: str, count: int, queues: int) -> None:
    """Connect first; what is timed is from plain values to committed jobs."""
    with Client(url, max_pool_size=1) as client:
        client.jobs.get(0)
        began = time.perf_counter()
        names: list[str | None] = [f"queue-{number}" for number in range(queues)] or [None]
        client.add_many(
            [
                JobSpec(task="noop", payload={"n": number}, queue_name=names[number % len(names)])
                for number in range(count)
            ]
        )
        print(time.perf_counter() - began)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
