"""Builders: a queue with jobs in every state, and the program run in this process."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from gw_cli.main import program
from gw_cli.root import leaf_commands, root_command

SCHEMA = "graphile_worker"


def every_command() -> dict[str, Any]:
    """Return the commands without subcommands, by the words that call them."""
    return dict(leaf_commands(root_command()))


class Queue:
    """A database with jobs, read and prepared by statements of the test's own."""

    def __init__(self, url: str) -> None:
        self.url = url

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement and return what it answers."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(statement, values or None)  # type: ignore[call-overload]
            return [] if cursor.description is None else list(cursor.fetchall())

    def value(self, statement: str, *values: Any) -> Any:
        """Return the one value a statement answers."""
        return self.rows(statement, *values)[0][0]

    def ready(self, task: str = "mail", **options: Any) -> int:
        """Add a job that may run now."""
        names = ", ".join(f"{name} => %s" for name in options)
        statement = f"select (graphile_worker.add_job(%s{', ' if names else ''}{names})).id"
        return int(self.value(statement, task, *options.values()))

    def scheduled(self, task: str = "mail", **options: Any) -> int:
        """Add a job of tomorrow."""
        job = self.ready(task, **options)
        self.change(job, "run_at = now() + interval '1 day'")
        return job

    def running(self, task: str = "mail", *, by: str = "gw-host-1", since: str = "1 minute", **options: Any) -> int:
        """Add a job that a worker holds."""
        job = self.ready(task, **options)
        self.change(job, f"attempts = 1, locked_by = '{by}', locked_at = now() - interval '{since}'")
        self.rows(
            "update graphile_worker._private_job_queues set locked_by = %s, locked_at = now() "
            "where id = (select job_queue_id from graphile_worker._private_jobs where id = %s)",
            by,
            job,
        )
        return job

    def waiting_for_retry(self, task: str = "mail", **options: Any) -> int:
        """Add a job that failed and will be tried again tomorrow."""
        job = self.ready(task, **options)
        self.change(job, "attempts = 3, last_error = 'Boom', run_at = now() + interval '1 day'")
        return job

    def failed(self, task: str = "mail", **options: Any) -> int:
        """Add a job that failed permanently."""
        job = self.ready(task, **options)
        self.change(job, "attempts = max_attempts, last_error = 'Boom', run_at = now() + interval '1 day'")
        return job

    def change(self, job: int, what: str) -> None:
        """Change a job's row."""
        self.rows(f"update graphile_worker._private_jobs set {what} where id = {job}")

    def jobs(self) -> list[tuple[Any, ...]]:
        """Every job, whole."""
        return self.rows("select * from graphile_worker._private_jobs order by id")

    def ids(self) -> list[int]:
        """The ids of all jobs."""
        return [row[0] for row in self.jobs()]

    def heartbeat(self, worker: str, *, seconds_ago: float = 1, tasks: tuple[str, ...] = ()) -> None:
        """Record a heartbeat of a worker."""
        self.rows(
            "insert into graphile_worker._private_gw_workers (id, started_at, last_heartbeat_at, metadata) "
            "values (%s, now() - interval '1 hour', now() - make_interval(secs => %s), %s)",
            worker,
            seconds_ago,
            json.dumps({"tasks": list(tasks)}),
        )

    def without_our_line(self) -> None:
        """Leave what npm's installation would have left."""
        self.rows(
            "drop table graphile_worker._private_gw_workers, graphile_worker._private_gw_migrations, "
            "graphile_worker._private_gw_history cascade"
        )
        for name in ("queued", "queue_heads", "locked", "failed"):
            self.rows(f"drop index graphile_worker.jobs_gw_{name}_index")


@dataclass(frozen=True, slots=True)
class CliResult:
    """How the program ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it wrote, read as JSON."""
        return json.loads(self.out)


class Terminal(io.StringIO):
    """A stdin that is a terminal."""

    def isatty(self) -> bool:
        return True


class CliProgram:
    """`gw`, in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: object, typed: str | None = None, stdin: bytes | None = None) -> CliResult:
        """Run it to its end; `typed` is what a person at a terminal answers."""
        with self._monkeypatch.context() as patch:
            if typed is not None:
                patch.setattr(sys, "stdin", Terminal(typed))
                patch.setattr(sys.stderr, "isatty", lambda: True)
            if stdin is not None:
                patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
            code = program([str(each) for each in arguments])
        said = self._capsys.readouterr()
        return CliResult(int(code), said.out, said.err)
