"""`python -m bench.fleet_hour`: a fleet at mixed work for an hour, with a backlog, pauses and a deployment.

Jobs arrive at an even rate: some take longer, some stand in named queues, and millions are scheduled for another day.
Two named queues are paused for a while. In the second half, each worker is replaced by a new process, one after the
other. The picture shows each minute; a job that was lost, ran twice, or ran while its queue was paused is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles
from threading import Thread
from typing import Any, Final

import psycopg

from bench import machine
from bench.benchmarks.fleet import SCHEDULE
from bench.benchmarks.idle import usage, wait_until_connected
from bench.benchmarks.latency import pipe_at
from bench.benchmarks.soak import TABLE
from bench.chart import Panel, panels
from bench.measure import Bench
from bench.peers import CHUNK, Gw
from bench.processes import repeating, running
from bench.resources import memory_kib
from bench.scales import SCALES
from bench.server import Server, ask
from gw_core import Client

QUEUES: Final = 100
PAUSED: Final = ("queue-0", "queue-1")
PAUSE: Final = (0.2, 0.3)
"""When the pause begins and ends, and …"""
DEPLOYMENT: Final = (0.55, 0.75)
"""… when the first and the last worker is replaced, as shares of the time."""
BATCH: Final = 10
"""Jobs of one transaction."""
TO_EMPTY_SECONDS: Final = 120.0

ADD: Final = """
select count(*)
  from graphile_worker.add_jobs(array(
         select row(
                  'started', json_build_object('n', spec->'n', 'ms', spec->'ms'), spec->>'queue',
                  null, null, null, null, null
                )::graphile_worker.job_spec
           from json_array_elements(%s::json) as spec
       ))
"""
LEFT: Final = "select count(*) from graphile_worker._private_jobs where run_at < now() + interval '1 hour'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """What was measured in one period."""

    ended: float
    p50_ms: float
    p99_ms: float
    workers_mib: float
    """Resident memory of a worker, the median of all."""
    table_mib: float
    dead_rows: int
    vacuums: int
    server_cpu_percent: float
    workers_cpu_percent: float


class Hour:
    """One run: its jobs, its workers and what they reported."""

    def __init__(self, url: str, folder: Path, given: argparse.Namespace) -> None:
        self._url = url
        self._folder = folder
        self._seconds: float = 60 * given.minutes
        self._rate: float = given.rate
        self._number = 0
        self._stacks: list[ExitStack] = []
        self.processes: list[subprocess.Popen[bytes]] = []
        self.added: list[tuple[float, str | None]] = []
        """When each job was added, by its number, and its queue."""
        self.started: dict[int, float] = {}
        self.reports = 0
        self.minutes: list[Minute] = []

    def start_worker(self) -> None:
        """Start one more worker."""
        part = self._folder / f"process-{self._number}"
        self._number += 1
        part.mkdir()
        (part / "started").symlink_to(self._folder / "started")
        stack = ExitStack()
        self.processes.append(stack.enter_context(running(Gw(("-j", "4")).worker(self._url, part, once=False))))
        self._stacks.append(stack)

    def stop_oldest(self) -> None:
        """Stop the worker that has run longest, as a deployment does."""
        del self.processes[0]
        self._stacks.pop(0).close()

    def stop_all(self) -> None:
        """Stop all workers."""
        for process in self.processes:
            process.terminate()
        while self._stacks:
            self.stop_oldest()

    def read(self, pipe: int) -> None:
        """Read what tasks report, on a thread of its own, until a line is empty."""
        with os.fdopen(os.dup(pipe), "rb", buffering=0) as lines:
            rest = b""
            while True:
                *whole, rest = (rest + lines.read(1 << 16)).split(b"\n")
                for line in whole:
                    if not line:
                        return
                    when, number = line.split()
                    self.started[int(number)] = int(when) / 1e9
                    self.reports += 1

    def add(self, until: float) -> None:
        """Add jobs at the rate until then, some at a time."""
        dice = random.Random(len(self.added))
        with psycopg.connect(self._url, autocommit=True) as connection:
            began, already = time.monotonic(), len(self.added)
            while (now := time.monotonic()) < until:
                if len(self.added) - already > (now - began) * self._rate:
                    time.sleep(0.005)
                    continue
                jobs = [self._job(dice) for _ in range(BATCH)]
                connection.execute(ADD, (json.dumps(jobs),))

    def _job(self, dice: random.Random) -> Mapping[str, Any]:
        kind = dice.random()
        queue = f"queue-{dice.randrange(QUEUES)}" if dice.random() < 0.2 else None
        self.added.append((time.monotonic(), queue))
        ms = 1_000 if kind < 0.005 else 20 if kind < 0.1 else 0
        return {"n": len(self.added) - 1, "queue": queue, "ms": ms}

    def run(self) -> tuple[float, float]:
        """Do the work of the hour; return when the pause began and ended."""
        began = time.monotonic()

        def at(share: float) -> float:
            return began + share * self._seconds

        with self._measured():
            self.add(at(PAUSE[0]))
            targets = [f"queue:{each}" for each in PAUSED]
            with Client(self._url) as client:
                client.pauses.pause(*targets)
                paused = time.monotonic()
                self.add(at(PAUSE[1]))
                resumed = time.monotonic()
                client.pauses.resume(*targets)
            self.add(at(DEPLOYMENT[0]))
            deployment = Thread(target=self._deploy, args=(at(DEPLOYMENT[1]),))
            deployment.start()
            self.add(at(1))
            deployment.join()
        deadline = time.monotonic() + TO_EMPTY_SECONDS
        while ask(self._url, LEFT) and time.monotonic() < deadline:
            time.sleep(0.5)
        return paused, resumed

    def _deploy(self, until: float) -> None:
        old = len(self.processes)
        pace = (until - time.monotonic()) / old
        for _ in range(old):
            began = time.monotonic()
            self.start_worker()
            self.stop_oldest()
            time.sleep(max(0.0, began + pace - time.monotonic()))

    @contextmanager
    def _measured(self) -> Any:
        """Measure each minute, or each sixtieth of a shorter time."""
        began = time.monotonic()
        last = usage(self._url, self.processes)
        first_job = 0

        def measure() -> None:
            nonlocal last, first_job
            used = usage(self._url, self.processes)
            since, last = used.since(last), used
            jobs = range(first_job, len(self.added))
            first_job = len(self.added)
            time.sleep(0.2)  # for the reports of the last jobs
            delays = [
                1000 * (self.started[each] - self.added[each][0])
                for each in jobs
                if each in self.started and self.added[each][1] not in PAUSED
            ]
            cuts = quantiles(delays, n=100, method="inclusive") if len(delays) > 1 else [0.0] * 99
            memory = [kib for process in self.processes if (kib := memory_kib(process.pid))]
            with psycopg.connect(self._url, autocommit=True) as connection:
                row = connection.execute(TABLE).fetchone()
            assert row is not None
            self.minutes.append(
                Minute(
                    ended=time.monotonic() - began,
                    p50_ms=cuts[49],
                    p99_ms=cuts[98],
                    workers_mib=median(memory) / 1024,
                    table_mib=float(row[1]),
                    dead_rows=int(row[0]),
                    vacuums=int(row[3]),
                    # Sessions that ended in between take their time with them.
                    server_cpu_percent=max(0.0, 100 * since.server_seconds / since.at),
                    workers_cpu_percent=max(0.0, 100 * since.workers_seconds / since.at),
                )
            )

        with repeating(measure, every_seconds=self._seconds / 60):
            yield

    def mistakes(self, paused: float, resumed: float) -> Sequence[str]:
        """Return what went wrong with jobs."""
        settled = paused + 5  # a pause waits for confirmations, and lets running jobs end
        lost = len(self.added) - len(self.started)
        forbidden = sum(
            settled < when < resumed and self.added[number][1] in PAUSED for number, when in self.started.items()
        )
        return [
            *([f"{lost:,} jobs did not run"] if lost else []),
            *([f"{self.reports - len(self.started):,} runs too many"] if self.reports > len(self.started) else []),
            *([f"{forbidden:,} jobs ran while their queue was paused"] if forbidden else []),
        ]


def picture(minutes: Sequence[Minute], title: str) -> str:
    """Draw what each minute measured, with the pause and the deployment as bands."""
    parts = [("two queues paused", *PAUSE), ("deployment", *DEPLOYMENT)]
    return panels(
        title,
        [
            Panel(
                "from add to start, ms",
                {"p50": [each.p50_ms for each in minutes], "p99": [each.p99_ms for each in minutes]},
            ),
            Panel("memory of a worker, MiB", {"median": [each.workers_mib for each in minutes]}),
            Panel("jobs table, MiB", {"with indexes": [each.table_mib for each in minutes]}),
            Panel("dead rows", {"dead": [float(each.dead_rows) for each in minutes]}),
        ],
        minutes=round(minutes[-1].ended / 60, 1),
        parts=parts,
    )


def main() -> int:
    """Run the hour, write its figures and its picture, and say what went wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.fleet_hour", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--rate", type=float, default=200, help="jobs added a second")
    parser.add_argument("--scheduled", type=int, default=10_000_000, help="jobs that wait for another day")
    parser.add_argument("--database", metavar="URL", help="the server; without it, one of its own")
    parser.add_argument("--out", type=Path, default=Path("fleet-hour"), help="the files' name without its ending")
    given = parser.parse_args()
    with (
        Server(given.database) as server,
        Bench(server, SCALES["full"]).place() as (url, folder),
        pipe_at(folder / "started") as pipe,
    ):
        Gw().install(url)
        for first in range(0, given.scheduled, CHUNK):
            ask(url, SCHEDULE, first, min(first + CHUNK, given.scheduled) - 1)
        server.settle_down(url)
        hour = Hour(url, folder, given)
        reader = Thread(target=hour.read, args=(pipe,))
        reader.start()
        try:
            for _ in range(given.workers):
                hour.start_worker()
            wait_until_connected(url, given.workers)
            pause = hour.run()
        finally:
            hour.stop_all()
            os.write(pipe, b"\n")
            reader.join()
        mistakes = hour.mistakes(*pause)
        where = machine.describe(server)
    title = (
        f"{given.workers} workers, {given.rate:g} jobs/s for {given.minutes:g} minutes, "
        f"beside {given.scheduled:,} scheduled jobs"
    )
    figures = {
        "title": title,
        "where": where,
        "jobs": len(hour.added),
        "minutes": [asdict(each) for each in hour.minutes],
    }
    given.out.with_suffix(".json").write_text(json.dumps(figures, indent=1) + "\n")
    given.out.with_suffix(".svg").write_text(picture(hour.minutes, title))
    for each in hour.minutes:
        print(" ".join(f"{name}={value:.6g}" for name, value in asdict(each).items()))
    print(f"{len(hour.added):,} jobs; " + ("; ".join(mistakes) or "each ran once"))
    return 1 if mistakes else 0


if __name__ == "__main__":
    raise SystemExit(main())
