"""How a run ended."""

from __future__ import annotations

import msgspec


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run.

    Example: docs/api/gw_core.md
    """

    completed: int
    """Jobs completed."""
    failed: int
    """Attempts that failed."""
    reason: str
    exit_code: int
    """0, or 1 after failures with `strict` or an internal error, or 57 after a breaking migration.

    3 if `run_once` could not reach its database for a minute.
    """
    signal: str | None = None
    """The signal that ended the run, for example SIGTERM."""
