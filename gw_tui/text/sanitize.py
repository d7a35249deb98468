"""Make data fit for a terminal: nothing in it may steer the screen or pose as something else."""

from __future__ import annotations

import re
from typing import Final

from gw_core.front_ends import UNSAFE_NAME, UNSAFE_TEXT

MAX_LINE: Final = 500
MAX_BLOCK: Final = 65_536
UNSHOWABLE: Final = "\N{REPLACEMENT CHARACTER}"
LINE_BREAK: Final = "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}"
"""Errors are full of them, and few fonts have the picture of the control character."""
TAB: Final = "    "

UNSAFE: Final = re.compile(UNSAFE_TEXT)
_UNSAFE_NAME: Final = re.compile(UNSAFE_NAME)
_DELETED: Final = 0x7F


def line(text: object, longest: int = MAX_LINE) -> str:
    """Return a text on one line, cut to a length: controls become their pictures, invisible ones a replacement sign.

    Names are shown by it, so joiners and variation selectors count as invisible.
    """
    found = str(text)
    if len(found) > longest:
        found = found[: longest - 1] + "…"
    return _UNSAFE_NAME.sub(_picture, found) if _UNSAFE_NAME.search(found) else found


def block(text: object) -> str:
    """Return a text with its line breaks kept and its tabs as spaces; everything else as `line` does.

    Joiners and variation selectors stay: scripts and emoji need them.
    """
    found = str(text)
    if len(found) > MAX_BLOCK:
        found = found[: MAX_BLOCK - 1] + "…"
    lines = found.replace("\r\n", "\n").expandtabs(len(TAB)).split("\n")
    return "\n".join(UNSAFE.sub(_picture, each) for each in lines)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if match[0] == "\n":
        return LINE_BREAK
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{SYMBOL FOR DELETE}" if code == _DELETED else UNSHOWABLE
