"""The recurring tasks that the database knows."""

from __future__ import annotations

from collections.abc import Sequence

from gw_core.clients.verbs import Part, R, Request, verb
from gw_core.domain.cron.cron_item import KnownCronItem
from gw_core.postgres.road.cron_store import forgetting, known_items


class Cron(Part[R]):
    """The crontab items that workers have registered; `client.cron` is one."""

    @verb
    def list(self, *, conn: object | None = None) -> Request[Sequence[KnownCronItem]]:
        """Return the crontab items the database has seen, with their last run, in order of their identifiers."""
        return Request(known_items(self._schema), conn)

    @verb
    def forget(
        self, identifier: str, *, by: str | None = None, conn: object | None = None
    ) -> Request[KnownCronItem | None]:
        """Forget a crontab item and return it, or None; a worker that still has it registers it again.

        With `by`, the name of an operator, the action is recorded.
        """
        return Request(forgetting(identifier, self._schema, by), conn)
