"""Which characters of a text from outside must not be shown, pasted or logged as they are."""

from __future__ import annotations

import re
from typing import Final

# Controls (C0, DEL, C1), lone surrogates, line separators, and characters that are drawn as nothing: soft hyphen,
# fillers, format characters (among them those that reverse the direction of writing), and tags.
_ANYWHERE: Final = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
# Scripts and emoji need joiners and variation selectors, and they steer nothing. In a name they make two names that
# look the same.
_IN_NAMES: Final = "\u180b-\u180d\u180f\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef"

UNSAFE_TEXT: Final = re.compile(f"[{_ANYWHERE}]")
"""A character that must not stand in any text as it is: it steers a terminal, or is invisible and misleads."""

UNSAFE_NAME: Final = re.compile(f"[{_ANYWHERE}{_IN_NAMES}]")
"""A character that must not stand in a name as it is: those of `UNSAFE_TEXT`, joiners and variation selectors."""
