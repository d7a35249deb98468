"""Return what this worker has locked in the database without knowing it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from gw_core.domain.errors import PermissionDeniedError
from gw_core.domain.job.job import Job
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import UnknownLocksReleased
from gw_core.postgres.connection.error_mapping import was_rolled_back
from gw_core.postgres.road.job_store import JobStore
from gw_core.worker.ledger import Ledger

CHECK_INTERVAL: Final = 60.0
"""Seconds between two checks while this worker has locks."""

RETRY_INTERVAL: Final = 1.0
"""Seconds until the next check while the session of a lost claim has not ended."""

END_TIMEOUT: Final = 0.2
"""Seconds for which a check waits until a session has ended; most take a few milliseconds."""

UNKNOWN_TIMEOUT: Final = 1200.0
"""Seconds after which a lost claim is too late where its session cannot be seen, as behind a pooler: TCP gives up a
request that it cannot deliver after 16 minutes."""


class OwnLocks:
    """Compares the worker's locks in the database with its ledger. The thread that claims uses it.

    A lock that the ledger does not know belongs to a claim whose answer was lost or that arrived late, or another
    session gave it to this worker. Its age does not matter: only the thread that claims adds to the ledger, and it does
    not claim while it checks, so no thread runs such a job or will. Outcomes may be written at the same time, because
    the ledger is read before the database, and it forgets a claim after its outcome was written.
    Other threads read `is_in_doubt` and `may_hold`, which may be late.
    """

    def __init__(self, *, worker_id: str, ledger: Ledger, events: Events) -> None:
        self._worker_id = worker_id
        self._ledger = ledger
        self._events = events
        self._session: int | None = None
        """The server process of the claim under way."""
        self._lost: dict[int, float] = {}
        """The server processes in which a lost claim may still commit, with the end of `UNKNOWN_TIMEOUT`."""
        self.check_at = float("inf")
        """When to check next, by the monotonic clock."""

    # -- claims ------------------------------------------------------------------------------------------------------

    def begin_claim(self, session: int) -> None:
        """Record that a claim is sent to this server process."""
        self._session = session

    def end_claim(self, jobs: Sequence[Job]) -> None:
        """Record that the ledger knows what the claim locked."""
        self._session = None
        if jobs and self.check_at == float("inf"):
            self.check_at = time.monotonic() + CHECK_INTERVAL

    def fail_claim(self, error: BaseException) -> bool:
        """Record that the claim under way failed, if there is one, and return whether there was."""
        session, self._session = self._session, None
        if session is not None and not was_rolled_back(error):
            now = time.monotonic()
            self._lost[session], self.check_at = now + UNKNOWN_TIMEOUT, now
        return session is not None

    @property
    def is_in_doubt(self) -> bool:
        """Whether a claim is under way, or a lost one may still lock jobs."""
        return self._session is not None or bool(self._lost)

    @property
    def may_hold(self) -> bool:
        """Whether this worker may have a lock: it claimed since the last check that found none, or is in doubt."""
        return self._session is not None or self.check_at != float("inf")

    # -- checks ------------------------------------------------------------------------------------------------------

    def check(self, store: JobStore) -> bool:
        """Return what the ledger does not know, and return whether there was anything."""
        began = time.monotonic()
        self.check_at = began + (RETRY_INTERVAL if self._lost else CHECK_INTERVAL)  # if this fails
        # Asked first: what these sessions have committed is visible afterwards.
        ended = {session: self._has_ended(store, session) for session in self._lost}
        known = self._ledger.locked()
        jobs, queues, left = store.return_unknown_jobs(worker_id=self._worker_id, jobs=known.jobs, queues=known.queues)
        self._lost = {
            session: until
            for session, until in self._lost.items()
            if ended[session] is False or (ended[session] is None and began < until)
        }
        if False in ended.values():
            self.check_at = began + RETRY_INTERVAL
        elif self._lost or left or known.jobs or known.queues:
            self.check_at = began + CHECK_INTERVAL
        else:
            self.check_at = float("inf")
        if jobs or queues:
            self._events.emit(UnknownLocksReleased(worker_id=self._worker_id, jobs=len(jobs), queues=queues))
        return bool(jobs or queues)

    def _has_ended(self, store: JobStore, session: int) -> bool | None:
        """End a session; return whether it has ended, None where that cannot be known."""
        deadline = time.monotonic() + END_TIMEOUT
        try:
            while (has_ended := store.end_session(session)) is False and time.monotonic() < deadline:
                time.sleep(0.01)
        except PermissionDeniedError:
            return None
        return has_ended
