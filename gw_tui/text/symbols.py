"""The symbol of every meaning: a sign and a role, which gives its colour; no two meanings share one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Symbol:
    """A sign, and the role that gives it a colour."""

    sign: str
    role: str

    def before(self, words: str) -> str:
        """Return words after the sign."""
        return f"{self.sign} {words}"


STATES: Final = {
    "ready": Symbol("▶", "ready"),
    "running": Symbol("●", "running"),
    "scheduled": Symbol("◷", "scheduled"),
    "waiting": Symbol("◇", "waiting"),
    "backoff": Symbol("↻", "backoff"),
    "failed": Symbol("✖", "failed"),
}
OK: Final = Symbol("✓", "")
NOTE: Final = Symbol("i", "quiet")
UNKNOWN: Final = Symbol("?", "quiet")
NOTHING: Final = Symbol(" ", "quiet")
WARNING: Final = Symbol("!", "warning")
ALARM: Final = Symbol("▲", "error")
MARK: Final = "◆"
SHOWN: Final = "✓"
"""Stands before what is chosen in a dialog."""
GONE: Final = "gone"


def state(name: str) -> str:
    """Return a state as it is shown: its sign and its word."""
    return STATES[name].before(name)


_SIGNS: Final = {
    "▶": ">",
    "●": "*",
    "◷": "o",
    "◇": "w",
    "↻": "%",
    "✖": "x",
    "▲": "#",
    "◆": "@",
    "✓": "+",
    "✔": "+",
    "…": ".",
    "\N{EN DASH}": "-",
    "·": "-",
    "→": ">",
    "←": "<",
    "↓": "v",
    "↑": "^",
    "≈": "~",
    "≥": ">",
    "•": "*",
}
_LINES: Final = {
    **dict.fromkeys("─━═╌╍┄┅┈┉╴╶╸╺▔", "-"),
    **dict.fromkeys("│┃║╎╏┆┇┊┋╵╷╹╻▏▕", "|"),
    **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰╔╗╚╝╠╣╦╩╬┏┓┗┛┣┫┳┻╋", "+"),
}
_LEVELS: Final = (0xC0, 0x24, 0x12, 0x09)
"""The dots of each height of a braille pattern, from the lowest up."""


def _plain_dots(pattern: int) -> str:
    """Return a character for the dots of a chart: where a single height has some, which one."""
    heights = [place for place, dots in enumerate(_LEVELS) if pattern & dots]
    return "|" if len(heights) > 1 else "_.-'"[heights[0]] if heights else " "


_RAMP: Final = dict(zip("▁▂▃▄▅▆▇█", ".:-=+*#@", strict=True))
_DOTS: Final = {chr(0x2800 + pattern): _plain_dots(pattern) for pattern in range(256)}
ASCII: Final = {
    ord(sign): plain for sign, plain in {**_SIGNS, **_LINES, **_RAMP, **_DOTS, "▌": "|", "▐": "|", "▀": "^"}.items()
}
"""What stands for our own signs where only ASCII can be shown."""
