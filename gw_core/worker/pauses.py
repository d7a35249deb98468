"""The rules for claims, as last read: what is paused, and which tasks have a limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from gw_core.domain.rules.pause import NO_PAUSES, PauseRules
from gw_core.postgres.connection.database import Connection
from gw_core.postgres.road.pauses import (
    ClaimRules,
    confirm_claim_rules,
    end_expired_pauses,
    lock_paused_queues,
    read_claim_rules,
)

PAUSED: Final = "its task, queue or flag was paused"
"""Why a claimed job is returned before it starts."""

POLL_SECONDS: Final = 1.0
"""Seconds between two reads of the rules while no notification can arrive."""

REFRESH_SECONDS: Final = 60.0
"""Seconds between two reads while something is paused: the locks of paused queues are renewed then."""

AFTER_END_SECONDS: Final = 0.01
"""Seconds after the end of a pause at which the rules are read again."""


class CurrentPauses:
    """The rules as last read. The claimer's thread calls `read`; any thread may call `request` and read `active`."""

    def __init__(self, worker_id: str, is_listening: Callable[[], bool] = lambda: False) -> None:
        self._worker_id = worker_id
        self._is_listening = is_listening
        self.rules: PauseRules = NO_PAUSES
        self.active: PauseRules | None = None
        """The rules while anything is paused; threads check this before each job."""
        self.limited: frozenset[str] = frozenset()
        """Tasks that have a limit."""
        self._is_requested = True
        self._revision = 0
        self._read_at = float("-inf")
        self._refresh_at = float("inf")

    def request(self) -> None:
        """Request a read before the next claim."""
        self._is_requested = True

    def due_in(self, now: float) -> float:
        """Return the seconds until the rules must be read again, zero or less when that is now."""
        if self._is_requested:
            return 0.0
        polled_at = float("inf") if self._is_listening() else self._read_at + POLL_SECONDS
        return min(polled_at, self._refresh_at) - now

    def read(self, connection: Connection, schema: str) -> bool:
        """Read the rules, apply them and confirm them; True: they differ from those before."""
        is_requested, self._is_requested = self._is_requested, False
        try:
            rules = read_claim_rules(connection, schema)
            if rules.has_expired:
                end_expired_pauses(connection, schema)
            if rules.pauses.queues:
                lock_paused_queues(connection, schema)
            is_changed = rules.revision != self._revision or rules.limited_tasks != self.limited
            self.limited = rules.limited_tasks
            is_changed |= self._apply(rules)
            if rules.revision and (is_requested or rules.revision != self._revision):
                confirm_claim_rules(connection, schema, worker_id=self._worker_id, revision=rules.revision)
            self._revision = rules.revision
        except BaseException:
            self._is_requested = True
            raise
        return is_changed

    def _apply(self, rules: ClaimRules) -> bool:
        """Use the pauses of these rules; return whether they differ from those before."""
        before, self.rules = self.rules, rules.pauses
        self.active = rules.pauses if rules.pauses else None
        self._read_at = now = time.monotonic()
        self._refresh_at = now + REFRESH_SECONDS if rules.pauses else float("inf")
        if rules.seconds_until_end is not None:
            self._refresh_at = min(self._refresh_at, now + rules.seconds_until_end + AFTER_END_SECONDS)
        return rules.pauses != before
