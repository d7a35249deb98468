"""The named queues."""

from __future__ import annotations

from collections.abc import Sequence

from gw_core.clients.verbs import Part, R, blocking
from gw_core.domain.errors import InvalidInputError
from gw_core.domain.reports.query_results import QueueReport


class Queues(Part[R]):
    """The named queues; `client.queues` is one. `client.pauses` pauses and resumes them."""

    @blocking
    def list(
        self, *, after: str = "", limit: int = 50, only_locked: bool = False, most: int | None = None
    ) -> Sequence[QueueReport]:
        """Return named queues by name, from the one after `after`, or only locked ones.

        The jobs of each are counted up to `most`, by default a thousand.
        """
        if limit < 1:
            raise InvalidInputError(f"a list of {limit} queues is empty; ask for at least 1")
        return self._queries.queues(after=after, limit=limit, only_locked=only_locked, most=most)
