"""What `Plugin.on_recovery` returns to decide what happens to the job of a dead worker."""

from typing import TYPE_CHECKING

from gw_core.runtime.lazy import public_names

if TYPE_CHECKING:
    from gw_core.domain.rules.sweep_rules import (
        Decision as Decision,
        FailWithBackoff as FailWithBackoff,
        Reschedule as Reschedule,
        SkipRecovery as SkipRecovery,
    )
else:
    __getattr__, __dir__, __all__ = public_names(
        __name__,
        """
        gw_core.domain.rules.sweep_rules: Decision FailWithBackoff Reschedule SkipRecovery
        """,
    )
