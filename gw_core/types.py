"""Types that signatures of `gw_core` name, for programs that annotate, wrap or forward their calls."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.durations import Duration as Duration
    from gw_core.domain.job.job import AddOptions as AddOptions, JobOptions as JobOptions
    from gw_core.domain.rules.plugins import RunTask as RunTask
    from gw_core.runner.run_inputs import Tasks as Tasks
    from gw_core.runner.runner import RunnerOptions as RunnerOptions
    from gw_core.tasks.registry import TaskOptions as TaskOptions
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.durations: Duration
        gw_core.domain.job.job: AddOptions JobOptions
        gw_core.domain.rules.plugins: RunTask
        gw_core.runner.run_inputs: Tasks
        gw_core.runner.runner: RunnerOptions
        gw_core.tasks.registry: TaskOptions
        """,
    )
