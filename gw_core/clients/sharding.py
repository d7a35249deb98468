"""Add jobs to queues on several databases, each job to the database that its key selects."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack, ExitStack
from typing import Any, Generic, Self, TypeVar, Unpack

from gw_core.domain.errors import InvalidInputError
from gw_core.domain.job.job import Job, JobOptions, JobSpec, job_spec, job_specs

ShardKey = Callable[[JobSpec], str | int]
"""Returns the key of a job: jobs with the same key go to the same database."""

Q = TypeVar("Q")


class _Shards(Generic[Q]):
    """Queues on several databases, by name.

    Everything but adding happens on one database: `shards["eu"]` is its client.
    A database that is unavailable affects only the jobs that belong there.
    """

    def __init__(self, shards: Mapping[str, Q], *, by: ShardKey) -> None:
        if not shards:
            raise InvalidInputError("give at least one shard, as {name: connection}")
        self.shards: Mapping[str, Q] = dict(shards)
        self._clients: Mapping[str, Any] = self.shards
        self._by = by

    def shard_for(self, key: str | int) -> str:
        """Return the name of the shard that a key belongs to.

        Depends on the names alone. When a shard is added, only the keys that move to it change their shard.
        """
        return max(self.shards, key=lambda name: (_weight(name, key), name))

    def _of(self, spec: JobSpec) -> Any:
        return self._clients[self.shard_for(self._by(spec))]

    def _by_shard(self, specs: Iterable[JobSpec]) -> dict[str, list[JobSpec]]:
        found: dict[str, list[JobSpec]] = {}
        for spec in job_specs(specs):
            found.setdefault(self.shard_for(self._by(spec)), []).append(spec)
        return found


class ShardedClient(_Shards[Q]):
    """Queues on several databases; `Client.sharded()` makes one. Safe to share between threads.

    Everything but adding happens on one database: `shards["eu"]` is its `Client`.
    A database that is unavailable affects only the jobs that belong there.

    Example: docs/api/gw_core.md
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all clients, even if one raises."""
        with ExitStack() as stack:
            for each in self._clients.values():
                stack.enter_context(each)

    def add(
        self, task: str | JobSpec | Callable[..., object], payload: Any = None, **options: Unpack[JobOptions]
    ) -> Job:
        """Add a job to the shard of its key, as `Client.add` does.

        To add one in your own transaction, use the client of that database: `shards[name].add(…, conn=…)`.
        """
        spec = job_spec(task, payload, **options)
        job: Job = self._of(spec).add(spec)
        return job

    def add_many(self, specs: Iterable[JobSpec]) -> dict[str, list[int]]:
        """Add jobs and return their ids by shard: all or none within each shard, but not across shards."""
        return {name: self._clients[name].add_many(each) for name, each in self._by_shard(specs).items()}


class AsyncShardedClient(_Shards[Q]):
    """As `ShardedClient`, for event loops; `AsyncClient.sharded()` makes one.

    Example: docs/api/gw_core.md
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all clients, even if one raises."""
        async with AsyncExitStack() as stack:
            for each in self._clients.values():
                await stack.enter_async_context(each)

    async def add(
        self, task: str | JobSpec | Callable[..., object], payload: Any = None, **options: Unpack[JobOptions]
    ) -> Job:
        """Add a job to the shard of its key; see `ShardedClient.add`."""
        spec = job_spec(task, payload, **options)
        job: Job = await self._of(spec).add(spec)
        return job

    async def add_many(self, specs: Iterable[JobSpec]) -> dict[str, list[int]]:
        """Add jobs and return their ids by shard; see `ShardedClient.add_many`."""
        return {name: await self._clients[name].add_many(each) for name, each in self._by_shard(specs).items()}


def _weight(name: str, key: str | int) -> bytes:
    return hashlib.blake2b(f"{name}\0{key}".encode(), digest_size=8).digest()
