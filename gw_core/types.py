"""Types that signatures of `gw_core` name, for programs that annotate, wrap or forward their calls."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.clients.sharding import ShardKey as ShardKey
    from gw_core.domain.durations import Duration as Duration
    from gw_core.domain.job.job import AddOptions as AddOptions, JobOptions as JobOptions
    from gw_core.domain.rules.plugins import RunTask as RunTask
    from gw_core.runner.run_inputs import Crontab as Crontab, Tasks as Tasks
    from gw_core.runner.runner import RunnerOptions as RunnerOptions
    from gw_core.runtime.log_messages import JobLogger as JobLogger
    from gw_core.tasks.registry import TaskOptions as TaskOptions
    from gw_core.worker.claim_policy import ForbiddenFlags as ForbiddenFlags
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.clients.sharding: ShardKey
        gw_core.domain.durations: Duration
        gw_core.domain.job.job: AddOptions JobOptions
        gw_core.domain.rules.plugins: RunTask
        gw_core.runner.run_inputs: Crontab Tasks
        gw_core.runner.runner: RunnerOptions
        gw_core.runtime.log_messages: JobLogger
        gw_core.tasks.registry: TaskOptions
        gw_core.worker.claim_policy: ForbiddenFlags
        """,
    )
