"""The themes: states have the same colours in each, and are distinguishable with every kind of colour vision."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme


def _theme(
    name: str,
    states: dict[str, str],
    *,
    warning: str,
    foreground: str,
    background: str,
    panel: str,
    quiet: str,
    line: str,
    cursor: tuple[str, str],
    dark: bool = True,
) -> Theme:
    """Return a theme; the general colours are those of the states, and the cursor has a ground and a text."""
    grounds = ("background", "background-hover", "background-active", "corner-color")
    return Theme(
        name=name,
        primary=states["ready"],
        secondary=states["scheduled"],
        accent=states["ready"],
        warning=warning,
        error=states["failed"],
        success=states["running"],
        foreground=foreground,
        background=background,
        surface=background,
        panel=panel,
        dark=dark,
        variables={
            **{f"state-{state}": colour for state, colour in states.items()},
            "state-waiting": states["scheduled"],
            "quiet": quiet,
            "line": line,
            **dict.fromkeys(("scrollbar", "scrollbar-hover", "scrollbar-active"), line),
            **{f"scrollbar-{ground}": background for ground in grounds},
            **dict.fromkeys(("cursor", "block-cursor-background"), cursor[0]),
            **dict.fromkeys(("cursor-text", "block-cursor-foreground"), cursor[1]),
        },
    )


# The five states, the warning and the text differ by at least 15 (CIEDE2000) with every kind of colour vision: found by
# a search over all of them together. Changing one of them usually brings it too near to another.
DARK: Final = _theme(
    "gw-dark",
    {"ready": "#5FA5F7", "running": "#82FFBE", "scheduled": "#8F9677", "backoff": "#AB7996", "failed": "#EF5901"},
    warning="#FDD700",
    foreground="#D8DEE6",
    background="#101418",
    panel="#191F26",
    quiet="#8E97A3",
    line="#3A444F",
    cursor=("#27405A", "#FFFFFF"),
)

LIGHT: Final = _theme(
    "gw-light",
    {"ready": "#2A5FE6", "running": "#1E5E4A", "scheduled": "#6D6882", "backoff": "#4A0C74", "failed": "#641E00"},
    warning="#B4500C",
    foreground="#1A1D21",
    background="#FFFFFF",
    panel="#F7F8FA",
    quiet="#5F666E",
    line="#B4BBC3",
    cursor=("#CFE3F5", "#000000"),
    dark=False,
)

CONTRAST: Final = _theme(
    "gw-contrast",
    {"ready": "#3578FF", "running": "#7BDCA1", "scheduled": "#9D8278", "backoff": "#9696B3", "failed": "#FF3226"},
    warning="#FFE318",
    foreground="#FFFFFF",
    background="#000000",
    panel="#000000",
    quiet="#D0D5DB",
    line="#FFFFFF",
    cursor=("#FFFFFF", "#000000"),
)

THEMES: Final = (DARK, LIGHT, CONTRAST)
NAMES: Final = tuple(theme.name for theme in THEMES)

FALLBACK: Final = DARK.variables
"""What a theme that is not ours lacks."""
