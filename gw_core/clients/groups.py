"""Jobs that wait for others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from gw_core.clients.verbs import Part, R, Request, verb
from gw_core.domain.job.group import JobGroup, WaitingGroup
from gw_core.domain.job.job import JobSpec, OnFailure
from gw_core.postgres.road.enqueue import cancelling_groups, waiting_groups


class Groups(Part[R]):
    """Sets of jobs, each with a final job that waits for all of them; `client.groups` is one."""

    @verb
    def add(
        self,
        specs: Iterable[JobSpec],
        *,
        then: JobSpec,
        on_failure: OnFailure | Literal["hold", "cancel", "run"] = OnFailure.HOLD,
        conn: object | None = None,
    ) -> Request[JobGroup]:
        """Add jobs, plus a final job that runs exactly once, when all of them have ended.

        The group's id is that of the last job, which waits as one with `after` does. A member has ended when it
        completed or was removed. `on_failure` decides what happens if one fails permanently: with `hold` the last job
        waits until that member was retried or removed, with `cancel` it is dropped, and with `run` the member counts as
        ended. With `conn` everything belongs to your transaction, as in `add`. A `run_at` of `then` given as a duration
        counts from the end of the last member.
        """
        return Request(self._runtime.adds.add_group(specs, then, on_failure), conn)

    @verb
    def list(
        self,
        job_id: int | None = None,
        *,
        job_key: str | None = None,
        limit: int = 1_000,
        conn: object | None = None,
    ) -> Request[Sequence[WaitingGroup]]:
        """Return jobs that wait for others, oldest first: all, a job and its waiting jobs, or the job of a key."""
        return Request(waiting_groups(job_id, job_key, limit), conn)

    @verb
    def cancel(self, *ids: int, by: str | None = None, conn: object | None = None) -> Request[tuple[int, ...]]:
        """Drop these waiting jobs and the jobs that wait for them; return which of the given ids were waiting.

        The jobs that they waited for stay as they are. With `by`, the name of an operator, the action is recorded.
        """
        return Request(cancelling_groups(ids, self._schema, by), conn)
