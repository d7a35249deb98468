"""What follows the end of a job beside its own row: jobs that wait for it go on, and its steps are deleted."""

from __future__ import annotations

from collections.abc import Sequence

from gw_core.domain.job.group import is_member
from gw_core.domain.job.outcome import Completed, Outcome, Returned


class FollowUps:
    """The running jobs of one worker whose end has something to follow. Threads only add; the settler takes."""

    def __init__(self) -> None:
        self.with_steps: set[int] = set()
        """Jobs that have used steps; the threads that run them add to it."""

    def take_with_steps(self, written: Sequence[Outcome]) -> list[int]:
        """Return which of these jobs have completed and have steps; most workers know of none."""
        if not self.with_steps:
            return []
        ended = self.with_steps.intersection(each.job.id for each in written)
        self.with_steps.difference_update(ended)
        return sorted(ended) if type(written[0]) is Completed else []


def ended_members(outcomes: Sequence[Outcome]) -> list[int]:
    """Return the jobs that were claimed as ones that others wait for; most jobs have no flags."""
    if type(outcomes[0]) is Returned:
        return []
    return [each.job.id for each in outcomes if each.job._flags is not None and is_member(each.job)]
