"""Which jobs a worker may claim: of which tasks, without which flags, within which limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from gw_core.domain.errors import DatabaseError, GraphileWorkerError
from gw_core.domain.reports.left_jobs import LeftJob, reason_to_end
from gw_core.domain.rules.event_bus import Events
from gw_core.domain.rules.events import MaintenanceFailed
from gw_core.domain.rules.only import Only
from gw_core.domain.rules.settings import WorkerSettings
from gw_core.postgres.road.claims import ClaimOptions, Claims, ClaimsOfQueues
from gw_core.postgres.road.job_store import JobStore
from gw_core.worker.claim_gates import Gate, Gates
from gw_core.worker.pauses import CurrentPauses

ForbiddenFlags = Sequence[str] | Callable[[], Sequence[str] | None] | None
"""Flags whose jobs are not claimed: fixed, or returned by a function that each claim calls."""

TASK_LOOKUP_INTERVAL: Final = 60.0
"""Seconds: a cleanup elsewhere may delete an unused task identifier, which comes back with another id."""


class ForbiddenFlagsError(GraphileWorkerError):
    """The user's function that names the forbidden flags failed."""


class ClaimPolicy:
    """The tasks of this worker, its pauses, limits and forbidden flags. The thread that claims uses it.

    Other threads may call `request_rules` and read `has_full_limit`.
    """

    def __init__(
        self,
        *,
        worker_id: str,
        settings: WorkerSettings,
        task_names: Callable[[], Sequence[str]],
        forbidden_flags: ForbiddenFlags,
        pauses: CurrentPauses,
        events: Events,
    ) -> None:
        self._worker_id = worker_id
        self._settings = settings
        self._task_names = task_names
        self._forbidden_flags = forbidden_flags
        self._pauses = pauses
        self._events = events
        self._only = Only.parse(settings.only)
        self._gates = Gates(self._report_unusable_limit, self._only)
        self._store: JobStore | None = None
        self._of_queues: ClaimsOfQueues | None = None
        self._tasks: Mapping[int, str] = {}
        self._registered: Sequence[str] = ()
        self._registered_at = 0.0
        self.rejections = 0
        """How often in a row the function for forbidden flags has failed."""

    # -- tasks and rules in the database -----------------------------------------------------------------------------

    def use(self, store: JobStore) -> bool:
        """Claim with this store from now on, with the current tasks; return whether it is another one than before."""
        is_new = store is not self._store
        if is_new:
            self._store, self._registered = store, ()
            self._of_queues = ClaimsOfQueues(store.connection, store.schema, self._only.queues)
            self._pauses.request()
            self._gates.reset()
        names = self._task_names()
        if names is not self._registered or time.monotonic() - self._registered_at > TASK_LOOKUP_INTERVAL:
            self._tasks = store.register_tasks(names)
            self._registered, self._registered_at = names, time.monotonic()
        return is_new

    def request_rules(self) -> None:
        """Request a read of pauses and limits before the next claim; from any thread."""
        self._pauses.request()

    def read_rules(self, store: JobStore) -> bool:
        """Read pauses and limits when they may have changed; return whether they have."""
        if self._pauses.due_in(time.monotonic()) > 0:
            return False
        if not self._pauses.read(store.connection, store.schema):
            return False
        store.claims.skip_ahead.restart_scan()
        self._gates.reset()
        return True

    def rules_due_in(self, now: float) -> float:
        """Return the seconds until the rules must be read again."""
        return self._pauses.due_in(now)

    # -- what a claim needs to know ----------------------------------------------------------------------------------

    def sources(self, store: JobStore) -> Iterator[tuple[Claims | ClaimsOfQueues | Gate, Mapping[int, str]]]:
        """Yield what claims, with the tasks: all without a limit together, each one with a limit alone.

        Which of the two comes first changes with each claim. Paused tasks are left out: their jobs would only be read.
        """
        allowed = self._pauses.rules.allowed(self._tasks)
        limited = {number: name for number, name in allowed.items() if name in self._pauses.limited}
        others = {number: name for number, name in allowed.items() if number not in limited} if limited else allowed
        are_limited_first = bool(limited or self._only.queues) and self._gates.takes_turn()
        everywhere, in_queues = self._only.split(others)
        if everywhere and not are_limited_first:
            yield store.claims, everywhere
        for number, gate in self._gates.in_turn(store, limited):
            yield gate, {number: limited[number]}
        if in_queues and self._of_queues is not None:
            yield self._of_queues, in_queues
        if everywhere and are_limited_first:
            yield store.claims, everywhere

    def options(self, *, per_queue: int) -> ClaimOptions:
        """Return what all claims of a step have in common. Raises `ForbiddenFlagsError`."""
        return {
            "worker_id": self._worker_id,
            "per_queue": per_queue,
            "forbidden_flags": self._flags(),
            "now": self._client_time(),
            "max_bytes": self._settings.claim_bytes,
        }

    @property
    def has_full_limit(self) -> bool:
        """Whether the end of a job may make room for another one; from any thread."""
        return self._gates.is_full

    @property
    def limits_retry_at(self) -> float:
        """When a limit may have room without a notification, by the monotonic clock."""
        return self._gates.next_at

    def _flags(self) -> Sequence[str] | None:
        paused = self._pauses.rules.flags
        return [*(self._configured_flags() or ()), *paused] if paused else self._configured_flags()

    def _configured_flags(self) -> Sequence[str] | None:
        if not callable(self._forbidden_flags):
            return self._forbidden_flags
        self.rejections += 1
        try:
            flags = self._forbidden_flags()
        except Exception as error:
            # Not knowing what is forbidden, nothing is claimed; user code must not end the thread.
            raise ForbiddenFlagsError(
                f"the function for forbidden flags raised {type(error).__name__}: {error}"
            ) from error
        if isinstance(flags, str):
            raise ForbiddenFlagsError(
                f"the function for forbidden flags returned the text {flags!r}; it must return a list of names"
            )
        self.rejections = 0
        return flags

    def _client_time(self) -> datetime | None:
        return datetime.now(UTC) if self._settings.use_client_time else None

    def _report_unusable_limit(self, message: str) -> None:
        self._events.emit(MaintenanceFailed(service="gw-claim", error=DatabaseError(message)))

    def is_nothing_due(self, store: JobStore) -> bool:
        """Return whether no job is due; false also without having asked."""
        return store.claims.is_nothing_due(self._client_time())

    # -- the end of a single run ---------------------------------------------------------------------------------------

    def is_anything_runnable(self, store: JobStore) -> bool:
        """Return whether a job waits that may be claimed, including one whose row another session locks briefly."""
        closed = self._gates.closed
        allowed = self._pauses.rules.allowed(self._tasks)
        tasks = {number: name for number, name in allowed.items() if number not in closed}
        flags, now, queues = self._flags(), self._client_time(), self._only.queues
        everywhere, in_queues = self._only.split(tasks)
        return store.is_anything_runnable(tasks=everywhere, forbidden_flags=flags, now=now) or (
            bool(in_queues)
            and store.is_anything_runnable(tasks=in_queues, forbidden_flags=flags, now=now, queues=queues)
        )

    def left_jobs(self, store: JobStore) -> Sequence[LeftJob]:
        """Return the first jobs that are due and that no worker has claimed, whether or not they may be claimed."""
        now = self._client_time()
        everywhere, in_queues = self._only.split(self._tasks)
        left = store.list_left_jobs(tasks=everywhere, now=now)
        if in_queues:
            left += store.list_left_jobs(tasks=in_queues, now=now, queues=self._only.queues)
        return left

    def reason_to_end(self, left: Sequence[LeftJob]) -> str:
        """Return why a run ends now that leaves these jobs."""
        closed = {self._tasks[number]: why for number, why in self._gates.closed.items() if number in self._tasks}
        return reason_to_end(left, pauses=self._pauses.rules, closed_limits=closed)
