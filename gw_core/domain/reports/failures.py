"""Which tasks keep failing: decided from recorded attempts, without a database or a clock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

LATELY: Final = timedelta(minutes=10)
"""An attempt that failed within this time counts as failing now."""
MINUTE: Final = timedelta(minutes=1)
STOPPED_AFTER: Final = timedelta(minutes=3)
"""A task whose last minute with a failure began this long ago has stopped failing; a minute is recorded at its end."""
MIN_FAILURES: Final = 10
"""So few failures are not worth a report."""
MIN_SHARE: Final = 0.1
"""A task that fails less often than this does not keep failing."""


class RecordedFailures(msgspec.Struct, frozen=True):
    """The failed attempts of a task within `LATELY`, as workers recorded them, and all that ended in this time.

    `first` and `last` are the minutes of the first and of the last failure.
    """

    failed: int
    ended: int
    first: datetime
    last: datetime

    @property
    def per_minute(self) -> float:
        """How many attempts failed per minute, from the first minute with a failure to the last."""
        return self.failed / ((self.last - self.first) / MINUTE + 1)

    @property
    def share(self) -> float:
        """The share of the attempts that failed, from 0 to 1."""
        return self.failed / max(1, self.ended)

    def is_going_on(self, now: datetime) -> bool:
        """Return whether the task keeps failing."""
        is_often = self.failed >= MIN_FAILURES and self.share >= MIN_SHARE
        return is_often and now - self.last < STOPPED_AFTER
