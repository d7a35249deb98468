"""Events of workers, jobs, recurring tasks and processes. Subscribe to them with `gw_core.Events`."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.cron.schedule_events import *
    from gw_core.domain.job.outcome import (
        Completed as Completed,
        Failed as Failed,
        Outcome as Outcome,
        Returned as Returned,
    )
    from gw_core.domain.rules.event_bus import NODE_EVENTS_HERE as NODE_EVENTS_HERE
    from gw_core.domain.rules.events import *
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.cron.schedule_events: CronStarting CronStarted CronBackfill CronPrematureTimer CronOverdueTimer
        gw_core.domain.cron.schedule_events: CronSchedule CronScheduled CronBackfilled CronRunsSkipped CronItemFailed
        gw_core.domain.cron.schedule_events: CronItemsRejected CronFailed CronRestored
        gw_core.domain.job.outcome: Completed Failed Outcome Returned
        gw_core.domain.rules.event_bus: NODE_EVENTS_HERE
        gw_core.domain.rules.events: PoolStarted PoolListening PoolConnectionLost PoolConnectionRestored PoolListenLost
        gw_core.domain.rules.events: PoolListenRestored PoolerDetected PoolNotified PoolClaimed ClaimEmpty PoolStopping
        gw_core.domain.rules.events: PoolInterrupting PoolStopped LocksReset UnknownLocksReleased MaintenanceFailed
        gw_core.domain.rules.events: RecoveryConfigured HeartbeatFailed HeartbeatRestored HeartbeatLate WorkersRecovered
        gw_core.domain.rules.events: RecoveryHookFailed WorkerCrashed BreakingMigrationDetected WorkerStarted
        gw_core.domain.rules.events: WorkerStopped TasksReloaded JobAdded JobStarted JobSucceeded JobErrored JobFailed
        gw_core.domain.rules.events: JobCompleted JobCancelling JobOverran JobReturned JobRecovered JobLockLost
        gw_core.domain.rules.events: JobResultRejected JobsSettled SignalReceived ProbeStarted RunnerStarted
        gw_core.domain.rules.events: RunnerStopped SupervisorStarted ProcessReady ProcessEnded SupervisorGaveUp
        gw_core.domain.rules.events: ProcessesKilled SupervisorStopped
        """,
    )
