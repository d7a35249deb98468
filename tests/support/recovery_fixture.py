"""Workers without heartbeats, made with SQL, and worker processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from gw_core import Client, Job, Plugin, RecoverySettings
from gw_core.operations import SweepReport
from support.queue_fixture import QueueFixture
from support.waiting import wait_until

DEADLINE = 60.0
WORKER = Path(__file__).with_name("worker_program.py")


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


LONG = minutes(10)


class RecoveryFixture(QueueFixture):
    """A site whose workers can be dead."""

    def a_worker(
        self, worker_id: str, *, inactive_for: timedelta = timedelta(), table: str = "_private_gw_workers"
    ) -> str:
        """Note a heartbeat of that age."""
        self.run(
            f"insert into {table} (id, started_at, last_heartbeat_at)"
            " values (%s, now() - interval '1 day', now() - %s::interval)",
            worker_id,
            inactive_for,
        )
        return worker_id

    def locked_by(self, worker_id: str, *, locked_for: timedelta = LONG, **options: Any) -> int:
        """Add a job that this worker claimed that long ago, with its queue if it has one."""
        job_id = self.add(**options)
        self.lock(job_id, worker_id, locked_for=locked_for)
        return job_id

    def lock(self, job_id: int, worker_id: str, *, locked_for: timedelta = LONG) -> None:
        self.run(
            "update _private_jobs set attempts = attempts + 1, locked_by = %s, locked_at = now() - %s::interval,"
            " created_at = now() - interval '1 day', updated_at = now() - interval '1 day' where id = %s",
            worker_id,
            locked_for,
            job_id,
        )
        self.run(
            "update _private_job_queues set locked_by = %s, locked_at = now() - %s::interval"
            " where id = (select job_queue_id from _private_jobs where id = %s)",
            worker_id,
            locked_for,
            job_id,
        )

    def dead_worker(self, worker_id: str = "dead") -> str:
        return self.a_worker(worker_id, inactive_for=LONG)

    def let_time_pass(self, worker_id: str) -> None:
        """Set the heartbeat and the locks of a worker back by an hour: no test waits for a threshold to pass."""
        self.run(
            "update _private_gw_workers set last_heartbeat_at = now() - interval '1 hour' where id = %s", worker_id
        )
        for table in ("_private_jobs", "_private_job_queues"):
            self.run(f"update {table} set locked_at = locked_at - interval '1 hour' where locked_by = %s", worker_id)

    def workers(self) -> list[str]:
        return [row["id"] for row in self.run("select id from _private_gw_workers order by id")]

    def held(self) -> list[str]:
        """Every worker that locks a job or a queue."""
        rows = self.run(
            "select locked_by as who from _private_jobs where locked_by is not null union all"
            " select locked_by from _private_job_queues where locked_by is not null order by 1"
        )
        return [row["who"] for row in rows]

    def sweep(self, *plugins: Plugin, dry_run: bool = False, **settings: Any) -> SweepReport:
        with Client(self.url, plugins=plugins, max_pool_size=1) as client:
            return client.workers.sweep(RecoverySettings(**settings), dry_run=dry_run)

    # -- processes

    @contextmanager
    def process(self, *arguments: str, **environment: str) -> Iterator[WorkerProcess]:
        """Run `worker_program.py` as a process of its own; it does not outlive the block."""
        popen = subprocess.Popen(
            [sys.executable, str(WORKER), *arguments],
            env={**os.environ, "DATABASE_URL": self.url, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        process = WorkerProcess(popen)
        try:
            yield process
        finally:
            process.kill()


class WorkerProcess:
    """A worker process; its whole output after `kill` is in `output`."""

    def __init__(self, popen: subprocess.Popen[str]) -> None:
        self._popen = popen
        self.output: list[str] = []

    def wait_to_say(self, words: str) -> str:
        """Return the line with these words, printed already or later."""
        for line in self.output:
            if words in line:
                return line
        assert self._popen.stdout is not None
        # The test's own time limit bounds the wait.
        for line in self._popen.stdout:
            self.output.append(line.rstrip())
            if words in line:
                return line.rstrip()
        raise AssertionError(f"it ended without saying {words!r}, but: {self.output}")

    def send(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def kill(self) -> None:
        self._popen.kill()
        self._popen.wait()
        if self._popen.stdout is not None and not self._popen.stdout.closed:
            self.output += [line.rstrip() for line in self._popen.stdout]
            self._popen.stdout.close()

    def freeze(self) -> None:
        """Stop it as a debugger or a frozen machine does, and wait until it has stopped."""
        self.send(signal.SIGSTOP)
        stat = Path(f"/proc/{self._popen.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T", what="the process to stop")


class Deciding(Plugin):
    """Answers every question about a job of a dead worker the same way, and remembers what was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[int, str, str, str | None]] = []

    def on_recovery(self, job: Job, dead_worker: str, reason: str, recovered_by: str | None) -> Any:
        self.asked.append((job.id, dead_worker, reason, recovered_by))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer
