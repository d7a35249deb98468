# mypy: disable-error-code="import-not-found, untyped-decorator"
# The peers live in an environment of their own.
"""Work pgqueuer, at the address in libpq's variables: pgqueuer_worker.py install | fill COUNT | drain."""

import os
import sys
from array import array
from pathlib import Path

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries
from pgqueuer.types import QueueExecutionMode

BATCH = 1_000
CHUNK = 1_000
RAN = array("I")


async def drain(driver: AsyncpgDriver) -> None:
    """Run jobs until there are none, claimed a thousand at a time."""
    worker = PgQueuer(driver)

    @worker.entrypoint("noop")
    async def noop(job: Job) -> None:
        RAN.append(int(job.payload or b"0"))

    await worker.run(batch_size=BATCH, max_concurrent_tasks=2 * BATCH, mode=QueueExecutionMode.drain)
    Path(os.environ["BENCH_RAN"], f"ran-{os.getpid()}").write_bytes(RAN.tobytes())


async def main(verb: str, count: int) -> None:
    """Do one of the three things."""
    connection = await asyncpg.connect()
    driver = AsyncpgDriver(connection)
    match verb:
        case "install":
            await Queries(driver).install()
        case "fill":
            for first in range(0, count, CHUNK):
                numbers = range(first, min(first + CHUNK, count))
                payloads: list[bytes | None] = [b"%d" % n for n in numbers]
                await Queries(driver).enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))
        case "drain":
            await drain(driver)
    await connection.close()


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0))
