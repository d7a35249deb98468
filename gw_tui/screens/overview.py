"""Is it healthy, and where is the pain."""

from __future__ import annotations

from gw_tui.screens.base import ConsoleScreen


class OverviewScreen(ConsoleScreen):
    """The first screen."""

    PLACE = "overview"
