"""Quote text for a shell and for SQL, so that pasting it runs what it shows and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from gw_core.domain.text import UNSAFE_TEXT

_PLAIN_WORD: Final = re.compile(r"[\w@%+:,./-][\w@%+=:,./-]*", re.ASCII)
_QUOTE_OR_BACKSLASH: Final = re.compile(r"['\\]")


def shell_command(words: Iterable[str]) -> str | None:
    """Return a command line that POSIX shells, zsh and fish read as these words, or None when there is none.

    There is none for a word with control or invisible characters: as they are they would steer the line editor that
    they are pasted into, and no escape for them is known to bash and to dash.
    """
    line = " ".join(map(_shell_word, words))
    return None if UNSAFE_TEXT.search(line) else line


def _shell_word(word: str) -> str:
    if _PLAIN_WORD.fullmatch(word):
        return word
    # Quotes and backslashes stand in double quotes: fish knows escapes within single ones. So every character is
    # quoted for psql as well, should the command be pasted there.
    return f"'{_QUOTE_OR_BACKSLASH.sub(_in_double_quotes, word)}'"


def _in_double_quotes(match: re.Match[str]) -> str:
    return "'\"\\\\\"'" if match[0] == "\\" else "'\"'\"'"


def sql_literal(text: str) -> str:
    r"""Return a literal of PostgreSQL on one line; controls and invisible characters are escapes: `E'a\u0015'`.

    It means the same whatever `standard_conforming_strings` is. Escapes of characters beyond ASCII need a database in
    UTF-8, or PostgreSQL 13.
    """
    doubled = text.replace("'", "''")
    if "\\" not in doubled and not UNSAFE_TEXT.search(doubled):
        return f"'{doubled}'"
    escaped = UNSAFE_TEXT.sub(_escaped, doubled.replace("\\", "\\\\"))
    return f"E'{escaped}'"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
