"""When a worker claims next: after a request, while a claim may find more, and at each poll."""

from __future__ import annotations

from typing import Final

import msgspec

QUEUE_RETRY_INTERVAL: Final = 0.01
"""Seconds, doubled after each empty claim, until a queue that another worker locked may be free again."""

DRAIN_RETRY_INTERVAL: Final = 0.01
"""Seconds until a run that ends with its last job claims again when a job is left that a claim did not find."""


class Found(msgspec.Struct, kw_only=True):
    """What the claims of a step have found, and what it left."""

    limit: int
    """How many jobs it asked for."""
    jobs: int = 0
    """How many jobs may start."""
    has_queued: bool = False
    """Whether it locked a named queue. A queue gives only so many jobs to a claim, and its lock may have hidden others
    behind it."""
    has_more: bool = False
    """Whether a claim ended before it had read everything."""
    is_rest_locked: bool = False
    """Whether all other jobs wait in the queue that it locked, whose release requests a claim."""
    saw_queues: bool = False
    """Whether jobs of named queues may have waited."""
    retry_at: float = float("inf")
    """When the next claim can find what this one has skipped: the start of the table, or the room of a limit."""

    @property
    def may_be_more(self) -> bool:
        """Whether another claim may find a job now."""
        return (self.jobs >= self.limit or self.has_queued or self.has_more) and not self.is_rest_locked


class ClaimSchedule:
    """When to claim next, by a steady clock. Any thread may set `is_requested`; one thread uses everything else."""

    def __init__(self, poll_every: float) -> None:
        self.is_requested = False
        self.may_find = True
        """Whether a claim may find a job now."""
        self.poll_at = 0.0
        """When to claim without a request."""
        self.is_empty = False
        """Whether the last claim found nothing, and nothing was left to find."""
        self._poll_every = poll_every
        self._retry_after: float | None = None

    def is_due(self, now: float) -> bool:
        """Return whether a claim was requested, or it is time to poll."""
        return self.is_requested or now >= self.poll_at

    def take_request(self, now: float) -> bool:
        """Begin a poll, and return whether it was requested."""
        if self.is_requested and self._retry_after is None:
            self._retry_after = QUEUE_RETRY_INTERVAL
        # Reset before the server is asked: a request that arrives during that stays.
        is_requested, self.is_requested = self.is_requested, False
        self.poll_at = now + self._poll_every
        return is_requested

    def note_claim(self, found: Found, began: float) -> bool:
        """Decide when to claim next; return whether the queue has just become empty."""
        self.may_find = found.may_be_more
        self.poll_at = min(began + self._poll_every, found.retry_at)
        if found.has_queued:
            self._retry_after = QUEUE_RETRY_INTERVAL
        elif not self.may_find and found.saw_queues:
            self._retry_soon(began)
        was_empty, self.is_empty = self.is_empty, not found.jobs and (self.is_empty or not self.may_find)
        return self.is_empty and not was_empty

    def retry_drain(self, now: float) -> None:
        """Claim again soon: another session locks a job's row, or it was added after the claim."""
        self.poll_at = now + DRAIN_RETRY_INTERVAL

    def poll_now(self, now: float) -> None:
        """Poll, and again soon if a queue is locked: jobs were announced, and others may have claimed them."""
        self.poll_at = now
        self._retry_after = self._retry_after or QUEUE_RETRY_INTERVAL

    def poll_later(self, now: float) -> None:
        """Claim at the next poll."""
        self.poll_at = now + self._poll_every

    def _retry_soon(self, now: float) -> None:
        """Claim again before the next poll after an empty claim: another worker may have just released a queue.

        Graphile Worker (Node.js) releases a queue without a notification.
        """
        if self._retry_after is None:
            return
        self.poll_at = min(self.poll_at, now + self._retry_after)
        self._retry_after *= 2
        if self._retry_after >= self._poll_every:
            self._retry_after = None
