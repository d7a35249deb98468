"""A store on a database of its own, and a plain connection that reads the rows."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import timedelta
from typing import Any, cast

from support.rows import SCHEMA, Rows
from support.waiting import wait_until

from gw_core import Client, Job
from gw_core.domain.job.claim import QueueLock, queue_locks
from gw_core.front_ends import Completed, Database, Failed, Returned
from gw_core.postgres.road.claims import CLAIM_PLAN
from gw_core.postgres.road.job_store import JobStore

SAME_DAY = "select (now() at time zone 'UTC')::date = ((now() + interval '1 minute') at time zone 'UTC')::date"
OURS, THEIRS = "ours", "theirs"
HOUR = timedelta(hours=1)


class Queue(Rows):
    """The job store under test as `store`; everything else arranges rows and reads them."""

    def __init__(self, url: str) -> None:
        super().__init__(url, max_pool_size=1)
        self.store = JobStore(Database(url).connect("test", CLAIM_PLAN), SCHEMA)

    def close(self) -> None:
        self.store.connection.close()
        super().close()

    def add(self, task: str = "mail", payload: object = None, **options: Any) -> int:
        return super().add(task, payload, **options)

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

    def complete(self, *jobs: Job, worker_id: str = OURS, release: Sequence[Job] = ()) -> Set[int]:
        return self.store.complete(
            [Completed(job, 0.1) for job in jobs], worker_id=worker_id, releases=queue_locks(release)
        ).ids

    def fail(self, *failures: Failed, worker_id: str = OURS, release: Sequence[Job] = ()) -> Set[int]:
        return self.store.fail(failures, worker_id=worker_id, releases=queue_locks(release)).ids

    def return_jobs(
        self, *jobs: Job, worker_id: str = OURS, release: Sequence[Job] = (), delay: timedelta = timedelta(0)
    ) -> Set[int]:
        returns = [Returned(job, "asked to", delay) for job in jobs]
        return self.store.return_jobs(returns, worker_id=worker_id, releases=queue_locks(release)).ids

    def locks_of(self, *jobs: Job) -> list[QueueLock]:
        return queue_locks(jobs)

    def renew(self, *jobs: Job) -> Set[int]:
        return self.store.renew_locks(jobs, worker_id=OURS, queues=queue_locks(jobs))[0]

    def return_unknown(self, *known: Job) -> Set[int]:
        return self.store.return_unknown_jobs(worker_id=OURS, jobs=known, queues=queue_locks(known))[0]

    def wait_for_midnight(self) -> None:
        """Wait for the next day by UTC if it begins within a minute: history has a partition for each day."""
        wait_until(lambda: self.value(SAME_DAY), deadline_seconds=120, what="midnight", every=1)

    # -- reading

    def get(self, job_id: int | None = None, *, job_key: str | None = None) -> Job | None:
        with Client(self.url) as client:
            return client.jobs.get(job_id, job_key=job_key)

    def holder(self, job_id: int) -> str | None:
        return cast("str | None", self.job(job_id)["locked_by"])

    def queue_holder(self, name: str) -> str | None:
        (row,) = self.run("select locked_by, is_available from _private_job_queues where queue_name = %s", name)
        assert row["is_available"] == (row["locked_by"] is None)
        return cast("str | None", row["locked_by"])


def a_failure(job: Job, message: str = "Boom: it broke", **options: Any) -> Failed:
    return Failed(job, 0.1, RuntimeError(message), message, **options)
