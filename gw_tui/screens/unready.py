"""Stands where a screen is missing."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.widgets import Static

from gw_tui.screens.base import ConsoleScreen


class UnreadyScreen(ConsoleScreen):
    """Says that there is nothing here yet."""

    def body(self) -> ComposeResult:
        """Say so."""
        yield Static("This screen is not there yet.", markup=False)
