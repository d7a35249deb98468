"""Hide what looks like a secret, until the operator asks to see it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

MASK: Final = "••••••••"

# Found anywhere in a name, in any case.
_PARTS: Final = (
    r"pass|pwd|secret|token|authorization|(?:api|access|private|signing|encryption)[_-]?key|credential|cookie|card|iban"
    r"|cvv|cvc|bearer|signature|webhook"
)
# Found as a word of a name alone, as in `userAuth` or `SESSION_ID`: they are parts of harmless words, as of `author`.
_WHOLE: Final = ("auth", "oauth", "session", "sid", "jwt", "otp", "totp", "pin", "ssn", "sig")


def _as_words(words: tuple[str, ...]) -> str:
    capitals = "|".join(word.capitalize() for word in words)
    others = "|".join(form for word in words for form in (word, word.upper()))
    return rf"(?-i:(?:(?<![A-Za-z])(?:{others}|{capitals})|(?<=[a-z0-9])(?:{capitals}))(?![a-z]))"


_WORDS: Final = f"{_PARTS}|{_as_words(_WHOLE)}"
_SECRET_NAME: Final = re.compile(_WORDS, re.IGNORECASE)

# Lengths are bounded: a long word without any of these would be searched again from each of its letters.
_NAME: Final = rf"[\w-]{{0,40}}?(?:{_WORDS})[\w-]{{0,40}}"
_STRING: Final = r""""(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|''|\\.)*'?"""
_SPACE: Final = r"\s{0,3}"

_RULES: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), shown)
    for pattern, shown in (
        # -----BEGIN … KEY-----, to its end or to where the text was cut
        (r"(-----BEGIN [A-Z0-9 ]{1,60}-----).*?(-----END [A-Z0-9 ]{1,60}-----|\Z)", rf"\1{MASK}\2"),
        # scheme://user:password@host; raw separators in the password included
        (r"""(://[^\s/:@]{0,200}:)(?:[^\s"'<>]{1,1000}|[^\s/]{1,1000})(?=@)""", rf"\1{MASK}"),
        # https://hooks.example.com/SECRET, https://example.com/api/webhooks/SECRET
        (
            r"""(https?://(?:[^\s/"'@]{0,100}\bhooks?\.[^\s/"']{1,100}/|[^\s"'?]{1,200}?webhooks?[^\s/"']{0,50}/))"""
            r"""[^\s"'<>]+""",
            rf"\1{MASK}",
        ),
        # "name": "password", "value": "…", and the other way round
        (
            rf"""(["'](?:name|key|field|header|label)["']{_SPACE}:{_SPACE}["'][^"'\n]{{0,40}}?(?:{_WORDS})[^"'\n]{{0,40}}["']"""
            rf"""{_SPACE},{_SPACE}["']val(?:ue)?["']{_SPACE}:{_SPACE})(?:{_STRING}|[^\s,}}\]]+)""",
            rf'\1"{MASK}"',
        ),
        (
            rf"""(["']val(?:ue)?["']{_SPACE}:{_SPACE})(?:"(?:[^"\\\n]|\\.){{0,1000}}"|'[^'\n]{{0,1000}}'|[\w.-]{{1,100}})"""
            rf"""(?={_SPACE},{_SPACE}["'](?:name|key|field|header|label)["']{_SPACE}:{_SPACE}["']"""
            rf"""[^"'\n]{{0,40}}?(?:{_WORDS}))""",
            rf'\1"{MASK}"',
        ),
        # --password X
        (rf"""((?<![\w-])--?{_NAME}\s{{1,3}})(?!-)(?:{_STRING}|[^\s"']+)""", rf"\1{MASK}"),
        # password 'x', as in SQL
        (rf"""((?<![\w-]){_NAME}\s{{1,3}}(?:E|U&)?)'(?:[^'\\]|''|\\.)*'?""", rf"\1{MASK}"),
        # password=x, "token": "x", api_key => 'x y', Authorization: Bearer x
        (
            rf"""((?<![\w-]){_NAME}["']?{_SPACE}(?::|=>?){_SPACE})"""
            rf"""(?:{_STRING}|(?:Bearer|Basic|Digest)\s+[^\s"',;]+|[^\s"',;}}\])]+)""",
            rf"\1{MASK}",
        ),
        # Bearer x, and what a JSON web token looks like
        (r"\b(Bearer\s{1,3})[\w.~+/=-]{8,}", rf"\1{MASK}"),
        (r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*", MASK),
    )
)


def is_secret(name: str) -> bool:
    """Return whether a value under this name should be hidden."""
    return _SECRET_NAME.search(name) is not None


def masked(text: str) -> str:
    """Return free text, such as an error or a statement, with what looks like a secret in it hidden."""
    for pattern, shown in _RULES:
        text = pattern.sub(shown, text)
    return text
