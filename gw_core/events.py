"""Events of workers, jobs, recurring tasks and processes. Subscribe to them with `gw_core.Events`."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.cron.schedule_events import CronFailed as CronFailed, CronScheduled as CronScheduled
    from gw_core.domain.job.outcome import (
        Completed as Completed,
        Failed as Failed,
        Outcome as Outcome,
        Returned as Returned,
    )
    from gw_core.domain.rules.events import (
        BreakingMigrationDetected as BreakingMigrationDetected,
        HeartbeatFailed as HeartbeatFailed,
        JobAdded as JobAdded,
        JobCancelling as JobCancelling,
        JobCompleted as JobCompleted,
        JobErrored as JobErrored,
        JobFailed as JobFailed,
        JobLockLost as JobLockLost,
        JobOverran as JobOverran,
        JobRecovered as JobRecovered,
        JobReturned as JobReturned,
        JobsSettled as JobsSettled,
        JobStarted as JobStarted,
        JobSucceeded as JobSucceeded,
        MaintenanceFailed as MaintenanceFailed,
        PoolConnectionLost as PoolConnectionLost,
        PoolConnectionRestored as PoolConnectionRestored,
        PoolStarted as PoolStarted,
        PoolStopped as PoolStopped,
        PoolStopping as PoolStopping,
        ProcessEnded as ProcessEnded,
        RunnerStarted as RunnerStarted,
        RunnerStopped as RunnerStopped,
        SupervisorGaveUp as SupervisorGaveUp,
        WorkersRecovered as WorkersRecovered,
    )
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.cron.schedule_events: CronFailed CronScheduled
        gw_core.domain.job.outcome: Completed Failed Outcome Returned
        gw_core.domain.rules.events: BreakingMigrationDetected HeartbeatFailed JobAdded JobCancelling JobCompleted
        gw_core.domain.rules.events: JobErrored JobFailed JobLockLost JobOverran JobRecovered JobReturned JobStarted
        gw_core.domain.rules.events: JobSucceeded JobsSettled MaintenanceFailed PoolConnectionLost
        gw_core.domain.rules.events: PoolConnectionRestored PoolStarted PoolStopped PoolStopping ProcessEnded
        gw_core.domain.rules.events: RunnerStarted RunnerStopped SupervisorGaveUp WorkersRecovered
        """,
    )
