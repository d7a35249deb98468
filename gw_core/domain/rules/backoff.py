"""How long a failed job waits before its next attempt."""

from __future__ import annotations

import math
from datetime import timedelta

STEEPEST_ATTEMPT = 10
"""From the tenth attempt on the delay stays at e^10 s, about six hours."""


def retry_delay(attempts: int) -> timedelta:
    """Return the wait after attempt number `attempts` failed: e^min(attempts, 10) seconds.

    `sql/queries/fail_jobs.sql` computes the same from the database's clock; this is for showing the schedule.
    """
    return timedelta(seconds=math.exp(min(attempts, STEEPEST_ATTEMPT)))
