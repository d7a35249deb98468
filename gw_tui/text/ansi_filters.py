"""Filter every line before it reaches the terminal: a second defence behind `sanitize`, and plain ASCII."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from gw_tui.text.sanitize import UNSAFE, UNSHOWABLE
from gw_tui.text.symbols import ASCII

_FOREIGN: Final = re.compile(r"[^\x20-\x7e]")


class StripControls(LineFilter):
    """Replaces every character that could steer the terminal, wherever it came from."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        if not any(UNSAFE.search(text) for text, _, control in segments if not control):
            return segments
        return [Segment(UNSAFE.sub(UNSHOWABLE, text), style, control) for text, style, control in segments]


class OnlyAscii(LineFilter):
    """Shows our signs by their ASCII stand-ins, and a question mark for any other character."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Return the segments in ASCII, each as wide as it was."""
        if all(text.isascii() for text, _, _ in segments):
            return segments
        return [Segment(_plain(text), style, control) for text, style, control in segments]


@lru_cache(4096)
def _plain(text: str) -> str:
    if text.isascii():
        return text
    return _FOREIGN.sub(lambda match: "?" * cell_len(match[0]), text.translate(ASCII))
