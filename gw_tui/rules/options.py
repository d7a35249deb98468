"""Which queue the console shows, and what the operator chose when starting it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from gw_core import RecoverySettings
from gw_tui.rules.preferences import Preferences

PERIODS: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""How often the console can look, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """A queue in words for the screen, never with a password."""

    where: str
    schema: str
    is_read_only: bool = False
    recovery: RecoverySettings = field(default_factory=RecoverySettings)
    """When a worker is presumed dead here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the console shows itself."""

    period: float = 1.0
    environment: str = ""
    """The name of the environment."""
    context: str = ""
    """Which of several databases is shown."""
    contexts: Sequence[str] = ()
    """The databases to switch between; none if there is only one."""
    read_only: bool = False
    screen: str = "overview"
    filter: str = ""
    open: str = ""
    """A deep link to begin at, such as `job/4901`."""
    typed: Sequence[str] = ()
    """The lines typed after `:` so far, the oldest first; they outlast a change of the database."""
    theme: str = "gw-dark"
    themes: Sequence[str] = ()
    """The themes to choose from."""
    ascii: bool = False
    colour: bool = True
    is_served: bool = False
    """Shown in a browser."""
    mouse: bool = True
    show_payload: bool = True
    pause_unfocused: bool = True
    max_marked: int = 10_000
    """How many jobs can be marked at the same time."""
    preferences: Preferences = field(default_factory=Preferences)
    action_log: Path | None = None
    """The action log; None for no log."""
    log_payloads: str = "whole"
    """How the action log stores payloads: whole, masked or none."""

    @property
    def badge(self) -> str:
        """What the header shows of the environment and the database."""
        return " ".join(each for each in (self.environment, self.context) if each)

    @property
    def is_production(self) -> bool:
        """True when every action asks first: the name of the environment or of the database begins with `prod`."""
        return any(each.startswith("prod") for each in self.badge.lower().split())
