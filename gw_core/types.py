"""Types that signatures of `gw_core` name, for programs that annotate, wrap or forward their calls."""

from typing import TYPE_CHECKING

from gw_core.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.job import AddOptions as AddOptions, JobOptions as JobOptions
    from gw_core.domain.plugins import RunTask as RunTask
    from gw_core.domain.sweep_rules import Decision as Decision
    from gw_core.run_inputs import Crontab as Crontab, Tasks as Tasks
    from gw_core.runner import RunnerOptions as RunnerOptions
    from gw_core.sharding import ShardKey as ShardKey
    from gw_core.tasks.registry import TaskOptions as TaskOptions
    from gw_core.worker.claimer import ForbiddenFlags as ForbiddenFlags
else:
    __getattr__, __dir__, __all__ = public_names(__name__, __file__)
