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

    Of `run_once` also: 1 if it could not record all outcomes, 3 if it could not reach its database for a minute, and
    4 if its role lacks a right.
    """
    signal: str | None = None
    """The signal that ended the run, for example SIGTERM."""
