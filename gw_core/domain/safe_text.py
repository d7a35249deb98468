"""Which characters of a text from outside must not be shown, pasted or logged; how to quote it for a shell and SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gw_core.domain.errors import InvalidSettingError

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

# Not compiled here: that takes a hundredth of the time of `gw add`, whose texts are plain.
UNSAFE_TEXT: Final = f"[{_ANYWHERE}]"
"""The pattern of a character that must not stand in any text: it steers a terminal, or is invisible and misleads."""

UNSAFE_NAME: Final = f"[{_ANYWHERE}{_IN_NAMES}]"
"""The same for a name: besides those of `UNSAFE_TEXT`, joiners and variation selectors."""

_PLAIN_WORD: Final = re.compile(r"[\w@%+:,./-][\w@%+=:,./-]*", re.ASCII)
_QUOTE_OR_BACKSLASH: Final = re.compile(r"['\\]")


def printable(text: str) -> str:
    """Return the text with everything a terminal might obey or not show written as an escape."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def shell_command(words: Iterable[str]) -> str | None:
    """Return a command line that POSIX shells, zsh and fish read as these words, or None when there is none.

    There is none for a word with control or invisible characters: as they are they would steer the line editor that
    they are pasted into, and no escape for them is known to bash and to dash.
    """
    line = " ".join(map(_shell_word, words))
    return None if re.search(UNSAFE_TEXT, line) else line


def _shell_word(word: str) -> str:
    if _PLAIN_WORD.fullmatch(word):
        return word
    # Quotes and backslashes stand in double quotes: fish knows escapes within single ones. So every character is
    # quoted for psql as well, should the command be pasted there.
    return f"'{_QUOTE_OR_BACKSLASH.sub(_in_double_quotes, word)}'"


def _in_double_quotes(match: re.Match[str]) -> str:
    return "'\"\\\\\"'" if match[0] == "\\" else "'\"'\"'"


MAX_SCHEMA_BYTES: Final = 63
"""PostgreSQL cuts longer names without an error."""


def check_schema_name(name: str) -> None:
    """Raise `InvalidSettingError` unless PostgreSQL can keep `name` as it is: 1 to 63 bytes of UTF-8, no NUL."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    if not 1 <= size <= MAX_SCHEMA_BYTES or "\x00" in name:
        raise InvalidSettingError(
            f"{name!r} is not a valid schema name; PostgreSQL takes 1 to {MAX_SCHEMA_BYTES} bytes of UTF-8 without NUL"
        )


def sql_identifier(name: str) -> str:
    """Return a name as PostgreSQL wants it in a statement, whatever it contains."""
    return '"' + name.replace('"', '""') + '"'


def printable_identifier(name: str) -> str:
    r"""Return a name as `sql_identifier` does, with escapes for controls and invisible characters: `U&"\+00001b"`.

    Such escapes need a database in UTF-8, or PostgreSQL 13.
    """
    if not re.search(UNSAFE_TEXT, name):
        return sql_identifier(name)
    doubled = sql_identifier(name.replace("\\", "\\\\"))
    return "U&" + re.sub(UNSAFE_TEXT, lambda match: f"\\+{ord(match[0]):06x}", doubled)


def sql_literal(text: str) -> str:
    r"""Return a literal of PostgreSQL on one line; controls and invisible characters are escapes: `E'a\u0015'`.

    It means the same whatever `standard_conforming_strings` is. Escapes of characters beyond ASCII need a database in
    UTF-8, or PostgreSQL 13.
    """
    doubled = text.replace("'", "''")
    if "\\" not in doubled and not re.search(UNSAFE_TEXT, doubled):
        return f"'{doubled}'"
    escaped = re.sub(UNSAFE_TEXT, _escaped, doubled.replace("\\", "\\\\"))
    return f"E'{escaped}'"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
