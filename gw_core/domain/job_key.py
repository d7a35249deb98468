"""What happens when a job is added under a key that another job already has."""

from __future__ import annotations

from enum import StrEnum

from gw_core.domain.errors import InvalidJobError


class JobKeyMode(StrEnum):
    """How `add` treats an existing job with the same key; the values are the schema's own words."""

    REPLACE = "replace"
    """Overwrite the waiting job, its `run_at` included: debouncing."""

    PRESERVE_RUN_AT = "preserve_run_at"
    """Overwrite the waiting job but keep its `run_at`: throttling."""

    UNSAFE_DEDUPE = "unsafe_dedupe"
    """Leave any existing job alone, even a running or permanently failed one; the new one may never run."""

    @classmethod
    def parse(cls, given: JobKeyMode | str) -> JobKeyMode:
        """Return the mode for its name; raises `InvalidJobError` for any other."""
        try:
            return cls(given)
        except ValueError:
            expected = ", ".join(f"'{known}'" for known in cls)
            raise InvalidJobError(f"job key mode {given!r} is unknown; use one of {expected}") from None
