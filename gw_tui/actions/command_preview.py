"""The equivalent `gw` command of an action, as words; a shell does the same with them as the console does."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime

from gw_core.front_ends import DEFAULT_SCHEMA, UNSAFE_TEXT

Words = Sequence[str]


def gw_command(words: Words, schema: str = DEFAULT_SCHEMA) -> Words:
    """Return the words of an action as a command for one schema.

    Options may stand before the arguments of its verb only, for `--` may follow.
    """
    verb = 2 if words[0] == "cron" else 1
    where = [] if schema == DEFAULT_SCHEMA else [f"--schema={schema}"]
    return ["gw", *words[:verb], *where, *words[verb:]]


def options(**given: object) -> list[str]:
    """Return options with their values in one word each: a value that begins with a dash is none of them."""
    values = {name: each.isoformat() if isinstance(each, datetime) else each for name, each in given.items()}
    return [f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value is not None]


def unmistaken(names: Sequence[str], *options: str) -> Words:
    """Return options and names so that a worker called `-x` is not taken for an option."""
    return [*options, "--", *names] if any(name.startswith("-") for name in names) else [*names, *options]


def on_one_line(payload: str) -> str:
    """Return JSON that means the same without line breaks between its tokens, and with escapes in its strings."""
    return re.sub(UNSAFE_TEXT, lambda match: " " if match[0] in "\t\r\n" else json.dumps(match[0])[1:-1], payload)
