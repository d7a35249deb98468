"""Make data fit for a terminal: nothing in it may steer the screen or pose as something else."""

from __future__ import annotations

import re
from typing import Final

LONGEST_LINE: Final = 500
LONGEST_BLOCK: Final = 65_536
UNSHOWABLE: Final = "\N{REPLACEMENT CHARACTER}"
TAB: Final = "    "

# Controls (C0, DEL, C1), lone surrogates, line separators and the invisible format characters, among them those that
# reverse the direction of writing. The two joiners stay: scripts need them, and they steer nothing.
UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_DELETED: Final = 0x7F


def line(text: object, longest: int = LONGEST_LINE) -> str:
    """Return a text on one line, cut to a length: controls become their pictures, deceivers a replacement sign."""
    found = str(text)
    if len(found) > longest:
        found = found[: longest - 1] + "…"
    return UNSAFE.sub(_picture, found) if UNSAFE.search(found) else found


def block(text: object, longest: int = LONGEST_BLOCK) -> str:
    """Return a text with its line breaks kept and its tabs as spaces; everything else as `line` does."""
    found = str(text)
    if len(found) > longest:
        found = found[: longest - 1] + "…"
    lines = found.replace("\r\n", "\n").expandtabs(len(TAB)).split("\n")
    return "\n".join(UNSAFE.sub(_picture, each) for each in lines)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{SYMBOL FOR DELETE}" if code == _DELETED else UNSHOWABLE
