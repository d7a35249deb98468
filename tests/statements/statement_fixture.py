"""A store on a database of its own, and a plain connection that reads the rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, cast

import psycopg
from psycopg.rows import DictRow, dict_row

from gw_core import Client, Job
from gw_core.domain.claim import queue_locks
from gw_core.events import Completed, Failed, Returned
from gw_core.operations import Database
from gw_core.postgres.claims import CLAIM_PLAN
from gw_core.postgres.job_store import JobStore

SCHEMA = "graphile_worker"
OURS, THEIRS = "ours", "theirs"
HOUR = timedelta(hours=1)


class Queue:
    """The job store under test as `store`; everything else arranges rows and reads them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.store = JobStore(Database(url).connect("test", CLAIM_PLAN), SCHEMA)
        self.hands: psycopg.Connection[DictRow] = psycopg.connect(url, autocommit=True, row_factory=dict_row)
        self.client = Client(url, max_pool_size=1)
        self.hands.execute("set search_path to graphile_worker")

    def close(self) -> None:
        self.store.connection.close()
        self.hands.close()
        self.client.close()

    # -- arranging

    def add(self, task: str = "mail", payload: object = None, **options: Any) -> int:
        job = self.client.add(task, payload, **options)
        assert job is not None
        return job.id

    def change(self, job_id: int, **columns: Any) -> None:
        """Set columns of a job; a value that starts with `=` is an expression."""
        self._change("_private_jobs", "id", job_id, columns)

    def change_queue(self, name: str, **columns: Any) -> None:
        self._change("_private_job_queues", "queue_name", name, columns)

    def run(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        cursor = self.hands.execute(cast(Any, statement), values)
        return cursor.fetchall() if cursor.description else []

    def _change(self, table: str, column: str, wanted: object, columns: dict[str, Any]) -> None:
        parts = [
            f"{name} = {value[1:]}" if isinstance(value, str) and value.startswith("=") else f"{name} = %({name})s"
            for name, value in columns.items()
        ]
        statement = f"update {table} set {', '.join(parts)} where {column} = %(wanted)s"
        self.hands.execute(cast(Any, statement), {**columns, "wanted": wanted})

    @contextmanager
    def locking(self, statement: str, *values: Any) -> Iterator[None]:
        """Keep a transaction open in which another session has run the statement."""
        with psycopg.connect(self.url) as other:
            other.execute("set search_path to graphile_worker")
            other.execute(cast(Any, statement), values)
            yield
            other.rollback()

    # -- the statements, with defaults for most tests

    def claim(
        self, tasks: Sequence[str] = ("mail",), *, worker_id: str = OURS, limit: int = 100, **options: Any
    ) -> list[Job]:
        return self.store.claims.claim(
            worker_id=worker_id, tasks=self.store.register_tasks(tasks), limit=limit, **options
        )

    def claim_ids(self, tasks: Sequence[str] = ("mail",), **options: Any) -> list[int]:
        return [job.id for job in self.claim(tasks, **options)]

    def claimed(self, **options: Any) -> Job:
        """Add a job and claim it, and only it."""
        job_id = self.add(**options)
        (job,) = [job for job in self.claim() if job.id == job_id]
        return job

    def complete(self, *jobs: Job, worker_id: str = OURS, release: Sequence[Job] = ()) -> set[int]:
        return self.store.complete(
            [Completed(job, 0.1) for job in jobs], worker_id=worker_id, releases=queue_locks(release)
        )

    def fail(self, *failures: Failed, worker_id: str = OURS, release: Sequence[Job] = ()) -> set[int]:
        return self.store.fail(failures, worker_id=worker_id, releases=queue_locks(release))

    def return_jobs(
        self, *jobs: Job, worker_id: str = OURS, release: Sequence[Job] = (), delay: timedelta = timedelta(0)
    ) -> set[int]:
        returns = [Returned(job, "asked to", delay) for job in jobs]
        return self.store.return_jobs(returns, worker_id=worker_id, releases=queue_locks(release))

    # -- looking

    def get(self, job_id: int | None = None, *, job_key: str | None = None) -> Job | None:
        with Client(self.url) as client:
            return client.jobs.get(job_id, job_key=job_key)

    def row(self, job_id: int) -> dict[str, Any]:
        (row,) = self.run("select * from _private_jobs where id = %s", job_id)
        return row

    def ids(self) -> list[int]:
        return [row["id"] for row in self.run("select id from _private_jobs order by id")]

    def holder(self, job_id: int) -> str | None:
        return cast("str | None", self.row(job_id)["locked_by"])

    def queue_holder(self, name: str) -> str | None:
        (row,) = self.run("select locked_by, is_available from _private_job_queues where queue_name = %s", name)
        assert row["is_available"] == (row["locked_by"] is None)
        return cast("str | None", row["locked_by"])

    def now(self) -> datetime:
        return cast(datetime, self.run("select clock_timestamp() as now")[0]["now"])


def a_failure(job: Job, message: str = "Boom: it broke", **options: Any) -> Failed:
    return Failed(job, 0.1, RuntimeError(message), message, **options)
