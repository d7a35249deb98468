"""The events of workers, threads, jobs and processes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar

from gw_core.domain.job.cancellation import StopReason
from gw_core.domain.job.job import Job, JobSpec
from gw_core.domain.job.outcome import Outcome
from gw_core.domain.rules.event_bus import Event, WorkerEvent
from gw_core.domain.rules.settings import PoolerMode
from gw_core.domain.rules.sweep_rules import RecoverySettings

# -- worker (the process) --------------------------------------------------------------------------------------------


class PoolStarted(WorkerEvent, frozen=True):
    """A worker starts to claim jobs of `tasks`.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "pool:create"
    tasks: Sequence[str]
    concurrency: int


class PoolListening(WorkerEvent, frozen=True):
    """The worker receives notifications of new jobs, for the first time or after a reconnect."""

    name: ClassVar[str] = "pool:listen:success"


class PoolConnectionLost(WorkerEvent, frozen=True):
    """A database `operation` (such as "claim jobs") failed; the worker retries it, first after `delay`.

    It is emitted again, after some `attempts`, when the operation fails for a reason of another kind.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "pool:listen:error"
    operation: str
    error: Exception
    delay: timedelta
    attempts: int = 0


class PoolConnectionRestored(WorkerEvent, frozen=True):
    """The `operation` succeeded again after `attempts` failed attempts.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "pool:connection:restored"
    operation: str
    attempts: int


class PoolListenLost(WorkerEvent, frozen=True):
    """The worker receives no notifications because of `error`, and polls. Emitted once until it listens again."""

    name: ClassVar[str] = "pool:listen:lost"
    error: Exception


class PoolListenRestored(WorkerEvent, frozen=True):
    """The worker receives notifications of new jobs again."""

    name: ClassVar[str] = "pool:listen:restored"


class PoolerDetected(Event, frozen=True):
    """The connection leads through a pooler; with `listens` notifications of new jobs still arrive."""

    name: ClassVar[str] = "pooler:detected"
    mode: PoolerMode
    listens: bool
    poll_interval: timedelta


class PoolNotified(WorkerEvent, frozen=True):
    """A notification of `count` new jobs arrived."""

    name: ClassVar[str] = "pool:listen:notification"
    count: int


class PoolClaimed(WorkerEvent, frozen=True):
    """A claim locked `jobs`."""

    name: ClassVar[str] = "pool:getJobs:complete"
    jobs: Sequence[Job]


class ClaimEmpty(WorkerEvent, frozen=True):
    """A claim found no job that can run now. Emitted once until a claim finds one again."""

    name: ClassVar[str] = "worker:getJob:empty"


class PoolStopping(WorkerEvent, frozen=True):
    """The worker claims no more jobs and waits for `running` jobs to finish.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "pool:gracefulShutdown"
    reason: str
    running: int


class PoolInterrupting(WorkerEvent, frozen=True):
    """The grace period ended, or a signal ended it: the worker returns `jobs`, which are still running."""

    name: ClassVar[str] = "pool:forcefulShutdown"
    jobs: Sequence[Job]


class PoolStopped(WorkerEvent, frozen=True):
    """The worker stopped. Jobs stay locked only by `unsettled` outcomes and by a claim whose answer is missing.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "pool:release"
    unsettled: int
    has_unknown_claim: bool = False
    """Whether a claim whose answer did not arrive may have locked jobs; the worker's heartbeat stays for a sweep."""


class LocksReset(WorkerEvent, frozen=True):
    """Expired locks, older than four hours, were released: of `jobs` jobs and `queues` queues."""

    name: ClassVar[str] = "resetLocked:success"
    jobs: int
    queues: int


class UnknownLocksReleased(WorkerEvent, frozen=True):
    """The worker released `jobs` jobs and `queues` queues that it had locked without knowing: an answer was lost."""

    name: ClassVar[str] = "pool:unknownLocksReleased"
    jobs: int
    queues: int


class MaintenanceFailed(Event, frozen=True):
    """A maintenance service failed; it runs again at its next interval."""

    name: ClassVar[str] = "maintenance:error"
    service: str
    error: Exception


class FailedJobsDeleted(Event, frozen=True):
    """The worker deleted `jobs` jobs that failed permanently longer than `keep_failed` ago."""

    name: ClassVar[str] = "maintenance:failedJobsDeleted"
    jobs: int


class RecoveryConfigured(WorkerEvent, frozen=True):
    """A worker started to send heartbeats; it also sweeps, unless `recovery` is None."""

    name: ClassVar[str] = "worker:recovery:configured"
    recovery: RecoverySettings | None


class HeartbeatFailed(WorkerEvent, frozen=True):
    """A heartbeat could not be written; the worker retries. Emitted once until a heartbeat succeeds."""

    name: ClassVar[str] = "worker:heartbeat:error"
    error: Exception


class HeartbeatRestored(WorkerEvent, frozen=True):
    """A heartbeat succeeded after `attempts` failed attempts."""

    name: ClassVar[str] = "worker:heartbeat:restored"
    attempts: int


class HeartbeatLate(WorkerEvent, frozen=True):
    """A heartbeat came later than a sweep tolerates; with `presumed_dead` a sweep has recovered the worker's jobs."""

    name: ClassVar[str] = "worker:heartbeat:late"
    heartbeat_age: timedelta
    presumed_dead: bool


class WorkersRecovered(Event, frozen=True):
    """A sweep recovered `jobs` jobs and released `queues` queues of dead `workers`.

    With no `workers`, the queues were locked without a job. `worker_id` is the worker that swept, or None for a sweep
    by `gw sweep` or a client.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "worker:recovery"
    worker_id: str | None
    workers: Sequence[str]
    jobs: int
    queues: int


class RecoveryHookFailed(Event, frozen=True):
    """A plugin raised an error for a job of a dead worker; the job is recovered as usual."""

    name: ClassVar[str] = "worker:recovery:hookError"
    job: Job
    error: Exception


class WorkerCrashed(Event, frozen=True):
    """A thread of the worker, outside tasks, ended by `error`; the worker stops with exit code 1.

    `worker_id` is None if the worker had not started.
    """

    name: ClassVar[str] = "worker:fatalError"
    worker_id: str | None
    thread: str
    error: BaseException


class BreakingMigrationDetected(WorkerEvent, frozen=True):
    """Another process installed a migration that this version does not support; the worker exits with code 57."""

    name: ClassVar[str] = "worker:migrate"
    revision: int


# -- worker threads ------------------------------------------------------------------------------------------------


class WorkerStarted(WorkerEvent, frozen=True):
    """A worker thread started."""

    name: ClassVar[str] = "worker:create"
    thread: str


class WorkerStopped(WorkerEvent, frozen=True):
    """A worker thread ended."""

    name: ClassVar[str] = "worker:stop"
    thread: str


class TasksReloaded(Event, frozen=True):
    """Changed task files were reloaded; `errors` lists the files that could not be loaded."""

    name: ClassVar[str] = "tasks:reload"
    tasks: Sequence[str]
    errors: Sequence[str]


# -- job -----------------------------------------------------------------------------------------------------------


class JobAdded(Event, frozen=True):
    """This library added a job. `job_id` is None if the job was added in bulk, or skipped by a plugin.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:add"
    spec: JobSpec
    job_id: int | None


class JobStarted(WorkerEvent, frozen=True):
    """A worker thread starts to run the job.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:start"
    thread: str
    job: Job


class JobSucceeded(WorkerEvent, frozen=True):
    """The task returned; the job is not deleted yet (see `JobCompleted`).

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:success"
    thread: str
    job: Job
    seconds: float


class JobErrored(WorkerEvent, frozen=True):
    """The task raised `error`, or the job expired; the failure may not be recorded yet (see `JobCompleted`).

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:error"
    thread: str
    job: Job
    error: BaseException
    seconds: float


class JobFailed(WorkerEvent, frozen=True):
    """The task raised `error` in the last attempt, or the job expired: the job has failed permanently.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:failed"
    thread: str
    job: Job
    error: BaseException


class JobCompleted(WorkerEvent, frozen=True):
    """The outcome of the run, success (`error` is None) or failure, is recorded in the database.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:complete"
    job: Job
    error: BaseException | None


class JobCancelling(WorkerEvent, frozen=True):
    """An operator cancelled the running job; `message` becomes its last error.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:cancelling"
    job: Job
    message: str


class JobOverran(WorkerEvent, frozen=True):
    """A task still runs although it was stopped: its timeout has passed, or its job was cancelled (`reason`).

    Its thread is busy and its job stays locked until the task returns; then the attempt fails.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:overran"
    thread: str
    job: Job
    reason: StopReason


class JobReturned(WorkerEvent, frozen=True):
    """The worker returned the job to the queue because of `reason`; the attempt is not counted.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:returned"
    job: Job
    reason: str


class JobRecovered(Event, frozen=True):
    """A sweep recovered the job from the dead worker `worker_id`; `job` is its state before the sweep.

    `recovered_by` is the worker that swept, or None for a sweep by `gw sweep` or a client.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:recovered"
    job: Job
    worker_id: str
    reason: str
    recovered_by: str | None


class JobLockLost(WorkerEvent, frozen=True):
    """A job ended or was returned after its lock was lost, to a sweep for example; nothing was recorded.

    With `in_doubt` the outcome was sent before, and the answer was lost: it is unknown whether it was recorded.

    Example: docs/reference/events.md
    """

    name: ClassVar[str] = "job:lockLost"
    job: Job
    in_doubt: bool = False


class JobResultRejected(WorkerEvent, frozen=True):
    """A trigger, constraint or policy rejected the outcome; the worker retries, and the job stays locked."""

    name: ClassVar[str] = "job:resultRejected"
    job: Job
    error: Exception


class JobsSettled(WorkerEvent, frozen=True):
    """A batch of outcomes was settled: `outcomes` were recorded, `lost` were discarded because the lock was lost.

    With `in_doubt` it is unknown whether those in `lost` were recorded.
    Emitted once for each batch, so that the log of a busy worker costs little.
    """

    name: ClassVar[str] = "jobs:settled"
    outcomes: Sequence[Outcome]
    lost: Sequence[Outcome]
    in_doubt: bool = False


# -- process -------------------------------------------------------------------------------------------------------


class SignalReceived(Event, frozen=True):
    """A termination signal arrived. The first requests a graceful stop.

    Those that follow within five seconds belong to it (`repeated`); later ones request an immediate stop (`forced`).
    """

    name: ClassVar[str] = "gracefulShutdown"
    signal: str
    forced: bool
    repeated: bool = False


class ProbeStarted(Event, frozen=True):
    """The probe server listens on `host` and `port`; with `metrics` it also serves metrics."""

    name: ClassVar[str] = "probe:start"
    host: str
    port: int
    metrics: bool


class RunnerStarted(Event, frozen=True):
    """The runner reached its schema and is about to start its worker.

    `database` describes the connection without its password. `crontab` is the file of the cron items, if any.
    `unknown_tasks` are the tasks of cron items that this worker does not have. `load_errors` is the number of task
    files that could not be loaded.
    """

    name: ClassVar[str] = "start"
    database: str
    schema: str
    crontab: str | None
    crontab_items: int
    unknown_tasks: Sequence[str]
    load_errors: int


class RunnerStopped(Event, frozen=True):
    """The runner stopped because of `reason`."""

    name: ClassVar[str] = "stop"
    reason: str


# -- worker processes under a supervisor -------------------------------------------------------------------------------


class SupervisorStarted(Event, frozen=True):
    """A supervisor starts `processes` worker processes, one first to check that they can run."""

    name: ClassVar[str] = "supervisor:start"
    processes: int


class ProcessReady(Event, frozen=True):
    """Process `number`, with the process id `pid`, starts to claim jobs."""

    name: ClassVar[str] = "process:ready"
    number: int
    pid: int


class ProcessEnded(Event, frozen=True):
    """Process `number` exited for `exit_reason`. It restarts after `restart_in`, or not if that is None.

    `graceful` means that the exit was requested, or that the process reached one of its recycling limits.
    `stops_all` means that the supervisor stops the other processes too.
    """

    name: ClassVar[str] = "process:end"
    number: int
    pid: int
    exit_reason: str
    graceful: bool
    restart_in: timedelta | None
    stops_all: bool = False


class SupervisorGaveUp(Event, frozen=True):
    """Process `number` exited in a way that a restart cannot fix; the supervisor stops all processes."""

    name: ClassVar[str] = "supervisor:gaveUp"
    number: int
    reason: str
    exit_code: int


class ProcessesKilled(Event, frozen=True):
    """The processes `numbers` ran on after the grace period and were killed; their jobs are still locked."""

    name: ClassVar[str] = "process:kill"
    numbers: tuple[int, ...]


class SupervisorStopped(Event, frozen=True):
    """All processes have exited."""

    name: ClassVar[str] = "supervisor:stop"
    reason: str
    exit_code: int
