"""What may go to the clipboard: one line of text, in which no shell or terminal finds a key to press."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from gw_core.front_ends import UNSAFE_TEXT, shell_command

LONGEST: Final = 55_000
"""Bytes of text; terminals take about 75,000 to copy, in base64."""

MAX_COMMAND: Final = 4_000
"""Bytes of a command. A shell without a line editor, such as dash, gets at most 4,095 and runs what is left of it."""

_LINE_BREAK: Final = re.compile(r"[\r\n]\s*")


def on_one_line(text: str) -> str:
    r"""Return a text with spaces for line breaks, and escapes such as `\x15` for controls and invisible characters."""
    return re.sub(UNSAFE_TEXT, lambda match: ascii(match[0])[1:-1], _LINE_BREAK.sub(" ", text.strip("\r\n")))


def is_too_long(text: str) -> bool:
    """Return whether a text is too long for a terminal to copy."""
    return len(text) > LONGEST or len(text.encode(errors="surrogatepass")) > LONGEST


def command_line(words: Sequence[str]) -> str:
    """Return a command as one line for a shell; raises `ValueError` with the reason when pasting it is not safe."""
    line = shell_command(words)
    if line is None:
        raise ValueError("Not copied: a value has control or invisible characters")
    if len(line.encode()) > MAX_COMMAND:
        raise ValueError(f"Not copied: the command has more than {MAX_COMMAND:,} bytes")
    return line
