"""Which queue the console shows."""

from __future__ import annotations

from dataclasses import dataclass, field

from gw_core import RecoverySettings


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """A queue in words for the screen, never with a password."""

    where: str
    schema: str
    is_read_only: bool = False
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    """When a worker is presumed dead here."""
