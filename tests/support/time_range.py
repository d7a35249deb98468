"""Times between two others, as a test expects them of something that took a while."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType

ROUNDED = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """All times from `earliest` to `latest`, and a hair's breadth more for numbers that were rounded."""

    earliest: datetime
    latest: datetime

    def __contains__(self, timestamp: object) -> bool:
        return isinstance(timestamp, datetime) and self.earliest - ROUNDED <= timestamp <= self.latest + ROUNDED


class MeasuredBlock:
    """The time a block takes by a given clock, however long the machine holds it up.

    with MeasuredBlock(now) as block:
        fail(job)
    assert row["run_at"] in block.later(seconds=600)
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._began: datetime | None = None
        self._ended: datetime | None = None

    def __enter__(self) -> MeasuredBlock:
        self._began = self._now()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = self._now()

    def later(self, seconds: float = 0.0) -> TimeRange:
        """The times this many seconds after one within the block."""
        assert self._began is not None, "the span has not begun"
        assert self._ended is not None, "the span has not ended"
        return TimeRange(self._began + timedelta(seconds=seconds), self._ended + timedelta(seconds=seconds))
