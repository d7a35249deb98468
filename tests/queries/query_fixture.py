"""Builders: a queue with jobs in every state, and the program run in this process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import psycopg
import pytest

from gw_cli.main import program
from gw_core import Client
from gw_core.operations import JobQueries


class Queue:
    """A queue that the test fills behind the program's back; `reports` reads it."""

    def __init__(self, url: str, *, schema: str = "graphile_worker") -> None:
        self.url = url
        self.client = Client(url, schema=schema, max_pool_size=1)
        self.hands = psycopg.connect(url, autocommit=True)
        self.hands.execute("select set_config('search_path', %s, false)", ('"' + schema.replace('"', '""') + '"',))

    @property
    def queries(self) -> JobQueries:
        return self.client.queries

    def close(self) -> None:
        self.client.close()
        self.hands.close()

    def run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        cursor = self.hands.execute(statement, values or None)  # type: ignore[call-overload]
        return [] if cursor.description is None else list(cursor.fetchall())

    def add(self, task: str = "mail", change: str = "", **options: Any) -> int:
        """Add a job with the options of `Client.add`, then set columns of its row."""
        job = self.client.add(task, **options)
        assert job is not None
        if change:
            self.run(f"update _private_jobs set {change} where id = {job.id}")
        return job.id

    def ready(self, task: str = "mail", **options: Any) -> int:
        return self.add(task, "run_at = now() - interval '1 minute'", **options)

    def scheduled(self, task: str = "mail", **options: Any) -> int:
        return self.add(task, "run_at = now() + interval '1 hour'", **options)

    def running(self, task: str = "mail", *, by: str = "pool-1", **options: Any) -> int:
        return self.add(task, f"attempts = 1, locked_at = now(), locked_by = '{by}'", **options)

    def backoff(self, task: str = "mail", *, error: str = "refused", **options: Any) -> int:
        change = "run_at = now() + interval '1 hour', attempts = 3, last_error = "
        return self.add(task, f"{change}'{error}'", **options)

    def failed(self, task: str = "mail", *, error: str = "refused", **options: Any) -> int:
        return self.add(task, f"attempts = max_attempts, last_error = '{error}'", **options)

    def one_of_each(self) -> dict[str, int]:
        """Add a job in every state and return their ids."""
        made = (self.ready, self.scheduled, self.running, self.backoff, self.failed)
        return {make.__name__: make(task=make.__name__) for make in made}

    def many(self, count: int, columns: str = "", values: str = "", *, task: str = "mail") -> None:
        """Add jobs with one statement; `i` counts them."""
        self.run("insert into _private_tasks (identifier) values (%s) on conflict do nothing", task)
        self.run(
            f"insert into _private_jobs (task_id{columns and ', '}{columns}) "
            f"select (select id from _private_tasks where identifier = '{task}'){values and ', '}{values} "
            f"from generate_series(1, {count}) as i"
        )

    def hold(self, queue: str, *, by: str = "pool-1") -> None:
        self.run(
            "update _private_job_queues set locked_at = now() - interval '1 minute', locked_by = %s "
            "where queue_name = %s",
            by,
            queue,
        )

    def heartbeat(self, worker: str, *, tasks: Sequence[str] | None = (), ago: str = "1 second") -> None:
        """Let a pool have written a heartbeat that long ago."""
        metadata = {} if tasks is None else {"tasks": list(tasks)}
        self.run(
            "insert into _private_gw_workers (id, started_at, last_heartbeat_at, metadata) "
            "values (%s, now(), now() - %s::interval, %s)",
            worker,
            ago,
            json.dumps(metadata),
        )

    def without_our_line(self) -> None:
        """Take away what an installation by npm alone does not have."""
        self.run("drop table _private_gw_workers")
        self.run(
            "drop index jobs_gw_queued_index, jobs_gw_queue_heads_index, jobs_gw_locked_index, jobs_gw_failed_index"
        )


@dataclass(frozen=True, slots=True)
class CliResult:
    """How the program ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Terminal(StringIO):
    """A stdout that a person reads."""

    def isatty(self) -> bool:
        return True


class CliProgram:
    """`gw`, run in this process on the database of the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str, terminal: bool = False) -> CliResult:
        out, err = Terminal() if terminal else StringIO(), StringIO()
        with self._monkeypatch.context() as patch:
            patch.setattr("sys.stdout", out)
            patch.setattr("sys.stderr", err)
            code = program(arguments)
        return CliResult(code, out.getvalue(), err.getvalue())
