"""A worker returns the memory of large payloads to the system."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psycopg
import pytest
from support.waiting import wait_until

from gw_core import Client, Runner, TaskRegistry, WorkerSettings

JOBS = 100
THREADS = 30
PAYLOAD_BYTES = 1_000_000
MOST_KEPT = 60 * 2**20
"""A worker kept 135 MiB without `return_free_memory`, and 6 MiB with it."""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps freed memory")
def test_the_memory_of_large_payloads_is_returned(database_url: str) -> None:
    done: list[int] = []
    tasks = TaskRegistry()
    tasks.register("measure", lambda payload: done.append(len(payload["text"])))
    runner = Runner(database_url, tasks=tasks, settings=WorkerSettings(concurrency=THREADS), handle_signals=False)
    with Client(database_url) as client:
        client.migrate()
    runner.start()
    try:
        before = memory_in_use()
        add_large_jobs(database_url)
        wait_until(lambda: len(done) == JOBS, what="all jobs to run")

        wait_until(lambda: memory_in_use() < before + MOST_KEPT, what="the memory")
    finally:
        runner.stop()
        runner.wait()

    assert done == [PAYLOAD_BYTES] * JOBS


def memory_in_use() -> int:
    """Return how many bytes of this process are in memory; only Linux has glibc."""
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def add_large_jobs(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as conn:
        conn.execute(
            "select count(graphile_worker.add_job('measure', json_build_object('text', repeat('x', %s)))) "
            "from generate_series(1, %s)",
            (PAYLOAD_BYTES, JOBS),
        )
