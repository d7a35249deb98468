"""Hide what looks like a secret, until the operator asks to see it."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "••••••••"

_WORDS: Final = r"pass|pwd|secret|token|authorization|api[_-]?key|private[_-]?key|credential|cookie|card|iban|cvv"
_SECRET_NAME: Final = re.compile(_WORDS, re.IGNORECASE)

# Names are bounded: a long word without any of these would be searched anew from each of its letters.
_ASSIGNMENT: Final = re.compile(
    rf"""(?P<name>(?<![\w-])[\w-]{{0,40}}?(?:{_WORDS})[\w-]{{0,40}}["']?\s{{0,3}}(?::|=>?)\s{{0,3}})"""
    r"""(?P<value>"[^"\n]*"?|'[^'\n]*'?|(?:Bearer|Basic|Digest)\s+[^\s"',;]+|[^\s"',;}\])]+)""",
    re.IGNORECASE,
)
_ADDRESS: Final = re.compile(r"(?P<before>://[^\s/:@]{0,200}:)(?P<value>[^\s/@]{1,200})(?=@)")


def is_secret(name: str) -> bool:
    """Tell whether a value under this name should be hidden."""
    return _SECRET_NAME.search(name) is not None


def masked(text: str) -> str:
    """Return free text, such as an error, with the values of secrets and the passwords in addresses hidden."""
    text = _ADDRESS.sub(lambda match: f"{match['before']}{MASK}", text)
    return _ASSIGNMENT.sub(lambda match: f"{match['name']}{MASK}", text)
