"""The themes: states have the same colours in each, and are distinguishable with every kind of colour vision."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme


def _scrollbar(*, thumb: str, ground: str) -> dict[str, str]:
    grounds = ("background", "background-hover", "background-active", "corner-color")
    return {
        "scrollbar": thumb,
        "scrollbar-hover": thumb,
        "scrollbar-active": thumb,
        **{f"scrollbar-{name}": ground for name in grounds},
    }


def _states(*, ready: str, running: str, scheduled: str, backoff: str, failed: str) -> dict[str, str]:
    # These five, the warning and the text differ by at least 15 (CIEDE2000) with every kind of colour vision: found by
    # a search over all of them together. Changing one of them usually brings it too near to another.
    found = {"ready": ready, "running": running, "scheduled": scheduled, "backoff": backoff, "failed": failed}
    return {f"state-{name}": colour for name, colour in found.items()}


DARK: Final = Theme(
    name="gw-dark",
    primary="#5FA5F7",
    secondary="#8F9677",
    accent="#5FA5F7",
    warning="#FDD700",
    error="#EF5901",
    success="#82FFBE",
    foreground="#D8DEE6",
    background="#101418",
    surface="#101418",
    panel="#191F26",
    dark=True,
    variables={
        **_states(ready="#5FA5F7", running="#82FFBE", scheduled="#8F9677", backoff="#AB7996", failed="#EF5901"),
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
    primary="#2A5FE6",
    secondary="#6D6882",
    accent="#2A5FE6",
    warning="#641E00",
    error="#B4500C",
    success="#1E5E4A",
    foreground="#1A1D21",
    background="#FFFFFF",
    surface="#FFFFFF",
    panel="#F7F8FA",
    dark=False,
    variables={
        **_states(ready="#2A5FE6", running="#1E5E4A", scheduled="#6D6882", backoff="#4A0C74", failed="#B4500C"),
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
    primary="#3578FF",
    secondary="#9D8278",
    accent="#3578FF",
    warning="#FFE318",
    error="#FF3226",
    success="#7BDCA1",
    foreground="#FFFFFF",
    background="#000000",
    surface="#000000",
    panel="#000000",
    dark=True,
    variables={
        **_states(ready="#3578FF", running="#7BDCA1", scheduled="#9D8278", backoff="#9696B3", failed="#FF3226"),
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
