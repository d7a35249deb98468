"""Fleets of three languages under load, whose workers are killed and stopped again and again."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import permutations
from typing import Any, Final

import pytest
from mixed_workers import BATCHES, WAITS, MixedQueue, by_node
from support.databases import install_schema
from support.node_worker import RunningWorker, node_worker
from support.rust_worker import NEWEST, VERSIONS, rust_worker, worker_id
from support.waiting import wait_until

pytestmark = [pytest.mark.interop, pytest.mark.once, pytest.mark.slow]

ORDERS: Final = list(permutations(("gw", "node", "rust")))
ROUNDS: Final = 3
EACH: Final = 60
"""How many jobs each language adds at a time."""
KEYS: Final = 5
QUEUES: Final = 6
RECOVERY: Final = {"heartbeat_ms": 100, "sweep_ms": 200, "threshold_ms": 60_000, "delay_ms": 0}
STOPPABLE: Final = {**BATCHES, "gracefulShutdownAbortTimeout": 600_000}
BY_NODE: Final = """
for (const { key, queue, payload } of input.jobs)
  await utils.addJob("shared", payload, { jobKey: key ?? undefined, queueName: queue ?? undefined });
"""
DIED: Final = """
with heartbeats as (
  update _private_gw_workers set last_heartbeat_at = last_heartbeat_at - interval '1 hour' where id = any(%(dead)s)
), queues as (
  update _private_job_queues set locked_at = locked_at - interval '1 hour' where locked_by = any(%(dead)s)
)
update _private_jobs set locked_at = locked_at - interval '1 hour' where locked_by = any(%(dead)s) returning id
"""
DIED_IN_RUST: Final = """
update _private_workers set last_heartbeat_at = last_heartbeat_at - interval '1 hour' where id = any(%(dead)s)
"""


def jobs_of(side: str, turn: int) -> list[dict[str, Any]]:
    """What a language adds at a time: a third in named queues, and some under keys of its own."""

    def job(number: int) -> dict[str, Any]:
        key = f"{side} {number % KEYS}" if number % 4 == 0 else None
        queue = f"q{number % QUEUES}" if number % 3 == 0 else None
        return {"key": key, "queue": queue, "payload": {"side": side, "turn": turn, "n": number, "key": key}}

    return [job(number) for number in range(EACH)]


class Fleet:
    """One worker in each language, which the test ends in one way or another and starts again."""

    def __init__(self, site: MixedQueue, version: str, stack: ExitStack) -> None:
        self._site, self._version, self._stack = site, version, stack
        # Version 0.13.5 needs for its recovery tables that gw and Node.js do not install.
        self._recovers = site.client.migration_plan().state.has_rust_workers
        self.workers = {side: self._start(side) for side in ("python", "node", "rust")}
        self._killed: list[tuple[str, RunningWorker]] = []
        self.at_risk: set[int] = set()
        """The jobs that a worker held when it was killed: they may have run to their end, and run again."""

    def _start(self, side: str) -> RunningWorker:
        match side:
            case "python":
                running = self._site.gw_running(
                    {"shared": WAITS["python"]},
                    *("--jobs", "4", "--poll-interval", "100ms"),
                    *("--heartbeat-interval", "100ms", "--sweep-threshold", "60s", "--recovery-delay", "0s"),
                )
            case "node":
                running = node_worker().running(
                    self._site.url,
                    {"shared": WAITS["node"]},
                    *("--jobs", "4", "--poll-interval", "100"),
                    preset=STOPPABLE,
                )
            case _:
                recovery = {"recovery": RECOVERY} if self._recovers else {}
                running = rust_worker(self._version).running(
                    self._site.url, ["shared"], concurrency=4, poll_ms=100, grace_ms=60_000, **recovery
                )
        return self._stack.enter_context(running)

    def stop(self, side: str) -> None:
        self.workers[side].stop()
        self.workers[side] = self._start(side)

    def kill(self, side: str) -> None:
        """Kill the worker, let an hour pass for what it leaves behind, and start another one."""
        self.workers[side].stop(signal.SIGKILL)
        self._expire(side, self.workers[side])
        self._killed.append((side, self.workers[side]))
        self.workers[side] = self._start(side)

    def end(self) -> None:
        """Stop the worker of Node.js, and expire the killed ones again: a last claim may commit after a death."""
        self.workers["node"].stop()
        for side, worker in self._killed:
            self._expire(side, worker)

    def _expire(self, side: str, worker: RunningWorker) -> None:
        held = self._site.run("select id, locked_by from _private_jobs where locked_by is not null")
        names = self._names(side, worker, {row["locked_by"] for row in held})
        self.at_risk |= {row["id"] for row in held if row["locked_by"] in names}
        self._site.hands.execute(DIED, {"dead": names})
        if self._recovers:
            self._site.hands.execute(DIED_IN_RUST, {"dead": names})
        if side == "node" or (side == "rust" and not self._recovers):
            # A worker without heartbeats is judged by its locks, hours later.
            self._site.client.workers.unlock(names)

    def _names(self, side: str, worker: RunningWorker, holders: set[str]) -> list[str]:
        """Return the ids of a worker; only locks show that of Node.js."""
        match side:
            case "python":
                return re.findall(r"Worker (gw-\S+) started", worker.output)
            case "node":
                return [each for each in holders if "pool-" in each]
            case _:
                return [worker_id(worker)]


@contextmanager
def adding(site: MixedQueue, version: str, turn: int) -> Iterator[None]:
    """Add jobs in all languages while the block runs, and wait for the rest at its end."""

    def by_us() -> None:
        for job in jobs_of("python", turn):
            site.client.add("shared", job["payload"], job_key=job["key"], queue_name=job["queue"])

    def by_rust() -> None:
        for job in jobs_of("rust", turn):
            rust_worker(version).add(site.url, "shared", job["payload"], job_key=job["key"], queue_name=job["queue"])

    with ThreadPoolExecutor(3) as threads:
        adders = [
            threads.submit(by_us),
            threads.submit(by_rust),
            threads.submit(by_node, site, node_worker(), BY_NODE, jobs=jobs_of("node", turn)),
        ]
        yield
        for adder in adders:
            adder.result(timeout=120)


@pytest.mark.parametrize(
    ("order", "version"),
    [
        *(pytest.param(order, NEWEST, id="-".join(order)) for order in ORDERS),
        *(
            pytest.param(order, version, id=f"{'-'.join(order)}-{version}")
            for order in (ORDERS[0], ORDERS[-1])
            for version in VERSIONS
            if version != NEWEST
        ),
    ],
)
def test_no_job_is_lost_whichever_worker_is_killed_or_stopped(
    empty_database_url: str, order: tuple[str, ...], version: str
) -> None:
    install = {
        "gw": install_schema,
        "node": node_worker().install_schema,
        "rust": rust_worker(version).install_schema,
    }
    for name in order:
        install[name](empty_database_url)
    with MixedQueue(empty_database_url) as site, ExitStack() as stack:
        fleet = Fleet(site, version, stack)
        for turn in range(ROUNDS):
            with adding(site, version, turn):
                for side in ("python", "node", "rust"):
                    site.wait_for(20 * turn + 1)
                    fleet.kill(side)
                    fleet.stop(side)
        fleet.end()
        wait_until(lambda: settled(site), deadline_seconds=120, what="every job to be settled")

        assert_all_ran(site, fleet.at_risk)


def settled(site: MixedQueue) -> bool:
    site.client.workers.sweep()
    return site.run("select id from _private_jobs where attempts < max_attempts") == []


def assert_all_ran(site: MixedQueue, at_risk: set[int]) -> None:
    ended = [(entry["job_id"], entry["payload"]) for entry in site.ledger("ended is not null")]
    added = [job for turn in range(ROUNDS) for side in ("python", "node", "rust") for job in jobs_of(side, turn)]
    wanted = [job["payload"] for job in added]
    ran = [payload for _, payload in ended]
    # A keyed job may be replaced before it runs, but the last one under its key runs.
    last = {job["key"]: job for job in wanted if job["key"]}
    assert [job for job in wanted if not job["key"] and job not in ran] == []
    assert [job for job in last.values() if job not in ran] == []
    twice = {job_id for job_id, _ in ended if sum(other == job_id for other, _ in ended) > 1}
    assert twice <= at_risk
    assert site.overlaps() == []
    assert site.locks() == []
