"""Count the processors that this process may use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

CGROUP_LIMIT: Final = Path("/sys/fs/cgroup/cpu.max")
"""Where Linux states how much processor time a container may use."""


def usable_processors() -> int:
    """Return how many processors this process may use; a container's share is rounded up."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(available, _container_share() or available))


def _container_share() -> int | None:
    """Return the container's limit in processors, if it has one."""
    try:
        quota, period = CGROUP_LIMIT.read_text("ascii").split()
        return -(-int(quota) // int(period))
    except (OSError, ValueError, ZeroDivisionError):  # no such file, or "max"
        return None
