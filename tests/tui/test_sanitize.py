"""What data becomes before it is shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from gw_cli.sanitize import indented, visible
from gw_tui.text import sanitize

ANYTHING = st.text(st.characters(codec=None, exclude_categories=()), max_size=80)


@given(text=ANYTHING)
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    for shown in (sanitize.line(text), sanitize.block(text).replace("\n", "")):
        assert not any(unicodedata.category(each) in ("Cc", "Cs") for each in shown)
        assert sanitize.UNSAFE.search(shown) is None


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


def test_long_texts_are_cut() -> None:
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
