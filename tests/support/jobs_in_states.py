"""A queue with jobs in every state, for the tests of commands and queries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from gw_core.front_ends import FrontEnd
from support.rows import SCHEMA, Rows


class Queue(Rows):
    """A queue that the test fills behind the program's back; `client` reads it."""

    def __init__(self, url: str, *, schema: str = SCHEMA) -> None:
        super().__init__(url, schema=schema, max_pool_size=1)

    @cached_property
    def front_end(self) -> FrontEnd:
        """What the console asks of the queue."""
        return FrontEnd(self.client)

    def make(self, task: str = "mail", change: str = "", **options: Any) -> int:
        """Add a job with the options of `Client.add`, then set columns of its row."""
        job = self.add(task, **options)
        if change:
            self.set(job, change)
        return job

    def set(self, job: int, change: str) -> None:
        """Set columns of a job, as SQL does it."""
        self.rows(f"update _private_jobs set {change} where id = {job}")

    def ready(self, task: str = "mail", **options: Any) -> int:
        return self.make(task, "run_at = now() - interval '1 minute'", **options)

    def scheduled(self, task: str = "mail", **options: Any) -> int:
        return self.make(task, "run_at = now() + interval '1 hour'", **options)

    def waiting(self, task: str = "mail", **options: Any) -> int:
        return self.make(task, "run_at = 'infinity'", **options)

    def running(self, task: str = "mail", *, by: str = "pool-1", since: str = "1 minute", **options: Any) -> int:
        """Add a job that a worker has locked, with its queue."""
        lock = f"locked_at = now() - interval '{since}', locked_by = '{by}'"
        job = self.make(task, f"attempts = 1, {lock}", **options)
        self.hold(options.get("queue_name", ""), by=by)
        return job

    def backoff(self, task: str = "mail", *, error: str = "refused", **options: Any) -> int:
        change = "run_at = now() + interval '1 hour', attempts = 3, last_error = "
        return self.make(task, f"{change}'{error}'", **options)

    def failed(self, task: str = "mail", *, error: str = "refused", **options: Any) -> int:
        return self.make(task, f"attempts = max_attempts, last_error = '{error}'", **options)

    def one_of_each(self) -> dict[str, int]:
        """Add a job in every state and return their ids."""
        made = (self.ready, self.scheduled, self.running, self.backoff, self.failed)
        return {make.__name__: make(task=make.__name__) for make in made}

    def many(self, count: int, columns: str = "", values: str = "", *, task: str = "mail") -> None:
        """Add jobs with one statement; `i` counts them."""
        self.rows("insert into _private_tasks (identifier) values (%s) on conflict do nothing", task)
        self.rows(
            f"insert into _private_jobs (task_id{columns and ', '}{columns}) "
            f"select (select id from _private_tasks where identifier = '{task}'){values and ', '}{values} "
            f"from generate_series(1, {count}) as i"
        )

    def hold(self, queue: str, *, by: str = "pool-1") -> None:
        """Lock a named queue."""
        self.rows(
            "update _private_job_queues set locked_at = now() - interval '1 minute', locked_by = %s "
            "where queue_name = %s",
            by,
            queue,
        )

    def heartbeat(self, worker: str, *, tasks: Sequence[str] | None = (), ago: str = "1 second") -> None:
        """Record a heartbeat of a worker."""
        metadata = {} if tasks is None else {"tasks": list(tasks)}
        self.rows(
            "insert into _private_gw_workers (id, started_at, last_heartbeat_at, metadata) "
            "values (%s, now() - interval '1 hour', now() - %s::interval, %s)",
            worker,
            ago,
            json.dumps(metadata),
        )

    def without_our_line(self) -> None:
        """Leave what npm's installation would have left."""
        tables = ", ".join(f"_private_gw_{name}" for name in ("workers", "migrations", "history", "statistics"))
        self.rows(f"drop table {tables} cascade")
        for name in ("queued", "queue_heads", "locked", "failed"):
            self.rows(f"drop index jobs_gw_{name}_index")
