"""Workers that have nothing to do: what they ask of the server, and whether anything grows."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

from bench.harness import Benchmark, Goal, Measured, NotMeasuredError
from bench.measure import Bench
from bench.peers import Gw, Peer, node_tuned
from bench.processes import new_folders, repeating, running
from bench.resources import cpu_seconds, memory_kib
from bench.rust import Rust
from bench.server import ask

TRANSACTIONS: Final = "transactions/poll"
LEFT_OPEN: Final = "left open"
GROWN: Final = "KiB grown"
POLL_SECONDS: Final = 2.0
"""The default of every side."""
SETTLING_SECONDS: Final = 1.5
COUNTED_AFTER: Final = 12.0
"""Seconds after which the server has counted the transactions of a session that does nothing; it does not hurry."""
OPEN_SECONDS: Final = 0.5
"""A transaction that is older than this was left open: what an idle worker asks takes a millisecond."""

QUERY: Final = """
select count(*) from pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
   and xact_start < now() - make_interval(secs => %s)
"""
COUNT: Final = "select xact_commit + xact_rollback from pg_stat_database where datname = current_database()"


def benchmarks(bench: Bench) -> Sequence[Benchmark]:
    """One idle worker, counted; and many, weighed."""
    scale = bench.scale
    return (
        Benchmark(
            name="idle",
            title=f"One idle worker for {scale.idle_seconds:g} s",
            sides={
                "gw": lambda: idle(bench, Gw()),
                "Node tuned": lambda: idle(bench, node_tuned()),
                "Rust": lambda: idle(bench, Rust()),
            },
            goals=(
                Goal(figure=TRANSACTIONS, at_most=2),
                Goal(figure=LEFT_OPEN, at_most=0),
                Goal(figure=GROWN, at_most=256),
            ),
            rounds=1,
        ),
        Benchmark(
            name="idle-many",
            title=f"{scale.idle_workers} idle workers for {scale.idle_seconds:g} s",
            sides={
                "gw": lambda: idle_many(bench, Gw()),
                "Node tuned": lambda: idle_many(bench, node_tuned()),
                "Rust": lambda: idle_many(bench, Rust()),
            },
            rounds=3,
        ),
    )


def idle(bench: Bench, peer: Peer) -> Measured:
    """Count transactions of a short life and of a longer one; the difference is what being idle costs."""
    duration = bench.scale.idle_seconds
    with bench.place() as (url, folder):
        peer.install(url)
        begin = min(SETTLING_SECONDS, duration)
        _life(peer, url, folder, begin)  # the first time, which makes tasks known and fills caches
        short, _, _ = _life(peer, url, folder, begin)
        long, most_open, grown = _life(peer, url, folder, begin + duration)
    return Measured({TRANSACTIONS: (long - short) / (duration / POLL_SECONDS), LEFT_OPEN: most_open, GROWN: grown})


def _life(peer: Peer, url: str, folder: Path, seconds: float) -> tuple[int, int, float]:
    """Run a worker for a while; return its transactions, how many were open together, and its growth in KiB.

    A server counts the transactions of a connection at the latest when it ends, and autovacuum's among them.
    """
    opened: list[int] = []
    memory: list[int] = []
    before = _transactions(url)
    with psycopg.connect(url, autocommit=True) as watch, running(peer.worker(url, folder, once=False)) as process:

        def count_open() -> None:
            row = watch.execute(QUERY, (OPEN_SECONDS,)).fetchone()
            opened.append(0 if row is None else int(row[0]))
            memory.append(memory_kib(process.pid))

        time.sleep(seconds / 4)
        count_open()
        with repeating(count_open, every_seconds=0.25):
            time.sleep(seconds * 3 / 4)
        if process.poll() is not None:
            raise NotMeasuredError(f"it exited early with code {process.returncode}")
        refreshes = len(opened)
    return _transactions(url) - before - refreshes, max(opened), float(memory[-1] - memory[len(memory) // 2])


def _transactions(url: str) -> int:
    """Return how many transactions there were, once all connections that ended have been counted."""
    time.sleep(0.3)
    return int(ask(url, COUNT))


def idle_many(bench: Bench, peer: Peer) -> Measured:
    """Start many workers, let them settle, and weigh what they and the server use from then on."""
    duration, many = bench.scale.idle_seconds, bench.scale.idle_workers
    with bench.place() as (url, folder), ExitStack() as stack:
        peer.install(url)
        workers = [
            stack.enter_context(running(peer.worker(url, each, once=False))) for each in new_folders(folder, many)
        ]
        wait_until_connected(url, many)
        time.sleep(min(COUNTED_AFTER, duration))
        before = usage(url, workers)
        time.sleep(duration)
        # What the server has not counted yet at the end it had not at the beginning either.
        used = usage(url, workers).since(before)
        check_alive(workers)
    return Measured(
        {
            "transactions/s": used.transactions / used.at,
            "server CPU %": 100 * used.server_seconds / used.at,
            "workers' CPU %": 100 * used.workers_seconds / used.at,
            "connections": used.connections,
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What workers and the server have used until some time, or since another."""

    at: float
    transactions: int
    server_seconds: float
    workers_seconds: float
    connections: int

    def since(self, before: Usage) -> Usage:
        """Return what was used since an earlier time."""
        return Usage(
            at=self.at - before.at,
            transactions=self.transactions - before.transactions,
            server_seconds=self.server_seconds - before.server_seconds,
            workers_seconds=self.workers_seconds - before.workers_seconds,
            connections=self.connections,
        )


def usage(url: str, workers: Sequence[subprocess.Popen[bytes]]) -> Usage:
    """Return what has been used until now; of the server only by sessions that are still open."""
    sessions = _backends(url)
    return Usage(
        at=time.monotonic(),
        transactions=int(ask(url, COUNT)),
        server_seconds=cpu_seconds(sessions),
        workers_seconds=cpu_seconds(each.pid for each in workers),
        connections=len(sessions),
    )


def wait_until_connected(url: str, many: int) -> None:
    """Wait until this many workers have opened their connections, but not for ever."""
    deadline = time.monotonic() + 60
    while _connected(url) < many and time.monotonic() < deadline:
        time.sleep(0.2)


def check_alive(workers: Iterable[subprocess.Popen[bytes]]) -> None:
    """Raise `NotMeasuredError` if a worker has ended."""
    if dead := [each.returncode for each in workers if each.poll() is not None]:
        raise NotMeasuredError(f"{len(dead)} of them exited early, the first with code {dead[0]}")


def _connected(url: str) -> int:
    return len(_backends(url)) // 2


def _backends(url: str) -> list[int]:
    found = ask(
        url,
        "select array_agg(pid) from pg_stat_activity "
        "where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'",
    )
    return list(found or ())
