"""The themes: states have the same colours in each, and are distinguishable with every kind of colour vision."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

STATES: Final = ("ready", "running", "scheduled", "backoff", "failed")


def _scrollbar(*, thumb: str, ground: str) -> dict[str, str]:
    grounds = ("background", "background-hover", "background-active", "corner-color")
    return {
        "scrollbar": thumb,
        "scrollbar-hover": thumb,
        "scrollbar-active": thumb,
        **{f"scrollbar-{name}": ground for name in grounds},
    }


def _states(*, ready: str, running: str, scheduled: str, failed: str) -> dict[str, str]:
    # Four hues for five states: a fifth brings two of them too near to each other. Backoff shares that of scheduled
    # and differs by its glyph and its word.
    found = {"ready": ready, "running": running, "scheduled": scheduled, "backoff": scheduled, "failed": failed}
    return {f"state-{name}": colour for name, colour in found.items()}


DARK: Final = Theme(
    name="gw-dark",
    primary="#5AB0FF",
    secondary="#7F8894",
    accent="#FFF3A0",
    warning="#FFF3A0",
    error="#F0682F",
    success="#5AB0FF",
    foreground="#D8DEE6",
    background="#101418",
    surface="#101418",
    panel="#191F26",
    dark=True,
    variables={
        **_states(ready="#5AB0FF", running="#FFF3A0", scheduled="#7F8894", failed="#F0682F"),
        "quiet": "#8E97A3",
        "line": "#3A444F",
        **_scrollbar(thumb="#3A444F", ground="#101418"),
        "cursor": "#27405A",
        "cursor-text": "#FFFFFF",
        "block-cursor-background": "#27405A",
        "block-cursor-foreground": "#FFFFFF",
    },
)

LIGHT: Final = Theme(
    name="gw-light",
    primary="#1F78B4",
    secondary="#70757A",
    accent="#3D2B00",
    warning="#3D2B00",
    error="#C2410C",
    success="#1F78B4",
    foreground="#1A1D21",
    background="#FFFFFF",
    surface="#FFFFFF",
    panel="#F7F8FA",
    dark=False,
    variables={
        **_states(ready="#1C72AC", running="#3D2B00", scheduled="#6C7176", failed="#C2410C"),
        "quiet": "#5F666E",
        "line": "#B4BBC3",
        **_scrollbar(thumb="#B4BBC3", ground="#FFFFFF"),
        "cursor": "#CFE3F5",
        "cursor-text": "#000000",
        "block-cursor-background": "#CFE3F5",
        "block-cursor-foreground": "#000000",
    },
)

CONTRAST: Final = Theme(
    name="gw-contrast",
    primary="#5CB8FF",
    secondary="#B8BEC6",
    accent="#FFFFFF",
    warning="#FFF38A",
    error="#FF7A3D",
    success="#5CB8FF",
    foreground="#FFFFFF",
    background="#000000",
    surface="#000000",
    panel="#000000",
    dark=True,
    variables={
        **_states(ready="#5CB8FF", running="#FFF38A", scheduled="#9AA2AC", failed="#FF7A3D"),
        "quiet": "#D0D5DB",
        "line": "#FFFFFF",
        **_scrollbar(thumb="#FFFFFF", ground="#000000"),
        "cursor": "#FFFFFF",
        "cursor-text": "#000000",
        "block-cursor-background": "#FFFFFF",
        "block-cursor-foreground": "#000000",
    },
)

THEMES: Final = (DARK, LIGHT, CONTRAST)
NAMES: Final = tuple(theme.name for theme in THEMES)

FALLBACK: Final = {name: DARK.variables[name] for name in DARK.variables}
"""What a theme that is not ours lacks."""
