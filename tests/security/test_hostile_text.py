"""Five megabytes of hostile text, through every way to the terminal, steer nothing."""

from __future__ import annotations

import json
import random
import unicodedata
from collections.abc import Callable

import pytest
from rich.segment import Segment
from textual.color import Color

from gw_cli.output import json_text
from gw_cli.sanitize import indented, quoted, visible
from gw_core.operations import UNSAFE_TEXT
from gw_tui.clipboard import on_one_line
from gw_tui.text import sanitize
from gw_tui.text.ansi_filters import StripControls
from gw_tui.text.json_view import json_view
from gw_tui.text.redact import masked

SIZE = 5_000_000
PIECES = (
    *(
        "\x1b]52;c;aGk=\x07",
        "\x1b[2J",
        "\x9b31m",
        "\x1bP1$r",
        "\x1b[201~",
        "\x1b",
        "\x90",
        "\x9d",
        "\x00",
        "\x7f",
        "\r",
    ),
    *(
        "\n",
        "\t",
        "\x08",
        "\x0b",
        "\x85",
        "\u2028",
        "\u202e",
        "\u2066",
        "\u200b",
        "\u3164",
        "\u115f",
        "\u034f",
        "\u17b4",
    ),
    *(
        "\U000e0041",
        "\ud800",
        "\udfff",
        "\ufeff",
        "\xad",
        "[red]",
        "[@click=app.quit]x",
        "日本",
        "é",
        "a",
        " ",
        '"',
        "\\",
    ),
    *("password=", "'", "https://u:p@", "-----BEGIN X-----", "\u200d", "\ufe0f"),
)


def hostile_texts() -> list[str]:
    chance = random.Random(13)
    texts: list[str] = []
    size = 0
    while size < SIZE:
        text = "".join(chance.choices(PIECES, k=chance.choice((1, 5, 50, 2_000))))
        texts.append(text)
        size += len(text)
    return texts


def on_screen(text: str) -> str:
    return "".join(each.text for each in StripControls().apply([Segment(text)], Color(0, 0, 0)))


WAYS: dict[str, Callable[[str], str]] = {
    "a line of the console": sanitize.line,
    "a block of the console": lambda text: sanitize.block(text).replace("\n", ""),
    "a masked block": lambda text: sanitize.block(masked(text)).replace("\n", ""),
    "a payload": lambda text: str(json_view(json.dumps({text: [text]}), whole=True)).replace("\n", ""),
    "a payload that is not JSON": lambda text: str(json_view(text)).replace("\n", ""),
    "the last filter": on_screen,
    "the clipboard": on_one_line,
    "a cell of a command": visible,
    "a name in a sentence": quoted,
    "an error of a command": lambda text: indented(text).replace("\n", ""),
    "JSON of a command": json_text,
}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return hostile_texts()


@pytest.mark.parametrize("way", WAYS)
def test_nothing_in_five_megabytes_steers_a_terminal(texts: list[str], way: str) -> None:
    shown = WAYS[way]
    for text in texts:
        found = shown(text)

        assert UNSAFE_TEXT.search(found) is None
        assert not any(unicodedata.category(each) in ("Cc", "Cs") for each in set(found))
