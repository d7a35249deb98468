"""Delete what is no longer needed: permanently failed jobs, unused queues and unused task identifiers."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta

from gw_core.clients.verbs import Part, R, blocking, iterating
from gw_core.domain.durations import Duration, as_optional_duration
from gw_core.domain.errors import InvalidInputError
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
        older_than: Duration | None = None,
    ) -> int:
        """Return how many rows `delete` would delete now, and change nothing; task identifiers in `keep` do not count.

        `after` names what would be deleted first: a failed job may be the last one of its task or queue.
        """
        deletion = Deletion(self._connections, self._schema)
        return deletion.count(_target(target), keep, after=after, older_than=_older(older_than))

    @blocking
    def delete(
        self,
        target: CleanupTarget | str,
        keep: Collection[str] = (),
        *,
        older_than: Duration | None = None,
        by: str | None = None,
    ) -> int:
        """Delete it, and return how much that was; if a call raises, its deletions stay.

        With `by`, the name of an operator, the number that each batch deletes is recorded.

        With `older_than`, a failed job stays unless its last failure, and its next attempt if it had had one, are
        longer ago.

        A task identifier stays when it is in `keep`, or when a live worker reports it: workers cache the
        ids of their tasks, and would never again find jobs of one that was deleted. Workers without heartbeats, such as
        Node.js ones, cannot be asked: name their tasks in `keep`.
        """
        deletion = Deletion(self._connections, self._schema)
        return sum(deletion.delete(_target(target), keep, older_than=_older(older_than), by=by))

    @iterating
    def delete_in_batches(
        self,
        target: CleanupTarget | str,
        keep: Collection[str] = (),
        *,
        size: int = BATCH,
        older_than: Duration | None = None,
        by: str | None = None,
    ) -> Iterator[int]:
        """As `delete`, and yield after each batch of up to `size` rows how many were deleted."""
        if size < 1:
            raise InvalidInputError(f"a batch cannot have {size} rows; give at least 1")
        deletion = Deletion(self._connections, self._schema, size)
        return deletion.delete(_target(target), keep, older_than=_older(older_than), by=by)


def _older(older_than: Duration | None) -> timedelta | None:
    return as_optional_duration("older_than", older_than)


def _target(target: CleanupTarget | str) -> CleanupTarget:
    return named(CleanupTarget, target, "a target of cleanup")
