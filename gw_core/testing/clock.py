"""A time that tests set."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gw_core import JobSpec, Plugin
from gw_core.errors import InvalidInputError
from gw_core.front_ends import as_duration
from gw_core.types import Duration


class Clock:
    """The time for `drain`, and for jobs that a client with the plugin `clock.plugin` adds.

    A clock shows the real time until a test sets or advances it. From then on it stands still until the next call.

    Example: docs/guide/testing.md
    """

    def __init__(self, now: datetime | None = None) -> None:
        self._now = None if now is None else _checked(now)

    def __repr__(self) -> str:
        return f"Clock({self.now().isoformat()})"

    def now(self) -> datetime:
        """Return the time of the clock."""
        return datetime.now(UTC) if self._now is None else self._now

    @property
    def is_set(self) -> bool:
        """True once a test has set or advanced the clock."""
        return self._now is not None

    def set(self, now: datetime) -> None:
        """Stop the clock at this time."""
        self._now = _checked(now)

    def advance(self, by: Duration) -> datetime:
        """Move the clock forward, stop it there, and return the new time."""
        self._now = self.now() + as_duration("by", by)
        return self._now

    def reset(self) -> None:
        """Show the real time again."""
        self._now = None

    @property
    def plugin(self) -> Plugin:
        """A plugin for clients: once the clock is set, times of jobs count from its time instead of the database's."""
        return _ClockPlugin(self)


class _ClockPlugin(Plugin):
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def before_add(self, spec: JobSpec) -> JobSpec:
        """Replace relative times, and a missing `run_at`, by times of the clock."""
        if not self._clock.is_set:
            return spec
        now = self._clock.now()
        run_at = spec.run_at if isinstance(spec.run_at, datetime) else now + (spec.run_at or timedelta(0))
        expires_at = now + spec.expires_at if isinstance(spec.expires_at, timedelta) else spec.expires_at
        return replace(spec, run_at=run_at, expires_at=expires_at)


def _checked(now: datetime) -> datetime:
    if now.utcoffset() is None:
        raise InvalidInputError(
            "the time of a clock needs a time zone; use for example datetime(2026, 1, 1, tzinfo=UTC)"
        )
    return now
