"""Colours that can be read on the ground of the cursor."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from rich.style import Style
from textual.color import Color

LEAST: Final = 2.5
"""The contrast from which on a coloured word is read: the cursor's own is far above."""


@lru_cache(256)
def readable(role: Style, over: Style | None) -> Style:
    """Return the style of a cell as it is over the cursor's: without its colour if that could not be read there."""
    if over is None or role.color is None or over.bgcolor is None:
        return role
    light, dark = sorted((_luminance(Color.from_rich_color(each)) for each in (role.color, over.bgcolor)), reverse=True)
    is_read = (light + 0.05) / (dark + 0.05) >= LEAST
    return role if is_read else Style(bold=role.bold, strike=role.strike)


def _luminance(colour: Color) -> float:
    """Return the relative luminance as WCAG defines it."""
    red, green, blue = (_linear(each) for each in colour.normalized)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(value: float) -> float:
    return value / 12.92 if value <= 0.04045 else float(((value + 0.055) / 1.055) ** 2.4)
