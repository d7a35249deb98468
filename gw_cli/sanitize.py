"""Make text from outside fit to be shown: nothing in it may steer a terminal or pose as something else."""

from __future__ import annotations

import re
from typing import Final

from gw_core.front_ends import UNSAFE_NAME, UNSAFE_TEXT

_MAX_QUOTED: Final = 60
_ADDRESS: Final = r"(?is)\b([a-z][a-z0-9+.-]*://).*@.*|\b(password\s*=).*"


def is_plain(text: str) -> bool:
    """Return whether a text consists of printable ASCII characters; much faster than a search for unsafe ones."""
    return text.isascii() and text.isprintable()


def visible(text: str) -> str:
    r"""Return the text on one line, as names are shown: every unsafe character is an escape, as `\n` or `\u202e`."""
    return text if is_plain(text) else re.sub(UNSAFE_NAME, _escape, text)


def quoted(text: str) -> str:
    """Return untrusted text for a message: quoted, escaped, and cut when it is long.

    Of an address with a user only the scheme is left, and of a connection string what is before its password.
    """
    text = without_address(text)
    return f"'{visible(text if len(text) <= _MAX_QUOTED else text[: _MAX_QUOTED - 1] + '…')}'"


def without_address(text: str) -> str:
    """Return a text without the connection string in it, should there be one: it may hold a password."""
    return re.sub(_ADDRESS, r"\1\2…", text)


def indented(text: str) -> str:
    """Return the text with its line breaks kept and later lines indented; unsafe characters are escapes.

    Joiners and variation selectors stay: scripts and emoji need them.
    """
    if is_plain(text) or not re.search(UNSAFE_TEXT, text):
        return text
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    return "\n    ".join(re.sub(UNSAFE_TEXT, _escape, line) for line in lines)


def uncapitalized(text: str) -> str:
    """Return a library's message with a small first letter, unless it begins with an abbreviation such as JSON."""
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def _escape(match: re.Match[str]) -> str:
    return ascii(match[0])[1:-1]
