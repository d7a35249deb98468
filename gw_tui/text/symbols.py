"""The sign and the word of every state; colour only comes on top."""

from __future__ import annotations

from typing import Final

STATE_GLYPHS: Final = {"ready": "▶", "running": "●", "scheduled": "◷", "backoff": "↻", "failed": "✖"}
DONE: Final = "✓"
WARNING: Final = "!"
GONE: Final = "gone"


def state(name: str) -> str:
    """Return a state as it is shown: its sign and its word."""
    return f"{STATE_GLYPHS[name]} {name}"


_SIGNS: Final = {
    "▶": ">",
    "●": "*",
    "◷": "~",
    "↻": "%",
    "✖": "x",
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
_RAMP: Final = dict(zip("▁▂▃▄▅▆▇█", ".:-=+*#@", strict=True))
ASCII: Final = {ord(sign): plain for sign, plain in {**_SIGNS, **_LINES, **_RAMP, "▌": "|", "▐": "|", "▀": "^"}.items()}
"""What stands for our own signs where only ASCII can be shown."""
