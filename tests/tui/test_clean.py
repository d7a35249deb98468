"""What data becomes before it is shown."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from gw_tui import clean

ANYTHING = st.text(st.characters(codec=None, exclude_categories=()), max_size=80)


@given(text=ANYTHING)
def test_nothing_that_steers_a_terminal_is_left(text: str) -> None:
    for shown in (clean.line(text), clean.block(text).replace("\n", "")):
        assert not any(unicodedata.category(each) in ("Cc", "Cs") for each in shown)
        assert clean.UNSAFE.search(shown) is None


@given(text=ANYTHING)
def test_what_is_clean_stays_as_it_is(text: str) -> None:
    assert clean.line(clean.line(text)) == clean.line(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("\x1b]52;c;aGk=\x07", "␛]52;c;aGk=␇", id="a clipboard write"),
        pytest.param("a\tb\nc\r\0", "a␉b␊c␍␀", id="white space"),
        pytest.param("\x7f\x9b31m", "␡\ufffd31m", id="DEL and C1"),
        pytest.param("abc\u202etxt.exe", "abc\ufffdtxt.exe", id="turned around"),
        pytest.param("ﷺ 日本 é 👩\u200d🔬", "ﷺ 日本 é 👩\u200d🔬", id="scripts and a joined sign stay"),
        pytest.param("[red]$x [@click=app.quit]", "[red]$x [@click=app.quit]", id="markup is text"),
    ],
)
def test_each_control_becomes_its_picture(text: str, shown: str) -> None:
    assert clean.line(text) == shown


def test_long_texts_are_cut() -> None:
    assert clean.line("x" * 1_000_000, 10) == "x" * 9 + "…"
    assert len(clean.block("x" * 1_000_000)) == clean.LONGEST_BLOCK


def test_a_block_keeps_its_lines_and_spaces_for_tabs() -> None:
    assert clean.block("a\r\n\tb\rc\x1b") == "a\n    b␍c␛"
