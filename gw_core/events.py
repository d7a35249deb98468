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
    __getattr__, __dir__, __all__ = public_names(__name__, __file__)
