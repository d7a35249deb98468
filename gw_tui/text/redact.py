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

# Prefixes of tokens in the case in which their issuers write them, and what follows.
_TOKENS: Final = "|".join(
    (
        r"(?:[sr]k_(?:live|test)|whsec|tok_live)_\w{4,}",  # Stripe
        r"(?:gh[opsur]|github_pat)_\w{16,}",
        r"gl(?:pat|ptt|rt|dt)-[\w-]{16,}",
        r"xox[abeoprs]-[\w-]{8,}|xapp-[\w-]{8,}",  # Slack
        r"A(?:KIA|SIA)[A-Z0-9]{16}(?![A-Z0-9])",  # Amazon
        r"AIza[\w-]{30,}|ya29\.[\w-]{16,}|GOCSPX-[\w-]{16,}",  # Google
        r"sk-(?:ant-|proj-|svcacct-)?[\w-]{20,}",  # Anthropic, OpenAI
        r"SG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
        r"SK[0-9a-f]{32}(?![0-9a-f])|key-[0-9a-f]{32}(?![0-9a-f])",  # Twilio, Mailgun
        r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,}",  # Shopify
        r"(?:npm|hf|dckr_pat|dop_v1|lin_api)_\w{16,}|pypi-[\w-]{16,}|hvs\.[\w-]{16,}|sq0(?:atp|csp)-[\w-]{16,}",
    )
)

# The networks by their first digits and lengths: Visa, Mastercard, American Express, Diners, JCB, Discover, UnionPay.
_CARD: Final = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|(?:5[1-5]\d\d|222[1-9]|22[3-9]\d|2[3-6]\d\d|27[01]\d|2720)\d{12}|3[47]\d{13}"
    r"|3(?:0[0-5]|[68]\d)\d{11}|35\d{14}|(?:6011|65\d\d|64[4-9]\d)\d{12}|62\d{14,17}"
)
_MAX_GROUPS: Final = 5
"""Of digits with spaces or hyphens between them, in which a card's number is written."""


def _without_cards(found: re.Match[str]) -> str:
    """Return groups of digits with the numbers of cards hidden."""
    text, groups, shown = found[0], list(re.finditer(r"\d+", found[0])), ""
    first = done = 0
    while first < len(groups):
        ends = (groups[last].end() for last in range(min(first + _MAX_GROUPS, len(groups)) - 1, first - 1, -1))
        end = next((end for end in ends if _is_card(text[groups[first].start() : end])), None)
        if end is None:
            first += 1
            continue
        shown += f"{text[done : groups[first].start()]}{MASK}"
        first, done = sum(group.end() <= end for group in groups), end
    return shown + text[done:]


def _is_card(text: str) -> bool:
    """Return whether this is the number of a card, whose last digit is right by Luhn's algorithm."""
    digits = re.sub(r"[ -]", "", text)
    if _CARD.fullmatch(digits) is None:
        return False
    doubled = (sum(divmod(2 * int(each), 10)) for each in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


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
        # sk_live_…, ghp_…
        (rf"(?<![\w-])(?-i:{_TOKENS})", MASK),
        # 4242 4242 4242 4242
        (r"(?<![\w.])\d[\d -]{11,}\d(?!\w)", _without_cards),
    )
)


_ESCAPED_CHARACTER: Final = re.compile(r"\\u00(2[d-f]|3\d|4[1-9a-f]|5[0-9af]|6[1-9a-f]|7[0-9a])", re.IGNORECASE)
"""Letters, digits, hyphen, dot, slash and underscore as JSON can escape them."""


def is_secret(name: str) -> bool:
    """Return whether a value under this name should be hidden."""
    return _SECRET_NAME.search(name) is not None


def masked(text: str) -> str:
    """Return free text, such as an error or a statement, with what looks like a secret in it hidden."""
    hidden = _masked(text)
    # JSON can write "p\\u0061ssword" for "password".
    plain = _ESCAPED_CHARACTER.sub(lambda found: chr(int(found[1], 16)), hidden)
    return hidden if plain == hidden or (again := _masked(plain)) == plain else again


def _masked(text: str) -> str:
    for pattern, shown in _RULES:
        text = pattern.sub(shown, text)
    return text
