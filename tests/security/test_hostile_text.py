"""What text from outside becomes before it is shown: through every way to the terminal, it steers nothing."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given, strategies as st
from rich.segment import Segment
from support import profiles
from textual.color import Color

from gw_cli.output import json_text
from gw_cli.sanitize import indented, quoted, visible
from gw_core.front_ends import UNSAFE_TEXT
from gw_tui.clipboard import on_one_line
from gw_tui.text import sanitize
from gw_tui.text.ansi_filters import StripControls
from gw_tui.text.json_view import json_view
from gw_tui.text.redact import masked

SIZE = 5_000_000 if profiles.IS_NIGHTLY else 500_000
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
def test_nothing_in_many_texts_steers_a_terminal(texts: list[str], way: str) -> None:
    shown = WAYS[way]
    for text in texts:
        found = shown(text)

        assert re.search(UNSAFE_TEXT, found) is None
        assert not any(unicodedata.category(each) in ("Cc", "Cs") for each in set(found))


# -- the console -----------------------------------------------------------------------------------------------------

ANYTHING = st.text(st.characters(codec=None, exclude_categories=()), max_size=80)


@given(text=ANYTHING)
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    for shown in (sanitize.line(text), sanitize.block(text).replace("\n", "")):
        assert not any(unicodedata.category(each) in ("Cc", "Cs") for each in shown)
        assert re.search(UNSAFE_TEXT, shown) is None


@given(text=ANYTHING)
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    assert sanitize.line(sanitize.line(text)) == sanitize.line(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇", id="a clipboard write"),
        pytest.param("a\tb\nc\r\0", "a␉b↵c␍␀", id="white space"),
        pytest.param("\x7f\x9b31m", "␡\ufffd31m", id="DEL and C1"),
        pytest.param("abc\u202etxt.exe", "abc\ufffdtxt.exe", id="turned around"),
        pytest.param("ﷺ 日本 é", "ﷺ 日本 é", id="scripts stay"),
        pytest.param("[red]$x [@click=app.quit]", "[red]$x [@click=app.quit]", id="markup is text"),
    ],
)
def test_each_control_becomes_its_picture(text: str, shown: str) -> None:
    assert sanitize.line(text) == shown


def test_long_texts_are_cut_in_the_console() -> None:
    assert sanitize.line("x" * 1_000_000, 10) == "x" * 9 + "…"
    assert len(sanitize.block("x" * 1_000_000)) == sanitize.MAX_BLOCK


def test_a_block_keeps_its_lines_and_spaces_for_tabs() -> None:
    assert sanitize.block("a\r\n\tb\rc\x1b") == "a\n    b␍c␛"


INVISIBLE = "\u3164\u115f\u1160\uffa0\u034f\u17b4\u17b5\u200b\u2060\u202e\u2066\U000e0041"
JOINING = "\u200c\u200d\ufe0e\ufe0f\u180b\U000e0100"


@pytest.mark.parametrize("each", INVISIBLE + JOINING, ids=lambda each: f"U+{ord(each):04X}")
def test_an_invisible_character_shows_in_a_name(each: str) -> None:
    assert sanitize.line(f"send{each}_email") == f"send{sanitize.UNSHOWABLE}_email"
    assert visible(f"send{each}_email").isascii()


@pytest.mark.parametrize("each", INVISIBLE, ids=lambda each: f"U+{ord(each):04X}")
def test_an_invisible_character_that_no_script_needs_shows_in_any_text(each: str) -> None:
    assert each not in sanitize.block(each) + indented(each)


@pytest.mark.parametrize("text", ["👩\u200d🔬", "क्\u200dष", "❤\ufe0f"])
def test_what_scripts_and_emoji_need_stays_in_texts(text: str) -> None:
    assert sanitize.block(text) == indented(text) == text


# -- the commands ----------------------------------------------------------------------------------------------------

ANY_TEXT = st.text(st.characters())


def steers(text: str) -> list[str]:
    """The characters that could steer a terminal or reverse the direction of writing."""
    return [
        each
        for each in text
        if unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp")
        or "\u202a" <= each <= "\u202e"  # U+202F beside them is a space
        or "\u2060" <= each <= "\u2069"
    ]


@given(ANY_TEXT)
def test_nothing_visible_steers_a_terminal(text: str) -> None:
    assert steers(visible(text)) == []


@given(ANY_TEXT)
def test_an_indented_text_breaks_lines_and_nothing_else(text: str) -> None:
    shown = indented(text)

    assert set(steers(shown)) <= {"\n"}
    assert all(line.startswith("    ") for line in shown.split("\n")[1:])


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_ordinary_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("a\nb\tc\r", r"a\nb\tc\r", id="line breaks and tabs"),
        pytest.param("\x1b[2J\x07", r"\x1b[2J\x07", id="a terminal's commands"),
        pytest.param("\x9b31m", r"\x9b31m", id="the same in one byte"),
        pytest.param("\u202eabc", r"\u202eabc", id="writing reversed"),
        pytest.param("\ud800", r"\ud800", id="half a character"),
        pytest.param("\U000e0041", r"\U000e0041", id="an invisible tag"),
        pytest.param("👩\u200d🚀", r"👩\u200d🚀", id="a joiner in a name"),
    ],
)
def test_an_unsafe_character_becomes_its_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_a_long_text_is_cut_for_a_sentence() -> None:
    assert quoted("x" * 500) == "'" + "x" * 59 + "…'"
