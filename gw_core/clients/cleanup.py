"""Delete what is no longer needed: permanently failed jobs, unused queues and unused task identifiers."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from gw_core.clients.verbs import Part, R, blocking, iterating
from gw_core.domain.job.job import named
from gw_core.postgres.road.bulk_actions import BATCH
from gw_core.postgres.schema.cleanup import CleanupTarget, Deletion


class Cleanup(Part[R]):
    """Deletes in batches, each a transaction of its own; `client.cleanup` is one."""

    @blocking
    def count(
        self,
        target: CleanupTarget | str,
        keep: Collection[str] = (),
        *,
        after: Collection[CleanupTarget] = (),
    ) -> int:
        """Return how many rows `delete` would delete now, and change nothing; task identifiers in `keep` do not count.

        `after` names what would be deleted first: a failed job may be the last one of its task or queue.
        """
        return Deletion(self._connections, self._schema).count(_target(target), keep, after=after)

    @blocking
    def delete(self, target: CleanupTarget | str, keep: Collection[str] = ()) -> int:
        """Delete it, and return how much that was; if a call raises, its deletions stay.

        A task identifier stays when it is in `keep`, or when a live worker reports it: workers cache the
        ids of their tasks, and would never again find jobs of one that was deleted. Workers without heartbeats, such as
        Node.js ones, cannot be asked: name their tasks in `keep`.
        """
        return sum(Deletion(self._connections, self._schema).delete(_target(target), keep))

    @iterating
    def delete_in_batches(
        self, target: CleanupTarget | str, keep: Collection[str] = (), *, size: int = BATCH
    ) -> Iterator[int]:
        """As `delete`, and yield after each batch of up to `size` rows how many were deleted."""
        return Deletion(self._connections, self._schema, size).delete(_target(target), keep)


def _target(target: CleanupTarget | str) -> CleanupTarget:
    return named(CleanupTarget, target, "a target of cleanup")
