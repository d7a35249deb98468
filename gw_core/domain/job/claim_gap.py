"""The time between claims that follow notifications, in a fleet whose workers all receive each notification."""

from __future__ import annotations

from typing import Final, Self

import msgspec

MEMORY: Final = 500
"""How many announced jobs the share is taken of; older ones count less."""

GAP_PER_RIVAL: Final = 0.0005
"""Seconds. A fleet of any size then claims for notifications up to 4,000 times a second."""

MAX_GAP: Final = 0.05
"""Seconds. A worker whose tasks are rare among what is announced also waits this long at most."""


class AnnouncedShare(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the jobs that notifications announced lately this worker has claimed."""

    announced: float = 0
    claimed: float = 0

    def after(self, *, announced: int, claimed: int) -> Self:
        """Return the share after some more jobs were announced, and others claimed."""
        all_announced, all_claimed = self.announced + announced, self.claimed + claimed
        kept = min(1.0, MEMORY / max(all_announced, all_claimed, 1))
        return type(self)(announced=all_announced * kept, claimed=all_claimed * kept)

    @property
    def rivals(self) -> float:
        """About how many more idle workers than one compete; none for a worker that gets a third of the jobs."""
        return max(0.0, self.announced / (self.claimed + 1) - 2)


def claim_gap(share: AnnouncedShare, chance: float) -> float:
    """Return the seconds from a claim to the next one that follows a notification; `chance` is from 0 to 1.

    Each notification wakes all idle workers, and one of them gets the job. Workers that claim apart from each other
    leave the jobs to the next one of them, which comes as soon, however many they are.
    """
    return chance * min(MAX_GAP, share.rivals * GAP_PER_RIVAL)


class ClaimGap:
    """The gap after a worker's last claim, and the notifications that wait for its end.

    The thread that listens calls `announce`; all else belongs to the one that claims. Times are by a steady clock.
    """

    def __init__(self) -> None:
        self.is_notified = False
        """Whether a notification waits for a claim."""
        self.ends_at = 0.0
        """When the gap ends; 0 when there is none."""
        self._announced = self._announced_before = 0
        self._share = AnnouncedShare()

    @property
    def has_rivals(self) -> bool:
        """Whether other workers have claimed most of the jobs that were announced lately."""
        return self._share.rivals > 0

    def announce(self, count: int) -> bool:
        """Note that this many jobs were announced; returns whether no other notification waits."""
        self._announced += count
        is_first, self.is_notified = not self.is_notified, True
        return is_first

    def begin(self, now: float, chance: float, *, claimed: int) -> None:
        """Begin the gap after a claim of this many jobs."""
        announced, self._announced_before = self._announced - self._announced_before, self._announced
        self._share = self._share.after(announced=announced, claimed=claimed)
        gap = claim_gap(self._share, chance)
        self.ends_at = now + gap if gap else 0.0
