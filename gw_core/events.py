"""The events that programs subscribe to with `gw_core.Events`; the others are known by their names only."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.cron.schedule_events import CronFailed as CronFailed, CronScheduled as CronScheduled
    from gw_core.domain.rules.events import (
        JobAdded as JobAdded,
        JobCancelling as JobCancelling,
        JobCompleted as JobCompleted,
        JobErrored as JobErrored,
        JobFailed as JobFailed,
        JobLockLost as JobLockLost,
        JobOverran as JobOverran,
        JobRecovered as JobRecovered,
        JobReturned as JobReturned,
        JobStarted as JobStarted,
        JobSucceeded as JobSucceeded,
        PoolConnectionLost as PoolConnectionLost,
        PoolConnectionRestored as PoolConnectionRestored,
        PoolStarted as PoolStarted,
        PoolStopped as PoolStopped,
        PoolStopping as PoolStopping,
        WorkersRecovered as WorkersRecovered,
    )
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.cron.schedule_events: CronFailed CronScheduled
        gw_core.domain.rules.events: JobAdded JobCancelling JobCompleted JobErrored JobFailed JobLockLost JobOverran
        gw_core.domain.rules.events: JobRecovered JobReturned JobStarted JobSucceeded PoolConnectionLost
        gw_core.domain.rules.events: PoolConnectionRestored PoolStarted PoolStopped PoolStopping WorkersRecovered
        """,
    )
