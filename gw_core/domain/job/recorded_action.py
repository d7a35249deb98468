"""What operators did: the records of their actions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec


class RecordedAction(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator did to jobs, workers, pauses, limits or cron items; a batch of jobs is one record.

    Example: docs/guide/history.md
    """

    id: int
    at: datetime
    action: str
    """What was done.

    `retry`, `complete`, `fail`, `reschedule`, `remove`, `restore`, `cancel`, `unlock`, `sweep`, `cleanup`, `pause`,
    `resume`, `limit`, `forget` or `end_session`.
    """
    by: str
    """Who acted, as the program named them."""
    role: str
    """The database role that the program used."""
    program: str | None
    """The program, as it named itself to the database (`application_name`)."""
    address: str | None
    """The address that it connected from; None for a local socket."""
    job_ids: tuple[int, ...]
    targets: tuple[str, ...]
    """The tasks of the jobs, as `task:NAME`, the workers, or what was paused, limited, forgotten or cleaned up.

    An ended session is `session:PID`.
    """
    details: Mapping[str, Any]
    """What was asked for, such as a `reason` or a `run_at`.

    Of a cleanup, also the `count`; of an ended session, its `role`, `application` and `statement`.
    """

    @property
    def sentence(self) -> str:
        """Who did it, from where, and why."""
        place = [f"role {self.role}", *(each for each in (self.program, self.address) if each)]
        details = ", ".join(f"{name} {value}" for name, value in self.details.items())
        return f"{self.action} by {self.by} ({', '.join(place)})" + (f": {details}" if details else "")
