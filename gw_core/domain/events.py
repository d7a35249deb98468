"""What happens in the life of a pool, a worker and a job, and who wants to hear of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, ClassVar, TypeVar

import msgspec

from gw_core.domain.job import Job, JobSpec
from gw_core.domain.outcome import Outcome
from gw_core.domain.recovery import RecoverySettings
from gw_core.domain.settings import PoolerMode


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened; `name` is the ancestor's word for it where it has one."""

    name: ClassVar[str] = "event"


# -- pool ----------------------------------------------------------------------------------------------------------


class PoolStarted(Event, frozen=True):
    """A pool begins to look for jobs of `tasks`."""

    name: ClassVar[str] = "pool:create"
    pool: str
    tasks: Sequence[str]
    concurrency: int


class PoolListening(Event, frozen=True):
    """The pool hears of new jobs at once, for the first time or again after a lost connection."""

    name: ClassVar[str] = "pool:listen:success"
    pool: str


class PoolConnectionLost(Event, frozen=True):
    """The database cannot be used for `what` (claim, settle, …); the pool goes on trying, first after `delay`."""

    name: ClassVar[str] = "pool:listen:error"
    pool: str
    what: str
    error: Exception
    delay: timedelta


class PoolConnectionRestored(Event, frozen=True):
    """The database can be used again for `what`, after `attempts` tries."""

    name: ClassVar[str] = "pool:connection:restored"
    pool: str
    what: str
    attempts: int


class PoolListenLost(Event, frozen=True):
    """The pool does not hear of new jobs and finds them by polling, for `error`; told once until it hears again."""

    name: ClassVar[str] = "pool:hearing:lost"
    pool: str
    error: Exception


class PoolListenRestored(Event, frozen=True):
    """The pool hears of new jobs again."""

    name: ClassVar[str] = "pool:hearing:restored"
    pool: str


class PoolerDetected(Event, frozen=True):
    """A pooler stands between this process and the database; with `listens` new jobs are heard of all the same."""

    name: ClassVar[str] = "pooler:noticed"
    mode: PoolerMode
    listens: bool
    poll_interval: timedelta


class PoolNotified(Event, frozen=True):
    """A notification of `count` new jobs arrived."""

    name: ClassVar[str] = "pool:listen:notification"
    pool: str
    count: int


class PoolClaimed(Event, frozen=True):
    """A claim took `jobs`."""

    name: ClassVar[str] = "pool:getJobs:complete"
    pool: str
    jobs: Sequence[Job]


class PoolStopping(Event, frozen=True):
    """The pool claims no more and lets running jobs end."""

    name: ClassVar[str] = "pool:gracefulShutdown"
    pool: str
    reason: str
    running: int


class PoolInterrupting(Event, frozen=True):
    """The grace period ended, or a second signal came: `jobs` that still run are given back."""

    name: ClassVar[str] = "pool:forcefulShutdown"
    pool: str
    jobs: Sequence[Job]


class PoolStopped(Event, frozen=True):
    """The pool has ended; nothing of it is locked any more, unless `unsettled` outcomes could not be written."""

    name: ClassVar[str] = "pool:release"
    pool: str
    unsettled: int


class LocksReset(Event, frozen=True):
    """Locks older than four hours were freed: `jobs` jobs and `queues` queues."""

    name: ClassVar[str] = "resetLocked:success"
    pool: str
    jobs: int
    queues: int


class MaintenanceFailed(Event, frozen=True):
    """A round of a maintenance service failed and will be repeated."""

    name: ClassVar[str] = "maintenance:error"
    service: str
    error: Exception


class RecoveryConfigured(Event, frozen=True):
    """A lasting worker has begun to give signs of life; with `recovery` it sweeps as well."""

    name: ClassVar[str] = "worker:recovery:announced"
    pool: str
    recovery: RecoverySettings | None


class HeartbeatFailed(Event, frozen=True):
    """No heartbeat can be written; it is tried again. Told once until one succeeds."""

    name: ClassVar[str] = "worker:heartbeat:error"
    pool: str
    error: Exception


class HeartbeatRestored(Event, frozen=True):
    """Heartbeats are written again, after `attempts` tries in vain."""

    name: ClassVar[str] = "worker:heartbeat:restored"
    pool: str
    attempts: int


class HeartbeatLate(Event, frozen=True):
    """The pool was silent for longer than a sweep tolerates; with `presumed_dead` one has taken its jobs."""

    name: ClassVar[str] = "worker:heartbeat:late"
    pool: str
    silent_for: timedelta
    presumed_dead: bool


class WorkersRecovered(Event, frozen=True):
    """A sweep gave back `jobs` jobs and freed `queues` queues of silent workers; `pool` is None for one by hand."""

    name: ClassVar[str] = "worker:recovery"
    pool: str | None
    workers: Sequence[str]
    jobs: int
    queues: int


class RecoveryHookFailed(Event, frozen=True):
    """A plugin raised when asked about a job of a silent worker; the job goes the usual way."""

    name: ClassVar[str] = "worker:recovery:hookError"
    job: Job
    error: Exception


class BreakingMigrationDetected(Event, frozen=True):
    """Somebody installed a migration this version does not know; the pool stops with exit code 57."""

    name: ClassVar[str] = "worker:migrate"
    pool: str
    revision: int


# -- worker --------------------------------------------------------------------------------------------------------


class WorkerStarted(Event, frozen=True):
    """A worker thread is ready."""

    name: ClassVar[str] = "worker:create"
    pool: str
    worker: str


class WorkerStopped(Event, frozen=True):
    """A worker thread has ended."""

    name: ClassVar[str] = "worker:stop"
    pool: str
    worker: str


class TasksReloaded(Event, frozen=True):
    """Changed task files were read again; `faults` tells which could not be."""

    name: ClassVar[str] = "tasks:reload"
    tasks: Sequence[str]
    faults: Sequence[str]


# -- job -----------------------------------------------------------------------------------------------------------


class JobAdded(Event, frozen=True):
    """A job was added through this library; `job` is None when the spec was sent in a bulk that returns ids only."""

    name: ClassVar[str] = "job:add"
    spec: JobSpec
    job_id: int | None


class JobStarted(Event, frozen=True):
    """A worker begins to run the job."""

    name: ClassVar[str] = "job:start"
    worker: str
    job: Job


class JobSucceeded(Event, frozen=True):
    """The task returned; the job is not yet deleted (see `JobCompleted`)."""

    name: ClassVar[str] = "job:success"
    worker: str
    job: Job
    seconds: float


class JobErrored(Event, frozen=True):
    """The task raised `error`; the failure is not yet written (see `JobCompleted`)."""

    name: ClassVar[str] = "job:error"
    worker: str
    job: Job
    error: BaseException
    seconds: float


class JobFailed(Event, frozen=True):
    """The task raised `error` in the last attempt: the job has failed for good."""

    name: ClassVar[str] = "job:failed"
    worker: str
    job: Job
    error: BaseException


class JobCompleted(Event, frozen=True):
    """The result of the run, success (`error` None) or failure, has been written to the database."""

    name: ClassVar[str] = "job:complete"
    pool: str
    job: Job
    error: BaseException | None


class JobCancelling(Event, frozen=True):
    """Somebody cancelled the job, and its task is told; `message` is what its last error will say."""

    name: ClassVar[str] = "job:cancelling"
    pool: str
    job: Job
    message: str


class JobReturned(Event, frozen=True):
    """The job was given back with its attempt uncounted, for `reason`."""

    name: ClassVar[str] = "job:returned"
    pool: str
    job: Job
    reason: str


class JobRecovered(Event, frozen=True):
    """A sweep took the job, here as it was held, from `worker`, which went silent."""

    name: ClassVar[str] = "job:interrupted"
    job: Job
    worker: str
    reason: str


class JobLockLost(Event, frozen=True):
    """The run ended, but the job was no longer ours: swept, unlocked or ended by another; nothing was changed."""

    name: ClassVar[str] = "job:lost"
    pool: str
    job: Job


class JobResultRejected(Event, frozen=True):
    """A trigger, constraint or policy of yours refuses how a run ended; it is tried again, and the job stays locked."""

    name: ClassVar[str] = "job:resultRefused"
    pool: str
    job: Job
    error: Exception


class JobsSettled(Event, frozen=True):
    """One settling round: `outcomes` were written, `lost` were no longer ours.

    Made once a round and not once a job, so that a busy pool's log costs little.
    """

    name: ClassVar[str] = "jobs:settled"
    pool: str
    outcomes: Sequence[Outcome]
    lost: Sequence[Outcome]


# -- process -------------------------------------------------------------------------------------------------------


class SignalReceived(Event, frozen=True):
    """A termination signal arrived; the first asks to stop, the second to stop at once."""

    name: ClassVar[str] = "gracefulShutdown"
    signal: str
    forced: bool


class ProbeStarted(Event, frozen=True):
    """Probes are answered over HTTP on `host` and `port`, and with `metrics` scrapes as well."""

    name: ClassVar[str] = "probe:start"
    host: str
    port: int
    metrics: bool


class RunnerStopped(Event, frozen=True):
    """The runner has ended, for `reason`."""

    name: ClassVar[str] = "stop"
    reason: str


E = TypeVar("E", bound=Event)
Listener = Callable[[E], object]
_AnyListener = Callable[[Any], object]


class Events:
    """Where listeners subscribe and services tell.

    A listener runs in the thread that tells, one after the other in order of subscription; one that raises is reported
    to `on_error` and harms nobody. Subscribing is safe from any thread: the tuple is replaced, never changed.
    """

    def __init__(self, on_error: Callable[[Event, Exception], None] | None = None) -> None:
        self._listeners: dict[str, tuple[_AnyListener, ...]] = {}
        self._everything: tuple[_AnyListener, ...] = ()
        self.on_error = on_error

    def on(self, kind: type[E] | str, listener: Listener[E] | None = None) -> Any:
        """Call `listener` for every event of `kind`: a class, its name such as "job:failed", or "*" for all.

        Without a listener, works as a decorator. Returns a function that ends the subscription (the decorator returns
        the listener itself). Raises `ValueError` for a name that no event has.
        """
        if listener is None:

            def decorate(function: Listener[E]) -> Listener[E]:
                self.on(kind, function)
                return function

            return decorate
        name = kind if isinstance(kind, str) else kind.name
        if name == "*":
            self._everything = (*self._everything, listener)
            return lambda: self._forget_everything(listener)
        if name not in EVENT_TYPES:
            raise ValueError(f"there is no event {name!r}; known are {', '.join(sorted(EVENT_TYPES))}")
        self._listeners[name] = (*self._listeners.get(name, ()), listener)
        return lambda: self._forget(name, listener)

    def wants(self, kind: type[Event]) -> bool:
        """True when somebody listens; a busy path asks before it builds the event."""
        return bool(self._everything) or kind.name in self._listeners

    def emit(self, event: Event) -> None:
        """Tell everybody who listens."""
        for listener in (*self._listeners.get(event.name, ()), *self._everything):
            try:
                listener(event)
            except Exception as error:  # noqa: BLE001 - user code; reported, and the job's road goes on
                self._report(event, error)

    def _report(self, event: Event, error: Exception) -> None:
        if self.on_error is not None:
            self.on_error(event, error)

    def _forget(self, name: str, listener: _AnyListener) -> None:
        left = tuple(each for each in self._listeners.get(name, ()) if each is not listener)
        if left:
            self._listeners[name] = left
        else:
            self._listeners.pop(name, None)

    def _forget_everything(self, listener: _AnyListener) -> None:
        self._everything = tuple(each for each in self._everything if each is not listener)


def _all_event_types(root: type[Event]) -> dict[str, type[Event]]:
    found: dict[str, type[Event]] = {}
    for kind in root.__subclasses__():
        found[kind.name] = kind
        found.update(_all_event_types(kind))
    return found


class _EventTypes(dict[str, type[Event]]):
    """The event classes by name; a name not yet known is looked for once more, for modules imported later."""

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            self.update(_all_event_types(Event))
        return super().__contains__(name)


EVENT_TYPES = _EventTypes(_all_event_types(Event))
"""Every event by its name."""
