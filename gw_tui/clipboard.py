"""What may go to the clipboard: one line of text, in which no shell, psql or terminal finds a key to press."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gw_core.operations import UNSAFE_TEXT
from gw_tui.dialogs.choose import Choice
from gw_tui.text import sanitize

if TYPE_CHECKING:
    from gw_core.operations import CommandText

LONGEST: Final = 55_000
"""Bytes of text; terminals take about 75,000 to copy, in base64."""

MAX_COMMAND: Final = 4_000
"""Bytes of a command. A shell without a line editor, such as dash, gets at most 4,095 and runs what is left of it."""

_LINE_BREAK: Final = re.compile(r"[\r\n]\s*")


def on_one_line(text: str) -> str:
    r"""Return a text with spaces for line breaks, and escapes such as `\x15` for controls and invisible characters."""
    return UNSAFE_TEXT.sub(lambda match: ascii(match[0])[1:-1], _LINE_BREAK.sub(" ", text.strip("\r\n")))


def is_too_long(text: str) -> bool:
    """Return whether a text is too long for a terminal to copy."""
    return len(text) > LONGEST or len(text.encode(errors="surrogatepass")) > LONGEST


def ways(typed: CommandText) -> dict[str, tuple[Choice, str]]:
    """Return the forms of an action that can be pasted safely, by their ids; where the command is none of them, why."""
    found: dict[str, tuple[Choice, str]] = {}
    words = "pastes into psql"
    if typed.command is None:
        words = "no command: a value has control or invisible characters"
    elif len(typed.command.encode()) > MAX_COMMAND:
        words = f"no command: it has more than {MAX_COMMAND:,} bytes"
    else:
        found["command"] = Choice("command", "command", sanitize.line(typed.command, 50)), typed.command
    if typed.sql is not None and not is_too_long(typed.sql) and not UNSAFE_TEXT.search(typed.sql):
        found["sql"] = Choice("sql", "SQL", words), typed.sql
    return found
