"""Make text from outside fit to be shown: nothing in it may steer a terminal or pose as something else."""

from __future__ import annotations

import re
from typing import Final

# Controls (C0, DEL, C1), lone surrogates, line separators and the invisible format characters, among them those that
# reverse the direction of writing. The two joiners stay: scripts need them, and they steer nothing.
UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

_SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_LONGEST_QUOTED: Final = 60


def visible(text: str) -> str:
    r"""Return the text on one line with every unsafe character written as an escape: `\n`, `\x1b`, `\u202e`."""
    return UNSAFE.sub(_escape, text)


def quoted(text: str) -> str:
    """Return text from outside for a sentence: in quotes, escaped, and cut when it is long."""
    return f"'{visible(text if len(text) <= _LONGEST_QUOTED else text[: _LONGEST_QUOTED - 1] + '…')}'"


def indented(text: str) -> str:
    """Return the text with its line breaks kept, later lines set in, and everything else made visible."""
    if not UNSAFE.search(text):
        return text
    return "\n    ".join(visible(line) for line in text.replace("\r\n", "\n").rstrip("\n").split("\n"))


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    short = _SHORT.get(character)
    if short is not None:
        return short
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
